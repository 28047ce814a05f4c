package search_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// A further condition is asked about everything that the filter leaves, within
// the budget: a page ends early, a count is refused.
func TestFurtherConditions(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	var docs []doc.Document
	for i := range 100 {
		docs = append(docs, document(t, fmt.Sprintf("some/%03d", i), fmt.Sprintf(`{"n":%d,"even":%v}`, i, i%2 == 0)))
	}
	index(t, c, g, docs...)
	asked := 0
	r := search.Request{
		From: sourcesOf("some"), Now: at, Limit: 10, Variant: "tens",
		Filter: filter.Compare{Field: filter.Field{Path: value.PathOf("even")}, Op: filter.Eq, Value: true},
		Where: func(_ context.Context, data map[string]any) (bool, error) {
			asked++
			switch n, _ := data["n"].(json.Number).Int64(); {
			case n == 44:
				return true, errors.New("cannot be told")
			default:
				return n%20 == 0, nil
			}
		},
	}
	result, err := c.Search(t.Context(), r)
	if err != nil || len(result.Documents) != 5 || result.Next != "" || result.Examined != 50 || result.WhereErrors != 1 || asked != 50 {
		t.Fatalf("%v %d documents, next %q, examined %d, errors %d", err, len(result.Documents), result.Next, result.Examined, result.WhereErrors)
	}
	r.Count, r.Limit = true, 2
	if result, err = c.Search(t.Context(), r); err != nil || result.Count != 5 || !result.CountExact || result.Examined != 50 || result.WhereErrors != 1 || result.Next == "" {
		t.Errorf("%v %+v", err, result)
	}
	if after, err := result.CursorAfter(1); err != nil || after == "" {
		t.Errorf("%v", err)
	}
	other := r
	other.After, other.Variant = result.Next, ""
	if _, err := c.Search(t.Context(), other); doc.KindOf(err) != doc.CursorMismatch {
		t.Errorf("a cursor belongs to its condition: %v", err)
	}
	search.LimitExamined(c, 7)
	r.Count = true
	var e *doc.Error
	if _, err := c.Search(t.Context(), r); !errors.As(err, &e) || e.Kind != doc.QueryTooCostly || e.Members["limit"] != 7 {
		t.Errorf("a count beyond the budget: %v", err)
	}
	r.Count, r.Limit = false, 10
	var seen []string
	pages := 0
	for {
		if result, err = c.Search(t.Context(), r); err != nil || result.Examined > 7 {
			t.Fatalf("%v, examined %d", err, result.Examined)
		}
		pages++
		for _, d := range result.Documents {
			seen = append(seen, string(d.ID))
		}
		if r.After = result.Next; r.After == "" {
			break
		}
	}
	if fmt.Sprint(seen) != "[some/000 some/020 some/040 some/060 some/080]" || pages != 8 {
		t.Errorf("%d pages: %v", pages, seen)
	}
	ended, cancel := context.WithCancel(t.Context())
	r.After = ""
	r.Where = func(ctx context.Context, _ map[string]any) (bool, error) {
		cancel()
		return false, ctx.Err()
	}
	if _, err := c.Search(ended, r); !errors.Is(err, context.Canceled) {
		t.Errorf("the end of the request is no failure of a document: %v", err)
	}
}

// A document's text is its data as they are written, and enough where nothing
// has to be looked at.
func TestTextsOfDocuments(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	index(t, c, g,
		document(t, "some/1", `{"n":1.50,"s":"\u00e9\"\\","big":12345678901234567891}`),
		document(t, "some/2", `{"n":[[1.5]],"list":[{"n":1.5},[]]}`),
		document(t, "some/3", `{"n":2,"long":"`+strings.Repeat("z", 9000)+`"}`))
	for _, r := range []search.Request{
		{},
		{Filter: filter.Compare{Field: filter.Field{Path: value.PathOf("n")}, Op: filter.Eq, Value: json.Number("1.5")}},
		{Sort: []search.SortKey{{Path: value.PathOf("long")}, {Path: value.PathOf("list", "n")}}},
	} {
		r.From, r.Now, r.Limit = sourcesOf("some"), at, 10
		whole, err := c.Search(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		r.TextOnly = true
		texts, err := c.Search(t.Context(), r)
		if err != nil || len(texts.Documents) != len(whole.Documents) || len(whole.Documents) == 0 {
			t.Fatalf("%v: %d and %d documents", err, len(whole.Documents), len(texts.Documents))
		}
		for i, d := range whole.Documents {
			if text := string(value.Append(nil, d.Data)); whole.Texts[i] != text || texts.Texts[i] != text || texts.Documents[i].ID != d.ID || texts.Documents[i].Version != d.Version {
				t.Errorf("%s: %s\n%s\n%s", d.ID, text, whole.Texts[i], texts.Texts[i])
			}
		}
	}
}
