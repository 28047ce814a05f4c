package e2e_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// importAll puts documents and waits until the index has them.
func importAll(t *testing.T, c string, data ...string) {
	t.Helper()
	var lines []string
	for i, d := range data {
		lines = append(lines, fmt.Sprintf(`{"id":"%s/%d","data":%s}`, c, i, d))
	}
	a := send(t, "POST", "/bulk", strings.Join(lines, "\n"), "Content-Type", "application/x-ndjson")
	all := strings.Split(strings.TrimSpace(string(a.Body)), "\n")
	if a.Status != 200 || len(all) != len(data)+1 {
		t.Fatalf("%s", a)
	}
	token := answer{Body: []byte(all[len(data)])}.JSON("token")
	query(t, fmt.Sprintf(`{"from":%q,"limit":0,"wait":{"tokens":[%q],"timeout":"20s"}}`, c, token))
}

func TestFilters(t *testing.T) {
	c := unique(t)
	importAll(t, c,
		`{"n":1,"s":"a","zip":82520,"t":["x","y"],"d":"2024-01-01T00:00:00Z"}`,
		`{"n":2.5,"s":"b","zip":"W1","t":[],"d":"2024-01-01T01:00:00+01:00"}`,
		`{"n":9223372036854775807,"s":"B","zip":{"code":1},"t":null}`,
		`{"n":9223372036854775806,"s":"","b":true,"t":["x",5]}`,
		`{"n":null,"o":{"a.b":1,"$c":2,"":3},"t":[["x"]]}`,
		`{"long":"`+strings.Repeat("z", 40_000)+`","a":[{"p":1,"q":1},{"p":2,"q":2}]}`,
	)
	for filter, want := range map[string]string{
		`{}`:                                "0 1 2 3 4 5",
		`{"n":1}`:                           "0",
		`{"n":2.50}`:                        "1",
		`{"n":9223372036854775807}`:         "2",
		`{"n":{"$gt":9223372036854775806}}`: "2",
		`{"n":{"$gte":1,"$lt":3}}`:          "0 1",
		`{"n":null}`:                        "4 5",
		`{"n":{"$exists":true}}`:            "0 1 2 3 4",
		`{"n":{"$exists":false}}`:           "5",
		`{"n":{"$ne":1}}`:                   "1 2 3 4 5",
		`{"zip":"W1"}`:                      "1",
		`{"zip":82520}`:                     "0",
		`{"zip":{"$gt":"A"}}`:               "1",
		`{"zip":{"code":1}}`:                "2",
		`{"zip.code":1}`:                    "2",
		`{"s":{"$in":["a","B"]}}`:           "0 2",
		`{"s":""}`:                          "3",
		`{"t":"x"}`:                         "0 3",
		`{"t":["x","y"]}`:                   "0",
		`{"t":["x"]}`:                       "4",
		`{"t":[]}`:                          "1",
		`{"t":{"$not":{"$in":["x",5]}}}`:    "1 2 4 5",
		`{"b":true}`:                        "3",
		`{"$or":[{"n":1},{"b":true}]}`:      "0 3",
		`{"$and":[{"n":{"$gt":1}},{"s":{"$ne":"b"}}]}`:           "2 3",
		`{"$not":{"n":{"$exists":true}}}`:                        "",
		`{"/o/a.b":1}`:                                           "4",
		`{"/o/$c":2}`:                                            "4",
		`{"long":"` + strings.Repeat("z", 40_000) + `"}`:         "5",
		`{"long":{"$ne":"` + strings.Repeat("z", 39_999) + `"}}`: "0 1 2 3 4 5",
		`{"a.p":1,"a.q":2}`:                                      "5",
		`{"a.0.p":1}`:                                            "5",
		`{"a.1.p":1}`:                                            "",
		`{"d":{"$gte":"2024-01-01T00:00:00Z"}}`:                  "0 1",
		`{"d":{"$gt":"2023-12-31T23:59:59.999Z"}}`:               "0 1",
		`{"d":{"$lt":"2024-01-01T00:00:00Z"}}`:                   "",
		`{"d":"2024-01-01T00:00:00Z"}`:                           "0",
		`{"$id":{"$gte":"` + c + `/3"}}`:                         "3 4 5",
	} {
		a := send(t, "POST", "/query", fmt.Sprintf(`{"from":%q,"filter":%s,"count":true}`, c, filter))
		if filter == `{"$not":{"n":{"$exists":true}}}` {
			// $not stands under a path; at the top it is either refused or the negation.
			if a.Status == 200 && strings.Join(a.ids(), "") != c+"/5" {
				t.Errorf("%s: %s", filter, a)
			}
			continue
		}
		var got []string
		for _, id := range a.ids() {
			got = append(got, strings.TrimPrefix(id, c+"/"))
		}
		if a.Status != 200 || strings.Join(got, " ") != want {
			t.Errorf("%.200s: got %v, want %s (%.200s)", filter, got, want, a)
		}
		if n := fmt.Sprint(a.JSON("count", "value")); n != fmt.Sprint(len(strings.Fields(want))) || a.JSON("count", "exact") != true {
			t.Errorf("%.200s: count %s", filter, a.Body)
		}
	}
}

