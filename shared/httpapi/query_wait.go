package httpapi

import (
	"context"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
)

// silence is how long a query that takes a late answer waits for an index that
// does not answer: there will be no answer at all then, late or not.
const silence = time.Second

// mostWaits bounds how often a wait begins anew because its documents are read
// in another index by then. One index takes the place of another in minutes.
const mostWaits = 4

// wait waits for what was asked for, in the very indexes that the query then
// reads: what is in one that another has just taken the place of need not be in
// the other yet, or not be seen there.
func (q *queries) wait(ctx context.Context, asked *queryRequest) (freshness.Waited, error) {
	w, began := asked.wait, time.Now()
	var waited freshness.Waited
	left := w.timeout
	for range mostWaits {
		patience := freshness.Patience{Timeout: left, Read: asked.reads.generations()}
		if w.acceptLate {
			patience.Silence, patience.Partly = silence, true
		}
		var err error
		if w.asOfNow {
			waited, err = q.o.Waiter.AsOfNow(ctx, asked.from, w.signals, patience)
			err = at(err, "/wait/asOfNow")
		} else {
			waited, err = q.o.Waiter.Wait(ctx, w.signals, patience)
		}
		if err != nil || waited.TimedOut() {
			return waited, err
		}
		before := asked.reads
		if asked.reads, err = q.indexes.of(ctx, asked.from, false); err != nil {
			return waited, err
		}
		if sameSources(before.sources, asked.reads.sources) {
			return waited, nil
		}
		left = max(w.timeout-time.Since(began), 0)
		waited.Took = time.Since(began)
	}
	return waited, nil
}

// generations are those that the collections are read in. One that has no index
// yet has none.
func (r reading) generations() map[doc.Collection]collection.Generation {
	all := map[doc.Collection]collection.Generation{}
	for _, s := range r.sources {
		if s.Generation != nil {
			all[s.Collection] = *s.Generation
		}
	}
	return all
}
