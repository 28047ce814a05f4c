package sim

import (
	"context"
	"slices"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
)

const waitTime = 5 * time.Second

// wait waits for what the actor wrote, or for everything as of now, and checks
// that nothing is missing where the answer says so (invariant 5).
func (w *World) wait(ctx context.Context, p *Process, a *actor, op Op, s *Store, plant *Plant) {
	o := freshness.WaiterOptions{
		Index: newIndexPort(w, p), Registry: s.state, Quarantine: s.state, Table: s, Feed: s,
		Proofs: freshness.NewProofBook(s.state, s.state, s.clk.Now), Now: s.clk.Now,
	}
	plant.waiter(&o)
	waiter := freshness.NewWaiter(o)
	began := w.now()
	patience := freshness.Patience{Timeout: waitTime}
	var signals []doc.Signal
	for _, written := range a.wrote {
		signals = append(signals, doc.Signal{ID: written.ID, Version: written.Version})
	}
	var waited freshness.Waited
	var err error
	if op.Kind == Wait {
		waited, err = waiter.Wait(ctx, signals, patience)
	} else {
		signals = nil
		waited, err = waiter.AsOfNow(ctx, collections, nil, patience)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell(p.name, "waited for %d: %d missing, %d quarantined, %v", waited.Documents, waited.MissingCount, waited.QuarantinedCount, err)
	if err != nil || waited.TimedOut() {
		return
	}
	if op.Kind == AsOf {
		signals = w.asOf(began, freshness.DefaultMargin)
	}
	for _, signal := range signals {
		// What was refused before the last proof is not looked for any more: the
		// answer's count of the quarantine tells of it.
		if q, ok := w.State.quarantine[signal.ID]; op.Kind == AsOf && ok && q.Version >= signal.Version && !q.Partial {
			continue
		}
		if !w.fresh(signal, waited) {
			w.violate(5, "a wait of %s for %s at version %s is over, and searches do not see it", op.Kind, signal.ID, short(signal.Version))
		}
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

// fresh tells whether searches see a version, in an index that queries may read,
// or nothing can be seen of it.
func (w *World) fresh(s doc.Signal, waited freshness.Waited) bool {
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
			i := w.Index.of(g)
			// An index that was lost is noticed by the next run of repair. Until
			// then what was proven of it is believed.
			if proof := w.State.proofs[proofKey{family, g.Number}]; i == nil || i.begun.Add(readLife).After(now) || i.begun.After(proof.At) && !proof.At.IsZero() {
				return true
			}
			if v := i.visible(s.ID, now); v != nil && v.version >= s.Version {
				return true
			}
		}
	}
	return false
}
