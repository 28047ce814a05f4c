package doc_test

import (
	"testing"
	"time"

	"holdfast/shared/doc"

	"pgregory.net/rapid"
)

func TestNextGrowsWhateverTheClockDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		clock := doc.NewClock(func() time.Time { return now })
		var last doc.Version
		for range 50 {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "step")))
			next := clock.Next(last)
			if next <= last {
				t.Fatalf("%d after %d", next, last)
			}
			if next > last+1 && next != doc.VersionAt(now) {
				t.Fatalf("%d is neither the clock's %d nor %d + 1", next, doc.VersionAt(now), last)
			}
			last = next
		}
	})
}

func TestVersionsAreExactInJSONForThisCentury(t *testing.T) {
	end := doc.VersionAt(time.Date(2199, 12, 31, 0, 0, 0, 0, time.UTC))
	if int64(float64(end)) != int64(end) || end >= 1<<53 {
		t.Errorf("%d does not fit 53 bits", end)
	}
}

func TestParseVersionReadsOnlyWhatStringWrites(t *testing.T) {
	if v, ok := doc.ParseVersion("1796029203123456"); !ok || v != 1796029203123456 || v.String() != "1796029203123456" {
		t.Errorf("got %d %v", v, ok)
	}
	for _, bad := range []string{"", "0", "-1", "+1", "01", "1.0", "1e3", " 1", "9223372036854775808"} {
		if _, ok := doc.ParseVersion(bad); ok {
			t.Errorf("ParseVersion(%q) is refused", bad)
		}
	}
}

func TestClockFollowsTheAuthority(t *testing.T) {
	local := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	clock := doc.NewClock(func() time.Time { return local })
	for _, c := range []struct {
		name      string
		authority time.Time
		want      time.Time
	}{
		{"a good clock is left alone", local, local},
		{"the header has whole seconds only", local.Add(-900 * time.Millisecond), local},
		{"behind by a minute", local.Add(time.Minute), local.Add(time.Minute - 100*time.Millisecond)},
		{"ahead by a minute", local.Add(-time.Minute), local.Add(-time.Minute + time.Second)},
	} {
		clock.Correct(c.authority, local, local.Add(100*time.Millisecond))
		if got := clock.Now(); !got.Equal(c.want) {
			t.Errorf("%s: now %s, want %s", c.name, got, c.want)
		}
	}
}

func TestConditions(t *testing.T) {
	for _, c := range []struct {
		name      string
		condition doc.Condition
		version   doc.Version
		ok        bool
	}{
		{"nothing demanded, nothing there", doc.Condition{}, 0, true},
		{"nothing demanded, something there", doc.Condition{}, 5, true},
		{"absent, nothing there", doc.Condition{Absent: true}, 0, true},
		{"absent, something there", doc.Condition{Absent: true}, 5, false},
		{"exists, nothing there", doc.Condition{Exists: true}, 0, false},
		{"exists, something there", doc.Condition{Exists: true}, 5, true},
		{"the version", doc.Condition{Exists: true, AnyOf: []doc.Version{5}}, 5, true},
		{"another version", doc.Condition{Exists: true, AnyOf: []doc.Version{4}}, 5, false},
		{"one of several", doc.Condition{Exists: true, AnyOf: []doc.Version{4, 5}}, 5, true},
		{"a version, nothing there", doc.Condition{Exists: true, AnyOf: []doc.Version{4}}, 0, false},
	} {
		err := c.condition.Check(c.version)
		if (err == nil) != c.ok || err != nil && doc.KindOf(err) != doc.VersionConflict {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestExpiry(t *testing.T) {
	end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := doc.Document{ExpiresAt: end}
	if !d.Live(end.Add(-time.Microsecond)) || d.Live(end) {
		t.Error("a document lives until its end, exclusively")
	}
	if !(doc.Document{}).Live(end) || (doc.Document{Deleted: true}).Live(end) {
		t.Error("without an end it lives; deleted it does not")
	}
}
