package sim

import (
	"context"
	"fmt"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
)

// IndexPort is one process's client of the search engine.
type IndexPort struct {
	w *World
	p *Process

	searched map[string]*physical // the indexes of the last search, by name
}

func newIndexPort(w *World, p *Process) *IndexPort { return &IndexPort{w: w, p: p} }

func (x *IndexPort) call(ctx context.Context, kind string, mutates bool, apply func()) error {
	if v := x.w.call(ctx, x.p, IndexEngine, kind, mutates, apply); v != told {
		return doc.Errorf(doc.IndexUnavailable, "the index cannot answer at the moment").Because(fmt.Errorf("%s:%s", kind, v))
	}
	return nil
}

// Ensure creates the generation's index and alias where they are missing.
func (x *IndexPort) Ensure(ctx context.Context, g collection.Generation) (err error) {
	if callErr := x.call(ctx, "ensure", true, func() { err = x.w.Index.ensure(g) }); callErr != nil {
		return callErr
	}
	return err
}

// Write carries operations out, each with an outcome of its own.
func (x *IndexPort) Write(ctx context.Context, ops []search.Operation) ([]search.Outcome, error) {
	for i, op := range ops {
		if op.ID == "" || op.Version <= 0 || len(op.Source) == 0 {
			return nil, fmt.Errorf("operation %d (%s) lacks an id, a version or a source", i, op.ID)
		}
	}
	return x.each(ctx, "bulk", len(ops), func(i int) search.Outcome {
		o := x.w.Index.write(ops[i])
		x.w.tell(x.name(), "  %s@%s into %s-%d: %s", ops[i].ID, short(ops[i].Version), ops[i].Generation.Family, ops[i].Generation.Number, o.Kind)
		return o
	}), nil
}

func (x *IndexPort) name() string {
	if x.p == nil {
		return ""
	}
	return x.p.name
}

// each makes one request of many operations.
func (x *IndexPort) each(ctx context.Context, kind string, n int, do func(i int) search.Outcome) []search.Outcome {
	outcomes, answered := make([]search.Outcome, n), false
	v := x.w.call(ctx, x.p, IndexEngine, kind, true, func() {
		outcomes := outcomes
		if answered { // a request that arrives this late has nobody to answer
			outcomes = make([]search.Outcome, n)
		}
		for i := range outcomes {
			if x.p != nil && !x.p.immune && x.p.chance(x.w.rates.Partial) {
				x.p.injured++
				x.w.faults["index item"]++
				outcomes[i] = search.Outcome{Kind: search.Environment, Status: []int{429, 503, 500, 403}[x.p.rng.IntN(4)], Reason: "opensearch could not write"}
				continue
			}
			if outcomes[i] = do(i); outcomes[i].IndexMissing && x.p != nil {
				x.p.injured++
			}
		}
	})
	answered = true
	if v == told {
		return outcomes
	}
	o := search.Outcome{Kind: search.Environment, Reason: "opensearch could not be reached"}
	if v == throttled {
		o.Status = 429
	}
	for i := range outcomes {
		outcomes[i] = o
	}
	return outcomes
}

// Erase takes entries out that are not newer than the signals.
func (x *IndexPort) Erase(ctx context.Context, g collection.Generation, signals []doc.Signal) ([]search.Outcome, error) {
	for i, s := range signals {
		if s.ID == "" || s.Version <= 0 {
			return nil, fmt.Errorf("signal %d (%s) lacks an id or a version", i, s.ID)
		}
	}
	return x.each(ctx, "erase", len(signals), func(i int) search.Outcome { return x.w.Index.erase(g, signals[i]) }), nil
}

// MappedFields are the fields that the generation's index has.
func (x *IndexPort) MappedFields(ctx context.Context, g collection.Generation) (fields search.Fields, err error) {
	missing := false
	err = x.call(ctx, "fields", false, func() {
		i := x.w.Index.of(g)
		if missing = i == nil; !missing {
			fields = i.fields()
		}
	})
	if err == nil && missing {
		err = fmt.Errorf("read the mapping of index %s: it is missing", g.IndexName(indexPrefix))
	}
	return fields, err
}

