package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

const waitTime = 5 * time.Second

// wait waits for what the actor wrote, or for everything as of now, searches, and
// checks that nothing is missing where the answer says so (invariant 5).
func (w *World) wait(ctx context.Context, p *Process, a *actor, op Op, s *Store, plant *Plant) {
	index := newIndexPort(w, p)
	o := freshness.WaiterOptions{
		Index: index, Registry: s.state, Quarantine: s.state, Table: s, Feed: s,
		Proofs: freshness.NewProofBook(s.state, s.state, index, s.clk.Now), Now: s.clk.Now,
	}
	plant.waiter(&o)
	waiter := freshness.NewWaiter(o)
	began := w.now()
	read, err := s.reading(ctx)
	if err != nil {
		return
	}
	patience := freshness.Patience{Timeout: waitTime}
	var signals []doc.Signal
	for _, written := range a.wrote {
		signals = append(signals, doc.Signal{ID: written.ID, Version: written.Version})
	}
	var waited freshness.Waited
	if op.Kind == Wait {
		waited, err = waiter.Wait(ctx, signals, patience)
	} else if waited, read, err = s.asOfNow(ctx, waiter, read, patience); err != nil {
		return
	}
	w.mu.Lock()
	w.tell(p.name, "waited for %d: %d missing, %d quarantined, %v", waited.Documents, waited.MissingCount, waited.QuarantinedCount, err)
	if op.Kind == AsOf {
		signals = w.asOf(began, freshness.DefaultMargin)
	} else if err == nil && !waited.TimedOut() {
		for _, signal := range signals {
			if !w.sees(signal, waited, began) {
				w.violate(5, "a wait for %s at version %s is over, and searches do not see it", signal.ID, short(signal.Version))
			}
		}
	}
	w.mu.Unlock()
	if err != nil {
		return
	}
	request := search.Request{Limit: 1}
	for _, c := range sortedKeys(read) {
		g := read[c]
		request.From = append(request.From, search.Source{Collection: c, Generation: &g})
	}
	if _, err := index.Search(ctx, request); err != nil {
		return
	}
	told := freshness.ReporterOptions{
		Queue: unasked{}, Measures: unasked{}, Proofs: freshness.NewProofBook(s.state, s.state, index, s.clk.Now), Now: s.clk.Now,
	}
	plant.reporter(&told)
	staleness := freshness.NewReporter(told).Staleness(ctx, collections, waited)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell(p.name, "is told: %s", staleness.Notice)
	w.answered(read, index.searched, staleness, waited, signals, began)
}

// asOfNow waits as the API does, which waits again where another index is read
// by the end of it.
func (s *Store) asOfNow(ctx context.Context, waiter *freshness.Waiter, read map[doc.Collection]collection.Generation, patience freshness.Patience) (
	waited freshness.Waited, reads map[doc.Collection]collection.Generation, err error,
) {
	for range 4 {
		patience.Read = read
		if waited, err = waiter.AsOfNow(ctx, collections, nil, patience); err != nil || waited.TimedOut() {
			break
		}
		before := read
		if read, err = s.reading(ctx); err != nil || maps.EqualFunc(before, read, func(a, b collection.Generation) bool { return a.Family == b.Family && a.Number == b.Number }) {
			break
		}
	}
	return waited, read, err
}

// reading is where queries read the collections; what has no index is left out.
func (s *Store) reading(ctx context.Context) (map[doc.Collection]collection.Generation, error) {
	read := map[doc.Collection]collection.Generation{}
	for _, c := range collections {
		d, err := s.state.Definition(ctx, c)
		if err != nil {
			return nil, err
		}
		all, err := s.state.Generations(ctx, d.Reads())
		if err != nil {
			return nil, err
		}
		if g, there := collection.Read(all); there {
			read[c] = g
		}
	}
	return read, nil
}

// unasked knows nothing of queues and nobody in quarantine: what the quarantine
// names is not looked for in answers.
type unasked struct{}

func (unasked) Depth(context.Context) (int, error)                              { return 0, nil }
func (unasked) Lag(context.Context) (m store.LagMeasure, ok bool, err error)    { return m, false, nil }
func (unasked) CountQuarantined(context.Context, []doc.Collection) (int, error) { return 0, nil }

