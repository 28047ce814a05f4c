package repair_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

// declare puts a definition as the API does.
func (r *rig) declare(d collection.Definition) {
	r.t.Helper()
	state := r.store.State()
	current, err := state.CurrentDefinition(r.t.Context(), d.Name)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := state.PutDefinition(r.t.Context(), d.Changed(current, time.Now()), current.Revision); err != nil {
		r.t.Fatal(err)
	}
}

// writer changes a collection's documents all the while and remembers what
// became of them.
type writer struct {
	r     *rig
	n     int
	names doc.Collection
	now   map[doc.ID]doc.Version // 0: deleted
}

func (w *writer) write() {
	w.r.t.Helper()
	w.n++
	id := doc.ID(fmt.Sprintf("%s/%d", w.names, w.n*7%25))
	if w.n%4 == 0 {
		written, err := w.r.store.Delete(w.r.t.Context(), id, doc.Condition{})
		if err != nil {
			w.r.t.Fatal(err)
		}
		w.now[id] = 0
		if written.Version > 0 {
			w.r.signal(written)
		}
		return
	}
	written := w.r.put(id, w.n)
	w.now[id] = written.Version
	w.r.signal(written)
}

// check holds what queries find against what was written.
func (w *writer) check() {
	w.r.t.Helper()
	found := w.r.found(w.names)
	for id, v := range w.now {
		if found[id] != v {
			w.r.t.Errorf("%s is found at %d, not %d", id, found[id], v)
		}
	}
}

