package value_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

func path(t testing.TB, s string) value.Path {
	t.Helper()
	p, err := value.ParsePath(s)
	if err != nil {
		t.Fatalf("path %s: %v", s, err)
	}
	return p
}

func TestParsePath(t *testing.T) {
	tests := []struct {
		text  string
		names []string
		want  string // its canonical text
	}{
		{"a", []string{"a"}, "a"},
		{"a.b.0.c", []string{"a", "b", "0", "c"}, "a.b.0.c"},
		{"a[].b", []string{"a", "b"}, "a.b"},
		{"a[].b[].c", []string{"a", "b", "c"}, "a.b.c"},
		{"a[]", []string{"a"}, "a"},
		{"_id", []string{"_id"}, "_id"},
		{"a b", []string{"a b"}, "a b"},
		{"a/b", []string{"a/b"}, "a/b"},
		{"a.$", nil, ""},
		{"/a", []string{"a"}, "a"},
		{"/a/b/0", []string{"a", "b", "0"}, "a.b.0"},
		{"/a.b/c", []string{"a.b", "c"}, "/a.b/c"},
		{"/$x", []string{"$x"}, "/$x"},
		{"/", []string{""}, "/"},
		{"/a//b", []string{"a", "", "b"}, "/a//b"},
		{"/a~1b/~0~01", []string{"a/b", "~~1"}, "a/b.~~1"},
		{"/~1a", []string{"/a"}, "/~1a"},
		{"/a[]", []string{"a[]"}, "/a[]"},
		{"é.😀", []string{"é", "😀"}, "é.😀"},
	}
	for _, test := range tests {
		p, err := value.ParsePath(test.text)
		if test.names == nil {
			if err == nil {
				t.Errorf("%s was accepted", test.text)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(p.Names(), test.names) || p.String() != test.want {
			t.Errorf("%s: %q, %q, %v; want %q, %q", test.text, p.Names(), p.String(), err, test.names, test.want)
		}
	}
}

func TestParsePathRefuses(t *testing.T) {
	for _, text := range []string{"", ".", "a.", ".a", "a..b", "[]", "a.[]", "a[][]", "a[0]", "a[].0", "a[", "a]b", "$a", "a.$b", "/~", "/a~2", "/~", "a.\xff", "/\xff"} {
		p, err := value.ParsePath(text)
		if doc.KindOf(err) != doc.InvalidRequest {
			t.Errorf("%q = %v, %v", text, p, err)
		}
	}
	for text, want := range map[string]map[string]any{
		strings.Repeat("a", 513):           {"limit": 512, "actual": 513},
		strings.Repeat("a.", 32) + "a":     {"limit": 32, "actual": 33},
		"/" + strings.Repeat("a/", 32):     {"limit": 32, "actual": 33},
		"/" + strings.Repeat("long/", 200): {"limit": 512, "actual": 1001},
	} {
		_, err := value.ParsePath(text)
		var refusal *doc.Error
		if !errors.As(err, &refusal) || !reflect.DeepEqual(refusal.Members, want) {
			t.Errorf("%.20s…: %v, members %v", text, err, refusal.Members)
		}
	}
	path(t, strings.Repeat("a", 512))
	path(t, strings.Repeat("a.", 31)+"a")
}

func TestPathTextMakesThePathAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := value.PathOf(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]string{"", "a", "0", "10", "01", "$", "a.b", "/", "~1", "[]", "a[0]"}), rapid.StringN(0, 4, 12)), 1, 8).Draw(t, "names")...)
		again, err := value.ParsePath(p.String())
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Fatalf("%q became %q, %v", p.Names(), again.Names(), err)
		}
	})
}