func TestSortAndPages(t *testing.T) {
	c := unique(t)
	importAll(t, c, `{"v":"b"}`, `{"v":2}`, `{"v":null}`, `{"v":true}`, `{}`, `{"v":10}`, `{"v":"a"}`, `{"v":[3,"z"]}`, `{"v":{"o":1}}`, `{"v":false}`, `{"v":[]}`, `{"v":10.5}`)
	for sort, want := range map[string]string{
		`[{"v":"asc"}]`:                    "10 2 4 8 1 7 5 11 6 0 9 3",
		`[{"v":"desc"}]`:                   "3 9 7 0 6 11 5 1 10 2 4 8",
		`[{"$id":"desc"}]`:                 "9 8 7 6 5 4 3 2 11 10 1 0",
		`[{"none":"asc"},{"v":"asc"}]`:     "10 2 4 8 1 7 5 11 6 0 9 3",
		`[{"$version":"asc"},{"v":"asc"}]`: "",
	} {
		for _, limit := range []int{1, 5, 25} {
			var got []string
			after := ""
			for pages := 0; pages < 20; pages++ {
				a := query(t, fmt.Sprintf(`{"from":%q,"sort":%s,"limit":%d%s}`, c, sort, limit, after))
				for _, id := range a.ids() {
					got = append(got, strings.TrimPrefix(id, c+"/"))
				}
				next, ok := a.JSON("next").(string)
				if !ok {
					break
				}
				after = fmt.Sprintf(`,"after":%q`, next)
			}
			if want == "" {
				if len(got) != 12 {
					t.Errorf("%s limit %d: %v", sort, limit, got)
				}
				continue
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s limit %d:\n got %s\nwant %s", sort, limit, strings.Join(got, " "), want)
			}
		}
	}
	first := query(t, fmt.Sprintf(`{"from":%q,"limit":1}`, c))
	next := first.JSON("next").(string)
	expect(t, send(t, "POST", "/query", fmt.Sprintf(`{"from":%q,"limit":1,"filter":{"v":1},"after":%q}`, c, next)), 400, "cursor-mismatch")
	expect(t, send(t, "POST", "/query", fmt.Sprintf(`{"from":%q,"after":"x%s"}`, c, next)), 400, "invalid-cursor")
	if a := query(t, fmt.Sprintf(`{"from":%q,"limit":7,"after":%q}`, c, next)); len(a.ids()) != 7 {
		t.Errorf("limit may change between pages: %s", a)
	}
	if a := query(t, `{"from":"nothing-there","count":true}`); len(a.ids()) != 0 || fmt.Sprint(a.JSON("count", "value")) != "0" {
		t.Errorf("an unknown collection is empty: %s", a)
	}
	if a := query(t, fmt.Sprintf(`{"from":["nothing-there",%q],"limit":0,"count":true}`, c)); len(a.ids()) != 0 || fmt.Sprint(a.JSON("count", "value")) != "12" {
		t.Errorf("several collections: %s", a)
	}
}

