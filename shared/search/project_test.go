package search_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/shared/collection"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// indexForm is the index document as a tree.
func indexForm(t testing.TB, p search.Projection) map[string]any {
	t.Helper()
	var form map[string]any
	d := json.NewDecoder(bytes.NewReader(p.Source))
	d.UseNumber()
	if err := d.Decode(&form); err != nil {
		t.Fatalf("%v in %s", err, p.Source)
	}
	return form
}

func TestProjectionOfADocument(t *testing.T) {
	d := document(t, "users/1/account/3", `{"name":"Ann","zip":82520,"tags":["a",1,null],"address":{"zip":"W1","since":"2024-01-01T00:00:00.5Z"},
		"lines":[{"n":1},{"n":12345678901234567890}],"none":null,"on":true,"empty":{},"a.b":"dot"}`)
	got := indexForm(t, search.Project(d, sharedGeneration()))
	want := `{"$collection":"users/account","$createdAt":1772366400123456,"$id":"users/1/account/3","$root":"users/1",
	"$shape":["str:a~2Eb","obj:address","str:address.since","str:address.zip","obj:empty","obj:lines","arr:lines","len:2:lines","num:lines.n",
		"str:name","null:none","bool:on","null:tags","num:tags","str:tags","arr:tags","len:3:tags","num:zip"],
	"$updatedAt":1772366400123456,"$version":1772366400123456,
	"doc":{"a~2Eb":{"$key":"2dot","$str":"dot"},
		"address":{"since":{"$date":1704067200500,"$key":"22024-01-01T00:00:00.5Z","$str":"2024-01-01T00:00:00.5Z"},"zip":{"$key":"2W1","$str":"W1"}},
		"lines":{"$key":["0","0"],"n":{"$dec":"12345678901234567890","$key":["165011","165201234567890123456789"],"$num":[1,1.2345678901234567e+19]}},
		"name":{"$key":"2Ann","$str":"Ann"},"on":{"$bool":true,"$key":"3t"},
		"tags":{"$key":["2a","165011","0"],"$num":1,"$str":"a"},"zip":{"$key":"165058252","$num":82520}}}`
	raw, _ := got["$raw"].(string)
	if raw != string(value.Append(nil, d.Data)) || got["$sum"] != value.Sum(d.Data) {
		t.Errorf("text %s, sum %v", raw, got["$sum"])
	}
	delete(got, "$raw")
	delete(got, "$sum")
	var wanted map[string]any
	dec := json.NewDecoder(strings.NewReader(want))
	dec.UseNumber()
	if err := dec.Decode(&wanted); err != nil {
		t.Fatal(err)
	}
	a, _ := json.MarshalIndent(got, "", " ")
	b, _ := json.MarshalIndent(wanted, "", " ")
	if !bytes.Equal(a, b) {
		t.Errorf("got %s\nwant %s", a, b)
	}
}

func TestProjectionOfATombstone(t *testing.T) {
	d := document(t, "users/1", `{"a":1}`)
	d.Deleted = true
	p := search.Project(d, sharedGeneration())
	if want := `{"$id":"users/1","$collection":"users","$root":"users/1","$version":1772366400123456,"$deleted":true}`; string(p.Source) != want {
		t.Errorf("got %s", p.Source)
	}
}

func TestProjectionIsPure(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := document(t, "odd/1", string(value.Append(nil, objects(3).Draw(rt, "data"))))
		first := search.Project(d, sharedGeneration())
		d.Data = maps.Clone(d.Data)
		if again := search.Project(d, sharedGeneration()); !bytes.Equal(first.Source, again.Source) {
			rt.Fatalf("two bodies for one version:\n%s\n%s", first.Source, again.Source)
		}
		if bytes.ContainsRune(first.Source, '\n') {
			rt.Fatal("a line break would end the bulk line")
		}
		indexForm(t, first)
	})
}

