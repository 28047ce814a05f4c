package sim_test

import (
	"context"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/pipeline"
	"holdfast/shared/search"
	"holdfast/shared/sim"
	"holdfast/shared/store"
)

// The parts that repair works on, each with one thing done in another way.

type anyTable struct {
	repair.Table
	sweep     func(ctx context.Context, t repair.Table, from doc.Version, visit func([]doc.Change) error) error
	standings func(ctx context.Context, t repair.Table, ids []doc.ID) (map[doc.ID]store.Standing, error)
	scan      func(page store.ScanPage) store.ScanPage
}

func (t anyTable) Sweep(ctx context.Context, from doc.Version, visit func([]doc.Change) error) error {
	if t.sweep == nil {
		return t.Table.Sweep(ctx, from, visit)
	}
	return t.sweep(ctx, t.Table, from, visit)
}

func (t anyTable) Standings(ctx context.Context, ids []doc.ID) (map[doc.ID]store.Standing, error) {
	if t.standings == nil {
		return t.Table.Standings(ctx, ids)
	}
	return t.standings(ctx, t.Table, ids)
}

func (t anyTable) Scan(ctx context.Context, q store.ScanQuery) (store.ScanPage, error) {
	page, err := t.Table.Scan(ctx, q)
	if t.scan != nil {
		page = t.scan(page)
	}
	return page, err
}

type anyState struct {
	repair.State
	put  func(p store.Proof) store.Proof
	life func(g collection.Generation) collection.Generation
}

func (s anyState) PutProof(ctx context.Context, p store.Proof) (bool, error) {
	if s.put != nil {
		p = s.put(p)
	}
	return s.State.PutProof(ctx, p)
}

func (s anyState) PutGeneration(ctx context.Context, g collection.Generation, expected *collection.Generation) error {
	if s.life == nil {
		return s.State.PutGeneration(ctx, g, expected)
	}
	if err := s.State.PutGeneration(ctx, g, expected); err != nil {
		return err
	}
	if next := s.life(g); next.State != g.State {
		return s.State.PutGeneration(ctx, next, &g)
	}
	return nil
}

type anyIndex struct {
	repair.Index
	refreshes bool
	first     map[string]string // by generation, the UUID that is told ever after; nil: the true one
}

func (x anyIndex) Refresh(ctx context.Context, generations []collection.Generation) error {
	if x.refreshes {
		return x.Index.Refresh(ctx, generations)
	}
	return nil
}

func (x anyIndex) Inspect(ctx context.Context, g collection.Generation) (search.Inspection, error) {
	found, err := x.Index.Inspect(ctx, g)
	if x.first != nil && err == nil {
		found = search.Inspection{Exists: true, Fits: true, Aliased: true, UUID: x.told(g, found.UUID)}
	}
	return found, err
}

func (x anyIndex) UUID(ctx context.Context, g collection.Generation) (string, error) {
	uuid, err := x.Index.UUID(ctx, g)
	if x.first != nil && err == nil {
		uuid = x.told(g, uuid)
	}
	return uuid, err
}

func (x anyIndex) told(g collection.Generation, uuid string) string {
	name := g.IndexName("")
	if x.first[name] == "" {
		x.first[name] = uuid
	}
	return x.first[name]
}

// sendsNothing is a queue that says it has sent.
type sendsNothing struct{ pipeline.Queue }

func (sendsNothing) Send(context.Context, []pipeline.Outgoing) []error { return nil }

func repairing(change func(*repair.Options)) sim.Plant { return sim.Plant{Repair: change} }