func TestVisit(t *testing.T) {
	tests := []struct {
		document, path string
		want           string // the places in order; missing places are "-", whole ones marked "="
	}{
		{`{"a":1}`, "a", `1`},
		{`{"a":null}`, "a", `null`},
		{`{}`, "a", `-`},
		{`{"a":{"b":1}}`, "a.b", `1`},
		{`{"a":{}}`, "a.b", `-`},
		{`{"a":4}`, "a.b", `-`},
		{`{"a":null}`, "a.b", `-`},
		{`{"a":[1,2]}`, "a", `[1,2]`},
		{`{"a":[]}`, "a", `[]`},
		// A name goes to the objects in an array and to nothing else there.
		{`{"a":[{"b":1},{"b":[2,3]},{}]}`, "a.b", `1 [2,3] -`},
		{`{"a":[]}`, "a.b", ``},
		{`{"a":[1,"x",null]}`, "a.b", ``},
		{`{"a":[[{"b":1}]]}`, "a.b", ``},
		{`{"a":[{"b":[{"c":1},{"c":2}]},{"b":{"c":3}},{"b":[]}]}`, "a.b.c", `1 2 3`},
		// A number is a position in an array, and a name in an object.
		{`{"a":[5,7,3]}`, "a.1", `=7`},
		{`{"a":[5,[2,4],3]}`, "a.1", `=[2,4]`},
		{`{"a":[5,[2,4],3]}`, "a.1.0", `=2`},
		{`{"a":[5]}`, "a.1", ``},
		{`{"a":{"1":4}}`, "a.1", `4`},
		{`{"a":{"1":[4]}}`, "a.1", `[4]`},
		{`{"a":[5,{"1":4},3]}`, "a.1", `4 ={"1":4}`},
		{`{"a":[5,{"2":4},3]}`, "a.1", `- ={"2":4}`},
		{`{"a":[{"0":9},{"0":8}]}`, "a.0", `9 ={"0":9} 8`},
		{`{"a":[5,{"b":4},3]}`, "a.1.b", `- 4`},
		{`{"a":[5,[{"b":4}],3]}`, "a.1.b", `4`},
		{`{"a":[5]}`, "a.0.b", ``},
		{`{"a":[null]}`, "a.0.b", ``},
		{`{"a":[{"b":[2,3]},{"b":[4,5]}]}`, "a.0.b", `- [2,3] -`},
		{`{"a":[1,2]}`, "a.01", ``},
		{`{"a":{"01":1}}`, "a.01", `1`},
		// Odd names.
		{`{"a.b":{"$c":{"":1}}}`, "/a.b/$c/", `1`},
		{`{"a":{"b":1},"a.b":2}`, "a.b", `1`},
		{`{"x":[{"a/b":1}]}`, "/x/a~1b", `1`},
	}
	for _, test := range tests {
		var places []string
		path(t, test.path).Visit(parse(t, test.document), func(r value.Reached) bool {
			place := string(value.Append(nil, r.Value))
			if r.Missing {
				place = "-"
			}
			if r.Whole {
				place = "=" + place
			}
			places = append(places, place)
			return false
		})
		if got := strings.Join(places, " "); got != test.want {
			t.Errorf("%s in %s: %s, want %s", test.path, test.document, got, test.want)
		}
	}
}

func TestVisitStopsWhenToldTo(t *testing.T) {
	seen := 0
	found := path(t, "a.b").Visit(parse(t, `{"a":[{"b":1},{"b":2},{"b":3}]}`), func(r value.Reached) bool {
		seen++
		return value.Equal(r.Value, parse(t, `2`))
	})
	if !found || seen != 2 {
		t.Errorf("found %v after %d", found, seen)
	}
}

func TestValues(t *testing.T) {
	got := path(t, "details[].product").Values(parse(t, `{"details":[{"product":"products/1"},{},{"product":null},{"product":["x"]}]}`))
	if want := parse(t, `["products/1",null,["x"]]`); !value.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := path(t, "a.b").Values(parse(t, `{"a":1}`)); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := (value.Path{}).Values(parse(t, `{"a":1}`)); len(got) != 1 {
		t.Errorf("the document itself: %v", got)
	}
}

func TestPathSortKey(t *testing.T) {
	tests := []struct{ document, path, ascending, descending string }{
		{`{"a":5}`, "a", `5`, `5`},
		{`{}`, "a", `null`, `null`},
		{`{"a":[3,1,2]}`, "a", `1`, `3`},
		{`{"a":[{"b":[7,4]},{"b":"x"},{}]}`, "a.b", `4`, `"x"`},
	}
	for _, test := range tests {
		p, data := path(t, test.path), object(t, test.document)
		if got := p.SortKey(data, false); !value.Equal(got, parse(t, test.ascending)) {
			t.Errorf("%s in %s ascending: %v", test.path, test.document, got)
		}
		if got := p.SortKey(data, true); !value.Equal(got, parse(t, test.descending)) {
			t.Errorf("%s in %s descending: %v", test.path, test.document, got)
		}
	}
}

