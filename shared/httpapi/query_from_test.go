package httpapi

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/search"
)

// fakeIndexes are the generations that a fakeIndex knows of.
type fakeIndexes struct {
	of      map[collection.Family][]collection.Generation
	gone    []int // numbers of generations without an index
	asked   int   // lookups
	current int   // definitions that were not to be from memory
	err     error
}

func (f *fakeIndexes) missing(from []search.Source) []collection.Generation {
	var missing []collection.Generation
	for _, s := range from {
		if s.Generation != nil && slices.Contains(f.gone, s.Generation.Number) {
			missing = append(missing, *s.Generation)
		}
	}
	return missing
}

func (f *fakeIndex) CurrentDefinition(ctx context.Context, c doc.Collection) (collection.Definition, error) {
	f.indexes.current++
	return f.Definition(ctx, c)
}

func (f *fakeIndex) Generations(_ context.Context, family collection.Family) ([]collection.Generation, error) {
	f.indexes.asked++
	return f.indexes.of[family], f.indexes.err
}

// active makes generations that are written to, with the paths of full-text
// search.
func active(family collection.Family, text []string, numbers ...int) []collection.Generation {
	var all []collection.Generation
	for _, n := range numbers {
		all = append(all, collection.Generation{Family: family, Number: n, State: collection.Active, Text: text})
	}
	return all
}

func read(r search.Request) int {
	if g := r.From[0].Generation; g != nil {
		return g.Number
	}
	return 0
}

func TestQueriesReadTheLastActiveGeneration(t *testing.T) {
	h, f := newQuery()
	shared := append(active(collection.SharedFamily, nil, 2, 5), collection.Generation{Family: collection.SharedFamily, Number: 6, State: collection.Building})
	f.indexes.of = map[collection.Family][]collection.Generation{collection.SharedFamily: shared, "moving": active("moving", []string{"title"}, 1)}
	send(t, h, "POST", "/query", `{"from":["a","b"]}`).expect(t, 200, "")
	if r := f.asked[0]; read(r) != 5 || r.From[1].Generation.Number != 5 || f.indexes.asked != 1 {
		t.Errorf("%+v after %d lookups", r.From, f.indexes.asked)
	}

	// While documents are on their way to another index, they are read where they
	// are, in the form that they have there.
	moving := collection.Definition{Name: "moving", Revision: 2, Text: []string{"title"}, Serving: &collection.Form{}}
	f.defined = map[doc.Collection]collection.Definition{"moving": moving}
	send(t, h, "POST", "/query", `{"from":"moving"}`).expect(t, 200, "")
	if g := f.asked[1].From[0].Generation; g.Family != collection.SharedFamily || g.Number != 5 {
		t.Errorf("%+v", g)
	}
	send(t, h, "POST", "/query", `{"from":"moving","filter":{"title":{"$text":"fox"}}}`).expect(t, 400, "invalid-query")
	moving.Moved = true
	f.defined["moving"] = moving
	send(t, h, "POST", "/query", `{"from":"moving","filter":{"title":{"$text":"fox"}}}`).expect(t, 200, "")
	if g := f.asked[2].From[0].Generation; g.Family != "moving" {
		t.Errorf("%+v", g)
	}
	f.indexes.of["moving"] = active("moving", []string{"body"}, 2)
	f.indexes.err = errors.New("the table does not answer")
	send(t, h, "POST", "/query", `{"from":"unheard of"}`).expect(t, 200, "") // the shared index is remembered
	f.defined["own"] = collection.Definition{Name: "own", Index: collection.Own}
	send(t, h, "POST", "/query", `{"from":"own"}`).expect(t, 500, "internal")
}

