package search_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/filter"
	"holdfast/shared/search"
)

// A compiled condition is what the index is asked. These are the shapes that
// matter most; what they mean is tested against the engine.
func TestCompiledConditions(t *testing.T) {
	f := field(t, "a.b")
	partial := `{"terms":{"$partial":["a.b","a",""]}}`
	doubt := `{"terms":{"$shape":["nest:a","nest:a.b"]}}`
	for _, c := range []struct {
		name      string
		e         filter.Expr
		may, sure string
	}{
		{"everything", filter.And{}, `{"match_all":{}}`, `{"match_all":{}}`},
		{"nothing", filter.Or{}, `{"match_none":{}}`, `{"match_none":{}}`},
		{"text", filter.Compare{Field: f, Op: filter.Eq, Value: "x"},
			`{"bool":{"minimum_should_match":1,"should":[{"term":{"doc.a.b.$str":"x"}},` + partial + `]}}`,
			`{"bool":{"filter":[{"term":{"doc.a.b.$str":"x"}}],"must_not":[` + doubt + `]}}`},
		{"not text", filter.Not{Of: filter.Compare{Field: f, Op: filter.Eq, Value: "x"}},
			`{"bool":{"must_not":[{"bool":{"filter":[{"term":{"doc.a.b.$str":"x"}}],"must_not":[` + doubt + `]}}]}}`,
			`{"bool":{"must_not":[{"bool":{"minimum_should_match":1,"should":[{"term":{"doc.a.b.$str":"x"}},` + partial + `]}}]}}`},
		{"a number beyond a double", filter.Compare{Field: f, Op: filter.Eq, Value: json.Number("12345678901234567890")},
			`{"bool":{"minimum_should_match":1,"should":[{"term":{"doc.a.b.$dec":"12345678901234567890"}},` + partial + `]}}`,
			`{"bool":{"filter":[{"term":{"doc.a.b.$dec":"12345678901234567890"}}],"must_not":[` + doubt + `]}}`},
		{"an id", filter.Compare{Field: filter.Field{Pseudo: filter.ID}, Op: filter.Gte, Value: "users/1"},
			`{"range":{"$id":{"gte":"users/1"}}}`, `{"range":{"$id":{"gte":"users/1"}}}`},
		{"a beginning", filter.Prefix{Field: f, Text: "x*"},
			`{"bool":{"minimum_should_match":1,"should":[{"prefix":{"doc.a.b.$str":"x*"}},` + partial + `]}}`,
			`{"bool":{"filter":[{"prefix":{"doc.a.b.$str":"x*"}}],"must_not":[` + doubt + `]}}`},
		{"a length", filter.Size{Field: f, Length: 3},
			`{"bool":{"minimum_should_match":1,"should":[{"term":{"$shape":"len:3:a.b"}},` + partial + `]}}`,
			`{"bool":{"filter":[{"term":{"$shape":"len:3:a.b"}}],"must_not":[` + doubt + `]}}`},
		{"words nobody declared", filter.Text{Field: f, Words: []string{"x"}}, `{"match_all":{}}`, `{"match_none":{}}`},
	} {
		r := search.Compile(c.e)
		may, sure := search.ReadingText(r)
		if may != c.may || sure != c.sure {
			t.Errorf("%s\nmay  %s\nwant %s\nsure %s\nwant %s", c.name, may, c.may, sure, c.sure)
		}
	}
}

// TestDeepElementsStaySmall compiles elements inside elements, as deep as
// filters go, both at declared paths and elsewhere.
func TestDeepElementsStaySmall(t *testing.T) {
	var e filter.Expr = filter.Compare{Field: field(t, "b"), Op: filter.Gt, Value: json.Number("1")}
	var nested []string
	path := ""
	for range filter.MaxDepth - 1 {
		e = filter.ElemMatch{Field: field(t, "a"), Of: filter.And{Of: []filter.Expr{e, filter.Exists{Field: field(t, "c"), Want: true}}}}
		path += ".a"
		nested = append(nested, path[1:])
	}
	for _, from := range [][]search.Source{nil, {{Generation: &collection.Generation{Nested: nested}}}} {
		may, sure := search.ReadingText(search.Compile(e, from...))
		if n := len(may) + len(sure); n > 200_000 {
			t.Errorf("%d bytes of queries", n)
		}
	}
}

func BenchmarkCompileElements(b *testing.B) {
	e := filter.ElemMatch{Field: field(b, "lines"), Of: filter.And{Of: []filter.Expr{
		filter.Compare{Field: field(b, "product"), Op: filter.Eq, Value: "products/14"},
		filter.Compare{Field: field(b, "quantity"), Op: filter.Gte, Value: json.Number("20")},
	}}}
	for name, nested := range map[string][]string{"declared": {"lines"}, "undeclared": nil} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				search.Compile(e, search.Source{Generation: &collection.Generation{Nested: nested}})
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	var of []filter.Expr
	for i := range 10 {
		of = append(of, filter.Compare{Field: field(b, fmt.Sprintf("lines.product%d", i)), Op: filter.Gte, Value: json.Number("12.5")})
	}
	e := filter.And{Of: of}
	b.ReportAllocs()
	for b.Loop() {
		search.Compile(e)
	}
}