// answered checks what an answer says of itself (invariant 5): one that is not
// stale, or says that everything is included that was waited for, has each of the
// signals, and all have everything up to the moment that is said to be proven.
// searched are the very indexes that the answer is from.
func (w *World) answered(read map[doc.Collection]collection.Generation, searched map[string]*physical, s freshness.Staleness, waited freshness.Waited, signals []doc.Signal, began time.Time) {
	now := w.now()
	if !s.Stale {
		w.fresh++
	}
	if !s.Stale || strings.Contains(s.Notice, "verything is included that was written before") {
		for _, signal := range signals {
			name := ""
			if g, there := read[signal.ID.Collection()]; there {
				name = g.IndexName(indexPrefix)
			}
			q, listed := w.State.quarantine[signal.ID]
			switch {
			case w.Table.items[signal.ID] == nil, slices.Contains(waited.Quarantined, signal.ID):
			case listed && q.Version >= signal.Version && !q.Partial:
				// What was refused before the last proof is not looked for any more:
				// the answer's count of the quarantine tells of it.
			case s.Stale && !w.Index.lost[name].Before(began):
				// Where nothing is proven nobody looks whether the index was lost
				// after everything was found in it.
			case searched[name] == nil:
				w.violate(5, "an answer from no index (stale %t) says that it has %s", s.Stale, signal.ID)
			default:
				if v := searched[name].visible(signal.ID, now); v == nil || v.version < signal.Version {
					w.violate(5, "an answer (stale %t) says that it has %s at version %s, which was not seen", s.Stale, signal.ID, short(signal.Version))
				}
			}
		}
	}
	if s.ProvenThrough == nil {
		return
	}
	seen := map[string]bool{}
	for _, c := range sortedKeys(read) {
		g := read[c]
		name := g.IndexName(indexPrefix)
		if seen[name] {
			continue
		}
		seen[name] = true
		index := searched[name]
		if index == nil { // there was none, which has nothing
			index = &physical{begun: now}
		}
		w.lacks(index, g, *s.ProvenThrough, *s.ProvenThrough, func(format string, args ...any) {
			w.violate(5, "an answer from "+name+" says that it is proven through "+s.ProvenThrough.Format("15:04:05.000")+", but "+format, args...)
		})
	}
}

// asOf is what a wait as of a moment has to have waited for: what was in the
// table then and in the feed a margin later.
func (w *World) asOf(began time.Time, margin time.Duration) []doc.Signal {
	var signals []doc.Signal
	for _, id := range sortedKeys(w.Table.history) {
		var newest doc.Version
		for _, s := range w.Table.history[id] {
			if s.item == nil {
				newest = 0
			} else if s.at.Before(began) && s.shown.Before(began.Add(margin)) && !s.foreign && !s.wild {
				newest = max(newest, s.item.version)
			}
		}
		if newest > 0 && !foreignSince(w.Table.history[id], began) && slices.Contains(collections, id.Collection()) {
			signals = append(signals, doc.Signal{ID: id, Version: newest})
		}
	}
	return signals
}

// readLife is how long queries may go on reading an index that is no longer the
// one to be read.
const readLife = 10 * time.Second

// sees tells whether searches see a version, in an index that queries may read,
// or nothing can be seen of it. What a wait has found in an index that was lost
// before its end is not held against it: who answers looks at that.
func (w *World) sees(s doc.Signal, waited freshness.Waited, began time.Time) bool {
	if w.Table.items[s.ID] == nil {
		return true
	}
	if q, ok := w.State.quarantine[s.ID]; slices.Contains(waited.Quarantined, s.ID) && ok && q.Version >= s.Version {
		return true
	}
	d := w.State.definition(s.ID.Collection())
	now := w.now()
	for _, family := range d.Writes() {
		for _, g := range w.State.family(family) {
			if g.State != collection.Active && now.Sub(g.Since) > readLife {
				continue
			}
			if !w.Index.lost[g.IndexName(indexPrefix)].Before(began) {
				return true
			}
			if i := w.Index.of(g); i == nil {
				continue
			} else if v := i.visible(s.ID, now); v != nil && v.version >= s.Version {
				return true
			}
		}
	}
	return false
}
