package httpapi

import (
	"context"

	"holdfast/shared/doc"
	"holdfast/shared/freshness"
)

// wait waits for what was asked for.
func (q *queries) wait(ctx context.Context, from []doc.Collection, w *waitRequest) (freshness.Waited, error) {
	if w.asOfNow {
		waited, err := q.o.Waiter.AsOfNow(ctx, from, w.signals, w.timeout)
		return waited, at(err, "/wait/asOfNow")
	}
	return q.o.Waiter.Wait(ctx, w.signals, w.timeout)
}
