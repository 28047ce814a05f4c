package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/freshness"
	"holdfast/shared/search"
	"holdfast/shared/where"
)

func newQuery() (Handler, *fakeIndex) {
	f := &fakeIndex{}
	return Query(QueryOptions{Search: f, Waiter: f, Reporter: f, Definitions: f, Loader: f.table(), Where: &where.Compiler{}, Now: func() time.Time { return firstVersion.Time() }}), f
}

func TestAQuery(t *testing.T) {
	h, f := newQuery()
	f.defined = map[doc.Collection]collection.Definition{"orders": {Name: "orders", Index: collection.Own}}
	f.indexes.of = map[collection.Family][]collection.Generation{"orders": {{Family: "orders", Number: 3, State: collection.Active}}}
	f.result = search.Result{Documents: []doc.Document{fakeDocument("orders/1", map[string]any{"n": number(1)})}, Next: "more", Count: 7, CountExact: true, Examined: 3}
	a := send(t, h, "POST", "/query", `{"from":["orders","users","orders"],"filter":{"n":{"$gte":1}},"sort":[{"n":"desc"},{"$id":"asc"},{"/a.b":"asc"}],"limit":2,"after":"cur","count":true}`)
	want := `{"documents":[{"id":"orders/1","version":1796029203123456,"createdAt":"2026-11-30T08:20:03.123456Z","updatedAt":"2026-11-30T08:20:03.123456Z","data":{"n":1}}],` +
		`"count":{"value":7,"exact":true},"examined":3,"next":"more","staleness":{"stale":true,"provenThrough":null,"lagSeconds":null,"pending":null,"quarantined":null,"dropped":0,"waitedMs":0,"timedOut":false,"notice":"It is not known how current this is."}}`
	if a.Status != 200 || strings.ReplaceAll(string(a.Body), firstVersion.Time().Format(timeLayout), "2026-11-30T08:20:03.123456Z") != want {
		t.Errorf("got  %s\nwant %s", a, want)
	}
	r := f.asked[0]
	if len(r.From) != 2 || r.From[0].Collection != "orders" || r.From[0].Generation.Number != 3 || r.From[1].Collection != "users" || r.From[1].Generation != nil || r.Limit != 2 || r.After != "cur" || !r.Count || r.Now != firstVersion.Time() || r.MaxBytes <= 0 {
		t.Errorf("%+v", r)
	}
	if len(r.Sort) != 3 || r.Sort[0].Path.String() != "n" || !r.Sort[0].Desc || r.Sort[1].Pseudo != filter.ID || r.Sort[1].Desc || len(r.Sort[2].Path.Segments()) != 1 {
		t.Errorf("%+v", r.Sort)
	}
	if len(filter.Fields(r.Filter)) != 1 {
		t.Errorf("%+v", r.Filter)
	}

	f.result = search.Result{}
	a = send(t, h, "POST", "/query", `{"from":"orders"}`)
	if r := f.asked[1]; r.Limit != 25 || r.Count || r.After != "" || len(r.Sort) != 0 || r.Filter == nil {
		t.Errorf("%+v", r)
	}
	for _, member := range []string{"count", "next", "examined"} {
		if _, there := a.json[member]; there {
			t.Errorf("%s is there unasked: %s", member, a)
		}
	}
	if a.json["documents"] == nil {
		t.Errorf("no documents is an empty list: %s", a)
	}
	if a := send(t, h, "POST", "/query", `{"from":"orders","limit":0}`); a.Status != 200 || f.asked[2].Limit != 0 {
		t.Errorf("%s", a)
	}
	if a := send(t, h, "POST", "/query", `{"from":"orders","limit":1e2}`); a.Status != 200 || f.asked[3].Limit != 100 {
		t.Errorf("%s", a)
	}
}

