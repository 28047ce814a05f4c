package search_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// crowdedSample are documents with long strings at a, b and o.a, the latter also
// through arrays and, where the index does not know the place, through arrays
// inside arrays.
func crowdedSample() []doc.Document {
	var docs []doc.Document
	for seed := range 6 {
		some := rapid.Custom(func(t *rapid.T) []doc.Document { return crowdedDocuments(t, 25) }).Example(seed)
		for i, d := range some {
			d.ID = doc.ID(fmt.Sprintf("crowds/%02d", len(docs)))
			a := map[string]any{"a": d.Data["a"]}
			switch i % 6 {
			case 0, 1:
				d.Data["o"] = a
			case 2:
				d.Data["o"] = []any{a, map[string]any{"a": some[0].Data["a"]}}
			case 3:
				d.Data["o"] = []any{[]any{a}, map[string]any{"a": some[0].Data["a"]}}
			}
			d.Data["looked"] = []any{json.Number(fmt.Sprint(i % 3)), json.Number("2")}
			docs = append(docs, d)
			if len(docs) == 60 {
				return docs
			}
		}
	}
	return docs
}

// onlyLooking is a filter that the index cannot decide.
func onlyLooking() filter.Expr {
	return filter.Compare{Field: filter.Field{Path: value.PathOf("looked")}, Op: filter.Eq, Value: []any{json.Number("1"), json.Number("2")}}
}

func newCrowds(t *testing.T, docs []doc.Document) (*search.Client, collection.Generation) {
	t.Helper()
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	index(t, c, g, docs...)
	return c, g
}

// TestLongStringsInOrder sorts by strings of which the index keeps only the
// beginnings, and compares with the order of the strings in full.
func TestLongStringsInOrder(t *testing.T) {
	docs := crowdedSample()
	if len(docs) < 40 {
		t.Fatalf("only %d documents", len(docs))
	}
	c, _ := newCrowds(t, docs)
	fewChecks(t, 25)
	pages, ends := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		r := search.Request{From: sourcesOf("crowds"), Sort: crowdedSorts().Draw(rt, "sort"), Limit: rapid.IntRange(1, 7).Draw(rt, "limit"), Now: at}
		if rapid.Bool().Draw(rt, "inside") {
			for i, k := range r.Sort {
				if k.Pseudo == "" && k.Path.String() == "a" {
					r.Sort[i].Path = value.PathOf("o", "a")
				}
			}
		}
		if rapid.IntRange(0, 3).Draw(rt, "looking") == 0 {
			r.Filter = onlyLooking()
		}
		switch rapid.IntRange(0, 4).Draw(rt, "pages") {
		case 0:
			r.Limit = 1000
		case 1:
			r.Limit, r.MaxBytes = 1000, 60_000
		}
		budget := rapid.SampledFrom([]int{60, search.MaxExamined}).Draw(rt, "budget")
		search.LimitExamined(c, budget)
		defer search.LimitExamined(c, search.MaxExamined)
		var want []doc.Document
		for _, d := range docs {
			if r.Filter == nil || filter.Match(r.Filter, &d) {
				want = append(want, d)
			}
		}
		slices.SortFunc(want, func(a, b doc.Document) int { return byContent(a, b, r.Sort) })
		var got []doc.Document
		for {
			page, err := c.Search(t.Context(), r)
			if err != nil {
				rt.Fatalf("%s: %v", sorted(r.Sort), err)
			}
			pages++
			// A page may be cut anywhere, and goes on from there.
			keep := len(page.Documents)
			if keep > 1 && rapid.IntRange(0, 3).Draw(rt, "cut") == 0 {
				keep = rapid.IntRange(1, keep-1).Draw(rt, "keep")
				if page.Next, err = page.CursorAfter(keep - 1); err != nil {
					rt.Fatal(err)
				}
			}
			got = append(got, page.Documents[:keep]...)
			if page.Next == "" {
				break
			}
			ends++
			if len(page.Next) > 12_000*(len(r.Sort)+1) || len(got) > len(want) {
				rt.Fatalf("a cursor of %d bytes after %d documents of %d", len(page.Next), len(got), len(want))
			}
			r.After = page.Next
		}
		for i, d := range want {
			if i >= len(got) || got[i].ID != d.ID {
				rt.Fatalf("%s\nplace %d is not %s: %v", sorted(r.Sort), i, d.ID, idsOf(got))
			}
		}
		if len(got) != len(want) {
			rt.Fatalf("%s: %d documents, not %d", sorted(r.Sort), len(got), len(want))
		}
	})
	t.Logf("%d documents, %d pages, %d cursors", len(docs), pages, ends)
}

