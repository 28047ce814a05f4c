package pipeline

import (
	"context"
	"fmt"
	"runtime/debug"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
)

// item is one document on its way into all generations of its family.
type item struct {
	doc *doc.Document

	later    bool   // something of the environment failed: the signal goes back
	applied  bool   // a generation took it
	reduced  bool   // a generation refused it and took less of it
	lost     bool   // a generation took no form of it
	attempts int    // refusals
	reason   string // of the first refusal
}

// entry is one document on its way into one generation.
type entry struct {
	item       *item
	generation collection.Generation
	source     []byte // let go of once it was sent
	level      search.Reduction
	refusedFor string // the field that was complained of, if one was named
}

// batch is a number of documents that are written together. Its projections
// take about as much memory as a slice of the table.
type batch struct {
	r       *run
	items   []*item
	entries []*entry
	bytes   int
}

func newBatch(r *run) *batch { return &batch{r: r} }

// add projects a document for every generation it is written to.
func (b *batch) add(ctx context.Context, d *doc.Document) {
	it := &item{doc: d}
	before := len(b.entries)
	b.project(ctx, it)
	if len(b.entries) > before { // what cannot be sent must not stay in memory
		b.items = append(b.items, it)
	}
}

func (b *batch) project(ctx context.Context, it *item) {
	r, c := b.r, it.doc.ID.Collection()
	if r.unsure[c] {
		it.later = true
		return
	}
	generations, err := r.x.o.Generations.Of(ctx, c)
	if err != nil {
		r.unsure[c] = true
		it.later = true
		r.x.o.Log.WarnContext(ctx, "finding the generations of an index failed", "error", err)
		return
	}
	for _, g := range generations {
		if r.blocked[g.Family] {
			it.later = true
			continue
		}
		if !known(g) {
			// A newer program made this generation. It is written to as soon as
			// this function has been replaced too.
			it.later = true
			continue
		}
		e := &entry{item: it, generation: g}
		b.make(ctx, e, search.Full, nil)
		b.bytes += len(e.source)
		b.entries = append(b.entries, e)
	}
}

// make makes the index document of an entry at a level of reduction. Where the
// projection itself fails on the document, that is a refusal: it must cost
// neither the invocation nor the document's neighbours. It reports whether there
// is something to be sent.
func (b *batch) make(ctx context.Context, e *entry, level search.Reduction, fields search.Fields) (ok bool) {
	defer func() {
		if recover() != nil { // what was thrown may quote the document
			e.source, ok = nil, false
			e.item.refuse("the projection failed")
			b.r.x.o.Log.ErrorContext(ctx, "the projection of a document failed", "level", level, "stack", string(debug.Stack()))
		}
	}()
	e.level = level
	e.source = search.Reduce(*e.item.doc, e.generation, level, fields).Source
	return true
}

// refuse notes an attempt that failed because of the document.
func (it *item) refuse(reason string) {
	it.attempts++
	if it.reason == "" {
		it.reason = reason
	}
}

// write sends the batch, reduces what was refused, and settles what has an
// outcome. The rest stays undone.
func (b *batch) write(ctx context.Context) {
	refused, missing := b.send(ctx, b.entries)
	if len(missing) > 0 {
		again, notAgain := b.again(ctx, refused, missing)
		refused = append(notAgain, again...)
	}
	for level := search.Full + 1; level <= search.EnvelopeOnly && len(refused) > 0; level++ {
		refused = b.reduce(ctx, refused, level)
	}
	for _, e := range refused {
		e.item.lost = true
	}
	b.settle(ctx)
}

// again looks up the generations of documents whose index was missing, creates
// what has to exist, and sends these documents once more. It answers with the
// entries refused in this second round, and those of the first round that
// still stand.
func (b *batch) again(ctx context.Context, refused, missing []*entry) (again, notAgain []*entry) {
	r := b.r
	second := &batch{r: r}
	renewed := map[collection.Family]bool{}
	redo := map[*item]bool{}
	for _, e := range missing {
		it := e.item
		family := e.generation.Family
		if redo[it] { // all of its generations were looked up again
			continue
		}
		if r.blocked[family] {
			it.later = true
			continue
		}
		if !renewed[family] {
			renewed[family] = true
			if err := r.x.o.Generations.Renew(ctx, it.doc.ID.Collection()); err != nil {
				r.x.o.Log.WarnContext(ctx, "creating a missing index again failed", "error", err)
				r.blocked[family] = true
				it.later = true
				continue
			}
		}
		redo[it] = true
		*it = item{doc: it.doc}
		second.project(ctx, it)
	}
	for _, e := range refused {
		if !redo[e.item] {
			notAgain = append(notAgain, e)
		}
	}
	again, still := second.send(ctx, second.entries)
	for _, e := range still {
		e.item.later = true
		r.blocked[e.generation.Family] = true
	}
	return again, notAgain
}

