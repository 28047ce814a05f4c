package filter_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/value"
)

func TestParseMakesATree(t *testing.T) {
	field := func(s string) filter.Field {
		f, err := filter.ParseField(s)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	one := decode(t, `1`)
	eq := func(name string) filter.Expr { return filter.Compare{Field: field(name), Op: filter.Eq, Value: one} }
	at := "2024-01-01T01:00:00+01:00"
	instant := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]filter.Expr{
		`{}`:                           filter.And{},
		`{"a":1}`:                      eq("a"),
		`{"b":1,"a":1}`:                filter.And{Of: []filter.Expr{eq("a"), eq("b")}},
		`{"a":{"$eq":1}}`:              eq("a"),
		`{"a":{"$ne":1}}`:              filter.Not{Of: eq("a")},
		`{"$and":[{"a":1}]}`:           eq("a"),
		`{"$or":[{"a":1},{"b":1}]}`:    filter.Or{Of: []filter.Expr{eq("a"), eq("b")}},
		`{"$nor":[{"a":1},{"b":1}]}`:   filter.Not{Of: filter.Or{Of: []filter.Expr{eq("a"), eq("b")}}},
		`{"$nor":[{"a":1}]}`:           filter.Not{Of: eq("a")},
		`{"a":{"$not":{"$eq":1}}}`:     filter.Not{Of: eq("a")},
		`{"a":{"$exists":false}}`:      filter.Exists{Field: field("a")},
		`{"a":{"$in":[1]}}`:            filter.NewIn(field("a"), []any{one}),
		`{"a":{"$nin":[1]}}`:           filter.Not{Of: filter.NewIn(field("a"), []any{one})},
		`{"a":{"$lt":"` + at + `"}}`:   filter.Compare{Field: field("a"), Op: filter.Lt, Value: at, IsInstant: true, Instant: instant},
		`{"a":"` + at + `"}`:           filter.Compare{Field: field("a"), Op: filter.Eq, Value: at},
		`{"$createdAt":"` + at + `"}`:  filter.Compare{Field: filter.Field{Pseudo: "$createdAt"}, Op: filter.Eq, Value: at, IsInstant: true, Instant: instant},
		`{"$id":{"$gt":"` + at + `"}}`: filter.Compare{Field: filter.Field{Pseudo: "$id"}, Op: filter.Gt, Value: at},
		`{"a":{}}`:                     filter.Compare{Field: field("a"), Op: filter.Eq, Value: map[string]any{}},
		`{"a":{"$gt":1,"$exists":true}}`: filter.And{Of: []filter.Expr{
			filter.Exists{Field: field("a"), Want: true}, filter.Compare{Field: field("a"), Op: filter.Gt, Value: one},
		}},
	} {
		if got := parse(t, text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, want %#v", text, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct{ filter, pointer string }{
		{`null`, ""}, {`[]`, ""}, {`"x"`, ""},
		{`{"$and":[]}`, "/$and"}, {`{"$or":[]}`, "/$or"}, {`{"$nor":[]}`, "/$nor"}, {`{"$and":{}}`, "/$and"}, {`{"$or":null}`, "/$or"},
		{`{"$or":[{"a":1},5]}`, "/$or/1"}, {`{"$and":[[]]}`, "/$and/0"},
		{`{"$not":{"a":1}}`, "/$not"},
		{`{"$where":"x"}`, "/$where"}, {`{"$expr":{}}`, "/$expr"}, {`{"$gt":1}`, "/$gt"}, {`{"$":1}`, "/$"}, {`{"$x~/":1}`, "/$x~0~1"},
		{`{"a":{"$regex":"x"}}`, "/a/$regex"}, {`{"a":{"$":1}}`, "/a/$"}, {`{"a":{"$and":[{"b":1}]}}`, "/a/$and"},
		{`{"a":{"$gt":1,"x":2}}`, "/a/x"}, {`{"a":{"$gt":1,"":2}}`, "/a/"}, {`{"a":{"$x":1}}`, "/a/$x"},
		{`{"a":{"$gt":{}}}`, "/a/$gt"}, {`{"a":{"$lte":[1]}}`, "/a/$lte"},
		{`{"a":{"$in":1}}`, "/a/$in"}, {`{"a":{"$nin":{}}}`, "/a/$nin"}, {`{"a":{"$in":[0,{"$gt":1}]}}`, "/a/$in/1"},
		{`{"a":{"$exists":1}}`, "/a/$exists"}, {`{"a":{"$exists":null}}`, "/a/$exists"},
		{`{"a":{"$not":5}}`, "/a/$not"}, {`{"a":{"$not":{}}}`, "/a/$not"}, {`{"a":{"$not":{"x":1}}}`, "/a/$not"}, {`{"a":{"$not":{"$gt":1,"x":1}}}`, "/a/$not/x"}, {`{"a":{"$not":{"$foo":1}}}`, "/a/$not/$foo"},
		{`{"a":{"$type":"x"}}`, "/a/$type"}, {`{"a":{"$type":[]}}`, "/a/$type"}, {`{"a":{"$type":["null",9]}}`, "/a/$type/1"}, {`{"a":{"$type":null}}`, "/a/$type"}, {`{"a":{"$type":1.5}}`, "/a/$type"},
		{`{"a":{"$size":-1}}`, "/a/$size"}, {`{"a":{"$size":1.5}}`, "/a/$size"}, {`{"a":{"$size":1e-9}}`, "/a/$size"}, {`{"a":{"$size":"1"}}`, "/a/$size"},
		{`{"a":{"$all":1}}`, "/a/$all"}, {`{"a":{"$all":[{"$gt":1}]}}`, "/a/$all/0"}, {`{"a":{"$all":[1,{"$elemMatch":{"b":1}}]}}`, "/a/$all/1"}, {`{"a":{"$all":[{"$elemMatch":{"b":{"$x":1}}}]}}`, "/a/$all/0/$elemMatch/b/$x"},
		{`{"a":{"$elemMatch":5}}`, "/a/$elemMatch"}, {`{"a":{"$elemMatch":{"$gt":1,"b":1}}}`, "/a/$elemMatch/b"}, {`{"a":{"$elemMatch":{"$x":1}}}`, "/a/$elemMatch/$x"}, {`{"a":{"$elemMatch":{"$gt":1,"$or":[{"b":1}]}}}`, "/a/$elemMatch/$or"},
		{`{"a":{"$elemMatch":{"$id":"x/1"}}}`, "/a/$elemMatch/$id"}, {`{"a":{"$elemMatch":{"$or":[{"$version":1}]}}}`, "/a/$elemMatch/$or/0/$version"},
		{`{"a":{"$prefix":1}}`, "/a/$prefix"}, {`{"a":{"$text":"x"}}`, "/a/$text"}, {`{"a":{"$elemMatch":{"$text":"x"}}}`, "/a/$elemMatch/$text"}, {`{"$text":"x"}`, "/$text"},
		{`{"$id":{"$type":"string"}}`, "/$id/$type"}, {`{"$id":{"$size":1}}`, "/$id/$size"}, {`{"$version":{"$prefix":"1"}}`, "/$version/$prefix"}, {`{"$root":{"$elemMatch":{"$gt":"a"}}}`, "/$root/$elemMatch"}, {`{"$id":{"$all":["a/1"]}}`, "/$id/$all"}, {`{"$id":{"$text":"x"}}`, "/$id/$text"},
		{`{"":1}`, "/"}, {`{"a..b":1}`, "/a..b"}, {`{"a.$b":1}`, "/a.$b"}, {`{"a[0]":1}`, "/a[0]"}, {`{"/~":1}`, "/~1~0"},
		{`{"$and":[{"b":1},{"a":{"$or":[]}}]}`, "/$and/1/a/$or"},
		{`{"$id":1}`, "/$id"}, {`{"$id":null}`, "/$id"}, {`{"$root":{"$in":["a",1]}}`, "/$root/$in/1"}, {`{"$version":"1"}`, "/$version"}, {`{"$version":{"$gt":null}}`, "/$version/$gt"},
		{`{"$createdAt":"2024-01-01"}`, "/$createdAt"}, {`{"$updatedAt":{"$gt":1}}`, "/$updatedAt/$gt"}, {`{"$updatedAt":{"$in":["2024-01-01T00:00:00Z","x"]}}`, "/$updatedAt/$in/1"}, {`{"$id":{"x":1}}`, "/$id"}, {`{"$id.x":1}`, "/$id.x"},
	} {
		e, err := filter.Parse(decode(t, test.filter), filter.ParseOptions{Pointer: "/filter"})
		var refusal *doc.Error
		if !errors.As(err, &refusal) || refusal.Kind != doc.InvalidQuery {
			t.Errorf("%s = %#v, %v; want %s", test.filter, e, err, doc.InvalidQuery)
			continue
		}
		if got := refusal.Members["pointer"]; got != "/filter"+test.pointer {
			t.Errorf("%s: pointer %v, want /filter%s (%v)", test.filter, got, test.pointer, err)
		}
	}
}

func repeat(n int, part, separator string) string {
	return strings.TrimSuffix(strings.Repeat(part+separator, n), separator)
}

func words(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " w%d", i)
	}
	return b.String()
}

