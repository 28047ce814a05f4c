package search_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// A query that becomes longer than a request may be is refused for that, and not
// by an index that would seem to be away.
func TestAQueryIsLongerThanARequest(t *testing.T) {
	asked, status := 0, http.StatusServiceUnavailable
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		http.Error(w, "too large", status)
	}))
	defer server.Close()
	c, err := search.NewClient(search.Options{URL: server.URL, Prefix: "x", CursorKey: func(context.Context) ([]byte, error) { return explainedKey, nil }})
	if err != nil {
		t.Fatal(err)
	}
	g := collection.First(collection.Definition{}, search.Projector)
	for members, tooCostly := range map[int]bool{1: false, 12: true} {
		var any []filter.Expr
		for i := range members {
			path, err := value.ParsePath(fmt.Sprintf("a%d", i))
			if err != nil {
				t.Fatal(err)
			}
			in := filter.In{Field: filter.Field{Path: path}}
			for n := range 1000 {
				in.Values = append(in.Values, fmt.Sprintf("%d %s", n, strings.Repeat("x", 500)))
			}
			any = append(any, in)
		}
		for _, r := range []search.Request{{Limit: 1}, {Count: true}, {Aggregate: explainedAggregations}} {
			r.From, r.Filter = []search.Source{{Collection: "odd", Generation: &g}}, filter.Or{Of: any}
			_, err := c.Search(t.Context(), r)
			if tooCostly != (doc.KindOf(err) == doc.QueryTooCostly) || tooCostly == (asked > 0) {
				t.Errorf("%d conditions, a page of %d: %v, asked %d times", members, r.Limit, err, asked)
			}
			asked = 0
		}
	}
	status = http.StatusRequestEntityTooLarge
	if _, err := c.Search(t.Context(), search.Request{From: []search.Source{{Collection: "odd", Generation: &g}}, Limit: 1}); doc.KindOf(err) != doc.QueryTooCostly {
		t.Errorf("an index that takes less: %v", err)
	}
}
