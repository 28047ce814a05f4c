package httpapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
)

// fakeDefinitions are definitions in memory. With err set everything fails so.
type fakeDefinitions struct {
	defined     map[doc.Collection]collection.Definition
	used        map[doc.Collection]bool // has documents
	generations []collection.Generation
	err         error
	race        int // how many changes somebody else is faster at
}

func newFakeDefinitions() *fakeDefinitions {
	return &fakeDefinitions{defined: map[doc.Collection]collection.Definition{}, used: map[doc.Collection]bool{}}
}

func (f *fakeDefinitions) CurrentDefinition(_ context.Context, c doc.Collection) (collection.Definition, error) {
	if d, ok := f.defined[c]; ok {
		return d, f.err
	}
	return collection.Definition{Name: c}, f.err
}

func (f *fakeDefinitions) PutDefinition(_ context.Context, d collection.Definition, expected int64) (collection.Definition, error) {
	if f.race > 0 {
		f.race--
		other := f.defined[d.Name]
		other.Name, other.Revision = d.Name, other.Revision+1
		f.defined[d.Name] = other
	}
	if f.defined[d.Name].Revision != expected {
		return collection.Definition{}, doc.Errorf(doc.VersionConflict, "another revision")
	}
	d.Revision = expected + 1
	f.defined[d.Name] = d
	return d, f.err
}

func (f *fakeDefinitions) DefineUnused(ctx context.Context, d collection.Definition, expected int64) (collection.Definition, error) {
	if f.used[d.Name] {
		return collection.Definition{}, doc.Errorf(doc.ReindexRequired, "there are documents")
	}
	return f.PutDefinition(ctx, d, expected)
}

func (f *fakeDefinitions) Definitions(context.Context) ([]collection.Definition, error) {
	return slices.Collect(maps.Values(f.defined)), f.err
}

func (f *fakeDefinitions) Collections(context.Context) ([]doc.Collection, error) {
	return slices.Sorted(maps.Keys(f.used)), f.err
}

func (f *fakeDefinitions) Generations(_ context.Context, family collection.Family) ([]collection.Generation, error) {
	return slices.DeleteFunc(slices.Clone(f.generations), func(g collection.Generation) bool { return g.Family != family }), f.err
}

func newAdmin() (Handler, *fakeDefinitions) {
	f := newFakeDefinitions()
	return Admin(AdminOptions{State: &fakeState{fakeDefinitions: f}}), f
}