func nested(levels int) string {
	return strings.Repeat(`{"$or":[`, levels-1) + `{"a":1}` + strings.Repeat(`]}`, levels-1)
}

func TestParseCapsTheCost(t *testing.T) {
	for _, test := range []struct {
		name, fits, tooMuch string
		limit, actual       int
		pointer             string
	}{
		{"terms", `{"a":{"$in":[` + repeat(1024, `1`, `,`) + `]}}`, `{"a":{"$in":[` + repeat(1030, `1`, `,`) + `]}}`, 1024, 1030, "/a/$in"},
		{"clauses", `{"$or":[` + repeat(256, `{"a":1}`, `,`) + `]}`, `{"$or":[` + repeat(300, `{"a":1}`, `,`) + `]}`, 256, 300, "/$or/256/a"},
		{"empty clauses", `{"$or":[` + repeat(256, `{}`, `,`) + `]}`, `{"$or":[` + repeat(257, `{}`, `,`) + `]}`, 256, 257, "/$or/256"},
		{"depth", nested(16), nested(20), 16, 20, strings.Repeat("/$or/0", 16)},
		{"depth of $not", `{"a":` + strings.Repeat(`{"$not":`, 15) + `{"$gt":1}` + strings.Repeat(`}`, 16), `{"a":` + strings.Repeat(`{"$not":`, 16) + `{"$gt":1}` + strings.Repeat(`}`, 17), 16, 17, "/a" + strings.Repeat("/$not", 16)},
		{"depth of $elemMatch", `{"a":` + strings.Repeat(`{"$elemMatch":`, 15) + `{"$gt":1}` + strings.Repeat(`}`, 16), `{"a":` + strings.Repeat(`{"$elemMatch":`, 16) + `{"$gt":1}` + strings.Repeat(`}`, 17), 16, 17, "/a" + strings.Repeat("/$elemMatch", 16)},
		{"prefix", `{"a":{"$prefix":"` + strings.Repeat("x", 500) + `"}}`, `{"a":{"$prefix":"` + strings.Repeat("x", 501) + `"}}`, 500, 501, "/a/$prefix"},
		{"bytes of text", `{"t":{"$text":"` + strings.Repeat("x", 1000) + `"}}`, `{"t":{"$text":"` + strings.Repeat("x", 1001) + `"}}`, 1000, 1001, "/t/$text"},
		{"words of text", `{"t":{"$text":"` + words(32) + ` w0"}}`, `{"t":{"$text":"` + words(33) + `"}}`, 32, 33, "/t/$text"},
		{"kinds", `{"a":{"$type":[` + repeat(1024, `"null"`, `,`) + `]}}`, `{"a":{"$type":[` + repeat(1030, `"null"`, `,`) + `]}}`, 1024, 1030, "/a/$type"},
		{"values of $all", `{"a":{"$all":[` + repeat(255, `1`, `,`) + `]}}`, `{"a":{"$all":[` + repeat(300, `1`, `,`) + `]}}`, 256, 301, "/a/$all/255"},
		{"bytes of a path and its array's", `{"` + strings.Repeat("a", 255) + `":{"$elemMatch":{"` + strings.Repeat("b", 256) + `":1}}}`, `{"` + strings.Repeat("a", 256) + `":{"$elemMatch":{"` + strings.Repeat("b", 256) + `":1}}}`, 512, 513, "/" + strings.Repeat("a", 256) + "/$elemMatch/" + strings.Repeat("b", 256)},
		{"steps of a path and its array's", `{"a":{"$elemMatch":{"` + repeat(31, "b", ".") + `":1}}}`, `{"a":{"$elemMatch":{"` + repeat(32, "b", ".") + `":1}}}`, 32, 33, "/a/$elemMatch/" + repeat(32, "b", ".")},
		{"path bytes", `{"` + strings.Repeat("a", 512) + `":1}`, `{"` + strings.Repeat("a", 513) + `":1}`, 512, 513, "/" + strings.Repeat("a", 513)},
		{"path segments", `{"` + repeat(32, "a", ".") + `":1}`, `{"` + repeat(33, "a", ".") + `":1}`, 32, 33, "/" + repeat(33, "a", ".")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := filter.Parse(decode(t, test.fits), filter.ParseOptions{Text: []string{"t"}}); err != nil {
				t.Errorf("within the limit: %v", err)
			}
			_, err := filter.Parse(decode(t, test.tooMuch), filter.ParseOptions{Pointer: "/filter", Text: []string{"t"}})
			var refusal *doc.Error
			if !errors.As(err, &refusal) || refusal.Kind != doc.QueryTooCostly {
				t.Fatalf("beyond the limit: %v", err)
			}
			want := map[string]any{"pointer": "/filter" + test.pointer, "limit": test.limit, "actual": test.actual}
			if !reflect.DeepEqual(refusal.Members, want) {
				t.Errorf("members %v, want %v", refusal.Members, want)
			}
		})
	}
	options := filter.ParseOptions{MaxDepth: 2, MaxClauses: 2, MaxTerms: 1}
	for text, kind := range map[string]doc.Kind{
		`{"$or":[{"a":1},{"b":1}]}`: "", `{"a":1,"b":1,"c":1}`: doc.QueryTooCostly, nested(3): doc.QueryTooCostly, `{"a":{"$in":[1,2]}}`: doc.QueryTooCostly,
	} {
		if _, err := filter.Parse(decode(t, text), options); doc.KindOf(err) != kind {
			t.Errorf("%s with own limits: %v", text, err)
		}
	}
}

