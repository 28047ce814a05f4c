package search_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// explainedKey signs the cursors of these tests.
var explainedKey = []byte("the key of cursors, which nobody is told")

// listening makes a client that keeps what it asks and finds nothing.
func listening(t interface{ Fatalf(string, ...any) }) (*search.Client, *capture) {
	sent := &capture{}
	c, err := search.NewClient(search.Options{
		URL: "http://name:password@index.example", Prefix: "x", Transport: sent,
		CursorKey: func(context.Context) ([]byte, error) { return explainedKey, nil },
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return c, sent
}

// searches are the bodies of all searches that were sent.
func (c *capture) searches() []string {
	var all []string
	for _, request := range c.bodies {
		lines := strings.Split(strings.TrimSuffix(request, "\n"), "\n")
		for i := 1; i < len(lines); i += 2 {
			all = append(all, lines[i])
		}
	}
	return all
}

// told are the bodies of an explanation in the order in which Search asks.
func told(e search.Explanation) []string {
	var all []string
	for _, a := range []*search.Asked{e.Count, e.Aggregate, e.Search} {
		if a == nil {
			continue
		}
		var beside []string
		for _, b := range a.Beside {
			beside = append(beside, string(b.Body))
		}
		if a == e.Aggregate {
			all, beside = append(all, beside...), nil
		}
		for _, body := range a.Bodies {
			all = append(all, string(body))
		}
		all = append(all, beside...)
	}
	return all
}

var explainedAggregations = []search.Aggregation{
	{Metrics: []search.Metric{{Kind: search.Count}}, Limit: 10, Order: -1},
	{Group: []search.GroupBy{{Field: filter.Field{Path: value.PathOf("a", "b")}}, {Field: filter.Field{Pseudo: filter.Root}}}, Limit: 10, Order: -1,
		Metrics: []search.Metric{{Kind: search.Sum, Path: value.PathOf("0", "a.b")}, {Kind: search.Max, Path: value.PathOf("c")}}},
	{Group: []search.GroupBy{{Field: filter.Field{Path: value.PathOf("c")}, Step: "0.5"}}, MissingNull: true, Limit: 1, Order: -1,
		Metrics: []search.Metric{{Kind: search.Cardinality, Path: value.PathOf("a")}}},
}

// What is explained is what is sent, byte for byte, and all that is sent before
// there is an answer to go on from. Explaining itself sends nothing.
func TestWhatIsExplainedIsWhatIsSent(t *testing.T) {
	known := oddDocuments(t)
	rapid.Check(t, func(rt *rapid.T) {
		c, sent := listening(rt)
		from := rapid.SampledFrom(grammarSources).Draw(rt, "from")
		beside := *from.Generation
		beside.Family = "beside"
		r := search.Request{
			From: []search.Source{from, {Collection: "none"}, {Collection: "beside", Generation: &beside}}, Now: at,
			Limit: rapid.SampledFrom([]int{0, 1, 31, 32, 1000}).Draw(rt, "limit"), Count: rapid.Bool().Draw(rt, "count"),
			Aggregate: explainedAggregations[:rapid.IntRange(0, len(explainedAggregations)).Draw(rt, "aggregations")],
		}
		if rapid.IntRange(0, 4).Draw(rt, "pseudo") == 0 {
			r.Filter = pseudoFilters(known).Draw(rt, "filter")
		} else {
			l := language{known: known, text: from.Generation.Text}
			r.Filter = l.parse(rt, l.filters(4).Draw(rt, "filter"))
		}
		position := []any{}
		for range rapid.IntRange(0, 2).Draw(rt, "keys") {
			r.Sort = append(r.Sort, search.SortKey{Path: paths().Draw(rt, "sort"), Desc: rapid.Bool().Draw(rt, "desc")})
			position = append(position, rapid.SampledFrom([]string{"0", "3x\"\\\x00", "4"}).Draw(rt, "position"))
		}
		if rapid.Bool().Draw(rt, "further") {
			var err error
			if r.After, err = search.EncodeCursor(explainedKey, search.QueryName(r), append(position, "odd/\"1\"")); err != nil {
				rt.Fatal(err)
			}
		}
		e, err := c.Explain(t.Context(), r)
		if len(sent.bodies) > 0 {
			rt.Fatalf("sent %s", sent.bodies)
		}
		_, searchErr := c.Search(t.Context(), r)
		if doc.KindOf(err) != doc.KindOf(searchErr) || err == nil != (searchErr == nil) {
			rt.Fatalf("%v, not %v", err, searchErr)
		}
		if err != nil {
			return
		}
		if got, want := told(e), sent.searches(); !slices.Equal(got, want) {
			rt.Fatalf("told\n%s\nsent\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if (e.Nothing == "") != (len(sent.bodies) > 0) {
			rt.Fatalf("%d requests, and %q", len(sent.bodies), e.Nothing)
		}
		if (e.DecidedBy == search.ByIndex) != (len(e.Undecided) == 0) {
			rt.Fatalf("decided by %s, undecided %v", e.DecidedBy, e.Undecided)
		}
		if e.Clauses > e.MostClauses {
			rt.Fatalf("%d clauses", e.Clauses)
		}
	})
}

// The first page's query, sent to OpenSearch as it is told but for how many hits
// are wanted, finds what the search finds where the index decides alone, and at
// least that elsewhere; what it calls sure is found.
func TestWhatIsExplainedFindsTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("compares with OpenSearch")
	}
	fewChecks(t, 30)
	deciders := map[search.Decider]int{}
	for name, definition := range map[string]collection.Definition{
		"shared":   {Name: "odd"},
		"declared": {Name: "odd", Nested: declaredNested, Text: declaredText},
	} {
		t.Run(name, func(t *testing.T) {
			c, address := newIndex(t), enginetest.OpenSearch(t)
			g := collection.First(definition, search.Projector)
			if err := c.Ensure(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			docs, filters := knownCases(t)
			for _, d := range oddDocuments(t) {
				if d.ID != "odd/many-names" { // slow, and not odd in any other way
					docs = append(docs, d)
				}
			}
			if len(definition.Text) > 0 {
				filters = append(filters, knownTexts(t)...)
			}
			docs = append(docs, document(t, `odd/"quoted"`, `{"q\"uo\\te\u0001":1,"é\u2028":{"\u007f\\":["x\"\\\u0000"]}}`))
			for _, text := range []string{`{"/q\"uo\\te\u0001":{"$lt":2}}`, `{"/é\u2028/\u007f\\":{"$in":["x\"\\\u0000"]}}`, `{"$id":"odd/\"quoted\""}`} {
				filters = append(filters, tree(t, text).(map[string]any))
			}
			index(t, c, g, docs...)
			l := language{known: docs, text: definition.Text}
			check := func(t rapid.TB, e filter.Expr, keys []search.SortKey) {
				r := search.Request{From: []search.Source{{Collection: "odd", Generation: &g}}, Now: at, Limit: 1000, Count: true, Filter: e, Sort: keys}
				deciders[explainedAndFound(t, address, c, r)]++
			}
			check(t, nil, nil)
			for _, f := range filters {
				check(t, l.parse(t, f), nil)
			}
			rapid.Check(t, func(rt *rapid.T) {
				var keys []search.SortKey
				for range rapid.IntRange(0, 1).Draw(rt, "keys") {
					keys = append(keys, search.SortKey{Path: paths().Draw(rt, "sort"), Desc: rapid.Bool().Draw(rt, "desc")})
				}
				check(rt, l.parse(rt, l.filters(3).Draw(rt, "filter")), keys)
				check(rt, filter.Not{Of: pseudoFilters(docs).Draw(rt, "pseudo")}, keys)
			})
		})
	}
	for _, by := range []search.Decider{search.ByIndex, search.ByIndexAndDocuments, search.ByDocuments} {
		if deciders[by] == 0 {
			t.Errorf("no filter is decided by %s", by)
		}
	}
}

// explainedAndFound compares one search with what is told of it.
func explainedAndFound(t rapid.TB, address string, c *search.Client, r search.Request) search.Decider {
	result, err := c.Search(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, d := range result.Documents {
		found[string(d.ID)] = true
	}
	e, err := c.Explain(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if e.Search == nil {
		if len(found) > 0 || e.DecidedBy != search.ByIndex || e.Nothing == "" {
			t.Fatalf("%d documents, but nothing is asked: %+v", len(found), e)
		}
		return e.DecidedBy
	}
	body := tree(t, string(e.Search.Bodies[0])).(map[string]any)
	body["size"] = json.Number("1000")
	hits, _ := raw(t, address, e.Search.Indexes, body)
	all, sure := map[string]bool{}, map[string]bool{}
	for _, h := range hits {
		all[h.Source.ID] = true
		if slices.Contains(h.Matched, "sure") {
			sure[h.Source.ID] = true
		}
	}
	for id := range found {
		if !all[id] {
			t.Fatalf("%s is not among what %s finds", id, e.Search.Bodies[0])
		}
	}
	for id := range sure {
		if !found[id] {
			t.Fatalf("%s is not found, but sure for %s", id, e.Search.Bodies[0])
		}
	}
	_, total := raw(t, address, e.Count.Indexes, tree(t, string(e.Count.Bodies[0])).(map[string]any))
	if e.DecidedBy == search.ByIndex && (!maps.Equal(all, found) || total != len(found)) {
		t.Fatalf("the index finds %d and counts %d of %d: %s", len(all), total, len(found), e.Search.Bodies[0])
	}
	if e.DecidedBy == search.ByDocuments && (len(sure) > 0 || result.Examined < len(all)) {
		t.Fatalf("%d are sure, and %d of %d looked at: %s", len(sure), result.Examined, len(all), e.Search.Bodies[0])
	}
	return e.DecidedBy
}

type rawHit struct {
	Source struct {
		ID string `json:"$id"`
	} `json:"_source"`
	Matched []string `json:"matched_queries"`
}

// raw searches without any of this package's code.
func raw(t rapid.TB, address string, indexes []string, body map[string]any) (hits []rawHit, total int) {
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(address+"/"+strings.Join(indexes, ",")+"/_search", "application/json", strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v %d %.500s\n%s", err, res.StatusCode, answer, text)
	}
	var told struct {
		Hits struct {
			Total struct{ Value int }
			Hits  []rawHit
		}
	}
	if err := json.Unmarshal(answer, &told); err != nil {
		t.Fatal(err)
	}
	return told.Hits.Hits, told.Hits.Total.Value
}

// Who decides a filter, and about what the index is not sure.
func TestWhoDecides(t *testing.T) {
	const (
		partly   = "The index decides, except about documents"
		whole    = "Whole arrays and objects"
		together = "The index keeps the values of an array's elements together unless"
		element  = "Only the documents tell whether one element"
		some     = "Where the index is not sure that one element"
	)
	long := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	conditions := func(n int, of string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(of, i)
		}
		return strings.Join(all, ",")
	}
	plain := []search.Source{{Collection: "a", Generation: &collection.Generation{Family: collection.SharedFamily, Number: 1}}}
	declared := []search.Source{{Collection: "a", Generation: &collection.Generation{Family: "a", Number: 1, Nested: []string{"lines"}, Text: []string{"title"}}}}
	for _, c := range []struct {
		filter    string
		from      []search.Source
		by        search.Decider
		undecided string // each by its path, a colon and how its reason begins
	}{
		{`{}`, plain, search.ByIndex, ""},
		{`{"$id":"a/1","$version":{"$gt":7}}`, plain, search.ByIndex, ""},
		{`{"$nor":[{"$root":{"$in":["a/1"]}},{"$updatedAt":{"$lt":"2026-01-01T00:00:00Z"}}]}`, plain, search.ByIndex, ""},
		{`{"n":{"$in":[]}}`, plain, search.ByIndex, ""},
		{`{"n":{"$gte":30}}`, plain, search.ByIndexAndDocuments, "n: " + partly},
		{`{"n":{"$not":{"$gte":30}},"$id":"a/1"}`, plain, search.ByIndexAndDocuments, "n: " + partly},
		{`{"n":{"$gte":30,"$lt":40}}`, plain, search.ByIndexAndDocuments, "n: " + partly},
		{`{"n":null,"/a.b/\"\\\u0001":{"$exists":true}}`, plain, search.ByIndexAndDocuments, "/a.b/\"\\\x01: " + partly + "|n: " + partly},
		{`{"$or":[{"n":1},{"$id":{"$exists":true}}]}`, plain, search.ByIndex, ""},
		{`{"n":1,"m":{"$in":[]}}`, plain, search.ByIndex, ""},
		{`{"n":[1,2]}`, plain, search.ByDocuments, "n: " + whole},
		{`{"n":{"$in":[{"a":1},"x"]}}`, plain, search.ByIndexAndDocuments, "n: " + whole},
		{`{"n":{"$ne":[]},"$id":"a/1"}`, plain, search.ByIndexAndDocuments, "n: " + whole},
		{`{"n":` + long(8000) + `}`, plain, search.ByIndexAndDocuments, "n: " + partly},
		{`{"n":` + long(8001) + `}`, plain, search.ByDocuments, "n: Texts of more than 8000 bytes"},
		{`{"n":{"$in":["y",` + long(8001) + `]}}`, plain, search.ByIndexAndDocuments, "n: Texts of more than 8000 bytes"},
		{`{"n":{"$gt":` + long(500) + `}}`, plain, search.ByIndexAndDocuments, "n: " + partly},
		{`{"n":{"$gt":` + long(501) + `}}`, plain, search.ByDocuments, "n: Texts of more than 500 bytes"},
		{`{"n":{"$lt":` + long(501) + `}}`, plain, search.ByIndexAndDocuments, "n: Texts of more than 500 bytes"},
		{`{"a.1.2.3.4.5":1}`, plain, search.ByDocuments, "a.1.2.3.4.5: A path with more than 4 numbers"},
		{`{"lines":{"$elemMatch":{"p":1,"q":2}}}`, plain, search.ByDocuments, "lines: " + together},
		{`{"lines":{"$elemMatch":{"p":1}}}`, plain, search.ByIndexAndDocuments, "lines: " + some},
		{`{"lines":{"$elemMatch":{"$gt":1,"$lt":2}}}`, plain, search.ByDocuments, "lines: " + element},
		{`{"lines":{"$elemMatch":{"p":1,"q":2}}}`, declared, search.ByIndexAndDocuments, "lines: " + some},
		{`{"lines":{"$elemMatch":{"p":[1]}},"n":1}`, declared, search.ByDocuments, "lines: " + element + "|n: " + partly},
		{`{"title":{"$text":"x"}}`, declared, search.ByIndexAndDocuments, "title: " + partly},
		{`{"n":{"$in":[` + conditions(1000, "[%d]") + `]}}`, plain, search.ByDocuments, "n: The condition is too large"},
		{`{"$and":[` + conditions(250, `{"f%d":1}`) + `]}`, plain, search.ByDocuments, ": The filter has more conditions"},
	} {
		e, err := filter.Parse(tree(t, c.filter), filter.ParseOptions{Text: c.from[0].Generation.Text})
		if err != nil {
			t.Errorf("%.100s: %v", c.filter, err)
			continue
		}
		client, _ := listening(t)
		x, err := client.Explain(t.Context(), search.Request{From: c.from, Filter: e, Now: at, Limit: 1})
		if err != nil {
			t.Errorf("%.100s: %v", c.filter, err)
			continue
		}
		var wants []string
		if c.undecided != "" {
			wants = strings.Split(c.undecided, "|")
		}
		same := len(wants) == len(x.Undecided)
		for i := 0; same && i < len(wants); i++ {
			same = strings.HasPrefix(x.Undecided[i].Path+": "+x.Undecided[i].Why, wants[i])
		}
		if x.DecidedBy != c.by || !same {
			t.Errorf("%.100s is decided by %s, undecided %q; want %s, %q", c.filter, x.DecidedBy, x.Undecided, c.by, wants)
		}
	}
}

// Nothing is asked where there is nothing to find, and that is said.
func TestExplainingWhatIsNotAsked(t *testing.T) {
	c, sent := listening(t)
	g := sharedGeneration()
	from := []search.Source{{Collection: "b", Generation: &g}, {Collection: "a"}}
	count := search.Request{From: from, Now: at, Count: true}
	for what, r := range map[string]search.Request{
		"none of the collections has an index": {From: from[1:], Now: at, Limit: 1, Count: true, Aggregate: explainedAggregations},
		"no document can match":                {From: from, Now: at, Limit: 1, Filter: filter.Or{}, Aggregate: explainedAggregations},
		"neither documents nor a count":        {From: from, Now: at},
	} {
		e, err := c.Explain(t.Context(), r)
		if err != nil || !strings.Contains(e.Nothing, what) || len(told(e)) > 0 || len(e.Indexes) != len(r.From) || e.Budget != search.MaxExamined {
			t.Errorf("%s: %v %+v", what, err, e)
		}
	}
	e, err := c.Explain(t.Context(), count)
	if err != nil || e.Search != nil || e.Count == nil || fmt.Sprint(e.Count.Indexes) != "["+g.IndexName("x")+"]" || e.Nothing != "" {
		t.Errorf("%v %+v", err, e)
	}
	if i := e.Indexes; i[0].Collection != "b" || i[0].Index != g.IndexName("x") || i[0].Generation.Number != g.Number || i[1] != (search.ReadIndex{Collection: "a"}) {
		t.Errorf("%+v", i)
	}
	if e.Time != search.MaxSearchTime || len(sent.bodies) > 0 {
		t.Errorf("%s, sent %v", e.Time, sent.bodies)
	}
}

// What Search refuses before it asks, Explain refuses.
func TestExplainingWhatIsRefused(t *testing.T) {
	c, sent := listening(t)
	r := search.Request{From: sourcesOf("some"), Now: at, Limit: 2, Filter: filter.Compare{Field: field(t, "n"), Op: filter.Gt, Value: json.Number("1")}}
	cursor, err := search.EncodeCursor(explainedKey, search.QueryName(r), []any{"some/7"})
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := search.EncodeCursor([]byte("another key"), search.QueryName(r), []any{"some/7"})
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{0, 2} {
		r.Limit, r.After = limit, cursor
		e, err := c.Explain(t.Context(), r)
		if err != nil || limit > 0 && !strings.Contains(string(e.Search.Bodies[0]), `"search_after":["some/7"]`) {
			t.Errorf("%v %s", err, told(e))
		}
		for bad, kind := range map[string]doc.Kind{stranger: doc.InvalidCursor, cursor + "A": doc.InvalidCursor, "none": doc.InvalidCursor} {
			r.After = bad
			if _, err := c.Explain(t.Context(), r); doc.KindOf(err) != kind {
				t.Errorf("%s: %v", bad, err)
			}
		}
		other := r
		other.After, other.Variant = cursor, "verified"
		if _, err := c.Explain(t.Context(), other); doc.KindOf(err) != doc.CursorMismatch {
			t.Errorf("%v", err)
		}
	}

	var parts []filter.Expr
	for i := range 4 * filter.MaxClauses { // more than package filter takes
		parts = append(parts, filter.Exists{Field: field(t, fmt.Sprintf("f%d", i)), Want: true})
	}
	r.After, r.Limit, r.Filter = "", 2, filter.And{Of: parts}
	_, err = c.Explain(t.Context(), r)
	_, searchErr := c.Search(t.Context(), r)
	if doc.KindOf(err) != doc.QueryTooCostly || err.Error() != searchErr.Error() || len(sent.bodies) > 0 {
		t.Errorf("%v, not %v; sent %d", err, searchErr, len(sent.bodies))
	}

	var texts []any
	for i := range filter.MaxTerms {
		texts = append(texts, fmt.Sprint(strings.Repeat(`"`, 500), i))
	}
	r.Filter = filter.NewIn(field(t, "n"), texts)
	e, err := c.Explain(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	r.MaxBytes = len(e.Search.Bodies[0])
	if _, err := c.Explain(t.Context(), r); err != nil {
		t.Error(err)
	}
	r.Count = true
	if _, err := c.Explain(t.Context(), r); !errors.Is(err, search.ErrTooLong) {
		t.Errorf("%v", err)
	}
}

// The key of cursors may be read, and is not told; nor is where the index is.
func TestAnExplanationTellsNoSecrets(t *testing.T) {
	c, _ := listening(t)
	r := search.Request{From: sourcesOf("some"), Now: at, Filter: filter.And{}, Limit: 2, Count: true, Aggregate: explainedAggregations, Sort: []search.SortKey{{Path: value.PathOf("a", "0")}}}
	var err error
	if r.After, err = search.EncodeCursor(explainedKey, search.QueryName(r), []any{"0", "some/7"}); err != nil {
		t.Fatal(err)
	}
	e, err := c.Explain(t.Context(), r)
	if err != nil || len(told(e)) < 6 {
		t.Fatalf("%v %s", err, told(e))
	}
	text := fmt.Sprintf("%+v %s", e, told(e))
	for _, secret := range []string{string(explainedKey), "password", "index.example", r.After} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is told in %s", secret, text)
		}
	}

	failed := errors.New("no key")
	noKey, err := search.NewClient(search.Options{URL: "http://index.example", Prefix: "x", CursorKey: func(context.Context) ([]byte, error) { return nil, failed }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := noKey.Explain(t.Context(), r); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	r.After = ""
	if _, err := noKey.Explain(t.Context(), r); err != nil {
		t.Errorf("no cursor is read or made: %v", err)
	}
}

// A search for everything that has not expired is told with the moment that it
// is asked at.
func TestAnExplanationOfASearchForEverything(t *testing.T) {
	c, _ := listening(t)
	e, err := c.Explain(t.Context(), search.Request{From: sourcesOf("some"), Now: time.UnixMicro(7), Limit: 100})
	want := `{"_source":["$id","$version","$createdAt","$updatedAt","$expiresAt","$raw"],` +
		`"query":{"bool":{"filter":[{"bool":{"filter":[{"term":{"$collection":"some"}}],"must_not":[{"term":{"$deleted":true}},{"range":{"$expiresAt":{"lte":7}}}]}}]}},` +
		`"size":32,"sort":[{"$id":{"order":"asc"}}],"track_total_hits":false}`
	if err != nil || fmt.Sprint(told(e)) != "["+want+"]" {
		t.Errorf("%v\n%s\n%s", err, told(e), want)
	}
}
