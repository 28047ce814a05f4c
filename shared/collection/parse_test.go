package collection_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/value"
)

func parse(t *testing.T, text string) (collection.Definition, error) {
	t.Helper()
	v, err := value.Decode([]byte(text), 10)
	if err != nil {
		t.Fatal(err)
	}
	return collection.ParseDefinition("orders", v)
}

func TestDefinitionsAreReadAndTold(t *testing.T) {
	for text, family := range map[string]collection.Family{
		`{}`:                              collection.SharedFamily,
		`{"index":"shared"}`:              collection.SharedFamily,
		`{"index":"own"}`:                 "orders",
		`{"nested":["a"]}`:                "orders",
		`{"text":["/a.b/c"]}`:             "orders",
		`{"indexed":{"include":["a"]}}`:   "orders",
		`{"indexed":{"exclude":["a.b"]}}`: "orders",
		`{"indexed":{"exclude":["a.b"],"include":["a"]},"nested":["a"],"text":["a.x"],"index":"own"}`: "orders",
	} {
		d, err := parse(t, text)
		if err != nil || d.Family() != family || d.Name != "orders" {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
		again, err := json.Marshal(d.Declares())
		var a, b any
		if err != nil || json.Unmarshal(again, &a) != nil || json.Unmarshal([]byte(text), &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s is told as %s, %v", text, again, err)
		}
		// What is stored is what was declared, and the first generation freezes it.
		stored, err := json.Marshal(d)
		var back collection.Definition
		if err != nil || json.Unmarshal(stored, &back) != nil || !reflect.DeepEqual(back, d) {
			t.Errorf("%s is stored as %s, %v", text, stored, err)
		}
		g := collection.First(d, 1)
		if !reflect.DeepEqual(g.Nested, d.Nested) || !reflect.DeepEqual(g.Include, d.Include) || !reflect.DeepEqual(g.Exclude, d.Exclude) || !reflect.DeepEqual(g.Text, d.Text) {
			t.Errorf("%+v", g)
		}
	}
}

func TestTheFormOfTheIndex(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{}`, `{"index":"shared"}`, true},
		{`{}`, `{"nested":[],"indexed":{}}`, true},
		{`{}`, `{"index":"own"}`, false},
		{`{"nested":["a","b[]"]}`, `{"index":"own","nested":["/b","a"]}`, true},
		{`{"nested":["a"]}`, `{"text":["a"]}`, false},
		{`{"nested":["a"]}`, `{"nested":["a","a.b"]}`, false},
		{`{"indexed":{"include":["a"]}}`, `{"indexed":{"exclude":["a"]}}`, false},
		{`{"index":"own"}`, `{"indexed":{"exclude":["a"]}}`, false},
	} {
		a, errA := parse(t, c.a)
		b, errB := parse(t, c.b)
		if errA != nil || errB != nil || a.SameIndex(b) != c.same || b.SameIndex(a) != c.same {
			t.Errorf("%s, %s: %v %v %v", c.a, c.b, a.SameIndex(b), errA, errB)
		}
	}
	removed := collection.Definition{Name: "orders", Revision: 3, Removed: true, Nested: []string{"a"}}
	if removed.Declared() || removed.Family() != "orders" || removed.WithoutIndex().Family() != collection.SharedFamily || (collection.Definition{Name: "x"}).Declared() {
		t.Errorf("%+v", removed)
	}
}

func TestWhatIsIndexed(t *testing.T) {
	for _, c := range []struct {
		include, exclude []string
		path             []string
		indexed          bool
	}{
		{nil, nil, []string{"a"}, true},
		{nil, []string{"a.b"}, []string{"a"}, true},
		{nil, []string{"a.b"}, []string{"a", "b"}, false},
		{nil, []string{"a.b"}, []string{"a", "b", "c"}, false},
		{nil, []string{"a.b"}, []string{"a", "bc"}, true},
		{nil, []string{"/a.b"}, []string{"a.b"}, false},
		{[]string{"a.b[]"}, nil, []string{"a"}, true},
		{[]string{"a.b[]"}, nil, []string{"a", "b", "c"}, true},
		{[]string{"a.b[]"}, nil, []string{"a", "c"}, false},
		{[]string{"a.b[]"}, nil, []string{"b"}, false},
		{[]string{"a"}, []string{"a.b"}, []string{"a", "b"}, false},
		{[]string{"a"}, []string{"a.b"}, []string{"a", "c"}, true},
	} {
		if got := collection.NewSelection(c.include, c.exclude).Indexed(c.path); got != c.indexed {
			t.Errorf("include %q, exclude %q: %q is %v", c.include, c.exclude, c.path, got)
		}
	}
}

func TestNamesOfCollections(t *testing.T) {
	if name, err := collection.ParseName("customers/orders"); err != nil || name != "customers/orders" {
		t.Errorf("%s %v", name, err)
	}
	for _, name := range []string{"", "$a", "a/", "a//b", "a/./b"} {
		if _, err := collection.ParseName(name); doc.KindOf(err) != doc.InvalidID {
			t.Errorf("%q: %v", name, err)
		}
	}
}
