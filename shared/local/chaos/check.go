package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"holdfast/shared/doc"
)

// seen is all that was looked at in the end.
type seen struct {
	writes map[doc.ID][]write  // what the writers know
	sights []sight             // what loads showed meanwhile
	table  map[doc.ID]held     // by loads
	feed   map[doc.ID]standing // by the change feed
	index  []found             // by a query for everything
}

// Findings are what is not as promised. All have to be none.
type Findings struct {
	// Lost are acknowledged writes that neither stand in the table nor gave way
	// to a later write.
	Lost int `json:"lost"`
	// Duplicated are writes that happened twice, and documents that a query
	// returns more than once.
	Duplicated int `json:"duplicated"`
	// Extra are documents that a query finds though they were deleted or never
	// written, and entries of table and feed that nobody wrote.
	Extra int `json:"extra"`
	// Unfound are documents of the table that a query does not find as they are.
	Unfound int `json:"unfound"`
	// Disorder are versions that went back in time, writes that were refused and
	// happened, conditions that did not hold, loads that showed less than had been
	// acknowledged before, and a feed that says something else than the table.
	Disorder int `json:"disorder"`

	// Examples say which, the first of each kind.
	Examples []string `json:"examples,omitempty"`

	shown map[*int]int
}

// None reports whether all is as promised.
func (f *Findings) None() bool {
	return f.Lost+f.Duplicated+f.Extra+f.Unfound+f.Disorder == 0
}

// mostExamples is how many examples of one kind are kept.
const mostExamples = 10

func (f *Findings) add(kind *int, format string, args ...any) {
	*kind++
	if f.shown == nil {
		f.shown = map[*int]int{}
	}
	if f.shown[kind]++; f.shown[kind] <= mostExamples {
		f.Examples = append(f.Examples, fmt.Sprintf(format, args...))
	}
}

