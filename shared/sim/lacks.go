package sim

import (
	"slices"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
)

// lacks tells what of everything that was written up to a moment, by this system
// and before another moment, an index does not show to searches although it
// should.
func (w *World) lacks(index *physical, g collection.Generation, through, before time.Time, tell func(format string, args ...any)) {
	now := w.now()
	limit := doc.VersionAt(through)
	for _, id := range sortedKeys(w.Table.history) {
		d := w.State.definition(id.Collection())
		if !slices.Contains(d.Writes(), g.Family) || d.Serving != nil && d.Reads() != g.Family {
			continue
		}
		var newest doc.Version
		for _, s := range w.Table.history[id] {
			if s.item != nil && !s.foreign && !s.wild && !s.at.After(before) && s.item.version <= limit {
				newest = max(newest, s.item.version)
			}
		}
		if newest == 0 || w.Table.items[id] == nil || foreignSince(w.Table.history[id], before) {
			continue
		}
		if q, ok := w.State.quarantine[id]; ok && q.Version >= newest {
			continue
		}
		if s := index.visible(id, now); s == nil || s.version < newest {
			held := doc.Version(0)
			if e := index.entries[id]; e != nil {
				held = e.version
			}
			tell("%s of version %s is not seen in it; it holds %s", id, short(newest), short(held))
			return
		}
	}
}

// foreignSince tells whether an id was, at a moment or since, as another tool
// left it. Then it is not in the feed; until it is adopted only the comparison of
// everything finds it.
func foreignSince(history []state, moment time.Time) bool {
	for k := len(history) - 1; k >= 0; k-- {
		if history[k].foreign {
			return true
		}
		if history[k].at.Before(moment) {
			return false
		}
	}
	return false
}