func TestRefusalsOfQueries(t *testing.T) {
	h, f := newQuery()
	many := func(n int, element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	for _, c := range []struct{ body, kind, pointer string }{
		{`{"from":`, "invalid-json", "*"},
		{`{"from":"a","from":"b"}`, "invalid-json", "*"},
		{`{"from":"a","filter":{"n":1e999}}`, "number-out-of-range", "/filter/n"},
		{`[]`, "invalid-query", ""},
		{`null`, "invalid-query", ""},
		{`{}`, "invalid-query", "/from"},
		{`{"from":null}`, "invalid-query", "/from"},
		{`{"from":7}`, "invalid-query", "/from"},
		{`{"from":""}`, "invalid-query", "/from"},
		{`{"from":"a/"}`, "invalid-query", "/from"},
		{`{"from":[]}`, "invalid-query", "/from"},
		{`{"from":["a",1]}`, "invalid-query", "/from/1"},
		{`{"from":["a","a//b"]}`, "invalid-query", "/from/1"},
		{`{"from":` + many(101, `"a"`) + `}`, "query-too-costly", "/from"},
		{`{"from":"a","a/b~":1}`, "invalid-query", "/a~1b~0"},
		{`{"from":"a","filter":[]}`, "invalid-query", "/filter"},
		{`{"from":"a","filter":null}`, "invalid-query", "/filter"},
		{`{"from":"a","filter":{"n":{"$regex":"x"}}}`, "invalid-query", "/filter/n/$regex"},
		{`{"from":"a","filter":{"n":{"$in":` + many(5000, "1") + `}}}`, "query-too-costly", "*"},
		{`{"from":"a","sort":{"n":"asc"}}`, "invalid-query", "/sort"},
		{`{"from":"a","sort":null}`, "invalid-query", "/sort"},
		{`{"from":"a","sort":["n"]}`, "invalid-query", "/sort/0"},
		{`{"from":"a","sort":[{"a":"asc","b":"asc"}]}`, "invalid-query", "/sort/0"},
		{`{"from":"a","sort":[{}]}`, "invalid-query", "/sort/0"},
		{`{"from":"a","sort":[{"n":"asc"},{"n":1}]}`, "invalid-query", "/sort/1/n"},
		{`{"from":"a","sort":[{"n":"ASC"}]}`, "invalid-query", "/sort/0/n"},
		{`{"from":"a","sort":[{"$x":"asc"}]}`, "invalid-query", "/sort/0/$x"},
		{`{"from":"a","sort":[{"":"asc"}]}`, "invalid-query", "/sort/0/"},
		{`{"from":"a","sort":[{"a..b":"asc"}]}`, "invalid-query", "/sort/0/a..b"},
		{`{"from":"a","sort":` + many(11, `{"a":"asc"}`) + `}`, "query-too-costly", "/sort"},
		{`{"from":"a","limit":-1}`, "invalid-query", "/limit"},
		{`{"from":"a","limit":1001}`, "invalid-query", "/limit"},
		{`{"from":"a","limit":1.5}`, "invalid-query", "/limit"},
		{`{"from":"a","limit":"5"}`, "invalid-query", "/limit"},
		{`{"from":"a","limit":null}`, "invalid-query", "/limit"},
		{`{"from":"a","after":""}`, "invalid-query", "/after"},
		{`{"from":"a","after":7}`, "invalid-query", "/after"},
		{`{"from":"a","count":1}`, "invalid-query", "/count"},
		{`{"from":"a","explain":null}`, "invalid-query", "/explain"},
		{`{"from":"a","explain":1}`, "invalid-query", "/explain"},
		{`{"from":"a","explain":"true"}`, "invalid-query", "/explain"},
		{`{"from":"a","explain":{}}`, "invalid-query", "/explain"},
		{`{"from":"a","wait":[]}`, "invalid-query", "/wait"},
		{`{"from":"a","wait":{}}`, "invalid-query", "/wait/tokens"},
		{`{"from":"a","wait":{"tokens":"x"}}`, "invalid-query", "/wait/tokens"},
		{`{"from":"a","wait":{"tokens":[1]}}`, "invalid-query", "/wait/tokens/0"},
		{`{"from":"a","wait":{"tokens":["zzz"]}}`, "invalid-query", "/wait/tokens/0"},
		{`{"from":"a","wait":{"tokens":` + many(1001, `""`) + `}}`, "invalid-query", "/wait/tokens"},
		{`{"from":"a","wait":{"tokens":[],"asOfNow":"yes"}}`, "invalid-query", "/wait/asOfNow"},
		{`{"from":"a","wait":{"tokens":[],"timeout":5}}`, "invalid-query", "/wait/timeout"},
		{`{"from":"a","wait":{"tokens":[],"timeout":"5"}}`, "invalid-query", "/wait/timeout"},
		{`{"from":"a","wait":{"tokens":[],"timeout":"s"}}`, "invalid-query", "/wait/timeout"},
		{`{"from":"a","wait":{"tokens":[],"timeout":"-1s"}}`, "invalid-query", "/wait/timeout"},
		{`{"from":"a","wait":{"tokens":[],"timeout":"1.5s"}}`, "invalid-query", "/wait/timeout"},
		{`{"from":"a","wait":{"tokens":[],"timeout":"21s"}}`, "invalid-query", "/wait/timeout"},
		{`{"from":"a","wait":{"tokens":[],"timeout":"20001ms"}}`, "invalid-query", "/wait/timeout"},
		{`{"from":"a","wait":{"tokens":[],"timeout":"1h"}}`, "invalid-query", "/wait/timeout"},
		{`{"from":"a","wait":{"tokens":[],"timeout":"99999999999999999999s"}}`, "invalid-query", "/wait/timeout"},
		{`{"from":"a","wait":{"tokens":[],"onTimeout":"maybe"}}`, "invalid-query", "/wait/onTimeout"},
		{`{"from":"a","x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, "invalid-query", "*"},
	} {
		a := send(t, h, "POST", "/query", c.body).expect(t, 400, c.kind)
		if c.pointer != "*" && a.json["pointer"] != c.pointer {
			t.Errorf("%.100s: pointer %v, want %q", c.body, a.json["pointer"], c.pointer)
		}
		if c.kind == "query-too-costly" && a.json["limit"] == nil {
			t.Errorf("the limit is not named: %s", a)
		}
		// A query that is to be explained is refused likewise.
		explained, isObject := strings.CutPrefix(c.body, "{")
		if !isObject || strings.Contains(explained, "explain") {
			continue
		}
		explained = strings.TrimSuffix(`{"explain":true,`+explained, ",}")
		if explained == `{"explain":true` {
			explained += "}"
		}
		if b := send(t, h, "POST", "/query", explained).expect(t, 400, c.kind); c.pointer != "*" && string(b.Body) != string(a.Body) {
			t.Errorf("%.100s: explaining is refused by %s, not %s", c.body, b, a)
		}
	}
	send(t, h, "POST", "/query?x=1", `{"from":"a"}`).expect(t, 400, "invalid-request")
	send(t, h, "POST", "/query", `{"from":"a"}`, "Content-Type", "text/plain").expect(t, 415, "unsupported-media-type")
	send(t, h, "POST", "/query", strings.Repeat(" ", MaxBody+1)).expect(t, 413, "request-too-large")
	if len(f.asked)+len(f.explained) != 0 {
		t.Errorf("the index was asked %v, and to explain %v", f.asked, f.explained)
	}
}

func TestFailuresOfTheIndex(t *testing.T) {
	for _, c := range []struct {
		err        error
		status     int
		kind       string
		retryAfter string
	}{
		{doc.Errorf(doc.IndexUnavailable, "down").With("retryAfter", 9), 503, "index-unavailable", "9"},
		{doc.Errorf(doc.IndexUnavailable, "down"), 503, "index-unavailable", "5"},
		{doc.Errorf(doc.InvalidCursor, "no"), 400, "invalid-cursor", ""},
		{doc.Errorf(doc.CursorMismatch, "no"), 400, "cursor-mismatch", ""},
		{doc.Errorf(doc.InvalidQuery, "no"), 400, "invalid-query", ""},
		{doc.Errorf(doc.Throttled, "slow"), 429, "throttled", "1"},
		{doc.Errorf(doc.Unavailable, "no"), 503, "unavailable", "1"},
		{errors.New("secret"), 500, "internal", ""},
	} {
		h, f := newQuery()
		f.err = c.err
		a := send(t, h, "POST", "/query", `{"from":"a","after":"x"}`).expect(t, c.status, c.kind)
		if a.Header.Get("Retry-After") != c.retryAfter || a.json["retryAfter"] != nil {
			t.Errorf("%v: %v %s", c.err, a.Header, a)
		}
		if strings.Contains(c.kind, "cursor") && a.json["pointer"] != "/after" {
			t.Errorf("%s", a)
		}
		if c.kind == "invalid-query" && a.json["pointer"] != "/aggregate" {
			t.Errorf("%s", a)
		}
		h, f = newQuery()
		f.failed = c.err
		if a := send(t, h, "POST", "/query", `{"from":"a"}`); a.Status != c.status {
			t.Errorf("finding the definition fails with %v: %s", c.err, a)
		}
	}
}

func TestWaiting(t *testing.T) {
	one := freshness.Tokens([]doc.Written{{ID: "users/1", Version: 5}, {ID: "users/2", Version: 6}})
	two := freshness.Tokens([]doc.Written{{ID: "users/1", Version: 9}})
	h, f := newQuery()
	f.waited = freshness.Waited{Documents: 2, Took: 42 * time.Millisecond}
	a := send(t, h, "POST", "/query", fmt.Sprintf(`{"from":"users","wait":{"tokens":[%q,%q],"timeout":"200ms"}}`, one, two))
	if a.Status != 200 || fmt.Sprint(f.waits) != "[{users/1 9} {users/2 6}]" || f.timeout != 200*time.Millisecond || f.about.Took != f.waited.Took {
		t.Errorf("%s; waited %s for %v", a, f.timeout, f.waits)
	}
	send(t, h, "POST", "/query", fmt.Sprintf(`{"from":"users","wait":{"tokens":[%q]}}`, one))
	if f.timeout != 5*time.Second {
		t.Errorf("%s is the standard", f.timeout)
	}
	if a := send(t, h, "POST", "/query", `{"from":"users","wait":{"tokens":["",""],"timeout":"20s"}}`); a.Status != 200 || len(f.waits) != 0 {
		t.Errorf("the token of nothing, as /bulk gives it, waits for nothing: %s", a)
	}

	f.waited = freshness.Waited{Documents: 2, Missing: []doc.ID{"users/2"}, MissingCount: 1, Took: time.Second}
	f.asked = nil
	a = send(t, h, "POST", "/query", fmt.Sprintf(`{"from":"users","wait":{"tokens":[%q],"onTimeout":"error"}}`, one)).expect(t, 504, "wait-timeout")
	if fmt.Sprint(a.json["missing"]) != "[users/2]" || len(f.asked) != 0 {
		t.Errorf("%s", a)
	}
	a = send(t, h, "POST", "/query", fmt.Sprintf(`{"from":"users","wait":{"tokens":[%q],"onTimeout":"stale"}}`, one))
	staleness, _ := a.json["staleness"].(map[string]any)
	if a.Status != 200 || staleness["timedOut"] != true || staleness["waitedMs"] != 1000.0 {
		t.Errorf("%s", a)
	}
}

// An index that did not answer at the end of a wait is told as such, with when to
// try again; who takes a late answer is given what the search says.
func TestWaitsForAnIndexThatIsDown(t *testing.T) {
	h, f := newQuery()
	token := freshness.Tokens([]doc.Written{{ID: "users/1", Version: 9}})
	f.waited = freshness.Waited{Documents: 1, Missing: []doc.ID{"users/1"}, MissingCount: 1, Took: time.Second, Unavailable: true}
	f.err = doc.Errorf(doc.IndexUnavailable, "down").With("retryAfter", 9)
	for _, wait := range []string{`"asOfNow":true`, fmt.Sprintf(`"tokens":[%q]`, token)} {
		a := send(t, h, "POST", "/query", `{"from":"users","wait":{`+wait+`}}`).expect(t, 503, "index-unavailable")
		if a.Header.Get("Retry-After") != "5" || a.json["waitedMs"] != 1000.0 || len(f.asked) != 0 || f.silence != 0 {
			t.Errorf("%s %v, silence %s", a, a.Header, f.silence)
		}
		a = send(t, h, "POST", "/query", `{"from":"users","wait":{`+wait+`,"onTimeout":"stale"}}`).expect(t, 503, "index-unavailable")
		if a.Header.Get("Retry-After") != "9" || len(f.asked) != 1 || f.silence != time.Second {
			t.Errorf("%s %v, silence %s", a, a.Header, f.silence)
		}
		f.asked = nil
	}
}

// A page whose text would not fit a function's answer ends early, with the
// cursor of what follows.
func TestPagesOfQueriesFitTheAnswer(t *testing.T) {
	h, f := newQuery()
	quotes := strings.Repeat(`"`, 300_000) // four bytes each inside the payload
	for i := range 10 {
		f.result.Documents = append(f.result.Documents, fakeDocument(doc.ID(fmt.Sprintf("users/%d", i)), map[string]any{"s": quotes}))
	}
	a := send(t, h, "POST", "/query", `{"from":"users"}`)
	got := len(a.json["documents"].([]any))
	if a.Status != 200 || payloadSize(a.Body) > payloadBytes || got != 4 || a.json["next"] != "cursor3" || len(f.asked) != 1 {
		t.Errorf("%d documents, %d bytes in the payload, next %v, asked %d times", got, payloadSize(a.Body), a.json["next"], len(f.asked))
	}
}

func TestQueriesAreNotServedElsewhere(t *testing.T) {
	h, _ := newQuery()
	for _, path := range []string{"/", "/query/", "/queries", "/docs", "/openapi.json"} {
		a := serve(t, h, &Request{Method: http.MethodPost, Path: path, Header: http.Header{}, Body: []byte("{}")})
		a.expect(t, 404, "no-such-route")
	}
}
