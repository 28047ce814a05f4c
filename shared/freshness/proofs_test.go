package freshness_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/store"
)

// library is a registry with families of different kinds, and what is proven of
// them.
type library struct {
	definitions map[doc.Collection]collection.Definition
	generations map[collection.Family][]collection.Generation
	proofs      []store.Proof
	err         error
	asked       int
	looked      map[collection.Family]int // lookups of generations
}

func (l *library) Definition(_ context.Context, c doc.Collection) (collection.Definition, error) {
	if d, ok := l.definitions[c]; ok {
		return d, nil
	}
	return collection.Definition{Name: c}, nil
}

func (l *library) Generations(_ context.Context, f collection.Family) ([]collection.Generation, error) {
	if l.looked == nil {
		l.looked = map[collection.Family]int{}
	}
	l.looked[f]++
	return l.generations[f], nil
}

func (l *library) Proofs(context.Context) ([]store.Proof, error) {
	l.asked++
	return l.proofs, l.err
}

func TestProofOfWhatQueriesRead(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 5, 1, 12, 0, s, 0, time.UTC) }
	shared := collection.SharedFamily
	l := &library{
		definitions: map[doc.Collection]collection.Definition{
			"own": {Name: "own", Index: collection.Own},
			// On its way to an index of its own, and read in the shared one.
			"moving": {Name: "moving", Text: []string{"t"}, Serving: &collection.Form{}},
			"empty":  {Name: "empty", Index: collection.Own},
			"new":    {Name: "new", Index: collection.Own},
		},
		generations: map[collection.Family][]collection.Generation{
			shared: {{Family: shared, Number: 1, State: collection.Retired}, {Family: shared, Number: 2, State: collection.Active}, {Family: shared, Number: 3, State: collection.Building}},
			"own":  {{Family: "own", Number: 1, State: collection.Active}, {Family: "own", Number: 2, State: collection.Active}},
			"new":  {{Family: "new", Number: 1, State: collection.Active}},
		},
		proofs: []store.Proof{
			{Family: shared, Generation: 1, Through: at(50), At: at(59)},
			{Family: shared, Generation: 2, Through: at(20), At: at(30), FeedLag: time.Second, Margin: 10 * time.Second, Missing: 2, OldestMissing: at(25)},
			{Family: shared, Generation: 3, Through: at(40), At: at(49)},
			{Family: "own", Generation: 1, Through: at(5), At: at(6)},
			{Family: "own", Generation: 2, Through: at(30), At: at(29), FeedLag: 3 * time.Second, Margin: 5 * time.Second, Missing: 1, OldestMissing: at(28)},
			{Family: "new", Generation: 1}, // dropped
			{Family: "moving", Generation: 1, Through: at(1), At: at(1)},
		},
	}
	now := at(0)
	book := freshness.NewProofBook(l, l, func() time.Time { return now })
	for _, c := range []struct {
		collections []doc.Collection
		through     time.Time // zero: nothing is proven
		at          time.Time
		lag         time.Duration
		missing     int
	}{
		{[]doc.Collection{"users"}, at(20), at(30), time.Second, 2},
		{[]doc.Collection{"users", "others", "moving"}, at(20), at(30), time.Second, 2},
		{[]doc.Collection{"own"}, at(30), at(29), 3 * time.Second, 1},
		{[]doc.Collection{"own", "users"}, at(20), at(29), 3 * time.Second, 3},
		{[]doc.Collection{"users", "new"}, time.Time{}, time.Time{}, 0, 0},
		{[]doc.Collection{"empty"}, time.Time{}, time.Time{}, 0, 0},
		{nil, time.Time{}, time.Time{}, 0, 0},
	} {
		p, ok, err := book.Proof(t.Context(), c.collections)
		if err != nil || ok == c.through.IsZero() {
			t.Errorf("%v: %v %v", c.collections, ok, err)
			continue
		}
		if ok && (!p.Through.Equal(c.through) || !p.At.Equal(c.at) || p.FeedLag != c.lag || p.Missing != c.missing) {
			t.Errorf("%v: %+v", c.collections, p)
		}
	}
	if l.asked != 1 || l.looked[shared] != 1 || l.looked["own"] != 1 {
		t.Errorf("the records were read %d times, the generations %v", l.asked, l.looked)
	}
	now, l.err = at(2), errors.New("does not answer")
	if _, ok, err := book.Proof(t.Context(), []doc.Collection{"users"}); ok || err == nil {
		t.Error("something is proven that could not be read")
	}
}
