package repair

import (
	"context"
	"maps"
	"slices"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
	"holdfast/shared/store"
	"holdfast/shared/value"
)

// segments is how many parts of the table a pass reads one after the other. A
// run that is cut goes on within a part, so the number only shows progress.
const segments = 16

// pass is a comparison under way.
type pass struct {
	Reason  string    `json:"reason"`
	Started time.Time `json:"started"`
	Segment int       `json:"segment"`         // of the table, under way; segments: done
	After   string    `json:"after,omitempty"` // where in it
	// Walked are the generations whose index was gone through, and WalkAfter is
	// where in the next one.
	Walked    map[string]bool `json:"walked"`
	WalkAfter doc.ID          `json:"walkAfter,omitempty"`
	// From are the generations that are looked at, each with the version beyond
	// which the change feed is what proves it.
	From map[string]doc.Version `json:"from"`
	// Proven are those that were proven as the pass began: what is found there
	// is a drift.
	Proven map[string]bool `json:"proven"`
	// Moves are those that were under way as the run that began the pass read the
	// definitions, with when they began: what was not known from the first
	// document on was not looked for in all of them.
	Moves       map[string]time.Time   `json:"moves"`
	Tally       Tally                  `json:"tally"`
	TooMany     map[string]bool        `json:"tooMany"` // generations with more than are kept
	Differences []Difference           `json:"differences,omitempty"`
	Bytes       int                    `json:"bytes"` // of the differences
	CountBytes  int                    `json:"countBytes"`
	Counts      map[doc.Collection]int `json:"counts"`
}

// Bounds of what is kept by name: the state is one item of a table whose items
// are at most 400 KB.
const (
	maxDifferenceBytes = 100 << 10 // of the differences, of which there are those of a pass and those still open
	maxCountBytes      = 40 << 10  // of the names and numbers of documents by collection
	recordBytes        = 120       // what one of them takes besides its names, generously
)

func (p *pass) figures() *PassFigures {
	f := &PassFigures{Reason: p.Reason, Started: p.Started, Segment: min(p.Segment, segments), Segments: segments, Tally: p.Tally}
	f.Differences = slices.Clone(p.Differences[:min(len(p.Differences), maxShown)])
	return f
}

// maxShown is how many differences a report names.
const maxShown = 20

// want notes that a comparison is to begin as soon as it may.
func (x *run) want(reason string) {
	if x.state.Wanted == "" {
		x.state.Wanted = reason
	}
}

// compare goes on with a comparison, or begins one where that is due, as far as
// the time allows, and looks again at what earlier ones found.
func (x *run) compare(ctx context.Context) error {
	if x.unwell {
		return nil
	}
	if err := x.recheck(ctx); err != nil {
		return err
	}
	for x.left() > 0 {
		if x.state.Pass == nil {
			reason := x.due()
			if reason == "" {
				return nil
			}
			// Of an index that was begun meanwhile, by whomever, nothing can be
			// proven before it is known which one it is.
			for _, family := range x.families() {
				if err := x.inspect(ctx, family); err != nil {
					return err
				}
			}
			x.begin(reason)
			// What was written and not refreshed yet is slow to be looked up.
			if err := x.Index.Refresh(ctx, x.allWritten()); err != nil {
				x.unwell = true
				return err
			}
		}
		done, err := x.goOn(ctx)
		if saveErr := x.save(ctx); saveErr != nil {
			return saveErr
		}
		if err != nil || !done {
			return err
		}
		if err := x.finish(ctx); err != nil {
			return err
		}
		if err := x.awaitOpen(ctx); err != nil {
			return err
		}
	}
	return nil
}