// A change of what is declared builds the next generation beside the one that is
// read, while writes and deletes go on; it is read when it is proven, and the old
// one goes.
func TestBuildsTheNextGeneration(t *testing.T) {
	r := newRig(t)
	r.declare(collection.Definition{Name: "orders", Index: collection.Own})
	w := &writer{r: r, names: "orders", now: map[doc.ID]doc.Version{}}
	for range 30 {
		w.write()
	}
	r.drain()
	r.converges(func() bool { _, ok := r.proven("orders", 1); return ok })
	r.declare(collection.Definition{Name: "orders", Nested: []string{"lines"}, Text: []string{"note"}})

	states := map[collection.GenerationState]bool{}
	var begun time.Time
	r.converges(func() bool {
		w.write()
		r.drain()
		w.check()
		g := r.generation("orders", 1)
		all, err := r.store.State().Generations(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		for _, next := range all[1:] {
			states[next.State] = true
			switch next.State {
			case collection.Building:
				begun = next.Since
			case collection.Active:
				// How long before the switch the feed was last captured is a matter
				// of how fast the machine is; that it was, after the beginning, is not.
				if p, ok := r.proven("orders", 2); begun.IsZero() || !ok || !p.Through.After(begun) {
					t.Errorf("it was begun at %v and is read since %v without a proof: %+v", begun, next.Since, p)
				}
			}
		}
		return g.State == collection.Removed
	})
	if !states[collection.Building] || !states[collection.Active] {
		t.Errorf("%v", states)
	}
	next := r.generation("orders", 2)
	if next.State != collection.Active || len(next.Nested) != 1 {
		t.Errorf("%+v", next)
	}
	if found, err := r.index.Inspect(t.Context(), next); err != nil || !found.Aliased || !found.Fits {
		t.Errorf("%+v %v", found, err)
	}
	if found, err := r.index.Inspect(t.Context(), r.generation("orders", 1)); err != nil || found.Exists {
		t.Errorf("the old index is still there: %v", err)
	}
	w.check()
}

// Documents move to an index of their own and back while they are changed.
func TestMovesBetweenIndexes(t *testing.T) {
	r := newRig(t)
	w := &writer{r: r, names: "orders", now: map[doc.ID]doc.Version{}}
	for range 30 {
		w.write()
	}
	r.drain()
	r.converges(func() bool { _, ok := r.proven(collection.SharedFamily, 1); return ok })
	definition := func() collection.Definition {
		d, err := r.store.State().CurrentDefinition(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	settled := func() bool {
		w.write()
		r.drain()
		w.check()
		return definition().Serving == nil
	}
	r.declare(collection.Definition{Name: "orders", Text: []string{"note"}})
	if d := definition(); d.Reads() != collection.SharedFamily || len(d.Writes()) != 2 {
		t.Fatalf("%+v", d)
	}
	early := definition()
	r.converges(settled)
	if d := definition(); d.Reads() != "orders" || len(d.Writes()) != 1 || d.Revision != 1 {
		t.Errorf("%+v", d)
	}
	// Who read the definition before it was moved does not undo the move.
	again := collection.Definition{Name: "orders", Text: []string{"note", "remark"}}
	if _, err := r.store.State().PutDefinition(t.Context(), again.Changed(early, time.Now()), early.Revision); doc.KindOf(err) != doc.VersionConflict {
		t.Errorf("a change made of an old reading: %v", err)
	}
	// What is left of it in the shared index is removed.
	shared := r.generation(collection.SharedFamily, 1)
	r.converges(func() bool {
		counts, err := r.index.Counts(t.Context(), shared)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.index.Refresh(t.Context(), []collection.Generation{shared})
		return counts["orders"] == 0
	})
	r.declare(collection.Definition{Name: "orders", Index: collection.Shared})
	r.converges(settled)
	if d := definition(); d.Reads() != collection.SharedFamily {
		t.Errorf("%+v", d)
	}
	r.converges(func() bool { return r.generation("orders", 1).State == collection.Removed })
	w.check()
}

// unmoving is a state in which documents do not move: somebody else is always
// faster. It counts how often that was tried.
type unmoving struct {
	repair.State
	tried int
}

func (s *unmoving) AmendDefinition(context.Context, collection.Definition, collection.Definition) error {
	s.tried++
	return doc.Errorf(doc.VersionConflict, "somebody was faster")
}

// unproving is a table without canaries, so that nothing is proven.
type unproving struct{ repair.Table }

func (unproving) PutCanary(context.Context, int) (doc.Written, error) {
	return doc.Written{}, doc.Errorf(doc.Unavailable, "not now")
}

// Queries begin to read the index that documents have moved to when it was just
// proven, and not by a proof of long ago.
func TestDocumentsDoNotMoveByAnOldProof(t *testing.T) {
	r := newRig(t)
	r.fill("orders", 5)
	r.converges(func() bool { _, ok := r.proven(collection.SharedFamily, 1); return ok })
	r.declare(collection.Definition{Name: "orders", Text: []string{"note"}})
	s := &unmoving{}
	stays := func(o *repair.Options) { s.State, o.State = o.State, s }
	r.converges(func() bool { return s.tried > 0 }, stays)
	s.tried = 0
	_, held, err := r.repair(stays, later(10*time.Minute), func(o *repair.Options) { o.Table = unproving{o.Table} }).Run(t.Context(), repair.Prove)
	if !held || err == nil || s.tried > 0 {
		t.Errorf("held %v, %v: it was tried %d times", held, err, s.tried)
	}
	r.converges(func() bool {
		d, err := r.store.State().CurrentDefinition(t.Context(), "orders")
		return err == nil && d.Serving == nil && len(r.found("orders")) == 5
	}, later(10*time.Minute))
}

// A lost index, a lost alias and a wrong mapping are noticed and mended without
// anybody's help, also where an indexer has made the lost index again meanwhile.
func TestMendsIndexes(t *testing.T) {
	r := newRig(t)
	r.fill("users", 20)
	proven := func() bool { _, ok := r.proven(collection.SharedFamily, 1); return ok }
	r.converges(proven)
	g := r.generation(collection.SharedFamily, 1)
	index := "/" + r.index.IndexName(g)
	all := func(what string) {
		t.Helper()
		r.converges(func() bool { return proven() && len(r.found("users")) == 20 })
		if found, err := r.index.Inspect(t.Context(), g); err != nil || !found.Aliased || !found.Fits {
			t.Errorf("%s: %+v %v", what, found, err)
		}
	}
	r.request(http.MethodDelete, index+"/_alias/"+collection.SharedFamily.Alias(r.prefix), "")
	all("a lost alias")
	r.request(http.MethodDelete, index, "")
	all("a lost index")
	r.request(http.MethodDelete, index, "")
	r.signal(r.put("users/1", 1))
	r.drain() // makes the index again
	r.run(repair.Prove, func(o *repair.Options) { o.Sleep = nil; o.Budget = time.Nanosecond })
	if proven() {
		t.Error("an index that was made again keeps its proof")
	}
	all("an index that was made again")
	r.request(http.MethodDelete, index, "")
	r.request(http.MethodPut, index, `{"mappings":{"properties":{"$id":{"type":"text"}}}}`)
	r.converges(func() bool {
		next, err := r.store.State().Generations(t.Context(), collection.SharedFamily)
		return err == nil && len(next) == 2 && next[1].State == collection.Active && len(r.found("users")) == 20
	})
}

// Whoever asks for it gets an index that is built anew.
func TestReindexesOnRequest(t *testing.T) {
	r := newRig(t)
	r.fill("users", 5)
	r.converges(func() bool { _, ok := r.proven(collection.SharedFamily, 1); return ok })
	if _, ok, err := r.store.State().RequestJob(t.Context(), store.JobRequest{Name: repair.Reindex, Collection: "users", At: time.Now()}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	r.converges(func() bool {
		all, err := r.store.State().Generations(t.Context(), collection.SharedFamily)
		return err == nil && len(all) == 2 && all[1].State == collection.Active && all[0].State == collection.Removed
	})
	if found := r.found("users"); len(found) != 5 {
		t.Errorf("%v", found)
	}
}

// What a program with another projection left behind is built anew by this one:
// its signals wait for the old generation as long as that is written, and arrive
// in the next one at once.
func TestAnotherProjectorBuildsAnew(t *testing.T) {
	r := newRig(t)
	r.fill("users", 5)
	old := r.generation(collection.SharedFamily, 1)
	before := old
	old.Projector = 0
	if err := r.store.State().PutGeneration(t.Context(), old, &before); err != nil {
		t.Fatal(err)
	}
	late := r.put("users/late", 1)
	r.signal(late)
	r.converges(func() bool {
		all, err := r.store.State().Generations(t.Context(), collection.SharedFamily)
		return err == nil && len(all) == 2 && all[1].State == collection.Active && all[1].Projector == search.Projector && all[0].State == collection.Removed
	})
	if found := r.found("users"); len(found) != 6 || found[late.ID] != late.Version {
		t.Errorf("%v", found)
	}
}