func TestNestedPathsKeepTheirElements(t *testing.T) {
	g := collection.First(collection.Definition{Name: "orders", Nested: []string{"lines", "box.items"}}, search.Projector)
	d := document(t, "orders/1", `{"lines":[{"p":1,"q":"x"},{"p":2},7,{}],"box":{"items":{"n":null}},"rest":[{"p":1},{"p":2}]}`)
	tree, _ := indexForm(t, search.Project(d, g))["doc"].(map[string]any)
	got, _ := json.Marshal(tree)
	// Only what stands in an array says of itself that it is an element.
	want := `{"box":{"items":[{"$shape":["null:n"],"n":{"$key":"0"}}]},"lines":[{"$shape":["obj:","num:p","str:q"],"p":{"$key":"165011","$num":1},"q":{"$key":"2x","$str":"x"}},{"$shape":["obj:","num:p"],"p":{"$key":"165012","$num":2}},{"$shape":["obj:"]},{"$key":["0","0","165017","0"],"$num":7}],` +
		`"rest":{"$key":["0","0"],"p":{"$key":["165011","165012"],"$num":[1,2]}}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDeclaredTextsKeepTheirWords(t *testing.T) {
	g := collection.First(collection.Definition{Name: "films", Text: []string{"title"}}, search.Projector)
	for _, c := range []struct{ data, words string }{
		{`{"title":"The Matrix: the END"}`, `["end","matrix","the"]`},
		{`{"title":["One","two",[300,null,{"title":"x"}]]}`, `["300","one","two"]`},
		{`{"title":"one"}`, `"one"`},
		{`{"title":"…"}`, `null`},
		{`{"other":"one"}`, `null`},
	} {
		tree, _ := indexForm(t, search.Project(document(t, "films/1", c.data), g))["doc"].(map[string]any)
		title, _ := tree["title"].(map[string]any)
		if got, _ := json.Marshal(title["$text"]); string(got) != c.words {
			t.Errorf("%s: %s, want %s", c.data, got, c.words)
		}
	}
	long := search.Project(document(t, "films/1", `{"title":"`+strings.Repeat("x", 8001)+`"}`), g)
	if !slices.Equal(long.Partial, []string{"title"}) {
		t.Errorf("partial %q", long.Partial)
	}
}

func TestLongStringsAreListed(t *testing.T) {
	d := document(t, "odd/1", `{"a":{"short":"`+strings.Repeat("x", 8000)+`","long":"`+strings.Repeat("é", 4001)+`"}}`)
	p := search.Project(d, sharedGeneration())
	if !slices.Equal(p.Partial, []string{"a.long"}) {
		t.Errorf("partial %q", p.Partial)
	}
	tree, _ := json.Marshal(indexForm(t, p)["doc"])
	if want := fmt.Sprintf(`{"a":{"long":{"$key":"2%s\u0000"},"short":{"$key":"2%s","$str":"%[2]s"}}}`, strings.Repeat("é", 4000), strings.Repeat("x", 8000)); string(tree) != want {
		t.Errorf("tree of %d bytes, want %d", len(tree), len(want))
	}
}

// manyNames is an object of n members, each an object of one.
func manyNames(n int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"n%05d":{"v":%d}`, i, i)
	}
	b.WriteByte('}')
	return b.String()
}

func TestBudgetsAreListed(t *testing.T) {
	long := strings.Repeat("n", 1025)
	for _, c := range []struct {
		name, data string
		partial    []string
	}{
		{"within the budget", manyNames(600), nil},
		{"one path too many is a leaf of the last", `{"a":` + manyNames(599) + `,"b":{"c":1}}`, []string{"a.n00598.v"}},
		{"far too many end in one entry", `{"a":` + manyNames(5000) + `,"b":{"c":1}}`, []string{"a"}},
		{"more than is looked at", `{"a":` + manyNames(20000) + `}`, []string{"a"}},
		{"at the top", manyNames(9000), []string{""}},
		{"a long name", `{"a":{"` + long + `":{"b":1},"c":1},"b":1}`, []string{"a"}},
		{"a long name at the top", `{"` + long + `":1,"b":1}`, []string{""}},
		{"a long path of escapes", `{"a":{"` + strings.Repeat(".", 400) + `":1}}`, []string{"a"}},
	} {
		p := search.Project(document(t, "odd/1", c.data), sharedGeneration())
		if !slices.Equal(p.Partial, c.partial) {
			t.Errorf("%s: partial %q, want %q", c.name, p.Partial, c.partial)
		}
	}
}

func TestNestedElementsHaveABudget(t *testing.T) {
	g := collection.First(collection.Definition{Name: "orders", Nested: []string{"lines"}}, search.Projector)
	data := `{"lines":[` + strings.TrimSuffix(strings.Repeat(`{"a":1},`, 5001), ",") + `],"b":1}`
	if p := search.Project(document(t, "orders/1", data), g); !slices.Equal(p.Partial, []string{"lines"}) {
		t.Errorf("partial %q", p.Partial)
	}
}