// reduce sends what was refused in a smaller form and answers with what is
// refused again. Each form is an attempt of its own.
func (b *batch) reduce(ctx context.Context, refused []*entry, level search.Reduction) []*entry {
	r := b.r
	var send, again []*entry
	fields := map[string]search.Fields{}
	for _, e := range refused {
		if e.item.later || r.enough(ctx) {
			e.item.later = true
			continue
		}
		var mapped search.Fields
		if level == search.KnownFields {
			key := fmt.Sprintf("%s %d", e.generation.Family, e.generation.Number)
			var ok bool
			if mapped, ok = fields[key]; !ok {
				var err error
				if mapped, err = r.x.o.Index.MappedFields(ctx, e.generation); err != nil {
					r.x.o.Log.WarnContext(ctx, "reading the fields of an index failed", "error", err)
					e.item.later = true
					continue
				}
				fields[key] = mapped
			}
		}
		if e.refusedFor != "" && mapped != nil {
			mapped = mapped.Without(e.refusedFor)
		}
		if !b.make(ctx, e, level, mapped) {
			again = append(again, e)
			continue
		}
		send = append(send, e)
	}
	refusedAgain, missing := b.send(ctx, send)
	for _, e := range missing {
		e.item.later = true
	}
	return append(again, refusedAgain...)
}

// send writes entries and notes every outcome. It answers with the entries
// that were refused for what they are, and those whose index was missing.
func (b *batch) send(ctx context.Context, entries []*entry) (refused, missing []*entry) {
	var ops []search.Operation
	var sent []*entry
	for _, e := range entries {
		if e.source == nil { // there is none
			refused = append(refused, e)
			continue
		}
		ops = append(ops, search.Operation{ID: e.item.doc.ID, Version: e.item.doc.Version, Generation: e.generation, Source: e.source})
		sent = append(sent, e)
		if t := b.r.tasks[e.item.doc.ID]; t != nil {
			t.tried = true
		}
	}
	if len(ops) == 0 {
		return refused, nil
	}
	r := b.r
	limited, cancel := context.WithTimeout(ctx, writeTime)
	outcomes, err := r.x.o.Index.Write(limited, ops)
	cancel()
	for _, e := range sent {
		e.source = nil
	}
	if err != nil || len(outcomes) != len(ops) {
		for _, e := range sent {
			e.item.later = true
		}
		if !r.enough(ctx) {
			r.stopped = true
			r.x.o.Log.ErrorContext(ctx, "writing to the index could not be tried", "operations", len(ops), "outcomes", len(outcomes), "error", err)
		}
		return refused, nil
	}
	for i, e := range sent {
		o := outcomes[i]
		switch {
		case o.Kind == search.Applied:
			e.item.applied = true
			e.item.reduced = e.item.reduced || e.level > search.Full
			r.taken(e.item.doc.ID)
		case o.Kind == search.Stale:
		case o.Kind == search.Refused:
			e.item.refuse(o.Reason)
			e.refusedFor = o.Field
			refused = append(refused, e)
		case o.IndexMissing:
			missing = append(missing, e)
		default:
			e.item.later = true
		}
	}
	b.learn(ctx, sent, outcomes)
	return refused, missing
}

// learn draws conclusions from failures of the environment: when nothing got
// through because nobody answers or everything is refused for load, the rest
// of the invocation is not tried; when nothing of one family got through, its
// documents are not.
func (b *batch) learn(ctx context.Context, sent []*entry, outcomes []search.Outcome) {
	r := b.r
	failed, overload := 0, 0
	through := map[collection.Family]bool{}
	var first search.Outcome
	for i, o := range outcomes {
		if o.Kind != search.Environment || o.IndexMissing {
			through[sent[i].generation.Family] = true
			continue
		}
		if failed == 0 {
			first = o
		}
		failed++
		if o.Status == 0 || o.Status == 429 || o.Status >= 500 {
			overload++
		}
	}
	if failed == 0 {
		return
	}
	r.x.o.Log.WarnContext(ctx, "the index did not take documents", "failed", failed, "of", len(outcomes), "status", first.Status, "reason", first.Reason)
	if overload == len(outcomes) {
		r.stopped = true
	}
	for _, e := range sent {
		if !through[e.generation.Family] {
			r.blocked[e.generation.Family] = true
		}
	}
}

// settle records and counts the outcomes of the batch's documents.
func (b *batch) settle(ctx context.Context) {
	r := b.r
	var whole []*item
	for _, it := range b.items {
		switch {
		case it.later:
		case it.lost, it.reduced:
			if err := r.x.quarantine.record(ctx, it.entry(r.x.o.Now())); err != nil {
				r.x.o.Log.WarnContext(ctx, "recording a document in the quarantine failed", "error", err)
				continue
			}
			if it.lost {
				r.settle(it.doc.ID, &r.report.Quarantined)
			} else {
				r.settle(it.doc.ID, &r.report.Partial)
			}
		default:
			whole = append(whole, it)
		}
	}
	if err := r.x.quarantine.clear(ctx, whole); err != nil {
		// The documents are in the index; writing them again does no harm, and
		// an entry that stays would speak of a problem that is gone.
		r.x.o.Log.WarnContext(ctx, "clearing the quarantine failed", "error", err)
		return
	}
	for _, it := range whole {
		if it.applied {
			r.settle(it.doc.ID, &r.report.Applied)
		} else {
			r.settle(it.doc.ID, &r.report.Stale)
		}
	}
}