// Versions tells which version of each document the indexes have, in real time.
func (x *IndexPort) Versions(ctx context.Context, wanted []search.VersionOf) (map[doc.ID]doc.Version, error) {
	found, lacking := map[doc.ID]doc.Version{}, map[doc.ID]bool{}
	for _, one := range wanted {
		err := x.call(ctx, "mget", false, func() {
			i := x.w.Index.of(one.Generation)
			for _, id := range one.IDs {
				if i == nil || i.entries[id] == nil {
					lacking[id] = true
				} else if old, again := found[id]; !again || i.entries[id].version < old {
					found[id] = i.entries[id].version
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for id := range lacking {
		delete(found, id)
	}
	return found, nil
}

// Held tells what the index has of each document, in real time.
func (x *IndexPort) Held(ctx context.Context, g collection.Generation, ids []doc.ID) (map[doc.ID]search.Held, error) {
	all := map[doc.ID]search.Held{}
	err := x.call(ctx, "held", false, func() {
		i := x.w.Index.of(g)
		for _, id := range ids {
			if i == nil {
				return
			}
			if h, ok := i.held(id); ok {
				all[id] = h
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Walk is one step through what searches see of an index.
func (x *IndexPort) Walk(ctx context.Context, g collection.Generation, q search.WalkQuery) (all []search.Standing, err error) {
	err = x.call(ctx, "walk", false, func() {
		if i := x.w.Index.of(g); i != nil {
			all = i.walk(q, x.w.now())
		}
	})
	return all, err
}

// Counts are the numbers of documents that searches see, by collection.
func (x *IndexPort) Counts(ctx context.Context, g collection.Generation) (map[doc.Collection]int, error) {
	counts := map[doc.Collection]int{}
	err := x.call(ctx, "counts", false, func() {
		if i := x.w.Index.of(g); i != nil {
			for _, s := range i.walk(search.WalkQuery{}, x.w.now()) {
				if !s.Deleted {
					counts[s.Collection]++
				}
			}
		}
	})
	return counts, err
}

// Refresh makes what was written visible to searches.
func (x *IndexPort) Refresh(ctx context.Context, generations []collection.Generation) error {
	return x.call(ctx, "refresh", true, func() {
		for _, g := range generations {
			if i := x.w.Index.of(g); i != nil {
				i.refreshed = x.w.now()
			}
		}
	})
}

// Swap moves the family's alias.
func (x *IndexPort) Swap(ctx context.Context, to collection.Generation, from []collection.Generation) (err error) {
	if callErr := x.call(ctx, "swap", true, func() { err = x.w.Index.swap(to, from) }); callErr != nil {
		return callErr
	}
	return err
}

// Remove deletes an index.
func (x *IndexPort) Remove(ctx context.Context, g collection.Generation) error {
	return x.call(ctx, "remove index", true, func() { x.w.Index.lose(g.IndexName(indexPrefix)) })
}

// Inspect looks at the generation's index.
func (x *IndexPort) Inspect(ctx context.Context, g collection.Generation) (found search.Inspection, err error) {
	name := g.IndexName(indexPrefix)
	err = x.call(ctx, "inspect", false, func() {
		found = search.Inspection{}
		if i := x.w.Index.indexes[name]; i != nil {
			stands := x.w.Index.aliases[g.Family]
			found = search.Inspection{
				Exists: true, Fits: sameIndex(i.made, g) && !i.spoiled, Aliased: len(stands) == 1 && stands[name], UUID: i.uuid(),
			}
		}
	})
	return found, err
}

// UUID tells which index of the generation's name is there.
func (x *IndexPort) UUID(ctx context.Context, g collection.Generation) (uuid string, err error) {
	err = x.call(ctx, "uuid", false, func() {
		if i := x.w.Index.of(g); i != nil {
			uuid = i.uuid()
		}
	})
	return uuid, err
}

// Overwrite writes as a client does that states no version.
func (x *IndexPort) Overwrite(ctx context.Context, ops []search.Operation) []search.Outcome {
	return x.each(ctx, "overwrite", len(ops), func(i int) search.Outcome {
		index := x.w.Index.of(ops[i].Generation)
		if index == nil {
			return search.Outcome{Kind: search.Environment, Status: 404, IndexMissing: true}
		}
		index.put(x.w, ops[i].ID, ops[i].Version, ops[i].Source, x.w.now())
		return search.Outcome{Kind: search.Applied, Status: 200}
	})
}
