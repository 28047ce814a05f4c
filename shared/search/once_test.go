package search_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
)

// TestEveryDocumentIsSeenOnce walks through more documents than one search
// gives, many of which have the same sort values.
func TestEveryDocumentIsSeenOnce(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	const many, equal, kinds = 25_000, 1000, 7
	docs := make([]doc.Document, 0, many+equal)
	for i := range many {
		docs = append(docs, document(t, fmt.Sprintf("many/%05d", i), fmt.Sprintf(`{"k":%d}`, i%kinds)))
	}
	for i := range equal {
		docs = append(docs, document(t, fmt.Sprintf("equal/%04d", i), `{"k":"same"}`))
	}
	index(t, c, g, docs...)
	t.Run("25,000 results", func(t *testing.T) {
		r := search.Request{From: sourcesOf("many"), Sort: []search.SortKey{by(t, "k", true)}, Limit: 1000}
		ids, pages := walk(t, c, r, nil)
		want := make([]doc.ID, 0, many)
		for kind := kinds - 1; kind >= 0; kind-- {
			for i := kind; i < many; i += kinds {
				want = append(want, docs[i].ID)
			}
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%d documents, not the %d in order", len(ids), len(want))
		}
		if pages != many/1000 {
			t.Errorf("%d pages", pages)
		}
	})
	for _, desc := range []bool{false, true} {
		t.Run(fmt.Sprintf("1,000 with one sort value, desc %v", desc), func(t *testing.T) {
			r := search.Request{From: sourcesOf("equal"), Sort: []search.SortKey{by(t, "k", desc)}, Limit: 64}
			ids, _ := walk(t, c, r, nil)
			if len(ids) != equal || !slices.IsSorted(ids) || len(slices.Compact(ids)) != equal {
				t.Errorf("%d documents", len(ids))
			}
		})
	}
}

// TestPagesWhileWritesGoOn rewrites, moves, deletes and adds documents between
// the pages of a walk. Each document whose sort value stays the same, however
// often it is written, is on exactly one page, and in order.
func TestPagesWhileWritesGoOn(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(11, 5))
	const total, kinds = 400, 5
	version := doc.VersionAt(at)
	make1 := func(i, kind, n int) doc.Document {
		d := document(t, fmt.Sprintf("live/%03d", i), fmt.Sprintf(`{"k":%d,"n":%d}`, kind, n))
		version++
		d.Version = version
		return d
	}
	var docs []doc.Document
	for i := range total {
		docs = append(docs, make1(i, i%kinds, 0))
	}
	index(t, c, g, docs...)
	// Every tenth document is moved or deleted in between; the others stay where
	// they are.
	stays := func(i int) bool { return i%10 != 0 }
	seen := map[doc.ID]int{}
	var order []doc.ID
	r := search.Request{From: sourcesOf("live"), Sort: []search.SortKey{by(t, "k", false)}, Limit: 17}
	for page := 0; ; page++ {
		result, err := c.Search(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range result.Documents {
			var i int
			if _, err := fmt.Sscanf(string(d.ID), "live/%d", &i); err != nil {
				t.Fatal(err)
			}
			if i < total && stays(i) {
				seen[d.ID]++
				order = append(order, d.ID)
			}
		}
		if r.After = result.Next; r.After == "" {
			break
		}
		writeBetween(t, c, g, rng, total, kinds, page, make1)
	}
	for i := range total {
		id := doc.ID(fmt.Sprintf("live/%03d", i))
		if stays(i) && seen[id] != 1 {
			t.Errorf("%s was seen %d times", id, seen[id])
		}
	}
	if !slices.IsSortedFunc(order, func(a, b doc.ID) int {
		kind := func(id doc.ID) int { return int(id[len(id)-1]-'0') % kinds }
		if kind(a) != kind(b) {
			return kind(a) - kind(b)
		}
		return slices.Compare([]byte(a), []byte(b))
	}) {
		t.Error("the documents that stayed came out of order")
	}
}

func writeBetween(t *testing.T, c *search.Client, g collection.Generation, rng *rand.Rand, total, kinds, page int, make1 func(i, kind, n int) doc.Document) {
	t.Helper()
	changed := map[doc.ID]doc.Document{}
	for range 40 {
		i := rng.IntN(total)
		kind := i % kinds
		if i%10 == 0 {
			kind = rng.IntN(kinds)
		}
		d := make1(i, kind, page+1)
		if i%20 == 0 {
			d.Deleted, d.Data = true, nil
		}
		changed[d.ID] = d
	}
	added := make1(total+page, rng.IntN(kinds), 0)
	changed[added.ID] = added
	var docs []doc.Document
	for _, d := range changed {
		docs = append(docs, d)
	}
	index(t, c, g, docs...)
}
