package repair

import (
	"context"
	"fmt"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

// tend takes each generation a step further in its life:
//
//	building ─ proven ─► active ─ a later one is active, and everybody reads it ─► retired ─► removed
//
// Each step is a compare-and-set of one record, so of two runs one makes it, and
// one that is cut goes on from there. The number of a removed one is not used
// again.
func (x *run) tend(ctx context.Context) error {
	if err := x.move(ctx); err != nil {
		return err
	}
	for _, family := range x.families() {
		if err := x.tendFamily(ctx, family); err != nil {
			return fmt.Errorf("index family %q: %w", family, err)
		}
	}
	return nil
}

// tendAgain lets what has just been proven take its place. Everything else has
// time until the next run.
func (x *run) tendAgain(ctx context.Context) error {
	if !x.changing() {
		return nil
	}
	// What the run knows may have been changed by itself, or by an indexer that
	// met a new collection.
	if err := x.readGenerations(ctx); err != nil {
		return err
	}
	return x.tend(ctx)
}

// changing reports whether an index is being built, or documents move to another.
func (x *run) changing() bool {
	for _, d := range x.definitions {
		if d.Serving != nil {
			return true
		}
	}
	for _, g := range x.allWritten() {
		if g.State == collection.Building {
			return true
		}
	}
	return false
}

func (x *run) tendFamily(ctx context.Context, family collection.Family) error {
	used, user := x.userOf(family)
	if !used {
		return x.retireAll(ctx, family)
	}
	latest, ok := x.latest(family)
	if !ok {
		return nil // the first document begins it, or the pass that finds one
	}
	if latest.Projector > search.Projector {
		return nil // a newer program looks after it
	}
	if err := x.inspect(ctx, family); err != nil {
		return err
	}
	if err := x.activate(ctx, family); err != nil {
		return err
	}
	if err := x.retire(ctx, family); err != nil {
		return err
	}
	if err := x.removeRetired(ctx, family); err != nil {
		return err
	}
	latest, _ = x.latest(family)
	return x.succeed(ctx, user, family, latest)
}

// beginFamilies begins the indexes of a collection that has documents and no
// index yet. An indexer does that when it hears of the first document; where it
// never heard of any, a pass finds them.
func (x *run) beginFamilies(ctx context.Context, c doc.Collection) error {
	d := x.definition(c)
	for _, family := range d.Writes() {
		if _, there := x.latest(family); there {
			continue
		}
		g := collection.Next(d, family, x.generations[family], search.Projector, x.Now().UTC().Truncate(time.Microsecond))
		err := x.State.PutGeneration(ctx, g, nil)
		if doc.KindOf(err) == doc.VersionConflict {
			if err := x.readGenerations(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		x.generations[family] = append(x.generations[family], g)
		if err := x.Index.Ensure(ctx, g); err != nil {
			x.unwell = true
			return err
		}
		x.want("an index was begun") // this pass does not look at it
	}
	return nil
}

// userOf is a collection whose documents are written to the family.
func (x *run) userOf(family collection.Family) (bool, collection.Definition) {
	if family == collection.SharedFamily {
		return true, collection.Definition{}
	}
	d := x.definition(doc.Collection(family))
	for _, f := range d.Writes() {
		if f == family {
			return true, d
		}
	}
	return false, d
}

// latest is the family's written generation with the highest number.
func (x *run) latest(family collection.Family) (latest collection.Generation, ok bool) {
	for _, g := range x.generations[family] {
		if g.Written() && g.Number > latest.Number {
			latest, ok = g, true
		}
	}
	return latest, ok
}

// put changes the state of a generation. Where somebody else was faster the next
// run sees what has become of it.
func (x *run) put(ctx context.Context, g collection.Generation, state collection.GenerationState) (collection.Generation, error) {
	next := g
	next.State, next.Since = state, x.Now().UTC().Truncate(time.Microsecond)
	err := x.State.PutGeneration(ctx, next, &g)
	if doc.KindOf(err) == doc.VersionConflict {
		return g, x.readGenerations(ctx)
	}
	if err != nil {
		return g, err
	}
	x.Log.InfoContext(ctx, "a generation of an index has another state", "family", g.Family, "generation", g.Number, "state", state)
	for i, known := range x.generations[g.Family] {
		if known.Number == g.Number {
			x.generations[g.Family][i] = next
		}
	}
	return next, nil
}

// inspect looks whether the indexes are there and are what they should be. One
// that was lost, or is another one than before, has lost what was proven of it.
func (x *run) inspect(ctx context.Context, family collection.Family) error {
	read, _ := collection.Read(x.generations[family])
	for _, g := range x.generations[family] {
		if !g.Written() || g.Projector != search.Projector {
			continue
		}
		if x.inspected[keyOf(g)] {
			continue
		}
		found, err := x.Index.Inspect(ctx, g)
		if err != nil {
			x.unwell = true
			return err
		}
		switch {
		case !found.Exists:
			if err := x.forget(ctx, g, "its index is gone"); err != nil {
				return err
			}
			if err := x.Index.Ensure(ctx, g); err != nil {
				x.unwell = true
				return err
			}
			if found, err = x.Index.Inspect(ctx, g); err != nil {
				return err
			}
		case !found.Fits:
			if err := x.forget(ctx, g, "its index has another mapping"); err != nil {
				return err
			}
			x.unfit[keyOf(g)] = true // its successor is what gets proven
		}
		known := x.state.Indexes[noteKey(g)]
		if proof, ok := x.proofs[keyOf(g)]; known != "" && known != found.UUID || ok && proof.Index != found.UUID {
			if err := x.forget(ctx, g, "its index was made anew"); err != nil {
				return err
			}
		}
		if x.state.Indexes == nil {
			x.state.Indexes = map[string]string{}
		}
		if x.state.Indexes[noteKey(g)] != found.UUID {
			x.state.Indexes[noteKey(g)] = found.UUID
			if err := x.save(ctx); err != nil {
				return err
			}
		}
		if g.Number == read.Number && !found.Aliased && found.Fits {
			if err := x.Index.Swap(ctx, g, x.others(g)); err != nil {
				return err
			}
		}
		x.inspected[keyOf(g)] = true
	}
	return nil
}

// same reports whether the generation's index is still the one that was looked
// at as the run began. One that was lost and made again meanwhile would hold only
// what came since.
func (x *run) same(ctx context.Context, g collection.Generation) (bool, error) {
	uuid, err := x.Index.UUID(ctx, g)
	if err != nil {
		x.unwell = true
		return false, err
	}
	if uuid != "" && uuid == x.state.Indexes[noteKey(g)] {
		return true, nil
	}
	return false, x.forget(ctx, g, "its index was made anew")
}

// others are all generations of the family but one.
func (x *run) others(of collection.Generation) []collection.Generation {
	var others []collection.Generation
	for _, g := range x.generations[of.Family] {
		if g.Number != of.Number {
			others = append(others, g)
		}
	}
	return others
}

// activate lets queries read a generation that is proven: not by its own filling
// alone but, like the one that they read now, by the change feed as well.
func (x *run) activate(ctx context.Context, family collection.Family) error {
	g, ok := x.latest(family)
	if !ok || g.State != collection.Building || !x.proven(g) {
		return nil
	}
	if same, err := x.same(ctx, g); err != nil || !same {
		return err
	}
	g, err := x.put(ctx, g, collection.Active)
	if err != nil || g.State != collection.Active {
		return err
	}
	delete(x.state.Notes, noteKey(g))
	return x.Index.Swap(ctx, g, x.others(g))
}

// proven reports whether the last capture of the change feed proved the
// generation, in this run or the one before.
func (x *run) proven(g collection.Generation) bool {
	p, ok := x.proofs[keyOf(g)]
	return ok && p.Through.After(g.Since) && x.lately(p)
}

// lately reports whether the last capture of the change feed found everything,
// in this run or the one before.
func (x *run) lately(p store.Proof) bool {
	return p.Missing == 0 && x.Now().Sub(p.Through) < x.Margin+provenLately
}

// provenLately is how old a proof may be for a generation to be read: that of
// the run before, should this one have begun with other things.
const provenLately = 3 * time.Minute

// retire ends the writing to generations before the one that is read, once
// everybody has heard of that one.
func (x *run) retire(ctx context.Context, family collection.Family) error {
	read, ok := collection.Read(x.generations[family])
	if !ok {
		return nil
	}
	for _, g := range x.generations[family] {
		late := g.Number < read.Number && g.Written() && x.Now().Sub(read.Since) >= x.Settle
		// Nobody gains by writing to one that was never read, or to one whose
		// mapping is not what it should be.
		abandoned := g.Number < read.Number && (g.State == collection.Building || g.State == collection.Active && x.unfit[keyOf(g)])
		if !late && !abandoned {
			continue
		}
		if _, err := x.put(ctx, g, collection.Retired); err != nil {
			return err
		}
	}
	return nil
}

// removeRetired removes the indexes that nobody has written to or read from for
// a while.
func (x *run) removeRetired(ctx context.Context, family collection.Family) error {
	for _, g := range x.generations[family] {
		if g.State != collection.Retired || x.Now().Sub(g.Since) < x.Settle {
			continue
		}
		if err := x.dropProof(ctx, g, "it is removed"); err != nil {
			return err
		}
		if err := x.Index.Remove(ctx, g); err != nil {
			return err
		}
		delete(x.state.Indexes, noteKey(g))
		delete(x.state.Notes, noteKey(g))
		if _, err := x.put(ctx, g, collection.Removed); err != nil {
			return err
		}
	}
	return nil
}

// retireAll ends a family that no collection uses any more.
func (x *run) retireAll(ctx context.Context, family collection.Family) error {
	for _, g := range x.generations[family] {
		if !g.Written() {
			continue
		}
		if _, err := x.put(ctx, g, collection.Retired); err != nil {
			return err
		}
	}
	return x.removeRetired(ctx, family)
}

// succeed begins the next generation where the latest is not what it should be.
func (x *run) succeed(ctx context.Context, d collection.Definition, family collection.Family, latest collection.Generation) error {
	if at, asked := x.state.Reindex[string(family)]; asked && !at.After(latest.Since) {
		delete(x.state.Reindex, string(family)) // done, or being done
	}
	why := ""
	form := d.FormIn(family)
	switch {
	case latest.Projector < search.Projector:
		why = "another program makes the index documents now"
	case !latest.Form().Same(form):
		why = "what is declared of the collection has changed"
	case x.state.Reindex[string(family)].After(latest.Since):
		why = "somebody asked for it"
	case x.unfit[keyOf(latest)]:
		why = "the index has another mapping"
	default:
		return nil
	}
	next := collection.Next(d, family, x.generations[family], search.Projector, x.Now().UTC().Truncate(time.Microsecond))
	if latest.State == collection.Building { // it will never be read
		if _, err := x.put(ctx, latest, collection.Retired); err != nil {
			return err
		}
	}
	err := x.State.PutGeneration(ctx, next, nil)
	if doc.KindOf(err) == doc.VersionConflict {
		return x.readGenerations(ctx)
	}
	if err != nil {
		return err
	}
	x.Log.InfoContext(ctx, "the next generation of an index is begun", "family", family, "generation", next.Number, "why", why)
	x.generations[family] = append(x.generations[family], next)
	if x.state.Notes == nil {
		x.state.Notes = map[string]string{}
	}
	x.state.Notes[noteKey(next)] = why
	if err := x.save(ctx); err != nil {
		return err
	}
	return x.Index.Ensure(ctx, next)
}
