package search_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// A grammar is all that a request to OpenSearch may consist of, whatever the
// filter. It says what is allowed, so that nothing has to be thought of that is
// not: scripts, query strings, regular expressions, wildcards, other fields and
// other indexes have no way to be written.
type grammar struct {
	fault   string   // the first
	indexes []string // that may be looked at
}

func (g *grammar) refuse(format string, args ...any) {
	if g.fault == "" {
		g.fault = fmt.Sprintf(format, args...)
	}
}

var (
	systemFields = []string{"$id", "$collection", "$root", "$version", "$createdAt", "$updatedAt", "$expiresAt", "$deleted", "$shape", "$partial"}
	leafName     = regexp.MustCompile(`^doc((?:\.[^.$*][^.*]*)+)\.\$(?:str|num|dec|bool|date|text|key|shape)$`)
	nestedName   = regexp.MustCompile(`^doc(?:\.[^.$*][^.*]*)+$`)
)

func (g *grammar) field(name string) {
	if !slices.Contains(systemFields, name) && !leafName.MatchString(name) {
		g.refuse("the field %q", name)
	}
}

func (g *grammar) index(name string) {
	if !slices.Contains(g.indexes, name) {
		g.refuse("the index %q", name)
	}
}

func (g *grammar) object(v any, what string) map[string]any {
	o, ok := v.(map[string]any)
	if !ok {
		g.refuse("%s is %v", what, v)
	}
	return o
}

// only gives the single member of an object.
func (g *grammar) only(v any, what string) (string, any) {
	o := g.object(v, what)
	if len(o) != 1 {
		g.refuse("%s has %d members", what, len(o))
	}
	for name, member := range o {
		return name, member
	}
	return "", nil
}

func (g *grammar) scalar(v any) {
	switch v.(type) {
	case string, bool, json.Number, float64:
		return
	}
	g.refuse("the operand %v", v)
}

func (g *grammar) query(v any) {
	kind, body := g.only(v, "a query")
	switch kind {
	case "match_all", "match_none":
		if len(g.object(body, kind)) > 0 {
			g.refuse("%s with members", kind)
		}
	case "term", "prefix":
		field, operand := g.only(body, kind)
		if name, text := operand.(string); field == "_index" && text && kind == "term" {
			g.index(name)
			return
		}
		g.field(field)
		g.scalar(operand)
		if _, text := operand.(string); kind == "prefix" && !text {
			g.refuse("a prefix of %v", operand)
		}
	case "terms":
		field, operands := g.only(body, kind)
		g.field(field)
		list, ok := operands.([]any)
		if !ok {
			g.refuse("terms %v", operands)
		}
		for _, operand := range list {
			g.scalar(operand)
		}
	case "range":
		field, bounds := g.only(body, kind)
		g.field(field)
		op, operand := g.only(bounds, "a range")
		if !slices.Contains([]string{"gt", "gte", "lt", "lte"}, op) {
			g.refuse("the relation %q", op)
		}
		g.scalar(operand)
	case "exists":
		member, field := g.only(body, kind)
		name, ok := field.(string)
		if member != "field" || !ok {
			g.refuse("exists %v", body)
		}
		g.field(name)
	case "nested":
		o := g.object(body, kind)
		path, ok := o["path"].(string)
		if len(o) != 2 || !ok || !nestedName.MatchString(path) {
			g.refuse("nested %v", o)
		}
		g.query(o["query"])
	case "bool":
		g.combination(g.object(body, kind))
	default:
		g.refuse("the query %q", kind)
	}
}

func (g *grammar) combination(o map[string]any) {
	for name, member := range o {
		switch name {
		case "filter", "must_not", "should":
			list, ok := member.([]any)
			if !ok {
				g.refuse("%s %v", name, member)
			}
			for _, q := range list {
				g.query(q)
			}
		case "minimum_should_match":
			if n, _ := member.(json.Number); n != "0" && n != "1" {
				g.refuse("%s %v", name, member)
			}
		case "_name":
			if member != "sure" {
				g.refuse("the name %v", member)
			}
		default:
			g.refuse("bool with %q", name)
		}
	}
}

