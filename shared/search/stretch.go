package search

import (
	"strconv"
	"strings"
	"time"
)

// Unit is the length of a stretch of time: a calendar unit in some zone, or a
// whole number of fixed ones in UTC, counted from 1970.
type Unit struct {
	calendar string        // OpenSearch's word for one of it; "" for a fixed length
	fixed    time.Duration // of several days, hours, minutes or seconds
}

var calendarUnits = map[string]string{
	"y": "year", "q": "quarter", "M": "month", "w": "week", "d": "day", "h": "hour", "m": "minute",
}

var fixedUnits = map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second}

// maxStretch bounds fixed lengths; whoever wants more means a calendar's unit.
const maxStretch = 366 * 24 * time.Hour

// ParseUnit reads a number and a letter: 1y 1q 1M 1w 1d 1h 1m are the
// calendar's units, weeks begin on Monday, and several days, hours, minutes, or
// any number of seconds are of fixed length.
func ParseUnit(s string) (Unit, bool) {
	if len(s) < 2 {
		return Unit{}, false
	}
	number, letter := s[:len(s)-1], s[len(s)-1:]
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || strconv.Itoa(n) != number {
		return Unit{}, false
	}
	if calendar := calendarUnits[letter]; n == 1 && calendar != "" {
		return Unit{calendar: calendar}, true
	}
	one := fixedUnits[letter]
	if one == 0 || time.Duration(n) > maxStretch/one {
		return Unit{}, false
	}
	return Unit{fixed: time.Duration(n) * one}, true
}

// IsFixed reports whether the unit has a fixed length, which knows no zone.
func (u Unit) IsFixed() bool { return u.fixed > 0 }

// dsl is the part of a date histogram that says how long its stretches are.
func (u Unit) dsl(into object, zone *time.Location) {
	if u.IsFixed() {
		into["fixed_interval"] = strconv.FormatInt(u.fixed.Milliseconds(), 10) + "ms"
		return
	}
	into["calendar_interval"] = u.calendar
	if zone != time.UTC {
		into["time_zone"] = zone.String()
	}
}

// start is the beginning of the stretch that t lies in.
func (u Unit) start(t time.Time, zone *time.Location) time.Time {
	if u.IsFixed() {
		ms, length := t.UnixMilli(), u.fixed.Milliseconds()
		rest := ms % length
		if rest < 0 {
			rest += length
		}
		return time.UnixMilli(ms - rest).UTC()
	}
	local := t.In(zone)
	year, month, day := local.Date()
	hour, minute := 0, 0
	switch u.calendar {
	case "year":
		month, day = time.January, 1
	case "quarter":
		month, day = month-(month-1)%3, 1
	case "month":
		day = 1
	case "week":
		day -= (int(local.Weekday()) + 6) % 7
	case "hour":
		hour = local.Hour()
	case "minute":
		hour, minute = local.Hour(), local.Minute()
	}
	wall := time.Date(year, month, day, hour, minute, 0, 0, time.UTC)
	if u.calendar == "hour" || u.calendar == "minute" {
		return lastInstant(wall, t, zone)
	}
	return firstInstant(wall, zone)
}

// readings are the instants at which clocks in the zone may show the wall time
// (given as if it were UTC): by the offset from before and after a change that
// may be near, the earlier instant first. Where the clocks skip it there are
// none.
func readings(wall time.Time, zone *time.Location) []time.Time {
	var found []time.Time
	for _, near := range []time.Duration{-30 * time.Hour, 30 * time.Hour} {
		_, offset := wall.Add(near).In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		if _, there := at.In(zone).Zone(); there == offset && (len(found) == 0 || !found[0].Equal(at)) {
			found = append(found, at)
		}
	}
	if len(found) == 2 && found[1].Before(found[0]) {
		found[0], found[1] = found[1], found[0]
	}
	return found
}

// firstInstant is when clocks in the zone first show the wall time, or, where
// they skip it, when they do.
func firstInstant(wall time.Time, zone *time.Location) time.Time {
	if found := readings(wall, zone); len(found) > 0 {
		return found[0].In(zone)
	}
	return skipOver(wall, zone)
}

// lastInstant is when clocks in the zone show the wall time for the last time
// that is not after t.
func lastInstant(wall, t time.Time, zone *time.Location) time.Time {
	found := readings(wall, zone)
	for i := len(found) - 1; i >= 0; i-- {
		if !found[i].After(t) {
			return found[i].In(zone)
		}
	}
	return skipOver(wall, zone)
}

// skipOver is when the clocks in the zone jump over the wall time.
func skipOver(wall time.Time, zone *time.Location) time.Time {
	_, before := wall.Add(-30 * time.Hour).In(zone).Zone()
	after := wall.Add(-time.Duration(before) * time.Second)
	jump, _ := after.In(zone).ZoneBounds()
	if jump.IsZero() {
		return after.In(zone)
	}
	return jump.In(zone)
}

// instantText is RFC 3339 with the zone's offset, or in UTC where the zone's
// offset has seconds, as local times of long ago do, or where the zone's clocks
// show a year of other than four digits. Where UTC's do so too, it has the
// smallest offset in hours with which they do not. It reports false for an
// instant that no offset brings into the years 0 to 9999.
func instantText(t time.Time) (string, bool) {
	if _, offset := t.Zone(); offset%60 == 0 && writable(t) {
		return t.Format(time.RFC3339), true
	}
	east := 1
	if t.Year() > 9999 {
		east = -1
	}
	for minutes := 0; minutes <= 24*60; minutes += 60 {
		// 23:59 is the largest offset that there is.
		t = t.In(time.FixedZone("", east*min(minutes, 24*60-1)*60))
		if writable(t) {
			return t.Format(time.RFC3339), true
		}
	}
	return "", false
}

func writable(t time.Time) bool { return t.Year() >= 0 && t.Year() <= 9999 }

// ParseZone reads the name of a time zone, such as Europe/Berlin, or an offset,
// such as +02:00.
func ParseZone(s string) (*time.Location, bool) {
	if t, err := time.Parse("-07:00", s); err == nil {
		_, offset := t.Zone()
		if offset == 0 {
			return time.UTC, true
		}
		return time.FixedZone(s, offset), offset > -18*3600 && offset < 18*3600
	}
	if s == "" || s == "Local" || strings.ContainsAny(s, " \\") {
		return nil, false
	}
	zone, err := time.LoadLocation(s)
	if err != nil {
		return nil, false
	}
	return zone, true
}