func TestADefinition(t *testing.T) {
	h, f := newAdmin()
	const at = "/collections/customers/orders"
	send(t, h, "GET", at, "").expect(t, 404, "not-found")
	send(t, h, "HEAD", at, "")
	body := `{"index":"own","nested":["lines[]","/a.b"],"text":["notes"],"indexed":{"include":["lines","notes","/a.b"],"exclude":["lines.raw"]}}`
	a := send(t, h, "PUT", at, body)
	if a.Status != 200 || string(a.Body) != `{"generation":1,"reindexing":false}` || a.Header.Get("ETag") != `"1"` {
		t.Fatalf("%s %v", a, a.Header)
	}
	if got := f.defined["customers/orders"]; got.Family() != "customers/orders" || len(got.Nested) != 2 || got.Exclude[0] != "lines.raw" {
		t.Errorf("%+v", got)
	}
	a = send(t, h, "GET", at, "")
	if a.Status != 200 || a.Header.Get("ETag") != `"1"` || a.json["index"] != "own" || fmt.Sprint(a.json["indexed"]) != "map[exclude:[lines.raw] include:[lines notes /a.b]]" {
		t.Errorf("%s", a)
	}
	// What GET answers can be put again, and changes nothing.
	if a = send(t, h, "PUT", at, string(a.Body)); a.Status != 200 || a.Header.Get("ETag") != `"1"` {
		t.Errorf("%s", a)
	}
	for _, method := range []string{"GET", "HEAD"} {
		if a = send(t, h, method, at, "", "If-None-Match", `"1"`); a.Status != 304 || a.Header.Get("ETag") != `"1"` {
			t.Errorf("%s", a)
		}
		if a = send(t, h, method, at, "", "If-Match", `"7"`); a.Status != 412 || method == "GET" && a.json["expected"] != 7.0 {
			t.Errorf("%s", a)
		}
		if a = send(t, h, method, at, ""); a.Status != 200 {
			t.Errorf("%s", a)
		}
	}
	// Without documents everything may change.
	f.generations = []collection.Generation{
		{Family: collection.SharedFamily, Number: 2, State: collection.Retired}, {Family: collection.SharedFamily, Number: 3, State: collection.Active},
	}
	if a = send(t, h, "PUT", at, `{}`, "If-Match", `"1"`); a.Status != 200 || string(a.Body) != `{"generation":3,"reindexing":false}` || a.Header.Get("ETag") != `"2"` {
		t.Errorf("%s", a)
	}
	send(t, h, "PUT", at, `{}`, "If-Match", `"1"`).expect(t, 412, "version-conflict")
	send(t, h, "PUT", at, `{}`, "If-None-Match", `*`).expect(t, 412, "version-conflict")
	send(t, h, "DELETE", at, "", "If-Match", `"1"`).expect(t, 412, "version-conflict")
	if a = send(t, h, "DELETE", at, "", "If-Match", `"2"`); a.Status != 204 || len(a.Body) > 0 {
		t.Errorf("%s", a)
	}
	send(t, h, "GET", at, "").expect(t, 404, "not-found")
	if a = send(t, h, "DELETE", at, ""); a.Status != 204 {
		t.Errorf("%s", a)
	}
	send(t, h, "DELETE", at, "", "If-Match", `*`).expect(t, 412, "version-conflict")
	// Revisions go on, so that an old ETag never fits again.
	if a = send(t, h, "PUT", at, `{"text":["notes"]}`, "If-None-Match", `*`); a.Status != 200 || a.Header.Get("ETag") != `"4"` {
		t.Errorf("%s", a)
	}
}