func TestWhichGenerationIsReadIsRememberedShortly(t *testing.T) {
	_, f := newQuery()
	now := firstVersion.Time()
	h := Query(QueryOptions{Search: f, Waiter: f, Reporter: f, Definitions: f, Now: func() time.Time { return now }})
	query := func(body string, number, lookups int) {
		t.Helper()
		f.asked = nil
		send(t, h, "POST", "/query", body).expect(t, 200, "")
		if got := read(f.asked[len(f.asked)-1]); got != number || f.indexes.asked != lookups {
			t.Errorf("generation %d is read after %d lookups, not %d after %d", got, f.indexes.asked, number, lookups)
		}
	}
	const plain, waits = `{"from":"a"}`, `{"from":"a","wait":{"asOfNow":true}}`
	query(plain, 0, 1)
	query(plain, 0, 2) // that there is none is not remembered
	f.indexes.of = map[collection.Family][]collection.Generation{collection.SharedFamily: active(collection.SharedFamily, nil, 1)}
	query(plain, 1, 3)
	f.indexes.of[collection.SharedFamily] = active(collection.SharedFamily, nil, 1, 2)
	query(plain, 1, 3)
	now = now.Add(indexLife)
	query(plain, 2, 4)
	now = now.Add(-time.Hour)
	query(plain, 2, 5)

	// A query that waits reads what is read at the end of the wait; and what it
	// reads is what it has waited for.
	f.indexes.of[collection.SharedFamily] = active(collection.SharedFamily, nil, 3)
	query(waits, 2, 5)
	var waitedFor []int
	h = Query(QueryOptions{Search: f, Reporter: f, Definitions: f, Now: func() time.Time { return now }, Waiter: waiter{f, func(p freshness.Patience) {
		waitedFor = append(waitedFor, p.Read["a"].Number)
		f.indexes.of[collection.SharedFamily] = active(collection.SharedFamily, nil, 4)
		now = now.Add(time.Minute)
	}}})
	query(waits, 4, 8)
	if !slices.Equal(waitedFor, []int{3, 4}) {
		t.Errorf("waited in %v", waitedFor)
	}
}

// waiter is a wait in which something happens.
type waiter struct {
	*fakeIndex
	meanwhile func(freshness.Patience)
}

func (w waiter) AsOfNow(ctx context.Context, from []doc.Collection, signals []doc.Signal, p freshness.Patience) (freshness.Waited, error) {
	w.meanwhile(p)
	return w.fakeIndex.AsOfNow(ctx, from, signals, p)
}

// An index that is gone was removed because another one is read: that one is
// searched. One that is gone without another is empty.
func TestAQueryFollowsToTheNextIndex(t *testing.T) {
	h, f := newQuery()
	f.result = search.Result{Documents: []doc.Document{fakeDocument("a/1", nil)}}
	f.indexes.of = map[collection.Family][]collection.Generation{collection.SharedFamily: active(collection.SharedFamily, nil, 1)}
	send(t, h, "POST", "/query", `{"from":"a"}`).expect(t, 200, "")

	f.indexes.gone = []int{1}
	send(t, h, "POST", "/query", `{"from":"a"}`).expect(t, 200, "")
	if len(f.asked) != 2 || f.indexes.asked != 2 || f.indexes.current != 1 {
		t.Errorf("%d searches, %d lookups, %d definitions", len(f.asked), f.indexes.asked, f.indexes.current)
	}
	f.indexes.of[collection.SharedFamily] = active(collection.SharedFamily, nil, 2)
	for _, body := range []string{`{"from":"a"}`, `{"from":"a","read":"verified"}`} {
		// What is remembered is put back to the generation that is gone.
		h, f.asked = Query(QueryOptions{Search: f, Waiter: f, Reporter: f, Loader: f.table(), Definitions: f, Now: func() time.Time { return firstVersion.Time() }}), nil
		f.indexes.of[collection.SharedFamily], f.indexes.gone = active(collection.SharedFamily, nil, 1), nil
		send(t, h, "POST", "/query", body).expect(t, 200, "")
		f.indexes.of[collection.SharedFamily], f.indexes.gone = active(collection.SharedFamily, nil, 2), []int{1}
		send(t, h, "POST", "/query", body).expect(t, 200, "")
		if n := len(f.asked); n != 3 || read(f.asked[0]) != 1 || read(f.asked[1]) != 1 || read(f.asked[2]) != 2 {
			t.Errorf("%s: %d searches", body, n)
		}
		f.asked = nil
		send(t, h, "POST", "/query", body).expect(t, 200, "")
		if n := len(f.asked); n != 1 || read(f.asked[0]) != 2 {
			t.Errorf("%s: %d searches of what is remembered", body, n)
		}
	}
	// The next one is gone, too: once is enough.
	f.indexes.gone, f.asked = []int{2, 3}, nil
	f.indexes.of[collection.SharedFamily] = active(collection.SharedFamily, nil, 3)
	send(t, h, "POST", "/query", `{"from":"a"}`).expect(t, 200, "")
	if len(f.asked) != 2 {
		t.Errorf("%d searches", len(f.asked))
	}
	f.indexes.err = errors.New("the table does not answer")
	send(t, h, "POST", "/query", `{"from":"a"}`).expect(t, 500, "internal")
}
