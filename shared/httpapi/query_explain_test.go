package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/search"
	"holdfast/shared/where"
)

// explained is a query handler over a real search client, whose OpenSearch finds
// two documents whatever it is asked. Everything else that a query may need fails
// the test.
type explained struct {
	*fakeIndex
	t        *testing.T
	requests int // to OpenSearch
}

func (x *explained) RoundTrip(r *http.Request) (*http.Response, error) {
	x.requests++
	hit := func(id string) string {
		return `{"_source":{"$id":"` + id + `","$version":7,"$createdAt":7,"$updatedAt":7,"$raw":"{}"},"sort":["` + id + `"],"matched_queries":["sure"]}`
	}
	answer := `{"responses":[{"status":200,"hits":{"hits":[` + hit("users/1") + `,` + hit("users/2") + `]}}]}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

func (x *explained) Wait(context.Context, []doc.Signal, freshness.Patience) (freshness.Waited, error) {
	x.t.Error("somebody waits")
	return freshness.Waited{}, nil
}

func (x *explained) AsOfNow(context.Context, []doc.Collection, []doc.Signal, freshness.Patience) (freshness.Waited, error) {
	x.t.Error("somebody waits")
	return freshness.Waited{}, nil
}

func newExplained(t *testing.T) (Handler, *explained) {
	t.Helper()
	x := &explained{fakeIndex: &fakeIndex{}, t: t}
	x.indexes.of = map[collection.Family][]collection.Generation{collection.SharedFamily: active(collection.SharedFamily, nil, 2, 5)}
	x.defined = map[doc.Collection]collection.Definition{"own": {Name: "own", Index: collection.Own}}
	client, err := search.NewClient(search.Options{URL: "http://name:password@index.example", Prefix: "x", Transport: x})
	if err != nil {
		t.Fatal(err)
	}
	return Query(QueryOptions{Search: client, Waiter: x, Reporter: x, Definitions: x, Where: &where.Compiler{}, Now: firstVersion.Time}), x
}

func TestAQueryIsExplained(t *testing.T) {
	h, x := newExplained(t)
	index := active(collection.SharedFamily, nil, 5)[0].IndexName("x")
	a := send(t, h, "POST", "/query", `{"from":["users","own"],"filter":{"$root":"users/\"1"},"limit":0,"count":true,"explain":true}`)
	scope := fmt.Sprintf(`{"filter":[{"term":{"$collection":"users"}},{"term":{"$root":"users/\"1"}}],"must_not":[{"term":{"$deleted":true}},{"range":{"$expiresAt":{"lte":%d}}}]}`, firstVersion.Time().UnixMicro())
	want := `{"explain":{"indexes":[{"collection":"users","generation":5,"index":"` + index + `"},{"collection":"own","generation":null,"index":null}],` +
		`"filter":{"decidedBy":"index","undecided":[]},` +
		`"count":{"indexes":["` + index + `"],"body":{"aggs":{"sure":{"filter":{"term":{"$root":"users/\"1"}}}},"query":{"bool":` + scope + `},"size":0,"track_total_hits":true}},` +
		`"limits":{"examined":10000,"timeMs":25000,"clauses":{"used":2,"allowed":900}}}}`
	if a.Status != 200 || string(a.Body) != want {
		t.Errorf("got  %s\nwant %s", a.Body, want)
	}
	if a.Header.Get("Content-Type") != typeJSON || x.requests != 0 {
		t.Errorf("%v, asked %d", a.Header, x.requests)
	}

	a = send(t, h, "POST", "/query", `{"from":["own"],"filter":{"a":[1]},"explain":true}`)
	want = `{"explain":{"indexes":[{"collection":"own","generation":null,"index":null}],` +
		`"filter":{"decidedBy":"documents","undecided":[{"path":"a","why":"Whole arrays and objects are compared in the documents."}]},` +
		`"limits":{"examined":10000,"timeMs":25000,"clauses":{"used":4,"allowed":900}},"notice":"Nothing is asked of OpenSearch: none of the collections has an index yet."}}`
	if a.Status != 200 || string(a.Body) != want {
		t.Errorf("got  %s\nwant %s", a.Body, want)
	}
	if a := send(t, h, "POST", "/query", `{"from":"users","explain":false}`); a.Status != 200 || a.json["documents"] == nil || x.requests != 1 {
		t.Errorf("%s", a)
	}
}

// Whatever else a query has, it is checked, and nothing is waited for, searched
// or looked at.
func TestExplainGoesWithEveryOtherMember(t *testing.T) {
	h, x := newExplained(t)
	page := send(t, h, "POST", "/query", `{"from":"users","limit":1}`)
	next, _ := page.json["next"].(string)
	if next == "" {
		t.Fatalf("%s", page)
	}
	x.requests = 0
	token := `"` + freshness.Tokens([]doc.Written{{ID: "users/1", Version: 5}}) + `"`
	group := `{"group":["country"],"metrics":{"n":{"count":true},"most":{"max":"age"}}}`
	for members, has := range map[string]string{
		`"limit":0`:                     "notice",
		`"limit":1000`:                  "search",
		`"count":true,"limit":0`:        "count",
		`"count":true`:                  "count search",
		`"sort":[{"a.0":"desc"}]`:       "search",
		`"fields":[],"include":["a.b"]`: "search",
		`"read":"verified"`:             "search read",
		`"after":"` + next + `"`:        "search",
		`"after":"` + next + `","limit":0,"aggregate":{}`:                            "notice",
		`"where":"doc.a > doc.b","filter":{"a":{"$gt":1}},"count":true`:              "count search where",
		`"where":"doc.a > \"\\u0000\\\"\"","scan":true`:                              "search where",
		`"wait":{"tokens":[` + strings.Repeat(token+",", 999) + token + `]}`:         "search",
		`"wait":{"tokens":[""],"asOfNow":true,"timeout":"20s","onTimeout":"stale"}`:  "search",
		`"aggregate":{"by \"country\"":` + group + `,"b":{}},"limit":0`:              "aggregate",
		`"aggregate":{"by":` + group + `},"count":true,"filter":{"a":[{"b":"\""}]}`:  "aggregate count search",
		`"filter":{"/a.b/\"\\\u0001\u2028~1":{"$in":["\"\\\u0000",null]}},"limit":7`: "search",
	} {
		a := send(t, h, "POST", "/query", `{"from":"users","explain":true,`+members+`}`)
		e, _ := a.json["explain"].(map[string]any)
		if a.Status != 200 || len(a.json) != 1 || e == nil {
			t.Errorf("%.200s: %s", members, a)
			continue
		}
		for _, member := range []string{"search", "count", "aggregate", "where", "read", "notice"} {
			if _, there := e[member]; there != strings.Contains(has, member) {
				t.Errorf("%.200s: %s is there: %v", members, member, there)
			}
		}
		for _, secret := range []string{"password", "index.example", next, token} {
			if strings.Contains(string(a.Body), secret) {
				t.Errorf("%.200s tells %s", members, secret)
			}
		}
		if strings.HasPrefix(members, `"after"`) != strings.Contains(string(a.Body), `"search_after":["users/1"]`) && e["search"] != nil {
			t.Errorf("%.200s: %s", members, a)
		}
	}
	if x.requests != 0 || x.table().reads != 0 {
		t.Errorf("%d requests to OpenSearch, %d to the table", x.requests, x.table().reads)
	}

	aggregated := send(t, h, "POST", "/query", `{"from":"users","explain":true,"limit":0,"aggregate":{"by \"country\"":`+group+`,"b":{}}}`)
	e, _ := aggregated.json["explain"].(map[string]any)
	of, _ := e["aggregate"].(map[string]any)
	bodies, _ := of["bodies"].(map[string]any)
	one, _ := bodies[`by "country"`].(map[string]any)
	if beside, _ := of["beside"].([]any); len(bodies) != 2 || one["aggs"] == nil || len(beside) != 2 {
		t.Errorf("%s", aggregated)
	}
	a := send(t, h, "POST", "/query", `{"from":"users","explain":true,"where":"doc.a > \"\\u0000\"","scan":true}`)
	e, _ = a.json["explain"].(map[string]any)
	if w, _ := e["where"].(map[string]any); w["expression"] != `doc.a > "\u0000"` || w["budget"] != 10000.0 || w["language"] != "CEL" {
		t.Errorf("%s", a)
	}
}

// A cursor is checked as it is by the query itself, and told by where it stands.
func TestCursorsOfExplainedQueries(t *testing.T) {
	h, x := newExplained(t)
	next, _ := send(t, h, "POST", "/query", `{"from":"users","filter":{"a":1},"limit":1}`).json["next"].(string)
	before := x.requests
	for body, kind := range map[string]string{
		`{"from":"users","filter":{"a":1},"after":"` + next + `"}`:                                           "",
		`{"from":"users","filter":{"a":1},"after":"` + next + `","limit":0}`:                                 "",
		`{"from":"users","filter":{"a":1},"after":"` + next + `","fields":["a"]}`:                            "",
		`{"from":"users","filter":{"a":2},"after":"` + next + `"}`:                                           "cursor-mismatch",
		`{"from":"users","filter":{"a":1},"sort":[{"a":"asc"}],"after":"` + next + `"}`:                      "cursor-mismatch",
		`{"from":["users","own"],"filter":{"a":1},"after":"` + next + `"}`:                                   "cursor-mismatch",
		`{"from":"users","filter":{"a":1},"read":"verified","after":"` + next + `"}`:                         "cursor-mismatch",
		`{"from":"users","filter":{"a":1},"where":"doc.a > 1","after":"` + next + `","limit":0}`:             "cursor-mismatch",
		`{"from":"own","after":"` + next + `"}`:                                                              "cursor-mismatch",
		`{"from":"users","filter":{"a":1},"after":"` + next[:len(next)-3] + `"}`:                             "invalid-cursor",
		`{"from":"users","filter":{"a":1},"after":"` + strings.ToUpper(next) + `"}`:                          "invalid-cursor",
		`{"from":"users","filter":{"a":1},"after":"\u0000"}`:                                                 "invalid-cursor",
		`{"from":"own","after":"` + strings.Repeat("A", 100_000) + `","limit":0,"aggregate":{},"scan":true}`: "invalid-cursor",
	} {
		a := send(t, h, "POST", "/query", `{"explain":true,`+body[1:])
		if kind == "" {
			a.expect(t, 200, "")
			continue
		}
		if a.expect(t, 400, kind); a.json["pointer"] != "/after" {
			t.Errorf("%s", a)
		}
		if b := send(t, h, "POST", "/query", body); string(b.Body) != string(a.Body) {
			t.Errorf("explaining is refused by %s, the query by %s", a, b)
		}
	}
	if x.requests != before {
		t.Errorf("%d requests", x.requests-before)
	}
}

// An explanation that does not fit an answer, or the payload that carries it, is
// refused with the limit.
func TestAnExplanationFitsTheAnswer(t *testing.T) {
	h, x := newExplained(t)
	texts := func(text string) string {
		var list []string
		for i := range 1000 {
			list = append(list, fmt.Sprintf("%q", fmt.Sprint(text, i)))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	conditions := make([]string, 256)
	for i := range conditions {
		conditions[i] = fmt.Sprintf(`{"a.b%d.0":{"$gt":%d}}`, i, i)
	}
	for body, fits := range map[string]bool{
		`{"from":"users","filter":{"$and":[` + strings.Join(conditions, ",") + `]},"count":true`:                            true,
		`{"from":"users","filter":{"a":{"$in":` + texts(strings.Repeat("x", 2000)) + `}}`:                                   true,
		`{"from":"users","filter":{"a":{"$in":` + texts(strings.Repeat("x", 2000)) + `}},"count":true`:                      false,
		`{"from":"users","filter":{"a":{"$in":` + texts(strings.Repeat(`"`, 900)) + `}}`:                                    false, // 3.6 MB, and 7.2 MB inside a payload
		`{"from":"users","filter":{"a":{"$in":` + texts("x") + `}},"limit":0,"aggregate":{"a":{"group":["` + "a.0" + `"]}}`: true,
	} {
		a := send(t, h, "POST", "/query", body+`,"explain":true}`)
		if fits {
			if a.Status != 200 || len(a.Body) > answerBytes || payloadSize(a.Body) > payloadBytes {
				t.Errorf("%.100s: %s", body, a)
			}
			continue
		}
		if a.expect(t, 400, "query-too-costly"); a.json["pointer"] != "/explain" || a.json["limit"] != float64(answerBytes) {
			t.Errorf("%.100s: %s", body, a)
		}
	}
	if x.requests != 0 {
		t.Errorf("%d requests", x.requests)
	}
}

// What goes wrong is told as it is by the query itself.
func TestFailuresOfExplaining(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		kind   string
	}{
		{doc.Errorf(doc.QueryTooCostly, "no").With("limit", 900), 400, "query-too-costly"},
		{doc.Errorf(doc.Throttled, "slow"), 429, "throttled"},
		{doc.Errorf(doc.Unavailable, "no"), 503, "unavailable"},
		{errors.New("secret"), 500, "internal"},
	} {
		h, f := newQuery()
		f.err = c.err
		if a := send(t, h, "POST", "/query", `{"from":"a","explain":true}`).expect(t, c.status, c.kind); a.json["pointer"] != nil {
			t.Errorf("%s", a)
		}
		if len(f.explained) != 1 || len(f.asked) != 0 || f.explained[0].MaxBytes != answerBytes {
			t.Errorf("%d explained, %d searched", len(f.explained), len(f.asked))
		}
	}
	h, f := newQuery()
	f.explanation = search.Explanation{Search: &search.Asked{Indexes: []string{"i"}, Bodies: [][]byte{json.RawMessage(`{"s":"` + strings.Repeat("x", answerBytes) + `"}`)}}}
	f.explanation.Indexes, f.explanation.DecidedBy = []search.ReadIndex{{Collection: "a"}}, search.ByIndex
	send(t, h, "POST", "/query", `{"from":"a","explain":true}`).expect(t, 400, "query-too-costly")
}
