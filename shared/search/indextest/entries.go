package indextest

import (
	"fmt"
	"slices"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// at is version 1, 2, … after the start.
func at(version int) doc.Version { return doc.VersionAt(start) + doc.Version(version) }

func (s *suite) held(t *testing.T) {
	whole, marker := made("held/whole", 2, map[string]any{"n": "two"}), deleted("held/deleted", 3)
	part := made("held/part", 4, map[string]any{"n": "four"})
	reduced := search.Operation{ID: part.ID, Version: part.Version, Generation: s.generation, Source: search.Reduce(part, s.generation, search.EnvelopeOnly, nil).Source}
	same(t, s.write(t, whole, marker), search.Applied, search.Applied)
	same(t, s.operate(t, reduced), search.Applied)
	want := map[doc.ID]search.Held{
		whole.ID:  {Version: whole.Version, Sum: value.Sum(whole.Data)},
		marker.ID: {Version: marker.Version, Deleted: true},
		part.ID:   {Version: part.Version, Sum: value.Sum(part.Data), Partial: true},
	}
	ids := []doc.ID{"held/absent", part.ID, whole.ID, marker.ID, whole.ID}
	for i := range 2000 { // more than one request takes
		ids = append(ids, doc.ID(fmt.Sprintf("held/absent/%d", i)))
	}
	held, err := s.index.Held(t.Context(), s.generation, ids)
	if err != nil {
		t.Fatal(err)
	}
	if len(held) != len(want) {
		t.Errorf("held are %+v", held)
	}
	for id, w := range want {
		if held[id] != w {
			t.Errorf("of %s is held %+v, not %+v", id, held[id], w)
		}
	}
	if held, err = s.index.Held(t.Context(), s.generation, nil); err != nil || len(held) != 0 {
		t.Errorf("%v, %v", held, err)
	}
}

// walk takes all steps of a walk and checks that ids only grow.
func (s *suite) walk(t *testing.T, q search.WalkQuery) []search.Standing {
	t.Helper()
	s.refresh(t)
	var all []search.Standing
	for {
		step, err := s.index.Walk(t.Context(), s.generation, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(step) > q.Limit {
			t.Fatalf("%d entries in a step of at most %d", len(step), q.Limit)
		}
		for _, e := range step {
			if e.ID <= q.After {
				t.Fatalf("%q comes after %q", e.ID, q.After)
			}
			q.After = e.ID
		}
		all = append(all, step...)
		if len(step) < q.Limit {
			return all
		}
	}
}

func of(c doc.Collection, all []search.Standing) []search.Standing {
	return slices.DeleteFunc(slices.Clone(all), func(e search.Standing) bool { return e.Collection != c })
}

func (s *suite) walks(t *testing.T) {
	const many = 250
	var docs []doc.Document
	var want, old []search.Standing
	for i := range many {
		id := fmt.Sprintf("walked/%03d %s", i, []string{"", "𝔘", "é", "\"", "A"}[i%5])
		d := made(id, i+1, map[string]any{})
		if i%3 == 0 {
			d = deleted(id, i+1)
		}
		docs = append(docs, d)
		e := search.Standing{ID: d.ID, Collection: "walked", Version: d.Version, Deleted: d.Deleted}
		want = append(want, e)
		if d.Deleted && d.Version < at(100) {
			old = append(old, e)
		}
	}
	s.write(t, docs...)
	all := s.walk(t, search.WalkQuery{Limit: 97})
	if got := of("walked", all); !slices.Equal(got, want) {
		t.Errorf("the walk met %d entries, not these %d: %+v", len(got), len(want), got)
	}
	if got := of("walked", s.walk(t, search.WalkQuery{Limit: 10, Markers: true, Before: at(100)})); !slices.Equal(got, old) {
		t.Errorf("the walk for old markers met %+v, not %+v", got, old)
	}
	if got := s.walk(t, search.WalkQuery{Limit: 1000, Markers: true}); slices.ContainsFunc(got, func(e search.Standing) bool { return !e.Deleted }) {
		t.Errorf("the walk for markers met %+v", got)
	}
	if got := of("walked", s.walk(t, search.WalkQuery{Limit: 500, Before: at(11)})); !slices.Equal(got, want[:10]) {
		t.Errorf("the walk for old entries met %+v", got)
	}
	// Without a limit it is a large one.
	whole, err := s.index.Walk(t.Context(), s.generation, search.WalkQuery{})
	if err != nil || !slices.Equal(whole, all) {
		t.Errorf("one step of everything met %d of %d entries, %v", len(whole), len(all), err)
	}

	counts, err := s.index.Counts(t.Context(), s.generation)
	if err != nil {
		t.Fatal(err)
	}
	live := map[doc.Collection]int{}
	for _, e := range all {
		if !e.Deleted {
			live[e.Collection]++
		}
	}
	if fmt.Sprint(counts) != fmt.Sprint(live) {
		t.Errorf("counts are %v, the walk met %v", counts, live)
	}
}

func (s *suite) erase(t *testing.T, signals ...doc.Signal) []search.OutcomeKind {
	t.Helper()
	s.written = true
	outcomes, err := s.index.Erase(t.Context(), s.generation, signals)
	if err != nil {
		t.Fatal(err)
	}
	kinds := make([]search.OutcomeKind, len(outcomes))
	for i, o := range outcomes {
		kinds[i] = o.Kind
	}
	return kinds
}

func (s *suite) erases(t *testing.T) {
	signal := func(id doc.ID, version int) doc.Signal { return doc.Signal{ID: id, Version: at(version)} }
	s.write(t, deleted("erased/marker", 3), made("erased/newer", 5, map[string]any{}), made("erased/older", 2, map[string]any{}))
	same(t, s.erase(t, signal("erased/marker", 3), signal("erased/newer", 4), signal("erased/older", 3), signal("erased/absent", 1)),
		search.Applied, search.Stale, search.Applied, search.Applied)
	if left := of("erased", s.walk(t, search.WalkQuery{Limit: 1000})); len(left) != 1 || left[0].ID != "erased/newer" || left[0].Version != at(5) {
		t.Errorf("what is left is %+v", left)
	}
	if v := s.versions(t, "erased/marker", "erased/older", "erased/newer"); len(v) != 1 {
		t.Errorf("versions %v", v)
	}
	// What was erased is still known for a while.
	same(t, s.write(t, made("erased/marker", 2, map[string]any{})), search.Stale)
	same(t, s.write(t, made("erased/marker", 4, map[string]any{"n": "again"})), search.Applied)
	same(t, s.erase(t, signal("erased/marker", 3)), search.Stale)
	if r := s.find(t, search.Request{}, "erased"); len(r.Documents) != 2 {
		t.Errorf("found %+v", r.Documents)
	}
	for _, bad := range []doc.Signal{{ID: "erased/newer"}, {Version: 1}} {
		if _, err := s.index.Erase(t.Context(), s.generation, []doc.Signal{bad}); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	if outcomes, err := s.index.Erase(t.Context(), s.generation, nil); err != nil || len(outcomes) != 0 {
		t.Errorf("%v, %v", outcomes, err)
	}
	gone := s.generation
	gone.Number = 78
	outcomes, err := s.index.Erase(t.Context(), gone, []doc.Signal{signal("erased/newer", 9)})
	if err != nil || outcomes[0].Kind != search.Environment || !outcomes[0].IndexMissing {
		t.Errorf("%+v, %v", outcomes, err)
	}
	if found, err := s.index.Inspect(t.Context(), gone); err != nil || found.Exists {
		t.Errorf("erasing made an index: %+v, %v", found, err)
	}
}

// emptyWhereMissing asks everything about an index that is not there.
func (s *suite) emptyWhereMissing(t *testing.T, g collection.Generation) {
	t.Helper()
	ctx := t.Context()
	if held, err := s.index.Held(ctx, g, []doc.ID{"a/1"}); err != nil || len(held) != 0 {
		t.Errorf("held are %v, %v", held, err)
	}
	if step, err := s.index.Walk(ctx, g, search.WalkQuery{Limit: 10}); err != nil || len(step) != 0 {
		t.Errorf("the walk met %v, %v", step, err)
	}
	if counts, err := s.index.Counts(ctx, g); err != nil || len(counts) != 0 {
		t.Errorf("counts are %v, %v", counts, err)
	}
	if err := s.index.Refresh(ctx, []collection.Generation{g}); err != nil {
		t.Error(err)
	}
	if found, err := s.index.Inspect(ctx, g); err != nil || found != (search.Inspection{}) {
		t.Errorf("found %+v, %v", found, err)
	}
	if err := s.index.Remove(ctx, g); err != nil {
		t.Error(err)
	}
	r, err := s.index.Search(ctx, search.Request{Limit: 1, Count: true, From: []search.Source{{Collection: "a", Generation: &g}}})
	if err != nil || len(r.Documents) != 0 || r.Count != 0 || len(r.Missing) != 1 || r.Missing[0].Number != g.Number {
		t.Errorf("found %+v, %v", r, err)
	}
}
