package search_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/search"
)

// engine sends a request to OpenSearch by hand, and gives its answer.
func engine(t testing.TB, method, path, body string) map[string]any {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, enginetest.OpenSearch(t)+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || res.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, text, err)
	}
	told := map[string]any{}
	if err := json.Unmarshal(text, &told); err != nil {
		t.Fatalf("%s %s: %s", method, path, text)
	}
	return told
}

func inspect(t testing.TB, c *search.Client, g collection.Generation) search.Inspection {
	t.Helper()
	found, err := c.Inspect(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A wrong mapping is noticed, whoever made it and wherever it is wrong.
func TestAWrongMappingIsNoticed(t *testing.T) {
	c := newIndex(t)
	g := collection.First(collection.Definition{Name: "orders", Nested: []string{"lines", "lines.parts", "box.items"}, Text: []string{"note"}, Exclude: []string{"log"}}, search.Projector)
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	// Whatever documents add to it, it fits.
	index(t, c, g, document(t, "orders/1", `{"lines":[{"a":1,"parts":[{"b":"x"}]},7],"box":{"items":[{"n":true}],"other":[1]},"note":"some words","log":1}`))
	if found := inspect(t, c, g); !found.Fits {
		t.Fatalf("%+v", found)
	}
	name := "/" + c.IndexName(g)
	whole, err := json.Marshal(engine(t, http.MethodGet, name, "")[c.IndexName(g)].(map[string]any)["mappings"])
	if err != nil {
		t.Fatal(err)
	}
	type tree = map[string]any
	at := func(m tree, path ...string) tree {
		for _, step := range path {
			m = m[step].(tree)
		}
		return m
	}
	for what, change := range map[string]func(m tree){
		"nothing":                   func(tree) {},
		"no _meta":                  func(m tree) { delete(m, "_meta") },
		"a _meta of somebody else":  func(m tree) { m["_meta"] = tree{"holdfast": 7} },
		"another number":            func(m tree) { at(m, "_meta", "holdfast")["number"] = 2 },
		"another choice of paths":   func(m tree) { delete(at(m, "_meta", "holdfast"), "exclude") },
		"not strict":                func(m tree) { m["dynamic"] = "true" },
		"numbers found in text":     func(m tree) { m["numeric_detection"] = true },
		"no templates":              func(m tree) { delete(m, "dynamic_templates") },
		"a template less":           func(m tree) { m["dynamic_templates"] = m["dynamic_templates"].([]any)[1:] },
		"another leaf type":         func(m tree) { at(m["dynamic_templates"].([]any)[1].(tree), "num", "mapping")["type"] = "float" },
		"another type of a field":   func(m tree) { at(m, "properties", "$version")["type"] = "integer" },
		"a field less":              func(m tree) { delete(at(m, "properties"), "$partial") },
		"a tree that does not grow": func(m tree) { delete(at(m, "properties", "doc"), "dynamic") },
		"a path that is not nested": func(m tree) { delete(at(m, "properties", "doc", "properties", "lines"), "type") },
		"a nested path left by itself": func(m tree) {
			delete(at(m, "properties", "doc", "properties", "box", "properties", "items"), "include_in_root")
		},
	} {
		t.Run(what, func(t *testing.T) {
			var mapping tree
			if err := json.Unmarshal(whole, &mapping); err != nil {
				t.Fatal(err)
			}
			change(mapping)
			told, err := json.Marshal(tree{c.IndexName(g): tree{"mappings": mapping}})
			if err != nil {
				t.Fatal(err)
			}
			fits := what == "nothing"
			altered, err := search.NewClient(search.Options{URL: "http://index", Prefix: prefixOf(c), Transport: tells(told)})
			if err != nil {
				t.Fatal(err)
			}
			if found := inspect(t, altered, g); !found.Exists || found.Fits != fits {
				t.Errorf("%+v", found)
			}
			if err := altered.Ensure(t.Context(), g); errors.Is(err, search.ErrMisfit) == fits || (err == nil) != fits {
				t.Errorf("%v", err)
			}
		})
	}
}

// prefixOf is the prefix of a client's names.
func prefixOf(c *search.Client) string {
	g := sharedGeneration()
	return strings.TrimSuffix(c.IndexName(g), g.IndexName(""))
}

// tells answers for an OpenSearch in which every index is there, and is what it
// says.
type tells []byte

func (s tells) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := http.StatusOK, "{}"
	switch {
	case r.Method == http.MethodPut && strings.Count(r.URL.Path, "/") == 1:
		status, body = http.StatusBadRequest, `{"error":{"type":"resource_already_exists_exception"}}`
	case r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/_"):
		body = string(s)
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// An index that somebody made by hand, or OpenSearch by itself for a document
// that was written before its index, is none of ours, and is not taken for one.
func TestAForeignIndexIsNoticed(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if found := inspect(t, c, g); found.Exists {
		t.Errorf("%+v", found)
	}
	engine(t, http.MethodPut, "/"+c.IndexName(g), `{"settings":{"number_of_replicas":0}}`)
	for range 2 {
		if found := inspect(t, c, g); !found.Exists || found.Fits || found.Aliased {
			t.Errorf("%+v", found)
		}
		if err := c.Ensure(t.Context(), g); !errors.Is(err, search.ErrMisfit) {
			t.Errorf("%v", err)
		}
		engine(t, http.MethodPut, "/"+c.IndexName(g)+"/_doc/1?refresh=true", `{"$id":"a/1","$version":1,"doc":{"a":{"$num":1}}}`)
	}
	if err := c.Remove(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if found := inspect(t, c, g); found.Exists {
		t.Errorf("%+v", found)
	}
}

// The alias comes back where it was lost, with the filter that hides markers.
func TestTheAliasComesBack(t *testing.T) {
	c := newIndex(t)
	first := sharedGeneration()
	second := first
	second.Number, second.State = 2, collection.Building
	for _, g := range []collection.Generation{second, first} {
		for range 2 {
			if err := c.Ensure(t.Context(), g); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone := document(t, "a/2", `{}`)
	gone.Deleted, gone.Data = true, nil
	index(t, c, first, document(t, "a/1", `{}`), gone)
	index(t, c, second, document(t, "a/1", `{}`), document(t, "a/3", `{}`))
	alias := strings.TrimSuffix(c.IndexName(first), "-1")
	seen := func(want int) {
		t.Helper()
		told := engine(t, http.MethodGet, "/"+alias+"/_count", "")
		if told["count"] != float64(want) {
			t.Errorf("through the alias %v documents are seen, not %d", told["count"], want)
		}
	}
	seen(1)
	// Another generation that becomes active leaves it where it is.
	second.State = collection.Active
	if err := c.Ensure(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	seen(1)
	byHand := func(actions string) { engine(t, http.MethodPost, "/_aliases", `{"actions":[`+actions+`]}`) }
	at := func(g collection.Generation) string {
		return `{"index":"` + c.IndexName(g) + `","alias":"` + alias + `"}`
	}
	byHand(`{"remove":` + at(first) + `}`)
	if found := inspect(t, c, first); found.Aliased {
		t.Errorf("%+v", found)
	}
	if err := c.Ensure(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	seen(1)
	for what, repair := range map[string]func() error{
		"ensured": func() error { return c.Ensure(t.Context(), first) },
		"swapped": func() error { return c.Swap(t.Context(), first, []collection.Generation{second}) },
	} {
		byHand(`{"add":` + at(first) + `}`) // without a filter
		if found := inspect(t, c, first); found.Aliased {
			t.Errorf("%+v", found)
		}
		seen(2)
		if err := repair(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		seen(1)
		if found := inspect(t, c, first); !found.Aliased {
			t.Errorf("%s: %+v", what, found)
		}
	}
	byHand(`{"add":` + at(second) + `}`) // to both
	if inspect(t, c, first).Aliased || inspect(t, c, second).Aliased {
		t.Error("an alias of two indexes is taken for that of one")
	}
	if err := c.Swap(t.Context(), second, []collection.Generation{first}); err != nil {
		t.Fatal(err)
	}
	if inspect(t, c, first).Aliased || !inspect(t, c, second).Aliased {
		t.Error("the alias did not move")
	}
	seen(2)
}

// What has to be looked at of an index with thousands of fields stays small.
func TestInspectionsStaySmall(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	index(t, c, g, document(t, "wide/1", manyNames(500)))
	counted := &counting{}
	c, err := search.NewClient(search.Options{URL: enginetest.OpenSearch(t), Prefix: prefixOf(c), Transport: counted})
	if err != nil {
		t.Fatal(err)
	}
	if found := inspect(t, c, g); !found.Fits || !found.Aliased {
		t.Errorf("%+v", found)
	}
	if counted.bytes > 10_000 {
		t.Errorf("%d bytes were read", counted.bytes)
	}
}

// counting counts the bytes of answers.
type counting struct{ bytes int }

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	c.bytes += len(text)
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(text))
	return res, nil
}