func TestReductions(t *testing.T) {
	d := document(t, "users/1", `{"known":"x","new":1,"both":"text"}`)
	known := search.Fields{"doc.known.$str": true, "doc.known.$key": true, "doc.both.$key": true}
	for _, c := range []struct {
		level   search.Reduction
		partial []string
		members []string
		tree    string
	}{
		{search.Full, nil, []string{"$collection", "$createdAt", "$id", "$raw", "$root", "$shape", "$sum", "$updatedAt", "$version", "doc"},
			`{"both":{"$key":"2text","$str":"text"},"known":{"$key":"2x","$str":"x"},"new":{"$key":"165011","$num":1}}`},
		{search.KnownFields, []string{"both", "new"}, []string{"$collection", "$createdAt", "$id", "$partial", "$raw", "$root", "$shape", "$sum", "$updatedAt", "$version", "doc"},
			`{"both":{"$key":"2text"},"known":{"$key":"2x","$str":"x"}}`},
		{search.WithoutTree, []string{""}, []string{"$collection", "$createdAt", "$id", "$partial", "$raw", "$root", "$shape", "$sum", "$updatedAt", "$version"}, `null`},
		{search.EnvelopeOnly, []string{""}, []string{"$collection", "$createdAt", "$id", "$partial", "$raw", "$root", "$sum", "$updatedAt", "$version"}, `null`},
	} {
		p := search.Reduce(d, sharedGeneration(), c.level, known)
		form := indexForm(t, p)
		tree, _ := json.Marshal(form["doc"])
		if !slices.Equal(p.Partial, c.partial) || !slices.Equal(slices.Sorted(maps.Keys(form)), c.members) || string(tree) != c.tree {
			t.Errorf("level %d: partial %q, members %q, tree %s", c.level, p.Partial, slices.Sorted(maps.Keys(form)), tree)
		}
	}
	if rest := known.Without("doc.known.$str"); rest["doc.known.$str"] || !rest["doc.known.$key"] || !known["doc.known.$str"] {
		t.Errorf("rest %v of %v", rest, known)
	}
}

// The text of $key orders scalars as values are ordered, and keeps different
// ones apart.
func TestKeysOrderAsValuesDo(t *testing.T) {
	digits := rapid.StringMatching(`-?[1-9][0-9]{0,37}(e-?[1-8]?[0-9])?|0|-?0\.0{0,5}[0-9]{1,30}`)
	numbers := rapid.Map(digits.Filter(func(s string) bool { _, err := value.Number(s); return err == nil }), func(s string) any {
		n, _ := value.Number(s)
		return n
	})
	any2 := rapid.OneOf(numbers, numbers, scalars(), rapid.Map(rapid.String(), func(s string) any { return s }))
	rapid.Check(t, func(rt *rapid.T) {
		a, b := any2.Draw(rt, "a"), any2.Draw(rt, "b")
		if s, ok := a.(string); ok && len(s) > 8000 {
			return // only their beginnings are compared
		}
		if got, want := strings.Compare(search.OrderKey(a), search.OrderKey(b)), value.Compare(a, b); got != want {
			rt.Fatalf("%v and %v compare as %d, their keys %q and %q as %d", a, b, want, search.OrderKey(a), search.OrderKey(b), got)
		}
	})
}

func TestNamesAreEscapedReversibly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.OneOf(rapid.SampledFrom(someNames), rapid.StringOf(rapid.SampledFrom([]rune("ab.$~*2E \t\u00a0\x00\u0085é😀\uffff\ufffd"))), rapid.String()).Draw(rt, "name")
		field := search.AppendName(name)
		if back, ok := search.PlainName(field); !ok || back != name {
			rt.Fatalf("%q became %q and then %q", name, field, back)
		}
		if field == "" || strings.ContainsAny(field, ".*") || field[0] == '$' || strings.TrimSpace(field) != field {
			rt.Fatalf("%q became %q", name, field)
		}
	})
	for _, c := range [][2]string{{"", "~"}, {"a.b", "a~2Eb"}, {"$str", "~24str"}, {"a$", "a$"}, {"~", "~7E"}, {" ", "~20"}, {"a b", "a b"}, {"\u00a0x", "~C2~A0x"}, {"*", "~2A"}, {"_id", "_id"}, {"\x00", "~00"}} {
		if got := search.AppendName(c[0]); got != c[1] {
			t.Errorf("%q is escaped as %q, not %q", c[0], got, c[1])
		}
	}
	for _, field := range []string{"", "a.b", "~2", "~ZZ", "~61", "~2e"} {
		if name, ok := search.PlainName(field); ok {
			t.Errorf("%q was taken for the name %q", field, name)
		}
	}
}

func BenchmarkProject(b *testing.B) {
	d := document(b, "orders/1", `{"customer":"customers/ALFKI","orderDate":"1997-08-25T00:00:00Z","freight":29.46,"shipAddress":{"street":"Obere Str. 57","city":"Berlin","postalCode":12209,"country":"Germany"},
		"details":[{"product":"products/28","unitPrice":45.6,"quantity":15,"discount":0.25},{"product":"products/39","unitPrice":18,"quantity":21,"discount":0.25},{"product":"products/46","unitPrice":12,"quantity":2,"discount":0.25}]}`)
	g := sharedGeneration()
	b.ReportAllocs()
	for b.Loop() {
		search.Project(d, g)
	}
}