func TestADefinitionWithDocuments(t *testing.T) {
	h, f := newAdmin()
	f.used["orders"], f.used["users"] = true, true
	shared := func(number int, state collection.GenerationState) collection.Generation {
		return collection.Generation{Family: collection.SharedFamily, Number: number, State: state}
	}
	own := func(number int, state collection.GenerationState, nested ...string) collection.Generation {
		return collection.Generation{Family: "orders", Number: number, State: state, Nested: nested, Text: []string{"notes"}}
	}
	put := func(name, body string, generation int, reindexing bool) collection.Definition {
		t.Helper()
		want := fmt.Sprintf(`{"generation":%d,"reindexing":%t}`, generation, reindexing)
		if a := send(t, h, "PUT", "/collections/"+name, body); a.Status != 200 || string(a.Body) != want {
			t.Errorf("%s: %s, want %s", body, a, want)
		}
		return f.defined[doc.Collection(name)]
	}
	f.generations = []collection.Generation{shared(1, collection.Retired), shared(2, collection.Active)}

	// From the shared index to one of its own: queries read the shared one on.
	d := put("users", `{"nested":["a"]}`, 1, true)
	if d.Family() != "users" || d.Reads() != collection.SharedFamily || len(d.Writes()) != 2 || d.Since.IsZero() {
		t.Errorf("%+v", d)
	}
	if a := send(t, h, "GET", "/collections/users", ""); a.Status != 200 || string(a.Body) != `{"nested":["a"]}` {
		t.Errorf("%s", a)
	}
	f.generations = append(f.generations, collection.Generation{Family: "users", Number: 1, State: collection.Active, Nested: []string{"a"}})
	d = put("users", `{"nested":["a[]"],"index":"own"}`, 1, true) // the same form, while it is on its way
	if d.Reads() != collection.SharedFamily {
		t.Errorf("%+v", d)
	}
	d = put("users", `{"nested":["a[]"],"index":"own"}`, 1, true) // said again
	if d.Revision != 2 {
		t.Errorf("%+v", d)
	}
	d.Moved = true // repair has done it
	f.defined["users"] = d
	put("users", `{"nested":["a[]"],"index":"own"}`, 1, false)
	d = put("users", `{"index":"shared"}`, 2, true) // and back
	if d.Family() != collection.SharedFamily || d.Reads() != "users" {
		t.Errorf("%+v", d)
	}
	// Back to what queries read, before the way was gone: there is nothing to do.
	d = put("users", `{"nested":["a"]}`, 1, false)
	if d.Serving != nil || d.Reads() != "users" {
		t.Errorf("%+v", d)
	}

	// Another form in the same index family is the next generation.
	f.defined["orders"] = collection.Definition{Name: "orders", Revision: 4, Nested: []string{"lines", "tags"}, Text: []string{"/notes"}}
	f.generations = append(f.generations, own(3, collection.Active, "lines", "tags"), own(2, collection.Removed))
	d = put("orders", `{"index":"own","nested":["tags[]","lines"],"text":["notes"]}`, 3, false)
	if d.Revision != 5 {
		t.Errorf("the same form said otherwise: %+v", d)
	}
	put("orders", `{"nested":["lines"],"text":["notes"]}`, 4, true)
	f.generations = append(f.generations, own(4, collection.Building, "lines"))
	put("orders", `{"nested":["lines[]"],"text":["notes"]}`, 4, true)
	d = put("orders", `{"nested":["lines"],"text":["notes"],"indexed":{"exclude":["x"]}}`, 5, true)
	if d.Serving != nil {
		t.Errorf("it is one family: %+v", d)
	}
	f.generations[len(f.generations)-1].State = collection.Active
	put("orders", `{"nested":["lines"],"text":["notes"]}`, 4, false)

	// Removed, it is gone for clients, and its documents are on their way to the shared index.
	if a := send(t, h, "DELETE", "/collections/orders", ""); a.Status != 204 {
		t.Errorf("%s", a)
	}
	send(t, h, "GET", "/collections/orders", "").expect(t, 404, "not-found")
	if d := f.defined["orders"]; d.Family() != collection.SharedFamily || d.Reads() != "orders" || !d.Removed {
		t.Errorf("%+v", d)
	}
	if a := send(t, h, "DELETE", "/collections/orders", ""); a.Status != 204 {
		t.Errorf("%s", a)
	}
	put("orders", `{}`, 2, true)
	put("orders", `{"nested":["lines"],"text":["notes"]}`, 4, false)
}

func TestSomebodyElseDefines(t *testing.T) {
	h, f := newAdmin()
	f.race = 2
	if a := send(t, h, "PUT", "/collections/users", `{"nested":["a"]}`); a.Status != 200 || a.Header.Get("ETag") != `"3"` {
		t.Errorf("%s", a)
	}
	f.race = 1
	send(t, h, "PUT", "/collections/users", `{"nested":["b"]}`, "If-Match", `"3"`).expect(t, 412, "version-conflict")
	f.race = 100
	send(t, h, "PUT", "/collections/users", `{"nested":["c"]}`).expect(t, 429, "throttled")
	f.race = 100
	send(t, h, "DELETE", "/collections/users", "").expect(t, 429, "throttled")
}

