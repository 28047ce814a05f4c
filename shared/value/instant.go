package value

import "time"

// maxFraction is how many digits a fraction of a second may have in an instant:
// nanoseconds, the most that Go's time and the index keep.
const maxFraction = 9

// ParseInstant reads an instant in strict RFC 3339: four digits of year, an
// upper-case T, seconds from 00 to 59, a real day of the Gregorian calendar, an
// upper-case Z or a numeric offset, and at most nine digits of fraction. All
// other text, leap seconds and longer fractions included, is text and no
// instant. The result is in UTC.
func ParseInstant(s string) (time.Time, bool) {
	// 2006-01-02T15:04:05Z is the shortest, and most text fails right here.
	if len(s) < len("2006-01-02T15:04:05Z") || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return time.Time{}, false
	}
	year, ok1 := digits(s[0:4])
	month, ok2 := digits(s[5:7])
	day, ok3 := digits(s[8:10])
	hour, ok4 := digits(s[11:13])
	minute, ok5 := digits(s[14:16])
	second, ok6 := digits(s[17:19])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) {
		return time.Time{}, false
	}
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	rest := s[19:]
	nanoseconds := 0
	if rest[0] == '.' {
		n := 1
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		fraction := rest[1:n]
		if fraction == "" || len(fraction) > maxFraction {
			return time.Time{}, false
		}
		nanoseconds, _ = digits(fraction)
		for range maxFraction - len(fraction) {
			nanoseconds *= 10
		}
		rest = rest[n:]
	}
	offset, ok := parseOffset(rest)
	if !ok {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, nanoseconds, time.UTC).Add(-offset), true
}

// parseOffset reads Z or ±hh:mm. RFC 3339 allows -00:00 for an unknown local
// offset; the instant is known all the same.
func parseOffset(s string) (time.Duration, bool) {
	if s == "Z" {
		return 0, true
	}
	if len(s) != len("+01:00") || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	hours, ok1 := digits(s[1:3])
	minutes, ok2 := digits(s[4:6])
	if !ok1 || !ok2 || hours > 23 || minutes > 59 {
		return 0, false
	}
	offset := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if s[0] == '-' {
		offset = -offset
	}
	return offset, true
}

// digits reads up to nine decimal digits.
func digits(s string) (n int, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// daysIn is the number of days of a month: the day before the next month's
// first.
func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}
