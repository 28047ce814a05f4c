package httpapi

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
)

// asOfNow is a wait as of now that a fakeIndex was asked for.
type asOfNow struct {
	collections []doc.Collection
	signals     []doc.Signal
	timeout     time.Duration
}

func (f *fakeIndex) AsOfNow(_ context.Context, collections []doc.Collection, signals []doc.Signal, patience freshness.Patience) (freshness.Waited, error) {
	f.asOf = append(f.asOf, asOfNow{collections, signals, patience.Timeout})
	f.silence, f.partly = patience.Silence, patience.Partly
	return f.waited, f.waitErr
}

func TestWaitsAsOfNow(t *testing.T) {
	h, f := newQuery()
	a := send(t, h, "POST", "/query", `{"from":["a","b"],"wait":{"asOfNow":true}}`)
	if a.Status != 200 || len(f.asOf) != 1 || fmt.Sprint(f.asOf[0]) != "{[a b] [] 5000000000}" || f.waits != nil {
		t.Errorf("%s: %v", a, f.asOf)
	}
	token := freshness.Tokens([]doc.Written{{ID: "a/1", Version: firstVersion}})
	a = send(t, h, "POST", "/query", fmt.Sprintf(`{"from":"a","wait":{"asOfNow":true,"tokens":[%q],"timeout":"20s"}}`, token))
	if a.Status != 200 || len(f.asOf) != 2 || fmt.Sprint(f.asOf[1]) != "{[a] [{a/1 1796029203123456}] 20000000000}" {
		t.Errorf("%s: %v", a, f.asOf)
	}
	a = send(t, h, "POST", "/query", fmt.Sprintf(`{"from":"a","wait":{"asOfNow":false,"tokens":[%q]}}`, token))
	if a.Status != 200 || len(f.asOf) != 2 || len(f.waits) != 1 {
		t.Errorf("%s: %v, %v", a, f.asOf, f.waits)
	}
	f.waits = nil
	a = send(t, h, "POST", "/query", `{"from":"a","wait":{"asOfNow":false}}`)
	if a.Status != 200 || len(f.asOf) != 2 || len(f.waits) != 0 {
		t.Errorf("%s: %v, %v", a, f.asOf, f.waits)
	}
	for body, pointer := range map[string]string{
		`{"from":"a","wait":{"asOfNow":1}}`:                      "/wait/asOfNow",
		`{"from":"a","wait":{"asOfNow":null}}`:                   "/wait/asOfNow",
		`{"from":"a","wait":{"asOfNow":true,"tokens":null}}`:     "/wait/tokens",
		`{"from":"a","wait":{"asOfNow":true,"timeout":"21s"}}`:   "/wait/timeout",
		`{"from":"a","wait":{"asOfNow":true,"onTimeout":false}}`: "/wait/onTimeout",
		`{"from":"a","wait":{"timeout":"5s"}}`:                   "/wait/tokens",
	} {
		if a := send(t, h, "POST", "/query", body).expect(t, 400, "invalid-query"); a.json["pointer"] != pointer {
			t.Errorf("%s: %s", body, a)
		}
	}
	f.waitErr = doc.Errorf(doc.QueryTooCostly, "too much").With("limit", 10000)
	if a := send(t, h, "POST", "/query", `{"from":"a","wait":{"asOfNow":true}}`).expect(t, 400, "query-too-costly"); a.json["pointer"] != "/wait/asOfNow" || a.json["limit"] != 10000.0 {
		t.Errorf("%s", a)
	}
	f.waitErr = nil
	f.waited = freshness.Waited{AsOf: &freshness.AsOfWaited{Margin: time.Second}, Took: time.Second}
	if a := send(t, h, "POST", "/query", `{"from":"a","wait":{"asOfNow":true}}`).expect(t, 504, "wait-timeout"); fmt.Sprint(a.json["missing"]) != "[]" {
		t.Errorf("%s", a)
	}
	if a := send(t, h, "POST", "/query", `{"from":"a","wait":{"asOfNow":true,"onTimeout":"stale"}}`); a.Status != 200 || !f.partly {
		t.Errorf("%s", a)
	}
	f.waited.AsOf.TooMuch = doc.Errorf(doc.QueryTooCostly, "too much").With("limit", 10000)
	if a := send(t, h, "POST", "/query", `{"from":"a","wait":{"asOfNow":true,"onTimeout":"stale"}}`); a.Status != 200 || f.about.AsOf.TooMuch == nil {
		t.Errorf("%s", a)
	}
	if a := send(t, h, "POST", "/query", `{"from":"a","wait":{"asOfNow":true}}`).expect(t, 400, "query-too-costly"); a.json["limit"] != 10000.0 || f.partly {
		t.Errorf("%s", a)
	}
}

// Full-text search is allowed where all of the collections declare it.
func TestTextIsSearchedWhereItIsDeclared(t *testing.T) {
	h, f := newQuery()
	f.defined = map[doc.Collection]collection.Definition{
		"a": {Name: "a", Text: []string{"notes[]", "/title"}}, "b": {Name: "b", Text: []string{"title", "body"}},
	}
	for body, status := range map[string]int{
		`{"from":"a","filter":{"notes":{"$text":"fox"}}}`:       200,
		`{"from":"a","filter":{"title":{"$text":"fox"}}}`:       200,
		`{"from":"a","filter":{"body":{"$text":"fox"}}}`:        400,
		`{"from":["a","b"],"filter":{"title":{"$text":"fox"}}}`: 200,
		`{"from":["a","b"],"filter":{"notes":{"$text":"fox"}}}`: 400,
		`{"from":["a","c"],"filter":{"title":{"$text":"fox"}}}`: 400,
	} {
		if a := send(t, h, "POST", "/query", body); a.Status != status {
			t.Errorf("%s: %s", body, a)
		}
	}
}