func TestWaitingAndStaleness(t *testing.T) {
	c := unique(t)
	for i := range 10 {
		a := put(t, fmt.Sprintf("%s/%d", c, i), `{"here":true}`)
		found := query(t, fmt.Sprintf(`{"from":%q,"filter":{"$id":"%s/%d"},"wait":{"tokens":[%q],"timeout":"20s"}}`, c, c, i, a.Header.Get("Holdfast-Token")))
		if len(found.ids()) != 1 {
			t.Fatalf("after its token the write is there: %s", found)
		}
		if found.JSON("staleness", "timedOut") != false || found.JSON("staleness", "waitedMs") == nil {
			t.Errorf("%s", found)
		}
	}
	gone := send(t, "DELETE", "/docs/"+c+"/3", "")
	found := query(t, fmt.Sprintf(`{"from":%q,"wait":{"tokens":[%q],"timeout":"20s"}}`, c, gone.Header.Get("Holdfast-Token")))
	if slices.Contains(found.ids(), c+"/3") || len(found.ids()) != 9 {
		t.Errorf("after its token the delete is there: %v", found.ids())
	}
	back := put(t, c+"/3", `{"again":true}`)
	found = query(t, fmt.Sprintf(`{"from":%q,"filter":{"again":true},"wait":{"tokens":[%q],"timeout":"20s"}}`, c, back.Header.Get("Holdfast-Token")))
	if len(found.ids()) != 1 {
		t.Errorf("after its token the re-creation is there: %v", found.ids())
	}
	a := query(t, fmt.Sprintf(`{"from":%q}`, c))
	for _, member := range []string{"stale", "provenThrough", "lagSeconds", "pending", "quarantined", "dropped", "waitedMs", "timedOut", "notice"} {
		staleness, _ := a.JSON("staleness").(map[string]any)
		if _, ok := staleness[member]; !ok {
			t.Errorf("staleness has %s: %s", member, a)
		}
	}
	if s, _ := a.JSON("staleness", "notice").(string); s == "" || a.JSON("staleness", "stale") != true {
		t.Errorf("nothing is proven yet, so it is stale and says so: %s", a)
	}
}

func TestQueryRefusals(t *testing.T) {
	for body, pointer := range map[string]string{
		`{}`:                       "/from",
		`{"from":7}`:               "/from",
		`{"from":""}`:              "/from",
		`{"from":[]}`:              "/from",
		`{"from":"a","x":1}`:       "/x",
		`{"from":"a","filter":[]}`: "/filter",
		`{"from":"a","filter":{"n":{"$regex":"x"}}}`:        "/filter/n/$regex",
		`{"from":"a","filter":{"$where":"1"}}`:              "/filter/$where",
		`{"from":"a","filter":{"n":{"$gt":{}}}}`:            "/filter/n/$gt",
		`{"from":"a","filter":{"$or":[]}}`:                  "/filter/$or",
		`{"from":"a","filter":{"$and":[{"n":{"$in":5}}]}}`:  "/filter/$and/0/n/$in",
		`{"from":"a","sort":"n"}`:                           "/sort",
		`{"from":"a","sort":[{"n":"up"}]}`:                  "/sort/0/n",
		`{"from":"a","limit":-1}`:                           "/limit",
		`{"from":"a","limit":1001}`:                         "/limit",
		`{"from":"a","limit":1.5}`:                          "/limit",
		`{"from":"a","count":"yes"}`:                        "/count",
		`{"from":"a","wait":{"tokens":["zzz"]}}`:            "/wait/tokens/0",
		`{"from":"a","wait":{"tokens":[],"timeout":"21s"}}`: "/wait/timeout",
		`{"from":"a","wait":{"tokens":[],"timeout":"1h"}}`:  "/wait/timeout",
		`{"from":"a","wait":{"onTimeout":"maybe"}}`:         "/wait/onTimeout",
	} {
		a := send(t, "POST", "/query", body)
		expect(t, a, 400, "invalid-query")
		if a.JSON("pointer") != pointer {
			t.Errorf("%s: pointer %v, want %s", body, a.JSON("pointer"), pointer)
		}
	}
	expect(t, send(t, "POST", "/query", `{"from":`), 400, "invalid-json")
	expect(t, send(t, "POST", "/query", `{"from":"a"}`, "Content-Type", "text/plain"), 415, "unsupported-media-type")
	var terms []string
	for i := range 70_000 {
		terms = append(terms, fmt.Sprint(i))
	}
	a := send(t, "POST", "/query", `{"from":"a","filter":{"n":{"$in":[`+strings.Join(terms, ",")+`]}}}`)
	expect(t, a, 400, "query-too-costly")
	if a.JSON("limit") == nil {
		t.Errorf("the limit is named: %s", a)
	}
	if a := send(t, "GET", "/docs/"+url.PathEscape("x")+"/1?fields=", ""); a.Status != 400 {
		t.Errorf("an empty fields parameter is refused: %s", a)
	}
}