// due is why a comparison has to begin now; "": it has not.
func (x *run) due() string {
	now := x.Now()
	if x.state.Wanted != "" {
		return x.state.Wanted
	}
	for _, g := range x.allWritten() {
		if _, proven := x.proofs[keyOf(g)]; proven || !x.arrived(noteKey(g)) {
			continue
		}
		if g.State == collection.Building && now.Sub(g.Since) < x.Settle {
			continue // not everybody writes to it yet
		}
		return "an index is not proven"
	}
	for _, c := range slices.Sorted(maps.Keys(x.definitions)) {
		d := x.definitions[c]
		if d.Serving == nil || d.Moved || now.Sub(d.Since) < x.Settle || !x.arrived(moveKey(d)) {
			continue
		}
		if k := moveKey(d); x.state.Based[k].Before(d.Since.Add(x.Settle)) || x.state.TooMany[k] || len(x.openOf(k)) > 0 {
			return "documents move to another index"
		}
	}
	if now.Sub(x.state.Compared) >= x.CompareEvery || now.Before(x.state.Compared) {
		return "daily"
	}
	return ""
}

// arriving is how long after a pass its signals are given when all that is known
// of them is that the queue is not empty.
const arriving = time.Minute

// arrived reports whether what the last pass signalled about a generation or a
// move has arrived, as far as can be told. Another pass before that would find it
// missing and signal it all again; it is made all the same when the pause between
// two signals about one document is over.
//
// What is open by name tells it best: that is the first part of what was
// signalled. How full the queue is tells little, because others use it too.
func (x *run) arrived(k string) bool {
	since := x.Now().Sub(x.state.Ended)
	switch {
	case since < 0 || since >= again:
		return true
	case len(x.openOf(k)) > 0:
		return false
	}
	return !x.state.TooMany[k] || x.queueDepth == 0 || since >= arriving
}

// begin begins a pass.
func (x *run) begin(reason string) {
	now := x.Now().UTC()
	p := &pass{
		Reason: reason, Started: now, From: map[string]doc.Version{}, Proven: map[string]bool{},
		TooMany: map[string]bool{}, Walked: map[string]bool{}, Counts: map[doc.Collection]int{}, Moves: map[string]time.Time{},
	}
	for _, d := range x.definitions {
		if d.Serving != nil && !d.Moved {
			p.Moves[moveKey(d)] = d.Since
		}
	}
	for _, g := range x.allWritten() {
		proof, ok := x.proofs[keyOf(g)]
		p.From[noteKey(g)] = doc.VersionAt(now.Add(-x.Margin))
		if ok {
			p.From[noteKey(g)], p.Proven[noteKey(g)] = doc.VersionAt(proof.Through), true
		}
	}
	x.state.Pass, x.state.Wanted = p, ""
}

// goOn does a part of the pass; done is true when it came to its end.
func (x *run) goOn(ctx context.Context) (done bool, err error) {
	p := x.state.Pass
	for p.Segment < segments {
		if x.left() <= 0 {
			return false, nil
		}
		page, err := x.Table.Scan(ctx, store.ScanQuery{Segment: p.Segment, Segments: segments, After: p.After})
		if err != nil {
			return false, err
		}
		if err := x.comparePage(ctx, p, page.Items); err != nil {
			return false, err
		}
		p.After = page.Next
		if p.After == "" {
			p.Segment++
		}
	}
	return x.walk(ctx, p)
}

