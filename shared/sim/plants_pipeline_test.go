package sim_test

import (
	"bytes"
	"context"
	"slices"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/pipeline"
	"holdfast/shared/search"
	"holdfast/shared/sim"
	"holdfast/shared/store"
)

// writes is an index whose writes are done in another way.
type writes struct {
	pipeline.Index
	write func(ctx context.Context, x pipeline.Index, ops []search.Operation) ([]search.Outcome, error)
}

func (w writes) Write(ctx context.Context, ops []search.Operation) ([]search.Outcome, error) {
	return w.write(ctx, w.Index, ops)
}

func writing(write func(context.Context, pipeline.Index, []search.Operation) ([]search.Outcome, error)) sim.Plant {
	return sim.Plant{Index: func(x pipeline.Index) pipeline.Index { return writes{x, write} }}
}

// told changes what is told of the outcomes.
func told(change func(all []search.Outcome, i int)) sim.Plant {
	return writing(func(ctx context.Context, x pipeline.Index, ops []search.Operation) ([]search.Outcome, error) {
		outcomes, err := x.Write(ctx, ops)
		for i := range outcomes {
			change(outcomes, i)
		}
		return outcomes, err
	})
}

// sends is a queue that keeps its failures to itself.
type sends struct{ pipeline.Sender }

func (s sends) Send(ctx context.Context, out []pipeline.Outgoing) []error {
	s.Sender.Send(ctx, out)
	return nil
}

func silent(q pipeline.Sender) pipeline.Sender { return sends{q} }

// remembers is a table that is read once for each document.
type remembers struct {
	pipeline.Table
	seen map[doc.ID]doc.Document
}

func (r remembers) Revisions(ctx context.Context, ids []doc.ID, most int, visit func([]doc.Document, []doc.ID) error) error {
	return r.Table.Revisions(ctx, ids, most, func(found []doc.Document, absent []doc.ID) error {
		for i, d := range found {
			if old, ok := r.seen[d.ID]; ok {
				found[i] = old
			} else {
				r.seen[d.ID] = d
			}
		}
		return visit(found, absent)
	})
}

// forgetsDeletes is a table that takes tombstones for nothing.
type forgetsDeletes struct{ pipeline.Table }

func (f forgetsDeletes) Revisions(ctx context.Context, ids []doc.ID, most int, visit func([]doc.Document, []doc.ID) error) error {
	return f.Table.Revisions(ctx, ids, most, func(found []doc.Document, absent []doc.ID) error {
		var live []doc.Document
		for _, d := range found {
			if d.Deleted {
				absent = append(absent, d.ID)
			} else {
				live = append(live, d)
			}
		}
		return visit(live, absent)
	})
}

// ledger is one whose records are kept in another way.
type ledger struct {
	pipeline.Ledger
	record func(context.Context, pipeline.Ledger, doc.Quarantined) error
	clear  func(context.Context, pipeline.Ledger, doc.ID, doc.Version) error
}

func (l ledger) RecordQuarantine(ctx context.Context, q doc.Quarantined) error {
	if l.record == nil {
		return l.Ledger.RecordQuarantine(ctx, q)
	}
	return l.record(ctx, l.Ledger, q)
}

func (l ledger) ClearQuarantine(ctx context.Context, c doc.Collection, id doc.ID, upTo doc.Version) error {
	if l.clear == nil {
		return l.Ledger.ClearQuarantine(ctx, c, id, upTo)
	}
	return l.clear(ctx, l.Ledger, id, upTo)
}

// readsOnly is a registry that tells only of the generation that is read.
type readsOnly struct{ pipeline.Registry }

func (r readsOnly) Generations(ctx context.Context, f collection.Family) ([]collection.Generation, error) {
	all, err := r.Registry.Generations(ctx, f)
	if g, ok := collection.Read(all); ok {
		return []collection.Generation{g}, err
	}
	return all, err
}

// adoptsNothing leaves what other tools write as it is.
type adoptsNothing struct{}

func (adoptsNothing) Adopt(context.Context, store.Foreign) error { return nil }

var deletedMark = []byte(`"$deleted":true`)