func TestFields(t *testing.T) {
	e := parse(t, `{"$or":[{"a.b":1},{"$nor":[{"c[].d":{"$exists":true}}]}],"/a/b":{"$in":[1]},"$id":"x","e":{"$not":{"$gt":1}},"f":{"$elemMatch":{"g":{"$size":1},"h":{"$elemMatch":{"$type":"null","$prefix":"x"}}}}}`)
	if got, want := fmt.Sprint(filter.Fields(e)), "[$id a.b c.d e f f.g f.h]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := filter.Fields(parse(t, `{}`)); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestParseDoesNotChangeItsInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFilter(3).Draw(t, "filter")
		before := string(value.Append(nil, f))
		first, err := filter.Parse(f, filter.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		second, err := filter.Parse(f, filter.ParseOptions{})
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("two trees of one filter: %#v and %#v", first, second)
		}
		if after := string(value.Append(nil, f)); after != before {
			t.Fatalf("%s became %s", before, after)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":{"$gt":1,"$lt":"2024-01-01T00:00:00Z"}}`, `{"$or":[{"a.0.b":null},{"/a~1b":{"$in":[1,[],{}]}}]}`, `{"$nor":[{"a":{"$not":{"$exists":true}}}]}`,
		`{"$id":"a/1","$version":{"$gte":1},"$createdAt":{"$lt":"2024-01-01T00:00:00Z"}}`, `{"a":{"$gt":1,"x":2}}`, `{"$and":[]}`, `{"a[].b":{"$nin":[null]}}`,
		`{"a":{"$elemMatch":{"b":{"$type":["null","int"]},"c":{"$size":1}}},"d":{"$elemMatch":{"$prefix":"x"}},"e":{"$all":[1,{"x":1}]},"t":{"$text":"some words"}}`,
	} {
		f.Add([]byte(seed))
	}
	d := &doc.Document{ID: "things/1", Version: 1, Data: map[string]any{"a": []any{map[string]any{"b": nil}, "x"}}}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := value.Decode(b, 64)
		if err != nil {
			t.Skip("no JSON")
		}
		e, err := filter.Parse(v, filter.ParseOptions{Pointer: "/filter", Text: []string{"t", "a.b"}})
		if err != nil {
			var refusal *doc.Error
			if !errors.As(err, &refusal) || refusal.Kind != doc.InvalidQuery && refusal.Kind != doc.QueryTooCostly {
				t.Fatalf("%s: an error of another kind: %v", b, err)
			}
			if pointer, ok := refusal.Members["pointer"].(string); !ok || !strings.HasPrefix(pointer, "/filter") {
				t.Fatalf("%s: pointer %v", b, refusal.Members["pointer"])
			}
			return
		}
		if filter.Match(e, d) == filter.Match(filter.Not{Of: e}, d) {
			t.Fatalf("%s and its opposite agree", b)
		}
		for _, field := range filter.Fields(e) {
			if again, err := filter.ParseField(field.String()); err != nil || !reflect.DeepEqual(again, field) {
				t.Fatalf("%s: the field %s became %v, %v", b, field, again, err)
			}
		}
	})
}
