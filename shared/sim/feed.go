package sim

import (
	"cmp"
	"slices"
	"time"

	"holdfast/shared/doc"
)

// Feed is the model of the change feed: an index over bucket and version that
// follows the table some time later, the changes of different ids in any order.
type Feed struct {
	table   *Table
	entries map[doc.ID]*feedEntry
	buckets map[int]map[doc.ID]bool // whose ids may have something to show
	stalled time.Time               // until when nothing arrives
}

// feedEntry is how an id stands in the feed, and what is on its way there.
type feedEntry struct {
	shown  feedState
	coming []feedState // by their arrival
}

// feedState is an entry, or with version 0 that there is none.
type feedState struct {
	bucket  int
	version doc.Version
	deleted bool
	at      time.Time // of its arrival
	gap     time.Time // from when the entry before it is gone already; zero: no gap
}

func newFeed(t *Table) *Feed {
	return &Feed{table: t, entries: map[doc.ID]*feedEntry{}, buckets: map[int]map[doc.ID]bool{}}
}

// feedGap is how long an entry that moves is nowhere: less than a request takes.
const feedGap = 300 * time.Microsecond

// feedUsual is how late the feed usually is at most.
const feedUsual = 300 * time.Millisecond

// change sends a change on its way to the feed and tells when it arrives.
func (f *Feed) change(p *Process, was, now *item) time.Time {
	id := doc.ID("")
	s := feedState{at: f.table.w.now()}
	switch {
	case now != nil:
		id = now.id
		if now.bucket >= 0 && now.version > 0 {
			s.bucket, s.version, s.deleted = now.bucket, now.version, now.deleted
		}
	case was != nil:
		id = was.id
	default:
		return s.at
	}
	e := f.entries[id]
	if e == nil {
		e = &feedEntry{}
		f.entries[id] = e
	}
	if p != nil {
		late := time.Duration(p.rng.Int64N(int64(feedUsual)))
		if p.chance(f.table.w.rates.FeedLate) && f.table.w.rates.FeedMost > 0 {
			late = time.Duration(p.rng.Int64N(int64(f.table.w.rates.FeedMost)))
			f.table.w.faults["feed late"]++
		}
		s.at = s.at.Add(late)
	}
	if f.stalled.After(f.table.w.now()) {
		s.at = f.stalled.Add(s.at.Sub(f.table.w.now()) / 100)
	}
	// The changes of one item arrive in their order.
	if n := len(e.coming); n > 0 && s.at.Before(e.coming[n-1].at) {
		s.at = e.coming[n-1].at
	}
	if p != nil && p.rng.IntN(4) == 0 {
		s.gap = s.at.Add(-feedGap)
	}
	e.coming = append(e.coming, s)
	if s.version > 0 {
		if f.buckets[s.bucket] == nil {
			f.buckets[s.bucket] = map[doc.ID]bool{}
		}
		f.buckets[s.bucket][id] = true
	}
	return s.at
}

// at is how an id stands in the feed now.
func (f *Feed) at(id doc.ID) feedState {
	e := f.entries[id]
	if e == nil {
		return feedState{}
	}
	now := f.table.w.now()
	for len(e.coming) > 0 && !e.coming[0].at.After(now) {
		e.shown = e.coming[0]
		e.coming = e.coming[1:]
	}
	if len(e.coming) > 0 && !e.coming[0].gap.IsZero() && !e.coming[0].gap.After(now) {
		return feedState{}
	}
	return e.shown
}

// page gives the entries of a bucket behind a position, in their order.
func (f *Feed) page(bucket int, after doc.Version, afterID doc.ID, most int) []doc.Change {
	var all []doc.Change
	for id := range f.buckets[bucket] {
		s := f.at(id)
		if s.version == 0 || s.bucket != bucket || s.version < after || s.version == after && id <= afterID {
			continue
		}
		all = append(all, doc.Change{ID: id, Version: s.version, Collection: id.Collection(), Deleted: s.deleted})
	}
	slices.SortFunc(all, compareChanges)
	if most > 0 && len(all) > most {
		all = all[:most]
	}
	return all
}

func compareChanges(a, b doc.Change) int {
	return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.ID, b.ID))
}
