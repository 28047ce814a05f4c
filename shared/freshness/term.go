package freshness

import (
	"context"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
)

const (
	// leastTimeout is what even an impatient wait takes, to ask at all.
	leastTimeout = 25 * time.Millisecond
	// overtime is what a wait may take beyond its end, for what is under way by
	// then and to make visible what was found.
	overtime = 75 * time.Millisecond
	// refreshTime is what one try of a refresh may take.
	refreshTime = 3 * time.Second
)

// term is the time that a wait has.
type term struct {
	time context.Context // ends with the timeout
	late context.Context // ends a little later: for what is under way by then
}

func newTerm(ctx context.Context, timeout time.Duration) (t term, end func()) {
	late, endLate := context.WithTimeout(ctx, timeout+overtime)
	limited, endTime := context.WithTimeout(late, timeout)
	return term{time: limited, late: late}, func() { endTime(); endLate() }
}

// refresh makes what the index holds visible to searches. It tries until the
// wait ends or, with silence, is given up, and at least once; the error is the
// last failure. unanswered says that the index does not answer, rather than that
// the wait's end came before its answer.
func (w *Waiter) refresh(t term, signals []doc.Signal, patience Patience) (unanswered bool, err error) {
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if err = w.refreshOnce(t.late, signals, patience.Read); err == nil {
			return false, nil
		}
		took := time.Since(began)
		if t.late.Err() == nil || took >= silentAfter {
			unanswered = doc.KindOf(err) == doc.IndexUnavailable
		}
		if patience.Silence > 0 && took >= patience.Silence {
			return unanswered, err
		}
		select {
		case <-t.time.Done():
			return unanswered, err
		case <-time.After(pause):
		}
	}
}

func (w *Waiter) refreshOnce(ctx context.Context, signals []doc.Signal, read map[doc.Collection]collection.Generation) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	_, active, err := w.grouped(ctx, signals, read)
	if err != nil {
		return err
	}
	var all []collection.Generation
	for _, generations := range active {
		all = append(all, generations...)
	}
	if len(all) == 0 {
		return nil // nothing is indexed, so there is nothing to be shown
	}
	if err := w.o.Index.Refresh(ctx, all); err != nil {
		w.o.Log.WarnContext(ctx, "refreshing the index failed", "error", err)
		return err
	}
	return nil
}