// body checks one search without aggregations of the caller's.
func (g *grammar) body(v any) {
	for name, member := range g.object(v, "a search") {
		switch name {
		case "query":
			g.query(member)
		case "size":
			g.scalar(member)
		case "track_total_hits":
			g.scalar(member)
		case "_source":
			list, _ := member.([]any)
			for _, field := range list {
				if name, _ := field.(string); !strings.HasPrefix(name, "$") {
					g.refuse("_source %v", member)
				}
			}
		case "search_after":
			list, _ := member.([]any)
			for _, key := range list {
				g.scalar(key)
			}
		case "sort":
			list, _ := member.([]any)
			for _, key := range list {
				g.sort(key)
			}
		case "aggs":
			name, of := g.only(member, "aggs")
			kind, q := g.only(of, "an aggregation")
			if name != "sure" || kind != "filter" {
				g.refuse("the aggregation %s %s", name, kind)
			}
			g.query(q)
		default:
			g.refuse("a search with %q", name)
		}
	}
}

func (g *grammar) sort(v any) {
	field, how := g.only(v, "a sort key")
	g.field(field)
	for name, member := range g.object(how, "a sort key") {
		if !slices.Contains([]string{"order asc", "order desc", "missing 0", "unmapped_type keyword", "mode min", "mode max"}, fmt.Sprint(name, " ", member)) {
			g.refuse("sort by %s %v", name, member)
		}
	}
}