// check holds what was seen against what the writers know.
func check(s seen) *Findings {
	f := &Findings{}
	for _, id := range slices.Sorted(maps.Keys(s.writes)) {
		table, live := s.table[id]
		feed, told := s.feed[id]
		f.checkStanding(id, s.writes[id], table, live, feed, told)
		f.checkOrder(id, s.writes[id])
	}
	for _, id := range slices.Sorted(maps.Keys(s.table)) {
		if _, issued := s.writes[id]; !issued {
			f.add(&f.Extra, "%s is in the table and was never written", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.feed)) {
		if _, issued := s.writes[id]; !issued {
			f.add(&f.Extra, "%s is in the change feed and was never written", id)
		}
	}
	for _, x := range s.sights {
		f.checkSight(x, s.writes[x.id])
	}
	f.checkIndex(s)
	return f
}

// checkSight checks what one load showed: nothing older than what had been
// acknowledged when it began, and nothing that was refused.
func (f *Findings) checkSight(x sight, writes []write) {
	var top write
	for _, w := range writes {
		if w.outcome == acknowledged && w.ended < x.begun && w.version > top.version {
			top = w
		}
	}
	if !x.live {
		deleted := slices.ContainsFunc(writes, func(w write) bool {
			return w.delete && (w.outcome == unknown || w.outcome == acknowledged && w.version >= top.version)
		})
		if top.version > 0 && !deleted {
			f.add(&f.Disorder, "%s was acknowledged at %d, and a load after that showed nothing", x.id, top.version)
		}
		return
	}
	i := slices.IndexFunc(writes, func(w write) bool { return !w.delete && w.sum == x.sum })
	switch {
	case x.version < top.version:
		f.add(&f.Disorder, "%s was acknowledged at %d, and a load after that showed %d", x.id, top.version, x.version)
	case i < 0:
		f.add(&f.Disorder, "a load showed %s at %d with a content that nobody wrote", x.id, x.version)
	case writes[i].outcome == refused:
		f.add(&f.Disorder, "a load showed %s at %d by a write that was refused", x.id, x.version)
	}
}

// checkStanding checks how one document stands in the table: as an acknowledged
// write left it, and the newest of them, or as one whose outcome is unknown did,
// and that is newer still.
func (f *Findings) checkStanding(id doc.ID, writes []write, table held, live bool, feed standing, told bool) {
	var top write // the newest that was acknowledged
	for _, w := range writes {
		if w.outcome == acknowledged && w.version > top.version {
			top = w
		}
	}
	switch {
	case live && (!told || feed.deleted || feed.version != table.version):
		f.add(&f.Disorder, "%s is loaded at %d, and the change feed shows %+v", id, table.version, feed)
	case !live && told && !feed.deleted:
		f.add(&f.Disorder, "%s is not there, and the change feed shows it at %d", id, feed.version)
	}
	if !live {
		f.checkGone(id, writes, top, feed, told)
		return
	}
	i := slices.IndexFunc(writes, func(w write) bool { return !w.delete && w.sum == table.sum })
	if i < 0 {
		f.add(&f.Lost, "%s stands at %d with a content that nobody wrote", id, table.version)
		return
	}
	switch w := writes[i]; {
	case table.version < top.version:
		f.add(&f.Lost, "%s was acknowledged at %d and stands at %d", id, top.version, table.version)
	case w.outcome == refused:
		f.add(&f.Disorder, "%s stands at %d by a write that was refused", id, table.version)
	case w.outcome == acknowledged && w.version < table.version:
		f.add(&f.Duplicated, "%s stands at %d by a write that was acknowledged at %d", id, table.version, w.version)
	case w.outcome == acknowledged && w.version > table.version:
		f.add(&f.Lost, "%s stands at %d by a write that was acknowledged at %d", id, table.version, w.version)
	case w.outcome == unknown && table.version == top.version:
		f.add(&f.Lost, "%s stands at %d, which was acknowledged, with the content of another write", id, table.version)
	}
}

// checkGone checks a document that is not there.
func (f *Findings) checkGone(id doc.ID, writes []write, top write, feed standing, told bool) {
	deletes := func(o outcome) bool {
		return slices.ContainsFunc(writes, func(w write) bool { return w.delete && w.outcome == o })
	}
	switch {
	case top.version == 0 && (!told || deletes(unknown)):
		// Nothing was acknowledged, so nothing need be there.
	case top.delete && told && feed.version == top.version:
	case told && feed.version > top.version && deletes(unknown):
	case told && feed.version > top.version && deletes(refused):
		f.add(&f.Disorder, "%s was deleted at %d by a write that was refused", id, feed.version)
	case !told:
		f.add(&f.Lost, "%s was acknowledged at %d, and there is no trace of it", id, top.version)
	default:
		f.add(&f.Lost, "%s was acknowledged at %d and is gone; the change feed shows %+v", id, top.version, feed)
	}
}

// checkOrder checks that versions are in the order of time, that no two writes
// have one, and that conditions held.
func (f *Findings) checkOrder(id doc.ID, writes []write) {
	var sure []write
	for _, w := range writes {
		if w.outcome == acknowledged && w.version > 0 {
			sure = append(sure, w)
		}
	}
	slices.SortStableFunc(sure, func(a, b write) int { return cmp.Compare(a.version, b.version) })
	for i, w := range sure {
		// A delete whose answer was lost, and that then finds the document deleted, is
		// told the version of that delete, its own or not.
		if i > 0 && sure[i-1].version == w.version && !(w.delete && sure[i-1].delete) {
			f.add(&f.Duplicated, "%s: two writes were acknowledged at %d", id, w.version)
		}
		for _, later := range sure[i+1:] {
			if later.version > w.version && later.ended < w.begun {
				f.add(&f.Disorder, "%s: what was acknowledged at %d was over before the write began that got %d", id, later.version, w.version)
			}
		}
		if w.base == 0 {
			continue
		}
		for _, between := range sure[:i] {
			if between.version > w.base && between.version < w.version {
				f.add(&f.Disorder, "%s: the write at %d demanded %d, and the write at %d was lost to it", id, w.version, w.base, between.version)
			}
		}
	}
}

// checkIndex checks that a query finds exactly what the table holds.
func (f *Findings) checkIndex(s seen) {
	times := map[doc.ID]int{}
	for _, x := range s.index {
		if times[x.id]++; times[x.id] > 1 {
			f.add(&f.Duplicated, "%s is found more than once", x.id)
			continue
		}
		table, live := s.table[x.id]
		switch {
		case !live:
			f.add(&f.Extra, "%s is found at %d and is not in the table", x.id, x.version)
		case table.version != x.version:
			f.add(&f.Unfound, "%s is found at %d and stands at %d", x.id, x.version, table.version)
		case table.sum != x.sum:
			f.add(&f.Unfound, "%s is found at %d with another content than the table has", x.id, x.version)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.table)) {
		if times[id] == 0 {
			f.add(&f.Unfound, "%s stands at %d and is not found", id, s.table[id].version)
		}
	}
}
