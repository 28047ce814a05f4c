package sim

import (
	"fmt"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/search"
)

// lately is how old a proof may be with which an index begins to be read.
const lately = 4 * time.Minute

// begins checks that an index that queries begin to read shows what was written
// until a little before (invariant 5).
func (w *World) begins(g collection.Generation) {
	now := w.now()
	through := now.Add(-w.margin - lately)
	index := w.Index.of(g)
	if lost := w.Index.lost[g.IndexName(indexPrefix)]; lost.After(through) {
		return
	}
	if index == nil {
		w.violate(5, "%s-%d begins to be read and is not there", g.Family, g.Number)
		return
	}
	w.lacks(index, g, through, through, func(format string, args ...any) {
		w.violate(5, fmt.Sprintf("%s-%d begins to be read, but ", g.Family, g.Number)+format, args...)
	})
}

// unfinished is what of a change of indexes is not done (invariant 7); it is
// called with the lock held.
func (w *World) unfinished(tell func(format string, args ...any)) {
	used := map[collection.Family]collection.Definition{collection.SharedFamily: {}} // canaries at least are there
	for _, c := range collections {
		d := w.State.definition(c)
		if d.Serving != nil {
			tell("the documents of %s are still on their way to another index", c)
		}
		used[d.Reads()] = d
	}
	for _, f := range sortedKeys(w.State.generations) {
		d, ok := used[f]
		written := 0
		for _, g := range w.State.family(f) {
			if !g.Written() {
				continue
			}
			written++
			i := w.Index.of(g)
			switch name := g.IndexName(indexPrefix); {
			case !ok:
				tell("%s is still written to", name)
			case g.State != collection.Active, !g.Form().Same(d.FormIn(f)), g.Projector != search.Projector:
				tell("%s is not yet what is declared: %+v", name, g)
			case i == nil || i.spoiled:
				tell("%s is not there, or not what it should be", name)
			case len(w.Index.aliases[f]) != 1 || !w.Index.aliases[f][name]:
				tell("the alias of %s leads elsewhere than to %s", f, name)
			}
		}
		if ok && written > 1 {
			tell("%d generations of %s are written to", written, f)
		}
	}
}
