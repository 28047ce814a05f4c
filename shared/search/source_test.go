package search_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// after does something once so many searches were answered.
type after struct {
	searches int32
	do       func()
	seen     atomic.Int32
}

func (a *after) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && r.URL.Path == "/_msearch" && a.seen.Add(1) == a.searches {
		a.do()
	}
	return res, err
}

// An index that is removed while a query is answered, between two of the query's
// searches, is told to be missing: half an answer looks like a whole one.
func TestAnIndexThatIsRemovedMeanwhile(t *testing.T) {
	c := newIndex(t)
	all := []collection.Generation{sharedGeneration(), collection.First(collection.Definition{Name: "own", Index: collection.Own}, search.Projector)}
	var docs []doc.Document
	for i := range 100 {
		docs = append(docs, document(t, fmt.Sprintf("own/%03d", i), fmt.Sprintf(`{"k":%d}`, i)))
	}
	from := []search.Source{{Collection: "some", Generation: &all[0]}, {Collection: "own", Generation: &all[1]}, {Collection: "unheard of"}}
	for name, c1 := range map[string]struct {
		request search.Request
		kept    int // documents of the answer that came before
	}{
		"a page":         {search.Request{Limit: 100}, 33},
		"a count":        {search.Request{Limit: 10, Count: true}, 1},
		"an aggregation": {search.Request{Limit: 10, Aggregate: []search.Aggregation{{Limit: 10, Order: -1, Group: []search.GroupBy{{Field: filter.Field{Path: value.PathOf("k")}}}}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, g := range all {
				if err := c.Ensure(t.Context(), g); err != nil {
					t.Fatal(err)
				}
			}
			index(t, c, all[0], document(t, "some/1", `{"k":1}`))
			index(t, c, all[1], docs...)
			broken, err := search.NewClient(search.Options{URL: enginetest.OpenSearch(t), Prefix: prefixOf(c), Transport: &after{searches: 1, do: func() {
				if err := c.Remove(t.Context(), all[1]); err != nil {
					t.Error(err)
				}
			}}})
			if err != nil {
				t.Fatal(err)
			}
			r := c1.request
			r.From, r.Now = from, at
			result, err := broken.Search(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Missing) != 1 || result.Missing[0].Family != "own" || len(result.Documents) != c1.kept {
				t.Errorf("missing are %+v, found %d documents", result.Missing, len(result.Documents))
			}
		})
	}
	// A closed index is none that is missing.
	engine(t, http.MethodPost, "/"+c.IndexName(all[0])+"/_close", "")
	if _, err := c.Search(t.Context(), search.Request{From: from, Limit: 1}); doc.KindOf(err) != doc.IndexUnavailable {
		t.Errorf("%v", err)
	}
}

// An index that is missing and, looked for, there again is searched again; one
// that cannot be made out is not waited for.
func TestAnIndexThatComesBack(t *testing.T) {
	const gone, none = `{"status":404,"error":{"type":"index_not_found_exception"}}`, `{"status":200,"hits":{"total":{"value":0},"hits":[]}}`
	for _, c := range []struct {
		answers []string
		missing int
		fails   bool
	}{
		{[]string{gone, `{"status":200}`, none}, 0, false},
		{[]string{gone, `{"status":404}`}, 1, false},
		{[]string{gone, `{"status":200}`, gone, `{"status":404}`}, 1, false},
		{[]string{gone, `{"status":200}`, gone, `{"status":200}`, none}, 0, true},
		{[]string{gone, `{"status":404},{"status":404}`}, 0, true},
	} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"responses":[`+c.answers[min(asked, len(c.answers)-1)]+`]}`)
			asked++
		}))
		client, err := search.NewClient(search.Options{URL: server.URL, Prefix: "p"})
		if err != nil {
			t.Fatal(err)
		}
		result, err := client.Search(t.Context(), search.Request{From: sourcesOf("a"), Limit: 1})
		server.Close()
		if len(result.Missing) != c.missing || (doc.KindOf(err) == doc.IndexUnavailable) != c.fails || (err != nil) != c.fails {
			t.Errorf("%q: missing are %+v, %v", c.answers, result.Missing, err)
		}
	}
}

// The largest query there is, over the most collections with an index each.
func TestManyIndexesAndManyConditions(t *testing.T) {
	c := newIndex(t)
	var from []search.Source
	for i := range 100 {
		g := collection.First(collection.Definition{Name: doc.Collection(fmt.Sprintf("many%d", i)), Index: collection.Own}, search.Projector)
		from = append(from, search.Source{Collection: doc.Collection(g.Family), Generation: &g})
		if i < 2 {
			if err := c.Ensure(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			index(t, c, g, document(t, fmt.Sprintf("many%d/1", i), `{"a":{"n99":true}}`))
		}
	}
	var any []filter.Expr
	for i := range 100 {
		any = append(any, filter.Compare{Field: field(t, fmt.Sprintf("a.n%d", i)), Op: filter.Eq, Value: true})
	}
	for n := len(any); n > 0; n /= 2 {
		r, err := c.Search(t.Context(), search.Request{From: from, Filter: filter.Or{Of: any[len(any)-n:]}, Limit: 10, Count: true})
		if err != nil || len(r.Documents) != 2 || r.Count != 2 || len(r.Missing) != 98 {
			t.Fatalf("%d conditions: %d documents, %d missing, %v", n, len(r.Documents), len(r.Missing), err)
		}
	}
	if name := c.IndexName(*from[99].Generation); !strings.Contains(name, "many99") {
		t.Error(name)
	}
}