func TestTheListOfCollections(t *testing.T) {
	h, f := newAdmin()
	if a := send(t, h, "GET", "/collections", ""); string(a.Body) != `{"collections":[]}` {
		t.Errorf("%s", a)
	}
	f.used["users"], f.used["orders"], f.used["a/b"] = true, true, true
	f.defined["orders"] = collection.Definition{Name: "orders", Revision: 4, Nested: []string{"lines"}}
	f.defined["planned"] = collection.Definition{Name: "planned", Revision: 1, Index: collection.Shared}
	f.defined["removed"] = collection.Definition{Name: "removed", Revision: 2, Removed: true}
	a := send(t, h, "GET", "/collections", "")
	want := `{"collections":[{"name":"a/b","revision":null,"definition":null},{"name":"orders","revision":4,"definition":{"nested":["lines"]}},` +
		`{"name":"planned","revision":1,"definition":{"index":"shared"}},{"name":"users","revision":null,"definition":null}]}`
	if a.Status != 200 || string(a.Body) != want {
		t.Errorf("got  %s\nwant %s", a, want)
	}
	for limit := range 4 {
		var names []string
		after := ""
		for range 5 {
			a := send(t, h, "GET", fmt.Sprintf("/collections?limit=%d%s", limit+1, after), "")
			list, _ := a.json["collections"].([]any)
			for _, entry := range list {
				names = append(names, entry.(map[string]any)["name"].(string))
			}
			next, more := a.json["next"].(string)
			if !more {
				break
			}
			if len(list) != limit+1 {
				t.Errorf("a page of %d: %s", limit+1, a)
			}
			after = "&after=" + next
		}
		if strings.Join(names, " ") != "a/b orders planned users" {
			t.Errorf("by %d: %v", limit+1, names)
		}
	}
	if head := send(t, h, "HEAD", "/collections", ""); head.Status != 200 || head.Header.Get("Content-Length") != fmt.Sprint(len(a.Body)) {
		t.Errorf("%s %v", head, head.Header)
	}
}

func TestWhatIsNoDefinition(t *testing.T) {
	h, _ := newAdmin()
	many := func(n int) string {
		var paths []string
		for i := range n {
			paths = append(paths, fmt.Sprintf("%q", fmt.Sprintf("p%d", i)))
		}
		return "[" + strings.Join(paths, ",") + "]"
	}
	for body, pointers := range map[string]string{
		`[]`:                                "",
		`null`:                              "",
		`{"x":1,"a/b":2}`:                   "/a~1b /x",
		`{"index":"mine"}`:                  "/index",
		`{"index":null}`:                    "/index",
		`{"nested":"lines"}`:                "/nested",
		`{"nested":null}`:                   "/nested",
		`{"nested":["a",7,"","a..b","$x"]}`: "/nested/1 /nested/2 /nested/3 /nested/4",
		`{"nested":["a.b","x","/a/b"]}`:     "/nested/2",
		`{"nested":["a.0","2024"],"text":["/a/7"]}`:           "/nested/0 /nested/1 /text/0",
		`{"nested":["a[]","a"]}`:                              "/nested/1",
		`{"nested":` + many(51) + `}`:                         "/nested",
		`{"text":` + many(101) + `}`:                          "/text",
		`{"text":["a","a"]}`:                                  "/text/1",
		`{"index":"shared","nested":["a"]}`:                   "/index",
		`{"index":"shared","text":["a"]}`:                     "/index",
		`{"index":"shared","indexed":{"exclude":["a"]}}`:      "/index",
		`{"indexed":[]}`:                                      "/indexed",
		`{"indexed":{"include":"a","other":1}}`:               "/indexed/other /indexed/include",
		`{"indexed":{"exclude":["a",1]}}`:                     "/indexed/exclude/1",
		`{"nested":["a.b"],"indexed":{"exclude":["a"]}}`:      "/nested/0",
		`{"text":["x","c"],"indexed":{"include":["a","x"]}}`:  "/text/1",
		`{"indexed":{"include":["a.b","c"],"exclude":["a"]}}`: "/indexed/include/0",
		`{"indexed":{"include":` + many(101) + `}}`:           "/indexed/include",
	} {
		a := send(t, h, "PUT", "/collections/orders", body).expect(t, 422, "invalid-definition")
		var got []string
		list, _ := a.json["errors"].([]any)
		for _, e := range list {
			got = append(got, e.(map[string]any)["pointer"].(string))
		}
		if strings.Join(got, " ") != pointers || a.json["pointer"] != got[0] {
			t.Errorf("%.80s: %v, want %s: %s", body, got, pointers, a)
		}
	}
	for _, body := range []string{`{"nested":` + many(50) + `,"text":` + many(100) + `}`, `{"nested":[],"text":[],"indexed":{}}`, `{"nested":["a"],"indexed":{"include":["a.2024"]}}`} {
		if a := send(t, h, "PUT", "/collections/orders", body); a.Status != 200 {
			t.Errorf("%.80s: %s", body, a)
		}
	}
	if a := send(t, h, "PUT", "/collections/orders", strings.Repeat(`{"a":`, 1001)+"1"+strings.Repeat("}", 1001)); a.Status != 422 {
		t.Errorf("%s", a)
	}
}

