package search_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
)

func TestForbiddingAutomaticCreation(t *testing.T) {
	for _, c := range []struct {
		current, wanted string
		change          bool
	}{
		{"true", "-hf-*,+*", true},
		{"", "-hf-*,+*", true},
		{"false", "false", false},
		{"+logs-*", "-hf-*,+logs-*", true},
		{"-hf-*,+*", "-hf-*,+*", false},
		{"-h*, +*", "-h*, +*", false},
		{"-other-*,+*", "-hf-*,-other-*,+*", true},
	} {
		if wanted, change := search.Forbidding(c.current, "hf"); wanted != c.wanted || change != c.change {
			t.Errorf("%q: %q %v", c.current, wanted, change)
		}
	}
}

// TestOwnIndexes makes the indexes of declared collections: nested paths are
// found like others, and an index that has its most fields still takes
// documents in a reduced form.
func TestOwnIndexes(t *testing.T) {
	c := newIndex(t)
	g := collection.First(collection.Definition{Name: "orders", Nested: []string{"lines", "box.items"}, Text: []string{"note"}}, search.Projector)
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	from := []search.Source{{Collection: "orders", Generation: &g}}
	index(t, c, g,
		document(t, "orders/1", `{"lines":[{"p":"x","q":1},{"p":"y"},7],"note":"some words","box":[{"items":[{"n":"deep"}]}]}`),
		document(t, "orders/2", `{"lines":"none","note":5,"box":{"items":[]}}`))
	count := func(e filter.Expr) int {
		t.Helper()
		r, err := c.Search(t.Context(), search.Request{From: from, Filter: e, Count: true, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if r.Count != len(r.Documents) {
			t.Fatalf("counted %d, found %d", r.Count, len(r.Documents))
		}
		return r.Count
	}
	for path, v := range map[string]any{"lines.p": "y", "lines.q": number(t, "1"), "lines": number(t, "7"), "note": "some words", "box.items.n": "deep"} {
		if n := count(filter.Compare{Field: field(t, path), Op: filter.Eq, Value: v}); n != 1 {
			t.Errorf("%s is %v in %d documents", path, v, n)
		}
	}
	if n := count(nil); n != 2 {
		t.Errorf("%d documents", n)
	}

	var known search.Fields
	refused := 0
	for i := range 12 {
		d := document(t, fmt.Sprintf("orders/full%d", i), strings.ReplaceAll(manyNames(580), "n0", fmt.Sprintf("d%d-", i)))
		op := search.Operation{ID: d.ID, Version: d.Version, Generation: g, Source: search.Project(d, g).Source}
		o := mustWrite(t, c, []search.Operation{op})[0]
		if o.Kind == search.Refused {
			refused++
			if !strings.Contains(o.Reason, "most fields") {
				t.Errorf("%+v", o)
			}
			var err error
			if known, err = c.MappedFields(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			p := search.Reduce(d, g, search.KnownFields, known)
			if len(p.Partial) == 0 {
				t.Error("nothing is listed as left out")
			}
			op.Source = p.Source
			o = mustWrite(t, c, []search.Operation{op})[0]
		}
		if o.Kind != search.Applied {
			t.Fatalf("%+v", o)
		}
		if refused == 1 {
			if err := c.Refresh(t.Context(), []collection.Generation{g}); err != nil {
				t.Fatal(err)
			}
			e := filter.Compare{Field: field(t, fmt.Sprintf("d%d-0500.v", i)), Op: filter.Eq, Value: number(t, "500")}
			if n := count(e); n != 1 {
				t.Errorf("the reduced document is found %d times", n)
			}
			return
		}
	}
	t.Error("the index never had its most fields")
}

func number(t testing.TB, text string) any {
	t.Helper()
	return document(t, "n/1", `{"n":`+text+`}`).Data["n"]
}

func TestCancelledCalls(t *testing.T) {
	c, err := search.NewClient(search.Options{URL: "http://127.0.0.1:1", Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Search(ctx, search.Request{From: sourcesOf("a"), Limit: 1}); doc.KindOf(err) != doc.IndexUnavailable {
		t.Error(err)
	}
	if _, err := c.Versions(ctx, []search.VersionOf{{Generation: sharedGeneration(), IDs: []doc.ID{"a/1"}}}); doc.KindOf(err) != doc.IndexUnavailable {
		t.Error(err)
	}
	g := sharedGeneration()
	for name, call := range map[string]func() error{
		"Ensure":  func() error { return c.Ensure(ctx, g) },
		"Inspect": func() error { _, err := c.Inspect(ctx, g); return err },
		"UUID":    func() error { _, err := c.UUID(ctx, g); return err },
		"Swap":    func() error { return c.Swap(ctx, g, nil) },
		"Remove":  func() error { return c.Remove(ctx, g) },
		"Held":    func() error { _, err := c.Held(ctx, g, []doc.ID{"a/1"}); return err },
		"Walk":    func() error { _, err := c.Walk(ctx, g, search.WalkQuery{}); return err },
		"Counts":  func() error { _, err := c.Counts(ctx, g); return err },
		"Refresh": func() error { return c.Refresh(ctx, []collection.Generation{g}) },
	} {
		if err := call(); doc.KindOf(err) != doc.IndexUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if o, err := c.Erase(ctx, g, []doc.Signal{{ID: "a/1", Version: 1}}); err != nil || o[0].Kind != search.Environment {
		t.Errorf("%v, %v", o, err)
	}
	if o := mustWrite(t, c, []search.Operation{}); len(o) != 0 {
		t.Error(o)
	}
	if _, err := c.Write(ctx, []search.Operation{{ID: "a/1", Version: 1}}); err == nil {
		t.Error("an operation without a source was taken")
	}
}
