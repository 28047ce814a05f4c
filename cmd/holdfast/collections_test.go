package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// serveDefinitions answers /collections from memory, two collections a page.
func serveDefinitions(t *testing.T, f *fake) map[string]string {
	t.Helper()
	defined := map[string]string{}
	f.before = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		name, named := strings.CutPrefix(r.URL.Path, "/collections/")
		if !named && r.URL.Path != "/collections" {
			return false
		}
		problem := func(status int, slug string) bool {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"type":"/problems/%s","title":"No","status":%d,"detail":"no"}`, slug, status)
			return true
		}
		old, there := defined[name]
		if m := r.Header.Get("If-Match"); m != "" && (!there || m != "*" && m != `"1"`) || r.Header.Get("If-None-Match") == "*" && there {
			return problem(412, "version-conflict")
		}
		switch {
		case !named && r.URL.Query().Get("after") == "":
			fmt.Fprint(w, `{"collections":[{"name":"a","revision":null,"definition":null},{"name":"b\u001b","revision":1,"definition":{"text":["x"]}}],"next":"two"}`)
		case !named:
			fmt.Fprint(w, `{"collections":[{"name":"c/d","revision":3,"definition":{}}]}`)
		case r.Method == http.MethodPut:
			if r.Header.Get("Content-Type") != "application/json" || !json.Valid(body) {
				t.Errorf("put %s: %s", r.Header, body)
			}
			defined[name] = string(body)
			fmt.Fprint(w, `{"generation":1,"reindexing":false}`)
		case r.Method == http.MethodDelete:
			delete(defined, name)
			w.WriteHeader(http.StatusNoContent)
		case !there:
			return problem(404, "not-found")
		default:
			fmt.Fprint(w, old)
		}
		return true
	}
	return defined
}

func TestCollectionsOnTheCommandLine(t *testing.T) {
	f := newFake(t)
	defined := serveDefinitions(t, f)
	path := file(t, "orders.yaml", "# lines are matched one by one\nnested: [lines]\nindexed:\n  exclude:\n    - log\n")
	f.holdfast("collections", "get", "customers/orders").expect(t, exitNotFound)
	if r := f.holdfast("collections", "put", "customers/orders", path, "--if-absent").expect(t, exitOK); r.out != `{"generation":1,"reindexing":false}`+"\n" {
		t.Errorf("%q", r.out)
	}
	if want := `{"indexed":{"exclude":["log"]},"nested":["lines"]}`; defined["customers/orders"] != want {
		t.Errorf("put %s", defined["customers/orders"])
	}
	if r := f.holdfast("collections", "get", "customers/orders").expect(t, exitOK); r.out != "indexed:\n    exclude:\n        - log\nnested:\n    - lines\n" {
		t.Errorf("%q", r.out)
	}
	if r := f.holdfast("collections", "get", "customers/orders", "--output", "json").expect(t, exitOK); r.out != defined["customers/orders"]+"\n" {
		t.Errorf("%q", r.out)
	}
	f.holdfast("collections", "put", "customers/orders", path, "--if-absent").expect(t, exitConflict)
	f.holdfast("collections", "put", "customers/orders", path, "--if-match", "7").expect(t, exitConflict)
	f.holdfast("collections", "put", "customers/orders", file(t, "orders.json", `{"text":["notes"]}`), "--if-match", "1").expect(t, exitOK)
	if defined["customers/orders"] != `{"text":["notes"]}` {
		t.Errorf("put %s", defined["customers/orders"])
	}
	f.holdfast("collections", "delete", "customers/orders", "--if-match", "9").expect(t, exitConflict)
	f.holdfast("collections", "delete", "customers/orders").expect(t, exitOK)
	if len(defined) != 0 {
		t.Errorf("left %v", defined)
	}
	if r := f.holdfast("collections", "list").expect(t, exitOK); strings.Contains(r.out, "\x1b") || !strings.HasPrefix(r.out, "a\nb") || !strings.HasSuffix(r.out, "c/d  {}\n") {
		t.Errorf("%q", r.out)
	}
	if r := f.holdfast("collections", "list", "--output", "json").expect(t, exitOK); strings.Count(r.out, "\n") != 3 || !strings.Contains(r.out, `{"name":"a","revision":null,"definition":null}`) {
		t.Errorf("%q", r.out)
	}
	for _, wrong := range []string{"nested: [a\n", "a: 1\na: 2\n", "a: 1\n---\nb: 1\n", "", "1: x\n"} {
		f.holdfast("collections", "put", "orders", file(t, "wrong.yaml", wrong)).expect(t, exitFailed)
	}
	f.holdfast("collections", "put", "orders").expect(t, exitUsage)
	f.holdfast("collections", "get", "orders/").expect(t, exitUsage)
	f.holdfast("collections", "put", "orders", path, "--if-absent", "--if-match", "1").expect(t, exitUsage)
	f.holdfast("collections", "delete", "orders", "--if-match", "").expect(t, exitUsage)
	if len(defined) != 0 {
		t.Errorf("put %v", defined)
	}
}