func idsOf(docs []doc.Document) (ids []doc.ID) {
	for _, d := range docs {
		ids = append(ids, d.ID)
	}
	return ids
}

// TestLongStringsWhileWritesGoOn deletes, rewrites and adds documents between
// the pages of a walk through strings that are the same as far as the index
// keeps them, the last one told among them. Each document whose strings stay
// is on exactly one page, and in order.
func TestLongStringsWhileWritesGoOn(t *testing.T) {
	fewChecks(t, 5)
	c, g := newCrowds(t, nil)
	version, walks := doc.VersionAt(at), 0
	rapid.Check(t, func(rt *rapid.T) {
		walks++
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		keys := crowdedSorts().Draw(rt, "sort")
		keys = slices.DeleteFunc(keys, func(k search.SortKey) bool { return k.Pseudo == filter.Version }) // changes with every write
		name := doc.Collection(fmt.Sprintf("live%d", walks))
		docs := map[doc.ID]doc.Document{}
		var all []doc.Document
		write := func(changed ...doc.Document) {
			for i := range changed {
				version++
				changed[i].Version = version
				docs[changed[i].ID] = changed[i]
			}
			index(t, c, g, changed...)
		}
		sample := crowdedDocuments(rt, 30)
		for i := range sample {
			sample[i].ID = doc.ID(fmt.Sprintf("%s/%02d", name, i))
			all = append(all, sample[i])
		}
		write(sample...)
		var told []doc.ID
		r := search.Request{From: sourcesOf(name), Sort: keys, Limit: rapid.IntRange(1, 5).Draw(rt, "limit"), Now: at}
		gone := map[doc.ID]bool{}
		for page := 0; ; page++ {
			result, err := c.Search(t.Context(), r)
			if err != nil {
				rt.Fatal(err)
			}
			for _, d := range result.Documents {
				told = append(told, d.ID)
			}
			if r.After = result.Next; r.After == "" {
				break
			}
			// The last one told goes as often as not, and so do some others.
			var changed []doc.Document
			victims := []doc.Document{all[rng.IntN(len(all))]}
			if n := len(result.Documents); n > 0 && rng.IntN(2) == 0 {
				victims = append(victims, result.Documents[n-1])
			}
			for _, d := range victims {
				if gone[d.ID] || docs[d.ID].Deleted {
					continue
				}
				gone[d.ID] = true
				d.Deleted, d.Data = rng.IntN(2) == 0, map[string]any{"a": all[rng.IntN(len(all))].Data["a"]}
				if d.Deleted {
					d.Data = nil
				}
				changed = append(changed, d)
			}
			added := all[rng.IntN(len(all))]
			added.ID = doc.ID(fmt.Sprintf("%s/new%02d", name, page))
			gone[added.ID] = true // not there all the while
			changed = append(changed, added)
			same := all[rng.IntN(len(all))]
			if !gone[same.ID] {
				changed = append(changed, same) // another version with the same strings
			}
			write(changed...)
		}
		stayed := slices.DeleteFunc(slices.Clone(all), func(d doc.Document) bool { return gone[d.ID] })
		slices.SortFunc(stayed, func(a, b doc.Document) int { return byContent(a, b, keys) })
		told = slices.DeleteFunc(told, func(id doc.ID) bool { return gone[id] })
		if want := idsOf(stayed); !slices.Equal(told, want) {
			rt.Fatalf("%s\ntold %v\nnot  %v", sorted(keys), told, want)
		}
	})
}

