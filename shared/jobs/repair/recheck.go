package repair

import (
	"context"
	"maps"
	"slices"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
)

// openOf are the differences of a generation, or of a move to one, that are not
// seen healed yet.
func (x *run) openOf(k string) []Difference {
	var open []Difference
	for _, d := range x.state.Open {
		if !d.Healed && x.openKey(d) == k {
			open = append(open, d)
		}
	}
	return open
}

// openKey is what a difference stands in the way of: a generation's proof, or a
// collection's move into it.
func (x *run) openKey(d Difference) string {
	g := collection.Generation{Family: d.Family, Number: d.Number}
	if x.filling(d.ID.Collection(), g) {
		return moveKey(x.definition(d.ID.Collection()))
	}
	return noteKey(g)
}

// moveKey stands for a collection's move to the family that is declared.
func moveKey(d collection.Definition) string { return "move " + string(d.Name) }

// awaitOpen looks again until nothing is open or the patience is over.
func (x *run) awaitOpen(ctx context.Context) error {
	until := x.Now().Add(min(x.Patience, x.left()))
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		if err := x.recheck(ctx); err != nil {
			return err
		}
		open := slices.ContainsFunc(x.state.Open, func(d Difference) bool { return !d.Healed })
		if !open || x.Now().Add(pause).After(until) {
			return nil
		}
		if err := x.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// recheck looks again at what the last pass found, and proves the generations of
// which nothing is open any more: all that was written before the pass began is
// in them, and what came later the feed shows.
func (x *run) recheck(ctx context.Context) error {
	byKey := map[key][]int{}
	for i, d := range x.state.Open {
		if !d.Healed {
			byKey[key{d.Family, d.Number}] = append(byKey[key{d.Family, d.Number}], i)
		}
	}
	changed := false
	for _, g := range x.allWritten() {
		open := byKey[keyOf(g)]
		if len(open) == 0 {
			continue
		}
		wanted := map[doc.ID]doc.Version{}
		for _, i := range open {
			wanted[x.state.Open[i].ID] = 0
		}
		standings, err := x.Table.Standings(ctx, slices.Sorted(maps.Keys(wanted)))
		if err != nil {
			return err
		}
		for id := range wanted {
			wanted[id] = standings[id].Version // 0, which everything reaches: gone from the table
		}
		missing, err := x.missing(ctx, g, wanted)
		if err != nil {
			return err
		}
		if err := x.strike(ctx, missing); err != nil {
			return err
		}
		for _, i := range open {
			if _, still := missing[x.state.Open[i].ID]; !still {
				x.state.Open[i].Healed, changed = true, true
			}
		}
	}
	if changed && x.state.Last != nil {
		x.state.Last.Differences = slices.Clone(x.state.Open[:min(len(x.state.Open), maxShown)])
		if drifted := x.state.Drifted; drifted != nil && drifted.Started.Equal(x.state.Last.Started) {
			drifted.Differences = x.state.Last.Differences
		}
	}
	for _, g := range x.allWritten() {
		k := noteKey(g)
		if _, proven := x.proofs[keyOf(g)]; proven || x.state.TooMany[k] || len(x.openOf(k)) > 0 {
			continue
		}
		based, ok := x.state.Based[k]
		if !ok || g.State == collection.Building && based.Add(x.Margin).Before(g.Since.Add(x.Settle)) {
			continue
		}
		if same, err := x.same(ctx, g); err != nil {
			return err
		} else if !same {
			continue
		}
		if err := x.Index.Refresh(ctx, []collection.Generation{g}); err != nil {
			return err
		}
		if err := x.putProof(ctx, x.proofOf(g, based)); err != nil {
			return err
		}
	}
	if changed {
		if err := x.save(ctx); err != nil {
			return err
		}
	}
	return x.resignalOpen(ctx)
}

// resignalOpen signals what is still open again, by the rule that holds for what
// the change feed shows: the pass itself has signalled it as it ended.
func (x *run) resignalOpen(ctx context.Context) error {
	now := x.Now()
	last := x.state.OpenSignalled
	if last.Before(x.state.Ended) {
		last = x.state.Ended
	}
	if !dueBetween(x.state.Ended.Add(again-grace), last, now) {
		return nil
	}
	ids := map[doc.ID]bool{}
	for _, d := range x.state.Open {
		if !d.Healed {
			ids[d.ID] = true
		}
	}
	if len(ids) == 0 {
		return nil
	}
	x.state.OpenSignalled = now.UTC()
	if err := x.save(ctx); err != nil {
		return err
	}
	standings, err := x.Table.Standings(ctx, slices.Sorted(maps.Keys(ids)))
	if err != nil {
		return err
	}
	var signals []doc.Signal
	for _, id := range slices.Sorted(maps.Keys(standings)) {
		signals = append(signals, doc.Signal{ID: id, Version: standings[id].Version})
	}
	sent, err := x.signal(ctx, signals)
	x.report.Resignalled += sent
	return err
}