func TestProject(t *testing.T) {
	const order = `{"customer":"c/1","address":{"city":"Ulm","zip":1},"lines":[{"product":"p/1","price":1},{"price":2},7,null,[{"product":"p/9"}]],"grid":[[1,2],[3,4]],"empty":[],"none":null,"a.b":1}`
	tests := []struct {
		paths []string
		want  string
	}{
		{[]string{"customer"}, `{"customer":"c/1"}`},
		{[]string{"missing", "customer.x", "address.x.y"}, `{"address":{}}`},
		{[]string{"address.city", "none", "empty"}, `{"address":{"city":"Ulm"},"none":null,"empty":[]}`},
		{[]string{"address", "address.city"}, `{"address":{"city":"Ulm","zip":1}}`},
		{[]string{"address.city", "address"}, `{"address":{"city":"Ulm","zip":1}}`},
		{[]string{"lines.product"}, `{"lines":[{"product":"p/1"},{}]}`},
		{[]string{"lines[].product", "lines[].price"}, `{"lines":[{"product":"p/1","price":1},{"price":2}]}`},
		{[]string{"lines.1"}, `{"lines":[{"price":2}]}`},
		{[]string{"lines.2", "lines.0.price"}, `{"lines":[{"price":1},7]}`},
		{[]string{"lines.product", "lines.0.price", "lines.2"}, `{"lines":[{"product":"p/1","price":1},{},7]}`},
		{[]string{"lines.4.product"}, `{"lines":[[{"product":"p/9"}]]}`},
		{[]string{"lines.2.x"}, `{"lines":[]}`},
		{[]string{"grid.1.0"}, `{"grid":[[3]]}`},
		{[]string{"grid.x"}, `{"grid":[]}`},
		{[]string{"empty.x"}, `{"empty":[]}`},
		{[]string{"/a.b"}, `{"a.b":1}`},
		{[]string{"a.b"}, `{}`},
		{nil, `{}`},
	}
	data := object(t, order)
	for _, test := range tests {
		var paths []value.Path
		for _, s := range test.paths {
			paths = append(paths, path(t, s))
		}
		if got := value.Project(data, paths); !value.Equal(got, parse(t, test.want)) {
			t.Errorf("%v: %s, want %s", test.paths, value.Append(nil, got), test.want)
		}
	}
	if !value.Equal(data, parse(t, order)) {
		t.Errorf("projecting changed the document to %s", value.Append(nil, data))
	}
	positions := object(t, `{"a":[{"0":1,"x":2,"y":3},{"0":4,"x":5}]}`)
	for s, want := range map[string]string{
		"a.0":   `{"a":[{"0":1,"x":2,"y":3},{"0":4}]}`,
		"a.0.x": `{"a":[{"x":2}]}`,
	} {
		if got := value.Project(positions, []value.Path{path(t, s)}); !value.Equal(got, parse(t, want)) {
			t.Errorf("%s: %s, want %s", s, value.Append(nil, got), want)
		}
	}
}

func TestProjectKeepsWhatThePathReaches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := map[string]any{"a": tree(3).Draw(t, "a"), "b": tree(1).Draw(t, "b")}
		// Names only: a position is another one once elements are left out.
		p := value.PathOf(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a.b", "$a", ""}), 1, 4).Draw(t, "path")...)
		before := value.Append(nil, data)
		got := value.Project(data, []value.Path{p})
		if want := p.Values(data); !value.Equal(append([]any{}, p.Values(got)...), append([]any{}, want...)) {
			t.Fatalf("%v reaches %v in the projection %v, %v in the document", p, p.Values(got), got, want)
		}
		if again := value.Project(got, []value.Path{p}); !value.Equal(again, got) {
			t.Fatalf("projecting twice: %v, once: %v", again, got)
		}
		if string(before) != string(value.Append(nil, data)) {
			t.Fatal("projecting changed the document")
		}
	})
}

func TestPointer(t *testing.T) {
	for want, segments := range map[string][]string{
		"": nil, "/": {""}, "/a/0": {"a", "0"}, "/a~1b/~0~01": {"a/b", "~~1"},
	} {
		if got := value.Pointer(segments...); got != want {
			t.Errorf("Pointer(%q) = %q, want %q", segments, got, want)
		}
	}
}
