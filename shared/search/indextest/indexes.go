package indextest

import (
	"errors"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
)

// generations are some of a family, all active.
func generations(family collection.Family, numbers ...int) []collection.Generation {
	var all []collection.Generation
	for _, n := range numbers {
		all = append(all, collection.Generation{Family: family, Number: n, Projector: search.Projector, State: collection.Active})
	}
	return all
}

func (s *suite) ensure(t *testing.T, all ...collection.Generation) {
	t.Helper()
	for _, g := range all {
		if err := s.index.Ensure(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *suite) inspect(t *testing.T, g collection.Generation) search.Inspection {
	t.Helper()
	found, err := s.index.Inspect(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	if found.Exists != (found.UUID != "") {
		t.Errorf("found %+v", found)
	}
	if uuid, err := s.index.UUID(t.Context(), g); err != nil || uuid != found.UUID {
		t.Errorf("found %+v, and it is said to be %q: %v", found, uuid, err)
	}
	return found
}

// aliased checks which of the generations the alias leads to, 0 for none of
// them, and that all of them are there.
func (s *suite) aliased(t *testing.T, all []collection.Generation, number int) {
	t.Helper()
	for _, g := range all {
		found := s.inspect(t, g)
		if !found.Exists || !found.Fits || found.Aliased != (g.Number == number) {
			t.Errorf("generation %d: %+v; the alias should be on %d", g.Number, found, number)
		}
	}
}

func (s *suite) inspects(t *testing.T) {
	g := generations("inspected", 1)[0]
	g.State = collection.Building
	s.emptyWhereMissing(t, g)
	s.ensure(t, g)
	s.aliased(t, []collection.Generation{g}, 0)
	first := s.inspect(t, g)
	// Where a generation stands in its life says nothing about its index.
	g.State, g.Since = collection.Active, start
	s.ensure(t, g, g)
	s.aliased(t, []collection.Generation{g}, 1)
	for name, change := range map[string]func(*collection.Generation){
		"revision":  func(g *collection.Generation) { g.Revision++ },
		"projector": func(g *collection.Generation) { g.Projector++ },
	} {
		other := g
		change(&other)
		if found := s.inspect(t, other); !found.Exists || found.Fits {
			t.Errorf("another %s: %+v", name, found)
		}
		if err := s.index.Ensure(t.Context(), other); err == nil || doc.KindOf(err) == doc.IndexUnavailable {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if err := s.index.Remove(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	s.emptyWhereMissing(t, g)
	s.ensure(t, g)
	s.aliased(t, []collection.Generation{g}, 1)
	if again := s.inspect(t, g); again.UUID == first.UUID {
		t.Errorf("an index that was made anew is still %s", again.UUID)
	}
}

func (s *suite) swaps(t *testing.T) {
	all := generations("swapped", 1, 2, 3)
	first, second, third := all[0], all[1], all[2]
	s.ensure(t, all...)
	s.aliased(t, all, 1)
	swap := func(to collection.Generation, from ...collection.Generation) error {
		return s.index.Swap(t.Context(), to, from)
	}
	for range 2 { // done again it changes nothing
		if err := swap(second, first); err != nil {
			t.Fatal(err)
		}
		s.aliased(t, all, 2)
	}
	// Whoever thinks that it is still on the first one comes too late.
	if err := swap(third, first); !errors.Is(err, search.ErrNotSwapped) {
		t.Errorf("%v", err)
	}
	s.aliased(t, all, 2)
	// Of those it comes from, it need not be on each, nor need they all be there.
	if err := swap(third, append(generations("swapped", 9), first, second, third)...); err != nil {
		t.Fatal(err)
	}
	s.aliased(t, all, 3)
	// An index that is not there cannot have it.
	if err := swap(generations("swapped", 4)[0], all...); err == nil {
		t.Error("the alias was moved to an index that is not there")
	}
	s.aliased(t, all, 3)
	// It goes with its index, and comes back to whichever is ensured, or wanted.
	if err := s.index.Remove(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	s.aliased(t, all[:2], 0)
	s.ensure(t, second)
	s.aliased(t, all[:2], 2)
	if err := s.index.Remove(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if err := swap(first); err != nil {
		t.Fatal(err)
	}
	s.aliased(t, all[:1], 1)
}

// contend lets two move the alias from one generation to different ones at
// once: one succeeds.
func (s *suite) contend(t *testing.T) {
	all := generations("contended", 1, 2, 3)
	s.ensure(t, all...)
	for range 3 {
		failed := make([]error, 2)
		done := make(chan int)
		for i := range failed {
			go func() {
				failed[i] = s.index.Swap(t.Context(), all[1+i], all[:1])
				done <- i
			}()
		}
		<-done
		<-done
		winner, lost := all[1], failed[1]
		if failed[0] != nil {
			winner, lost = all[2], failed[0]
		}
		if !errors.Is(lost, search.ErrNotSwapped) || failed[0] != nil && failed[1] != nil {
			t.Fatalf("%v", failed)
		}
		s.aliased(t, all, winner.Number)
		if err := s.index.Swap(t.Context(), all[0], all); err != nil {
			t.Fatal(err)
		}
	}
}

// gone searches several collections, of which one is read in an index that is
// not there.
func (s *suite) gone(t *testing.T) {
	same(t, s.write(t, made("there/1", 1, map[string]any{})), search.Applied)
	s.refresh(t)
	missing := generations("missing", 5)[0]
	r, err := s.index.Search(t.Context(), search.Request{Limit: 10, Count: true, From: []search.Source{
		{Collection: "there", Generation: &s.generation}, {Collection: "gone", Generation: &missing},
	}})
	if err != nil || len(r.Documents) != 1 || r.Count != 1 || len(r.Missing) != 1 || r.Missing[0].Family != "missing" || r.Missing[0].Number != 5 {
		t.Errorf("found %+v, %v", r, err)
	}
}

// readInOne searches two collections of which one has documents in an index
// where they are not read, or not any more.
func (s *suite) readInOne(t *testing.T) {
	own := generations("moving", 1)[0]
	s.ensure(t, own)
	moving, still := made("moving/1", 1, map[string]any{"in": "shared"}), made("still/1", 1, map[string]any{})
	same(t, s.write(t, moving, still), search.Applied, search.Applied)
	moving.Data = map[string]any{"in": "own"}
	same(t, s.operate(t, search.Operation{ID: moving.ID, Version: moving.Version, Generation: own, Source: search.Project(moving, own).Source}), search.Applied)
	s.refresh(t)
	if err := s.index.Refresh(t.Context(), []collection.Generation{own}); err != nil {
		t.Fatal(err)
	}
	for _, in := range []collection.Generation{own, s.generation} {
		r, err := s.index.Search(t.Context(), search.Request{Limit: 10, Count: true, From: []search.Source{
			{Collection: "moving", Generation: &in}, {Collection: "still", Generation: &s.generation},
		}})
		want := map[collection.Family]string{own.Family: "own", s.generation.Family: "shared"}[in.Family]
		if err != nil || len(r.Documents) != 2 || r.Count != 2 || r.Documents[0].Data["in"] != want {
			t.Errorf("found %+v, %v", r.Documents, err)
		}
	}
}