func pipelineFaults() []planted {
	environment := search.Outcome{Kind: search.Environment, Status: 500}
	var counter doc.Version
	return []planted{
		{"the index's version condition is dropped", 0, []int{2, 3}, true, writing(func(ctx context.Context, x pipeline.Index, ops []search.Operation) ([]search.Outcome, error) {
			return x.(*sim.IndexPort).Overwrite(ctx, ops), nil
		})},
		{"a counter instead of the version", 0, []int{2}, true, writing(func(ctx context.Context, x pipeline.Index, ops []search.Operation) ([]search.Outcome, error) {
			ops = slices.Clone(ops)
			for i := range ops {
				counter++
				ops[i].Version = counter
			}
			return x.Write(ctx, ops)
		})},
		{"acknowledged before the bulk", 0, []int{2, 4}, true, sim.Plant{Handler: func(w *sim.World, h sim.Handler) sim.Handler {
			return func(ctx context.Context, messages []pipeline.Message) ([]string, error) {
				for _, m := range messages {
					w.Ack(m.ID)
				}
				return h(ctx, messages)
			}
		}}},
		{"errors of items are ignored", 0, []int{2, 4}, true, told(func(all []search.Outcome, i int) {
			if all[i].Kind == search.Environment && !all[i].IndexMissing {
				all[i].Kind = search.Applied
			}
		})},
		{"refusals are taken for success", 0, []int{2, 4}, true, told(func(all []search.Outcome, i int) {
			if all[i].Kind == search.Refused {
				all[i].Kind = search.Applied
			}
		})},
		{"an outage counts as the document's fault", 0, []int{2, 4}, true, told(func(all []search.Outcome, i int) {
			if all[i].Kind == search.Environment && !all[i].IndexMissing {
				all[i] = search.Outcome{Kind: search.Refused, Status: 400, Reason: "an outage"}
			}
		})},
		{"a stale document is tried again for ever", 0, []int{6, 2, 4}, true, told(func(all []search.Outcome, i int) {
			if all[i].Kind == search.Stale {
				all[i] = environment
			}
		})},
		{"a poison document fails its neighbours", 0, []int{6}, true, told(func(all []search.Outcome, i int) {
			if all[i].Kind == search.Refused {
				for k := range all {
					all[k] = environment
				}
			}
		})},
		{"deletes are plain deletes", 0, []int{3, 2}, true, writing(func(ctx context.Context, x pipeline.Index, ops []search.Operation) ([]search.Outcome, error) {
			outcomes := make([]search.Outcome, len(ops))
			for i, op := range ops {
				var one []search.Outcome
				var err error
				if bytes.Contains(op.Source, deletedMark) {
					one, err = x.(*sim.IndexPort).Erase(ctx, op.Generation, []doc.Signal{{ID: op.ID, Version: op.Version}})
				} else {
					one, err = x.Write(ctx, []search.Operation{op})
				}
				if err != nil {
					return nil, err
				}
				outcomes[i] = one[0]
			}
			return outcomes, nil
		})},
		{"the table is not read again", 0, []int{2, 4}, true, sim.Plant{Table: func(t pipeline.Table) pipeline.Table {
			return remembers{t, map[doc.ID]doc.Document{}}
		}}},
		{"a tombstone is taken for nothing", 0, []int{2}, true, sim.Plant{Table: func(t pipeline.Table) pipeline.Table { return forgetsDeletes{t} }}},
		{"the relay's failures to send are ignored", 0, []int{2, 4}, true, sim.Plant{RelayQueue: silent}},
		{"failures to send back are ignored", 0, []int{2, 4}, true, sim.Plant{IndexerQueue: silent}},
		{"foreign changes are not adopted", 0, []int{2}, true, sim.Plant{Adopter: func(pipeline.Adopter) pipeline.Adopter { return adoptsNothing{} }}},
		{"the quarantine is never cleared", 0, []int{4}, false, sim.Plant{Ledger: func(l pipeline.Ledger) pipeline.Ledger {
			return ledger{Ledger: l, clear: func(context.Context, pipeline.Ledger, doc.ID, doc.Version) error { return nil }}
		}}},
		{"the quarantine is cleared whatever the version", 0, []int{4}, true, sim.Plant{Ledger: func(l pipeline.Ledger) pipeline.Ledger {
			return ledger{Ledger: l, record: func(ctx context.Context, l pipeline.Ledger, q doc.Quarantined) error {
				if err := l.RecordQuarantine(ctx, q); err != nil {
					return err
				}
				if q.Attempts > 2 { // as of a version that is older
					return l.ClearQuarantine(ctx, q.Collection, q.ID, q.Version)
				}
				return nil
			}}
		}}},
		{"a generation that is built is not written to", 0, []int{5, 7}, false, sim.Plant{Registry: func(r pipeline.Registry) pipeline.Registry { return readsOnly{r} }}},
	}
}

func storeFaults() []planted {
	return []planted{
		{"the nonce is ignored", 0, []int{1, 4}, true, sim.Plant{Store: (*sim.Store).IgnoreNonce}},
		{"writes do not compare versions", 0, []int{1, 3, 4}, true, sim.Plant{Store: (*sim.Store).Blind}},
		{"tombstones live shorter than messages", 193, []int{2, 5}, true, sim.Plant{
			Store:   func(s *sim.Store) { s.Tombstones(1) },
			Engines: func(w *sim.World) { w.ReapAfter(0) },
		}},
	}
}
