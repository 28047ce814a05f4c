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
		history := w.Table.history[id]
		var newest doc.Version
		refused := false
		for _, s := range history {
			switch {
			case s.at.After(before):
			case s.item == nil && !s.reaped, s.foreign: // what it was before is nothing to be compared with
				newest = 0
			case s.item != nil && !s.wild && s.item.version <= limit && s.item.version > newest:
				newest, refused = s.item.version, poisonOf(s.item) == 4
			}
		}
		if newest == 0 || foreignSince(history, before) {
			continue
		}
		if w.Table.items[id] == nil {
			// A tombstone that has gone has nothing to be compared with. What it
			// deleted must not be there all the same.
			if s := index.visible(id, now); history[len(history)-1].reaped && s != nil && s.version < newest && !s.read().Deleted {
				tell("%s is seen in it at version %s although it was deleted at %s", id, short(s.version), short(newest))
				return
			}
			continue
		}
		if q, ok := w.State.quarantine[id]; ok && q.Version >= newest {
			continue
		}
		e := index.entries[id]
		if s := index.visible(id, now); s == nil && removedSince(history, newest) {
			continue // what has come since is newer, and not awaited
		} else if refused && e != nil && e.version > newest {
			continue // no longer in quarantine, because what came since was taken
		} else if s == nil || s.version < newest {
			held := doc.Version(0)
			if e != nil {
				held = e.version
			}
			tell("%s of version %s is not seen in it; it holds %s", id, short(newest), short(held))
			return
		}
	}
}

// removedSince tells whether an id was without any trace in the table at some time
// after a version, so that an index without it is one that has followed.
func removedSince(history []state, v doc.Version) bool {
	for k := len(history) - 1; k >= 0; k-- {
		if history[k].item == nil {
			return true
		}
		if history[k].item.version <= v {
			return false
		}
	}
	return false
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
