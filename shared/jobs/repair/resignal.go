package repair

import (
	"context"
	"maps"
	"slices"
	"time"

	"holdfast/shared/doc"
)

const (
	// grace is how old a change is when its absence from the index is first
	// taken for a loss. Before that its signal is most likely still on its way.
	grace = time.Minute
	// again is how often one id is signalled at most.
	again = 15 * time.Minute
)

// resignal sends signals again about what has been missing for a while.
//
// Which ids are due follows from their versions alone: a version becomes due
// when it is one grace old, and every 15 minutes from then on; a run signals
// those that have become due since ids were last chosen. That moment is kept
// before the signals are sent. So nothing has to be remembered about single ids,
// however many are missing, and no id is signalled more often than it should be,
// wherever a run is cut.
func (x *run) resignal(ctx context.Context, targets map[key]*captured, now time.Time) error {
	last := x.state.Signalled
	if now.Before(last) { // a clock was set back: what is due will be due later
		return nil
	}
	due := map[doc.ID]doc.Version{}
	for _, c := range targets {
		for id, v := range c.missing {
			if dueBetween(v.Time(), last, now) {
				due[id] = max(due[id], v)
			}
		}
	}
	x.state.Signalled = now.UTC()
	if err := x.save(ctx); err != nil {
		return err
	}
	signals := make([]doc.Signal, 0, len(due))
	for _, id := range slices.Sorted(maps.Keys(due)) {
		signals = append(signals, doc.Signal{ID: id, Version: due[id]})
	}
	sent, err := x.signal(ctx, signals)
	x.report.Resignalled += sent
	return err
}

// dueBetween reports whether a change becomes due after one moment and not after
// another.
func dueBetween(written, after, until time.Time) bool {
	return times(written, until) > times(written, after)
}

// times is how often a change has become due by a moment.
func times(written, by time.Time) int64 {
	age := by.Sub(written) - grace
	if by.IsZero() || age < 0 {
		return 0
	}
	return int64(age/again) + 1
}