func tree(t interface{ Fatalf(string, ...any) }, text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// capture answers every search with nothing and keeps what was asked.
type capture struct{ paths, bodies []string }

func (c *capture) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.paths, c.bodies = append(c.paths, r.Method+" "+r.URL.Path), append(c.bodies, string(body))
	answers := make([]string, strings.Count(string(body), "\n")/2)
	for i := range answers {
		answers[i] = `{"status":200,"hits":{"total":{"value":0},"hits":[]},"aggregations":{"sure":{"doc_count":0}}}`
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"responses":[` + strings.Join(answers, ",") + `]}`)), Request: r,
	}, nil
}

// checkGrammar runs a search with the filter and looks at all that it sends.
func checkGrammar(t interface{ Fatalf(string, ...any) }, e filter.Expr, from search.Source, keys []search.SortKey) {
	sent := &capture{}
	c, err := search.NewClient(search.Options{URL: "http://index", Prefix: "x", Transport: sent})
	if err != nil {
		t.Fatalf("%v", err)
	}
	beside := *from.Generation
	beside.Family = "beside"
	indexes := []string{beside.IndexName("x"), from.Generation.IndexName("x")}
	slices.Sort(indexes)
	_, err = c.Search(context.Background(), search.Request{From: []search.Source{from, {Collection: "beside", Generation: &beside}}, Filter: e, Sort: keys, Limit: 10, Count: true})
	if err != nil && doc.KindOf(err) != doc.QueryTooCostly {
		t.Fatalf("%#v: %v", e, err)
	}
	for i, body := range sent.bodies {
		if sent.paths[i] != "POST /_msearch" {
			t.Fatalf("asked %s", sent.paths[i])
		}
		lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
		for i := 0; i < len(lines); i += 2 {
			g := &grammar{indexes: indexes}
			header := g.object(tree(t, lines[i]), "a header")
			if fmt.Sprint(header["index"]) != fmt.Sprint(indexes) {
				g.refuse("searches in %v", header["index"])
			}
			for name := range maps.Keys(header) {
				if !slices.Contains([]string{"index", "allow_partial_search_results", "cancel_after_time_interval"}, name) {
					g.refuse("a header with %q", name)
				}
			}
			g.body(tree(t, lines[i+1]))
			if g.fault != "" {
				t.Fatalf("%s\n%s", g.fault, lines[i+1])
			}
		}
	}
}

var grammarSources = []search.Source{
	{Collection: "odd", Generation: &collection.Generation{Family: collection.SharedFamily, Number: 1}},
	{Collection: "odd", Generation: &collection.Generation{Family: "odd", Number: 2, Nested: declaredNested, Text: declaredText}},
}

func TestCompiledQueriesStayInTheGrammar(t *testing.T) {
	known := oddDocuments(t)
	rapid.Check(t, func(rt *rapid.T) {
		from := rapid.SampledFrom(grammarSources).Draw(rt, "from")
		l := language{known: known, text: from.Generation.Text}
		f := l.filters(4).Draw(rt, "filter")
		var keys []search.SortKey
		for range rapid.IntRange(0, 2).Draw(rt, "keys") {
			keys = append(keys, search.SortKey{Path: paths().Draw(rt, "sort"), Desc: rapid.Bool().Draw(rt, "desc")})
		}
		checkGrammar(rt, l.parse(rt, f), from, keys)
		checkGrammar(rt, pseudoFilters(known).Draw(rt, "pseudo"), from, nil)
	})
}

func FuzzCompiledQueriesStayInTheGrammar(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `{"a*":{"$prefix":"*"}}`, `{"_source":"x","query_string":{"query":"*"},"script":{"source":"1"}}`,
		`{"/$raw":"x"}`, `{"/*":1,"/.":1,"/":2,"/ ":3}`, `{"a":{"$eq":{"query":{"regexp":{"a":".*"}}}}}`, `{"a":{"$in":[{"script":1},["x"],null,1e99]}}`,
		`{"a":{"$elemMatch":{"b":{"$elemMatch":{"$gt":"2020-01-01T00:00:00Z"}},"0":{"$size":2}}}}`, `{"a":{"$not":{"$elemMatch":{"c":null,"b":{"$exists":false}}}}}`,
		`{"$or":[{"$id":{"$prefix":"a/"}},{"$version":{"$gt":1.5}},{"$createdAt":{"$lt":"2020-01-01T00:00:00Z"}}]}`,
		`{"a":{"$text":"+x -y \"z\" a:b (c|d) *"},"b.c":{"$type":["null","array"]},"c":{"$all":[{"$elemMatch":{"b":{"$text":"~1"}}}]}}`,
	} {
		f.Add([]byte(seed), "a.b")
	}
	f.Fuzz(func(t *testing.T, b []byte, sort string) {
		v, err := value.Decode(b, 64)
		if err != nil {
			t.Skip("no JSON")
		}
		for _, from := range grammarSources {
			e, err := filter.Parse(v, filter.ParseOptions{Text: from.Generation.Text})
			if err != nil {
				continue
			}
			var keys []search.SortKey
			if field, err := filter.ParseField(sort); err == nil {
				keys = []search.SortKey{{Path: field.Path, Pseudo: field.Pseudo}}
			}
			checkGrammar(t, e, from, keys)
		}
	})
}

// The grammar is worth nothing if it allows what it must not.
func TestTheGrammarRefuses(t *testing.T) {
	for _, text := range []string{
		`{"query":{"query_string":{"query":"*"}}}`,
		`{"query":{"regexp":{"doc.a.$str":".*"}}}`,
		`{"query":{"wildcard":{"doc.a.$str":"*x"}}}`,
		`{"query":{"script":{"script":"1"}}}`,
		`{"query":{"bool":{"filter":[{"bool":{"must":[{"match_all":{}}]}}]}}}`,
		`{"query":{"term":{"doc.a.$str":{"value":"x"}}}}`,
		`{"query":{"term":{"$raw":"x"}}}`,
		`{"query":{"exists":{"field":"doc.*.$str"}}}`,
		`{"query":{"exists":{"field":"doc.a"}}}`,
		`{"query":{"term":{"_index":"other"}}}`,
		`{"query":{"terms":{"_index":["other"]}}}`,
		`{"query":{"terms":{"$id":{"index":"other","id":"1","path":"x"}}}}`,
		`{"query":{"nested":{"path":"doc.a","query":{"script":{}}}}}`,
		`{"query":{"match_all":{}},"script_fields":{}}`,
		`{"query":{"match_all":{}},"aggs":{"x":{"terms":{"field":"$id"}}}}`,
		`{"query":{"match_all":{}},"sort":[{"_script":{"order":"asc"}}]}`,
	} {
		g := &grammar{}
		if g.body(tree(t, text)); g.fault == "" {
			t.Errorf("%s is allowed", text)
		}
	}
}
