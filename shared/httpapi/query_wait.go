package httpapi

import (
	"context"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/freshness"
)

// silence is how long a query that takes a late answer waits for an index that
// does not answer: there will be no answer at all then, late or not.
const silence = time.Second

// wait waits for what was asked for.
func (q *queries) wait(ctx context.Context, from []doc.Collection, w *waitRequest) (freshness.Waited, error) {
	patience := freshness.Patience{Timeout: w.timeout}
	if w.acceptLate {
		patience.Silence, patience.Partly = silence, true
	}
	if w.asOfNow {
		waited, err := q.o.Waiter.AsOfNow(ctx, from, w.signals, patience)
		return waited, at(err, "/wait/asOfNow")
	}
	return q.o.Waiter.Wait(ctx, w.signals, patience)
}
