package search_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

func field(t testing.TB, path string) filter.Field {
	t.Helper()
	f, err := filter.ParseField(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func by(t testing.TB, path string, desc bool) search.SortKey {
	return search.SortKey{Path: field(t, path).Path, Desc: desc}
}

// walk reads all pages and returns the ids in order, and how many pages there
// were. Each page is given to look.
func walk(t *testing.T, c *search.Client, r search.Request, look func(search.Result)) (ids []doc.ID, pages int) {
	t.Helper()
	for {
		result, err := c.Search(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, d := range result.Documents {
			ids = append(ids, d.ID)
		}
		if look != nil {
			look(result)
		}
		if result.Next == "" {
			return ids, pages
		}
		if pages > 1000 {
			t.Fatal("pages without end")
		}
		r.After = result.Next
	}
}

// TestPaging runs over one index, because making indexes takes time.
func TestPaging(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	var docs []doc.Document
	for i := range 30 {
		docs = append(docs, document(t, fmt.Sprintf("large/%02d", i), fmt.Sprintf(`{"n":%d,"text":%q}`, i%4, strings.Repeat("x", 390_000))))
	}
	// Only looking tells which of these arrays are whole matches.
	for i := range 120 {
		data := `{"a":[1,2]}`
		if i%10 == 3 {
			data = `{"a":[2,1]}`
		}
		docs = append(docs, document(t, fmt.Sprintf("looked/%03d", i), data))
	}
	// Documents whose sort keys the index does not know, or knows wrongly.
	for i := range 24 {
		data := fmt.Sprintf(`{"k":{"0":%d}}`, i/2)
		switch i % 4 {
		case 1:
			data = fmt.Sprintf(`{"k":[%d,-5]}`, i/2)
		case 2:
			data = fmt.Sprintf(`{"k":{"0":%d},"%s":1}`, i/2, strings.Repeat("n", 1100))
		case 3:
			data = fmt.Sprintf(`{"k":[[{"0":%d}]]}`, i)
		}
		docs = append(docs, document(t, fmt.Sprintf("strays/%02d", i), data))
	}
	index(t, c, g, docs...)

	t.Run("large documents end pages early", func(t *testing.T) {
		r := search.Request{From: sourcesOf("large"), Limit: 1000, Sort: []search.SortKey{by(t, "n", true)}, Count: true}
		ids, pages := walk(t, c, r, func(page search.Result) {
			if n := len(page.Documents); n > 12 || n == 0 {
				t.Errorf("a page of %d documents", n)
			}
			if page.Count != 30 {
				t.Errorf("counted %d", page.Count)
			}
		})
		if len(ids) != 30 || pages != 3 || ids[0] != "large/03" || ids[29] != "large/28" {
			t.Errorf("%d documents on %d pages: %v", len(ids), pages, ids)
		}
	})
	t.Run("one document always fits", func(t *testing.T) {
		ids, pages := walk(t, c, search.Request{From: sourcesOf("large"), Limit: 2, MaxBytes: 1000}, nil)
		if len(ids) != 30 || pages != 30 || !slices.IsSorted(ids) {
			t.Errorf("%d documents on %d pages", len(ids), pages)
		}
	})
	whole := filter.Compare{Field: field(t, "a"), Op: filter.Eq, Value: []any{json.Number("2"), json.Number("1")}}
	t.Run("pages are filled up after drops", func(t *testing.T) {
		examined := 0
		r := search.Request{From: sourcesOf("looked"), Filter: whole, Limit: 5, Count: true}
		ids, pages := walk(t, c, r, func(page search.Result) {
			examined += page.Examined
			if page.Count != 12 || !page.CountExact {
				t.Errorf("counted %d", page.Count)
			}
		})
		if len(ids) != 12 || pages != 3 || examined < 120 || !slices.IsSorted(ids) {
			t.Errorf("%d documents on %d pages, %d examined", len(ids), pages, examined)
		}
	})
	t.Run("no documents asked for", func(t *testing.T) {
		result, err := c.Search(t.Context(), search.Request{From: sourcesOf("looked"), Filter: whole, Count: true})
		if err != nil || result.Count != 12 || len(result.Documents) != 0 || result.Next != "" {
			t.Errorf("%+v, %v", result, err)
		}
	})
	t.Run("a page exactly full has no next", func(t *testing.T) {
		if ids, pages := walk(t, c, search.Request{From: sourcesOf("looked"), Filter: whole, Limit: 12}, nil); len(ids) != 12 || pages != 1 {
			t.Errorf("%d documents on %d pages", len(ids), pages)
		}
	})
	for _, desc := range []bool{false, true} {
		for _, limit := range []int{3, 24} {
			t.Run(fmt.Sprintf("keys that the index does not know, by %d, desc %v", limit, desc), func(t *testing.T) {
				key := by(t, "k.0", desc)
				var want []doc.Document
				for _, d := range docs {
					if d.ID.Collection() == "strays" {
						want = append(want, d)
					}
				}
				slices.SortStableFunc(want, func(a, b doc.Document) int {
					c := value.Compare(key.Path.SortKey(a.Data, desc), key.Path.SortKey(b.Data, desc))
					if desc {
						return -c
					}
					return c
				})
				ids, _ := walk(t, c, search.Request{From: sourcesOf("strays"), Sort: []search.SortKey{key}, Limit: limit}, nil)
				for i, d := range want {
					if i >= len(ids) || ids[i] != d.ID {
						t.Fatalf("place %d: got %v", i, ids)
					}
				}
				if len(ids) != len(want) {
					t.Fatalf("%d documents", len(ids))
				}
			})
		}
	}
	t.Run("cursors belong to their query", func(t *testing.T) {
		r := search.Request{From: sourcesOf("looked", "strays"), Limit: 3, Sort: []search.SortKey{by(t, "a", false)}}
		first, err := c.Search(t.Context(), r)
		if err != nil || first.Next == "" {
			t.Fatal(first.Next, err)
		}
		r.After, r.Limit, r.Count, r.From = first.Next, 9, true, sourcesOf("strays", "looked")
		if _, err := c.Search(t.Context(), r); err != nil {
			t.Errorf("limit, count and the order of collections may change: %v", err)
		}
		for what, change := range map[string]func(*search.Request){
			"filter":    func(r *search.Request) { r.Filter = whole },
			"from":      func(r *search.Request) { r.From = sourcesOf("looked") },
			"sort":      func(r *search.Request) { r.Sort = nil },
			"direction": func(r *search.Request) { r.Sort = []search.SortKey{by(t, "a", true)} },
		} {
			other := r
			change(&other)
			if _, err := c.Search(t.Context(), other); doc.KindOf(err) != doc.CursorMismatch {
				t.Errorf("another %s: %v", what, err)
			}
		}
		for i := range len(first.Next) {
			letter := byte('A')
			if first.Next[i] == 'A' {
				letter = 'B'
			}
			r.After = first.Next[:i] + string(letter) + first.Next[i+1:]
			if _, err := c.Search(t.Context(), r); doc.KindOf(err) != doc.InvalidCursor {
				t.Fatalf("letter %d altered: %v", i, err)
			}
		}
		for _, text := range []string{"x", "é", first.Next + "A", first.Next[:len(first.Next)-1], "AQ"} {
			r.After = text
			if _, err := c.Search(t.Context(), r); doc.KindOf(err) != doc.InvalidCursor {
				t.Errorf("cursor %q: %v", text, err)
			}
		}
	})
	t.Run("the deepest and the widest filters are taken", func(t *testing.T) {
		var e filter.Expr = filter.Compare{Field: field(t, "a.0.b"), Op: filter.Gte, Value: json.Number("1")}
		for i := range filter.MaxDepth {
			other := filter.Exists{Field: field(t, fmt.Sprint("x", i)), Want: true}
			if i%2 == 0 {
				e = filter.Or{Of: []filter.Expr{other, filter.Not{Of: e}}}
			} else {
				e = filter.And{Of: []filter.Expr{filter.Not{Of: other}, e}}
			}
		}
		var wide filter.Or
		var values []any
		for i := range filter.MaxClauses {
			wide.Of = append(wide.Of, filter.Compare{Field: field(t, fmt.Sprintf("a%d.b.c", i)), Op: filter.Gt, Value: json.Number("1")})
		}
		for i := range filter.MaxTerms {
			values = append(values, fmt.Sprint(i))
		}
		for what, e := range map[string]filter.Expr{"deep": e, "wide": wide, "many terms": filter.NewIn(field(t, "a"), values)} {
			if _, err := c.Search(t.Context(), search.Request{From: sourcesOf("strays"), Filter: e, Limit: 50, Count: true}); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	t.Run("a search looks at so many documents and no more", func(t *testing.T) {
		search.LimitExamined(c, 20)
		defer search.LimitExamined(c, search.MaxExamined)
		r := search.Request{From: sourcesOf("looked"), Filter: whole, Limit: 100}
		empty := 0
		ids, pages := walk(t, c, r, func(page search.Result) {
			if page.Examined > 20 {
				t.Errorf("%d examined", page.Examined)
			}
			if len(page.Documents) == 0 {
				empty++
			}
		})
		if len(ids) != 12 || pages != 7 || empty != 1 || !slices.IsSorted(ids) {
			t.Errorf("%d documents on %d pages, %d of them empty", len(ids), pages, empty)
		}
		r.Count = true
		if _, err := c.Search(t.Context(), r); doc.KindOf(err) != doc.QueryTooCostly {
			t.Errorf("counted: %v", err)
		}
		search.LimitExamined(c, 10)
		sorted := search.Request{From: sourcesOf("strays"), Sort: []search.SortKey{by(t, "k.0", false)}, Limit: 5}
		if _, err := c.Search(t.Context(), sorted); doc.KindOf(err) != doc.QueryTooCostly {
			t.Errorf("sorted: %v", err)
		}
	})
}