func repairFaults() []planted {
	return []planted{
		{"the proof advances past a gap", 0, []int{5}, false, repairing(func(o *repair.Options) {
			o.State = anyState{State: o.State, put: func(p store.Proof) store.Proof {
				p.Through, p.Missing = p.At.Add(-p.Margin), 0
				return p
			}}
		})},
		{"the capture has an upper bound", 22, []int{5}, false, repairing(func(o *repair.Options) {
			now, margin := o.Now, o.Margin
			o.Table = anyTable{Table: o.Table, sweep: func(ctx context.Context, t repair.Table, from doc.Version, visit func([]doc.Change) error) error {
				bound := doc.VersionAt(now().Add(-margin))
				return t.Sweep(ctx, from, func(changes []doc.Change) error {
					var below []doc.Change
					for _, c := range changes {
						if c.Version <= bound {
							below = append(below, c)
						}
					}
					return visit(below)
				})
			}}
		})},
		{"no margin", 0, []int{5}, false, repairing(func(o *repair.Options) {
			o.State = anyState{State: o.State, put: func(p store.Proof) store.Proof {
				if p.Through.Equal(p.At.Add(-p.Margin).Truncate(time.Microsecond)) {
					p.Through = p.At
				}
				return p
			}}
		})},
		{"proven without a refresh", 0, []int{5}, false, repairing(func(o *repair.Options) { o.Index = anyIndex{Index: o.Index} })},
		{"a lost index is not noticed", 0, []int{2, 5, 7}, false, repairing(func(o *repair.Options) {
			o.Index = anyIndex{Index: o.Index, refreshes: true, first: map[string]string{}}
		})},
		{"nothing is signalled again", 0, []int{2, 4, 7}, false, repairing(func(o *repair.Options) { o.Queue = sendsNothing{o.Queue} })},
		{"a generation is read before it is proven", 0, []int{5}, false, repairing(func(o *repair.Options) {
			o.State = anyState{State: o.State, life: func(g collection.Generation) collection.Generation {
				if g.State == collection.Building {
					g.State = collection.Active
				}
				return g
			}}
		})},
		{"markers are purged while the tombstone stands", 193, []int{2, 3, 7}, false, repairing(func(o *repair.Options) {
			o.TombstoneLife = time.Nanosecond
			o.Table = anyTable{Table: o.Table, standings: func(ctx context.Context, t repair.Table, ids []doc.ID) (map[doc.ID]store.Standing, error) {
				all, err := t.Standings(ctx, ids)
				for id, s := range all {
					if s.Deleted {
						delete(all, id)
					}
				}
				return all, err
			}}
		})},
		{"what is missing is taken for gone", 0, []int{2, 5}, false, repairing(func(o *repair.Options) {
			o.Table = anyTable{Table: o.Table, standings: func(context.Context, repair.Table, []doc.ID) (map[doc.ID]store.Standing, error) {
				return nil, nil
			}}
		})},
		{"the comparison skips tombstones", 0, []int{2, 5}, false, repairing(func(o *repair.Options) {
			o.Table = anyTable{Table: o.Table, scan: func(page store.ScanPage) store.ScanPage {
				var live []store.Scanned
				for _, i := range page.Items {
					if !i.Document.Deleted {
						live = append(live, i)
					}
				}
				page.Items = live
				return page
			}}
		})},
	}
}

// The parts that a wait asks.

type anyVersions struct {
	freshness.Index
	above   doc.Version
	refresh bool
}

func (x anyVersions) Versions(ctx context.Context, wanted []search.VersionOf) (map[doc.ID]doc.Version, error) {
	versions, err := x.Index.Versions(ctx, wanted)
	for id := range versions {
		versions[id] += x.above
	}
	return versions, err
}

func (x anyVersions) Refresh(ctx context.Context, generations []collection.Generation) error {
	if !x.refresh {
		return nil
	}
	return x.Index.Refresh(ctx, generations)
}

// anyProof is a proof that is believed of whatever index has the name.
type anyProof struct{ freshness.Proofs }

func (anyProof) Stands(context.Context, freshness.Proof, time.Duration) (bool, error) {
	return true, nil
}

func freshnessFaults() []planted {
	waiting := func(change func(*freshness.WaiterOptions)) sim.Plant { return sim.Plant{Waiter: change} }
	believing := func(o *freshness.ReporterOptions) { o.Proofs = anyProof{o.Proofs} }
	return []planted{
		{"a wait is content with a lower version", 0, []int{5}, false, waiting(func(o *freshness.WaiterOptions) {
			o.Index = anyVersions{o.Index, 1 << 50, true}
		})},
		{"a wait does not refresh", 0, []int{5}, false, waiting(func(o *freshness.WaiterOptions) { o.Index = anyVersions{o.Index, 0, false} })},
		{"a wait as of now does not wait for the feed", 0, []int{5}, false, waiting(func(o *freshness.WaiterOptions) { o.Margin = time.Nanosecond })},
		{"a proof is believed of an index that was made again", 0, []int{5}, false, sim.Plant{
			Waiter: func(o *freshness.WaiterOptions) { o.Proofs = anyProof{o.Proofs} }, Reporter: believing,
		}},
		{"nobody looks which index was searched", 0, []int{5}, false, sim.Plant{Reporter: believing}},
	}
}