// comparePage holds what a page of the table brought against the index.
func (x *run) comparePage(ctx context.Context, p *pass, items []store.Scanned) error {
	wanted := map[key]map[doc.ID]*doc.Document{}
	byKey := map[key]collection.Generation{}
	now := x.Now()
	var live []doc.Collection
	for i := range items {
		d := &items[i].Document
		if items[i].Foreign {
			p.Tally.Foreign++
			if err := x.adopt(ctx, d.ID, items[i].Seen); err != nil {
				return err
			}
			continue // its new version comes by the stream
		}
		c := d.ID.Collection()
		if d.Live(now) {
			live = append(live, c)
		}
		// A table that was restored, or filled by another tool, may have documents
		// of which the state knows nothing.
		if err := x.State.Register(ctx, c); err != nil {
			return err
		}
		if err := x.beginFamilies(ctx, c); err != nil {
			return err
		}
		for _, g := range x.written(c) {
			from, looked := p.From[noteKey(g)]
			// Of what is proven, the change feed proves the rest. Elsewhere an id
			// that changes all the time would be looked at by nobody: its newest
			// version is beyond the pass, and the index may have none of it.
			if !looked || d.Version > from && p.Proven[noteKey(g)] && !x.filling(c, g) {
				continue
			}
			if wanted[keyOf(g)] == nil {
				wanted[keyOf(g)], byKey[keyOf(g)] = map[doc.ID]*doc.Document{}, g
			}
			wanted[keyOf(g)][d.ID] = d
		}
	}
	var signals []doc.Signal
	for _, k := range slices.SortedFunc(maps.Keys(wanted), compareKeys) {
		differing, err := x.differing(ctx, byKey[k], wanted[k])
		if err != nil {
			return err
		}
		p.Tally.Checked += len(wanted[k])
		for _, d := range differing {
			if err := x.found(ctx, p, byKey[k], d); err != nil {
				return err
			}
			if d.Reason == different || d.Reason == ahead {
				continue // adopted: its new version comes by the stream
			}
			signals = append(signals, doc.Signal{ID: d.ID, Version: d.Version})
		}
	}
	sent, err := x.signal(ctx, signals)
	x.report.Resignalled += sent
	if err != nil {
		return err // the page is read again, and counted then
	}
	for _, c := range live {
		p.count(c)
	}
	return nil
}

// count counts a live document of a collection, unless there are too many
// collections to be told.
func (p *pass) count(c doc.Collection) {
	if _, known := p.Counts[c]; !known {
		if p.CountBytes += len(c) + 16; p.CountBytes > maxCountBytes {
			return
		}
	}
	p.Counts[c]++
}

// The reasons of differences.
const (
	missing   = "missing"
	older     = "older"
	different = "different"
	extra     = "extra"
	ahead     = "ahead"
)

// differing are the documents that a generation's index does not hold as the
// table does.
func (x *run) differing(ctx context.Context, g collection.Generation, wanted map[doc.ID]*doc.Document) ([]Difference, error) {
	var differing []Difference
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(wanted)), chunk) {
		held, err := x.Index.Held(ctx, g, ids)
		if err != nil {
			x.unwell = true
			return nil, err
		}
		for _, id := range ids {
			if reason := differs(wanted[id], held[id]); reason != "" {
				differing = append(differing, Difference{Family: g.Family, Number: g.Number, ID: id, Version: wanted[id].Version, Reason: reason})
			}
		}
	}
	return x.confirmed(ctx, g, differing, wanted)
}

// differs is how the index differs from the table about a document; "": it does
// not.
func differs(d *doc.Document, held search.Held) string {
	switch {
	case held.Version == 0:
		return missing
	case held.Version < d.Version:
		return older
	case held.Version > d.Version:
		return ahead // or the document has changed since the table was read
	case held.Deleted != d.Deleted, !d.Deleted && held.Sum != value.Sum(d.Data):
		return different
	}
	return ""
}

// confirmed strikes what is no difference: what the quarantine names, and what
// has changed in the table since it was read.
func (x *run) confirmed(ctx context.Context, g collection.Generation, all []Difference, wanted map[doc.ID]*doc.Document) ([]Difference, error) {
	if len(all) == 0 {
		return nil, nil
	}
	ids := make([]doc.ID, len(all))
	for i, d := range all {
		ids[i] = d.ID
	}
	quarantined, err := x.State.Quarantine(ctx, ids)
	if err != nil {
		return nil, err
	}
	standings, err := x.Table.Standings(ctx, ids)
	if err != nil {
		return nil, err
	}
	confirmed := all[:0]
	for _, d := range all {
		if q, ok := quarantined[d.ID]; ok && q.Version >= d.Version && !q.Partial {
			continue
		}
		standing, there := standings[d.ID]
		switch {
		case !there:
			continue // gone meanwhile; the walk through the index looks at that
		case standing.Version != d.Version && d.Reason == ahead:
			continue
		case standing.Version != d.Version && d.Reason == different:
			continue
		case d.Reason == different || d.Reason == ahead:
			held, err := x.Index.Held(ctx, g, []doc.ID{d.ID})
			if err != nil {
				return nil, err
			}
			if now := held[d.ID]; d.Reason == ahead && now.Version <= standing.Version || d.Reason == different && differs(wanted[d.ID], now) == "" {
				continue
			}
			// Content without a version of its own, or a version that the table
			// has lost: only a new version can be told from what is there.
			seen := store.Seen{Version: max(held[d.ID].Version, standing.Version)}
			if err := x.supersede(ctx, d.ID, seen); err != nil {
				return nil, err
			}
		}
		confirmed = append(confirmed, d)
	}
	return confirmed, nil
}

