package repair

import (
	"context"
	"maps"
	"slices"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
)

// move takes collections further whose documents go to the index of another
// family: from the shared one to their own, or back.
//
// From the announcement on documents are written to both. When everybody does
// so, a comparison finds what the new index does not have, and signals it; when
// nothing is open any more, queries read it; and when all of them do, the old one
// is no longer written to. What is left of the collection in the shared index is
// removed by the next walk through it.
func (x *run) move(ctx context.Context) error {
	for _, c := range slices.Sorted(maps.Keys(x.definitions)) {
		d := x.definitions[c]
		if d.Serving == nil || x.Now().Sub(d.Since) < x.Settle {
			continue
		}
		next := d
		next.Since = x.Now().UTC().Truncate(time.Microsecond)
		switch {
		case d.Moved:
			next.Serving, next.Moved, next.Since = nil, false, time.Time{}
			x.want("documents have moved to another index")
		case x.complete(d):
			next.Moved = true
		default:
			continue
		}
		err := x.State.AmendDefinition(ctx, next, d)
		if doc.KindOf(err) == doc.VersionConflict {
			continue // it was changed meanwhile: the next run sees how
		}
		if err != nil {
			return err
		}
		next.Amended++
		x.definitions[c] = next
		x.Log.InfoContext(ctx, "documents moved to another index", "collection", c, "family", next.Family(), "done", next.Serving == nil)
	}
	return nil
}

// complete reports whether all documents of the collection are in the index of
// the family that is declared: a comparison that began after everybody wrote to
// it has nothing open, and the change feed proves what came since, up to just now.
// The index must have the declared form.
func (x *run) complete(d collection.Definition) bool {
	g, ok := collection.Read(x.generations[d.Family()])
	if !ok || !g.Form().Same(d.FormIn(d.Family())) {
		return false
	}
	k := moveKey(d)
	based := x.state.Based[k]
	if based.IsZero() || based.Before(d.Since.Add(x.Settle)) || x.state.TooMany[k] || len(x.openOf(k)) > 0 {
		return false
	}
	p, proven := x.proofs[keyOf(g)]
	return proven && p.Through.After(based) && x.lately(p)
}