// What would take more looking than a query may do is refused, and what would
// not in one page is done in several.
func TestLongStringsWithinTheBudget(t *testing.T) {
	docs := crowdedSample()
	c, _ := newCrowds(t, docs)
	r := search.Request{From: sourcesOf("crowds"), Sort: []search.SortKey{by(t, "a", false)}, Limit: 5, Now: at}
	search.LimitExamined(c, 3)
	var err error
	for next := ""; err == nil; {
		r.After = next
		var page search.Result
		if page, err = c.Search(t.Context(), r); err == nil && page.Next == "" {
			t.Fatal("everything was told")
		}
		next = page.Next
	}
	if doc.KindOf(err) != doc.QueryTooCostly {
		t.Error(err)
	}
	// The largest crowd is what it takes at least.
	crowds, most := map[string]int{}, 0
	for _, d := range docs {
		if s, ok := value.PathOf("a").SortKey(d.Data, false).(string); ok && len(s) > 7000 {
			crowds[s[:7990]]++
			most = max(most, crowds[s[:7990]])
		}
	}
	search.LimitExamined(c, most)
	r.After, r.Filter = "", onlyLooking()
	ids, _ := walk(t, c, r, func(page search.Result) {
		if page.Examined > most {
			t.Errorf("%d examined", page.Examined)
		}
	})
	want := slices.DeleteFunc(slices.Clone(docs), func(d doc.Document) bool { return !filter.Match(r.Filter, &d) })
	slices.SortFunc(want, func(a, b doc.Document) int { return byContent(a, b, r.Sort) })
	if !slices.Equal(ids, idsOf(want)) {
		t.Errorf("got  %v\nwant %v", ids, idsOf(want))
	}
}

// Strings that the index cannot tell apart are different keys of groups, and the
// smallest and largest ones are those in full.
func TestLongStringsAsKeysOfGroups(t *testing.T) {
	docs := crowdedSample()
	c, _ := newCrowds(t, docs)
	for _, path := range []string{"a", "o.a"} {
		p := field(t, path).Path
		groups := map[string]int{}
		var least, most any
		for _, d := range docs {
			own := map[string]bool{}
			everyScalar(p, d.Data, func(v any) {
				own[string(value.Append(nil, v))] = true
				if least == nil || value.Compare(v, least) < 0 {
					least = v
				}
				if most == nil || value.Compare(v, most) > 0 {
					most = v
				}
			})
			for key := range own {
				groups[key]++
			}
		}
		count := search.Metric{Kind: search.Count}
		r := search.Request{From: sourcesOf("crowds"), Now: at, Aggregate: []search.Aggregation{
			{Group: []search.GroupBy{{Field: filter.Field{Path: p}}}, Metrics: []search.Metric{count}, Limit: 1000, Order: -1},
			{Metrics: []search.Metric{{Kind: search.Min, Path: p}, {Kind: search.Max, Path: p}, {Kind: search.Cardinality, Path: p}}, Limit: 1, Order: -1},
		}}
		result, err := c.Search(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		told := result.Aggregates[0].Groups
		for i, g := range told {
			if want := json.Number(fmt.Sprint(groups[string(value.Append(nil, g.Key[0]))])); g.Figures[0] != want {
				t.Errorf("%s: group %d has %v documents, not %s", path, i, g.Figures[0], want)
			}
		}
		if len(told) != len(groups) || !slices.IsSortedFunc(told, func(a, b search.Group) int { return cmp.Compare(value.Compare(a.Key[0], b.Key[0]), 0) }) {
			t.Errorf("%s: %d groups, not %d, or out of order", path, len(told), len(groups))
		}
		figures := result.Aggregates[1].Groups[0].Figures
		if !value.Equal(figures[0], least) || !value.Equal(figures[1], most) || figures[2] != json.Number(fmt.Sprint(len(groups))) {
			t.Errorf("%s: the least, the most or the number of different ones is wrong: %v of %d", path, figures[2], len(groups))
		}
		search.LimitExamined(c, 3)
		if _, err := c.Search(t.Context(), r); doc.KindOf(err) != doc.QueryTooCostly {
			t.Errorf("%s: beyond the budget: %v", path, err)
		}
		search.LimitExamined(c, search.MaxExamined)
	}
}

// everyScalar visits the scalars but null that the path leads to.
func everyScalar(p value.Path, data map[string]any, visit func(any)) {
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, element := range v {
				walk(element)
			}
		case nil, map[string]any:
		default:
			visit(v)
		}
	}
	for _, v := range p.Values(data) {
		walk(v)
	}
}