// adopt gives an item that another tool wrote its place in the order of
// versions.
func (x *run) adopt(ctx context.Context, id doc.ID, seen store.Seen) error {
	err := x.Table.Adopt(ctx, store.Foreign{ID: id, New: seen})
	return x.adopted(ctx, err)
}

// supersede gives the item as it stands a version above one that the index has
// seen.
func (x *run) supersede(ctx context.Context, id doc.ID, seen store.Seen) error {
	err := x.Table.Adopt(ctx, store.Foreign{ID: id, Old: seen})
	return x.adopted(ctx, err)
}

func (x *run) adopted(ctx context.Context, err error) error {
	switch doc.KindOf(err) {
	case "":
		if err == nil {
			x.report.Adopted++
		}
		return err
	case doc.DocumentTooLarge:
		// Nothing can be done about this item, and it must not stop the others.
		x.Log.WarnContext(ctx, "an item of another tool has no room for what Holdfast adds", "error", err)
		return nil
	}
	return err
}

// found notes a difference.
func (x *run) found(ctx context.Context, p *pass, g collection.Generation, d Difference) error {
	switch d.Reason {
	case missing:
		p.Tally.Missing++
	case older:
		p.Tally.Older++
	case different:
		p.Tally.Different++
	case extra:
		p.Tally.Extra++
	case ahead:
		p.Tally.Ahead++
	}
	k := noteKey(g)
	filling := x.filling(d.ID.Collection(), g)
	if filling {
		k = moveKey(x.definition(d.ID.Collection()))
	}
	if !filling && p.Proven[noteKey(g)] {
		x.report.Drift++
		p.Tally.Drift++
		if err := x.dropProof(ctx, g, d.Reason); err != nil {
			return err
		}
	}
	if p.Bytes += len(d.ID) + len(d.Family) + recordBytes; p.Bytes <= maxDifferenceBytes {
		p.Differences = append(p.Differences, d)
	} else {
		p.TooMany[k] = true
	}
	return nil
}

// finish ends a pass: where nothing is open, it proves.
func (x *run) finish(ctx context.Context) error {
	p := x.state.Pass
	figures := p.figures()
	figures.Finished = x.Now().UTC()
	x.state.Pass, x.state.Last = nil, figures
	if figures.Drift > 0 {
		drifted := *figures
		x.state.Drifted = &drifted
	}
	x.state.Compared, x.state.Ended = p.Started, figures.Finished
	x.state.Counts, x.state.CountedAt = p.Counts, p.Started
	x.state.Open, x.state.TooMany = p.Differences, p.TooMany
	x.state.Based = map[string]time.Time{}
	for k, from := range p.From {
		// What the pass left to the feed of an index that turned out to have
		// lost documents is not known: only another pass can prove it.
		if !p.Proven[k] || x.provenNote(k) {
			x.state.Based[k] = from.Time().UTC()
		}
	}
	for _, d := range x.definitions {
		if since, known := p.Moves[moveKey(d)]; known && d.Serving != nil && !d.Moved && since.Equal(d.Since) {
			x.state.Based[moveKey(d)] = p.Started
		}
	}
	x.Log.InfoContext(ctx, "compared table and index", "reason", p.Reason, "checked", p.Tally.Checked, "missing", p.Tally.Missing, "older", p.Tally.Older,
		"different", p.Tally.Different, "extra", p.Tally.Extra, "ahead", p.Tally.Ahead, "foreign", p.Tally.Foreign)
	return x.save(ctx)
}
