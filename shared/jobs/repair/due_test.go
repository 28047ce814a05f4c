package repair

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// However runs are spaced, one change is signalled as often as whole pauses have
// passed since it became due, at most once in a run, and never twice within the
// pause, but for what two neighbouring runs make of their own spacing.
func TestWhatIsDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		written := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		last := written
		var signalled []time.Time
		every := rapid.IntRange(1, 200).Draw(t, "most seconds between runs")
		for range rapid.IntRange(1, 300).Draw(t, "runs") {
			now := last.Add(time.Duration(rapid.IntRange(0, every).Draw(t, "pause")) * time.Second)
			if dueBetween(written, last, now) {
				signalled = append(signalled, now)
			}
			last = now
		}
		age := last.Sub(written)
		if age < grace && len(signalled) > 0 {
			t.Fatal("signalled too early")
		}
		if want := int(max(age-grace+again, 0) / again); age >= grace && len(signalled) != want {
			t.Fatalf("signalled %d times in %s, not %d", len(signalled), age, want)
		}
		for i := 1; i < len(signalled); i++ {
			if signalled[i].Sub(signalled[i-1]) < again-time.Duration(every)*time.Second {
				t.Fatalf("signalled again after %s", signalled[i].Sub(signalled[i-1]))
			}
		}
	})
}

func TestRetriesDouble(t *testing.T) {
	since := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var at []time.Duration
	n := 0
	for after := time.Duration(0); after <= 30*time.Hour; after += time.Minute {
		if now := retries(since, since.Add(after)); now > n {
			at, n = append(at, after), now
		}
	}
	want := []time.Duration{2 * time.Minute}
	for pause := 4 * time.Minute; pause < lastRetry; pause *= 2 {
		want = append(want, want[len(want)-1]+pause)
	}
	for want[len(want)-1]+lastRetry <= 30*time.Hour {
		want = append(want, want[len(want)-1]+lastRetry)
	}
	if !slices.Equal(at, want) {
		t.Errorf("retries after\n%v, not\n%v", at, want)
	}
}