func TestRefusalsAboutCollections(t *testing.T) {
	h, f := newAdmin()
	const at = "/collections/orders"
	for _, name := range []string{"", "a//b", "a/", "$system", "a/b/c/d/e/f/g/h/i", ".."} {
		for _, method := range []string{"GET", "DELETE"} {
			send(t, h, method, "/collections/"+name, "").expect(t, 400, "invalid-id")
		}
		send(t, h, "PUT", "/collections/"+name, "{}").expect(t, 400, "invalid-id")
		send(t, h, "HEAD", "/collections/"+name, "")
	}
	for _, target := range []string{"/collections", at} {
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
			body := ""
			if method == "PUT" {
				body = "{}"
			}
			if target == "/collections" && body+method != method {
				continue
			}
			send(t, h, method, target+"?x=1", body)
			send(t, h, method, target, body, "Idempotency-Key", "k")
		}
	}
	send(t, h, "GET", "/collections?after=", "").expect(t, 400, "invalid-cursor")
	send(t, h, "GET", "/collections?after=!", "").expect(t, 400, "invalid-cursor")
	send(t, h, "GET", "/collections?limit=0", "").expect(t, 400, "invalid-request")
	send(t, h, "GET", "/collections?limit=1001", "").expect(t, 400, "invalid-request")
	send(t, h, "GET", "/collections?x=1", "").expect(t, 400, "invalid-request")
	send(t, h, "GET", at+"?x=1", "").expect(t, 400, "invalid-request")
	send(t, h, "GET", at, "", "If-Match", "1").expect(t, 400, "invalid-request")
	send(t, h, "PUT", at, "{}", "If-Match", `"1"`, "If-None-Match", "*").expect(t, 400, "invalid-request")
	send(t, h, "DELETE", at, "", "If-None-Match", "*").expect(t, 400, "invalid-request")
	send(t, h, "PUT", at, `{"a":1,"a":2}`).expect(t, 400, "invalid-json")
	send(t, h, "PUT", at, `{"a":1e999}`).expect(t, 400, "number-out-of-range")
	send(t, h, "PUT", at, `{}`, "Content-Type", "application/yaml").expect(t, 415, "unsupported-media-type")
	send(t, h, "PUT", at, strings.Repeat(" ", MaxBody+1)).expect(t, 413, "request-too-large")
	send(t, h, "POST", at, `{}`).expect(t, 405, "method-not-allowed")
	send(t, h, "PUT", "/collections", `{}`).expect(t, 405, "method-not-allowed")
	send(t, h, "GET", "/collectionsx", "").expect(t, 404, "no-such-route")
	for kind, status := range map[doc.Kind]int{doc.Throttled: 429, doc.Unavailable: 503, "": 500} {
		f.err = doc.Errorf(kind, "no")
		if kind == "" {
			f.err = fmt.Errorf("no")
		}
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
			body := ""
			if method == "PUT" {
				body = "{}"
			}
			if a := send(t, h, method, at, body); a.Status != status {
				t.Errorf("%s: %s", method, a)
			}
			if body == "" && method != "DELETE" {
				if a := send(t, h, method, "/collections", ""); a.Status != status {
					t.Errorf("%s: %s", method, a)
				}
			}
		}
	}
}
