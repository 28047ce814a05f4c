package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/shared/local/engines"
)

// indexesOf are the indexes of a collection of its own, as OpenSearch names them.
func indexesOf(t *testing.T, c string) []string {
	t.Helper()
	resp, err := http.Get(stack.Engines().URL(engines.OpenSearch) + "/_cat/indices/holdfast-" + c + "-*?h=index")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(body))
}

// TestACollectionIsDefinedBeforeItsFirstDocument has the definition decide the
// index that the first document begins.
func TestACollectionIsDefinedBeforeItsFirstDocument(t *testing.T) {
	c := fmt.Sprintf("defined%d", time.Now().UnixNano()%1e9)
	at := "/collections/" + c
	expect(t, send(t, "GET", at, ""), 404, "not-found")
	a := send(t, "PUT", at, `{"nested":["lines"],"text":["notes"],"indexed":{"exclude":["raw"]}}`)
	if a.Status != 200 || fmt.Sprint(a.JSON("generation")) != "1" || a.JSON("reindexing") != false || a.Header.Get("ETag") != `"1"` {
		t.Fatalf("%s", a)
	}
	if found := indexesOf(t, c); len(found) != 0 {
		t.Errorf("before the first document: %v", found)
	}
	if a := query(t, fmt.Sprintf(`{"from":%q}`, c)); len(a.ids()) != 0 {
		t.Errorf("before the first document: %s", a)
	}
	importAll(t, c,
		`{"lines":[{"p":1,"q":1},{"p":2,"q":2}],"notes":"a quick brown fox","raw":{"x":1}}`,
		`{"lines":[{"p":1,"q":2}],"notes":"a lazy dog","raw":{"x":2}}`,
		`{"lines":[],"raw":null}`,
	)
	if found := indexesOf(t, c); len(found) != 1 || !strings.HasSuffix(found[0], "-1") {
		t.Errorf("an index of its own: %v", found)
	}
	for filter, want := range map[string]string{
		`{"lines":{"$elemMatch":{"p":1,"q":2}}}`: "1",
		`{"notes":{"$text":"fox"}}`:              "0",
		`{"raw.x":2}`:                            "1",
		`{"raw.x":{"$ne":2}}`:                    "0 2",
		`{"raw":{"$exists":true}}`:               "0 1 2",
		`{"raw":{"x":1}}`:                        "0",
		`{"raw":null}`:                           "2",
	} {
		a := query(t, fmt.Sprintf(`{"from":%q,"filter":%s,"count":true}`, c, filter))
		var got []string
		for _, id := range a.ids() {
			got = append(got, strings.TrimPrefix(id, c+"/"))
		}
		if strings.Join(got, " ") != want || fmt.Sprint(a.JSON("count", "value")) != fmt.Sprint(len(strings.Fields(want))) {
			t.Errorf("%s: %v, want %s: %s", filter, got, want, a)
		}
	}
	// The same form said otherwise changes nothing about the index.
	if a := send(t, "PUT", at, `{"index":"own","nested":["lines[]"],"text":["notes"],"indexed":{"exclude":["raw"]}}`, "If-Match", `"1"`); a.Status != 200 || a.Header.Get("ETag") != `"2"` || a.JSON("reindexing") != false {
		t.Errorf("the same form: %s", a)
	}
	if a := send(t, "GET", at, ""); a.Status != 200 || a.JSON("index") != "own" || a.Header.Get("ETag") != `"2"` {
		t.Errorf("%s", a)
	}
	if a := send(t, "GET", "/collections", ""); a.Status != 200 || !strings.Contains(string(a.Body), fmt.Sprintf(`{"name":%q,"revision":2,"definition":{"index":"own"`, c)) {
		t.Errorf("%s", a)
	}
	expect(t, send(t, "PUT", "/collections/"+c, `{"nested":["a."]}`), 422, "invalid-definition")
	expect(t, send(t, "POST", "/collections/"+c, `{}`), 405, "method-not-allowed")
}

// statusOf is what the status says about a collection; nil: nothing.
func statusOf(t *testing.T, c string) map[string]any {
	t.Helper()
	a := send(t, "GET", "/status", "")
	all, _ := a.JSON("collections").([]any)
	for _, one := range all {
		if m, _ := one.(map[string]any); m["name"] == c {
			return m
		}
	}
	return nil
}

