package search_test

import (
	"encoding/json"
	"fmt"
	"testing"

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
	} {
		r := search.Compile(c.e)
		may, sure := search.ReadingText(r)
		if may != c.may || sure != c.sure {
			t.Errorf("%s\nmay  %s\nwant %s\nsure %s\nwant %s", c.name, may, c.may, sure, c.sure)
		}
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