// TestADefinitionChangesWhileThereAreDocuments has one collection change the form
// of its index and another one move into an index of its own, while both are
// queried and written.
func TestADefinitionChangesWhileThereAreDocuments(t *testing.T) {
	own, moving := unique(t)+"own", unique(t)+"moving"
	if a := send(t, "PUT", "/collections/"+own, `{"nested":["lines"]}`); a.Status != 200 {
		t.Fatal(a)
	}
	for _, c := range []string{own, moving} {
		importAll(t, c, `{"lines":[{"p":1,"q":1},{"p":2,"q":2}],"notes":"a quick fox"}`, `{"lines":[{"p":1,"q":2}],"notes":"a lazy dog"}`)
	}
	const text = `{"nested":["lines"],"text":["notes"]}`
	for c, generation := range map[string]string{own: "2", moving: "1"} {
		a := send(t, "PUT", "/collections/"+c, text)
		if a.Status != 200 || a.JSON("reindexing") != true || fmt.Sprint(a.JSON("generation")) != generation {
			t.Errorf("%s: %s", c, a)
		}
		if s := statusOf(t, c); s["reindexing"] != true {
			t.Errorf("%s: %v", c, s)
		}
	}
	put(t, own+"/2", `{"lines":[{"p":1,"q":2}],"notes":"a late fox"}`)
	put(t, moving+"/2", `{"lines":[{"p":1,"q":2}],"notes":"a late fox"}`)
	const elements = `{"lines":{"$elemMatch":{"p":1,"q":2}}}`
	count := func(c, filter string, want int) {
		t.Helper()
		a := query(t, fmt.Sprintf(`{"from":%q,"filter":%s,"wait":{"asOfNow":true,"timeout":"20s"}}`, c, filter))
		if len(a.ids()) != want {
			t.Errorf("%s %s: %s", c, filter, a)
		}
	}
	for _, c := range []string{own, moving} {
		count(c, elements, 2)
	}
	for end := time.Now().Add(4 * time.Minute); ; time.Sleep(time.Second) {
		if statusOf(t, own)["reindexing"] == false && statusOf(t, moving)["reindexing"] == false {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after minutes: %s", send(t, "GET", "/status", "").Body)
		}
		count(own, elements, 2) // at every moment
		count(moving, elements, 2)
	}
	for _, c := range []string{own, moving} {
		count(c, elements, 2)
		count(c, `{"notes":{"$text":"fox"}}`, 2)
		if a := send(t, "PUT", "/collections/"+c, text); a.JSON("reindexing") != false {
			t.Errorf("said again: %s", a)
		}
	}
	// What is not declared any more does not have to be there at once, and the documents stay.
	if a := send(t, "DELETE", "/collections/"+own, ""); a.Status != 204 {
		t.Errorf("%s", a)
	}
	expect(t, send(t, "GET", "/collections/"+own, ""), 404, "not-found")
	count(own, elements, 2)
}

// TestAsOfNow has several writers, none of whose tokens the reader knows.
func TestAsOfNow(t *testing.T) {
	c := unique(t)
	empty := query(t, fmt.Sprintf(`{"from":"%s-none","wait":{"asOfNow":true,"timeout":"20s"}}`, c))
	if len(empty.ids()) != 0 || empty.JSON("staleness", "timedOut") != false || fmt.Sprint(empty.JSON("staleness", "waitedFor")) != "[asOfNow]" {
		t.Errorf("an empty collection: %s", empty)
	}
	const writers, each = 4, 15
	stop := make(chan struct{})
	var busy, work sync.WaitGroup
	busy.Go(func() { // somebody never ceases to write
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				if _, err := trySend("PUT", fmt.Sprintf("/docs/%s/busy", c), fmt.Sprintf(`{"busy":%d}`, i)); err != nil {
					t.Error(err)
				}
			}
		}
	})
	defer busy.Wait()
	defer close(stop)
	for w := range writers {
		work.Go(func() {
			for i := range each {
				if a, err := trySend("PUT", fmt.Sprintf("/docs/%s/%d-%d", c, w, i), `{"n":1}`); err != nil || a.Status >= 300 {
					t.Errorf("%s %v", a, err)
				}
			}
			if a, err := trySend("DELETE", fmt.Sprintf("/docs/%s/%d-0", c, w), ""); err != nil || a.Status != 204 {
				t.Errorf("%s %v", a, err)
			}
		})
	}
	work.Wait()
	a := query(t, fmt.Sprintf(`{"from":%q,"filter":{"n":1},"limit":0,"count":true,"wait":{"asOfNow":true,"timeout":"20s"}}`, c))
	if fmt.Sprint(a.JSON("count", "value")) != fmt.Sprint(writers*(each-1)) || a.JSON("staleness", "timedOut") != false {
		t.Errorf("%s", a)
	}
	if a.JSON("staleness", "asOf") == nil || fmt.Sprint(a.JSON("staleness", "marginMs")) != "2000" {
		t.Errorf("what was waited for is told: %s", a)
	}
	// In less than the margin it cannot be known.
	expect(t, send(t, "POST", "/query", fmt.Sprintf(`{"from":%q,"wait":{"asOfNow":true,"timeout":"300ms"}}`, c)), 504, "wait-timeout")
	late := query(t, fmt.Sprintf(`{"from":%q,"limit":1,"wait":{"asOfNow":true,"timeout":"300ms","onTimeout":"stale"}}`, c))
	if late.JSON("staleness", "timedOut") != true || late.JSON("staleness", "stale") != true {
		t.Errorf("%s", late)
	}
}
