package search_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// The names, scalars and shapes of the generated documents are few, so that
// filters meet what the documents hold, and odd, so that they meet at the edges.
var (
	someNames   = []string{"a", "b", "c", "0", "1", "a.b", "$str", "", "~", " ", "*"}
	someStrings = []string{"", "x", "y", "xy", "é", "1", "true", "null", "\x00", "😀", "\uffff",
		"2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00", "2024-01-01T00:00:00.0001Z", "2024-01-01T00:00:00.001Z",
		"0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2016-12-31T23:59:60Z",
		strings.Repeat("z", 499) + "é", strings.Repeat("z", 501)}
	longStrings = []string{strings.Repeat("long", 2500), strings.Repeat("long", 2500) + "er", strings.Repeat("é", 4000), strings.Repeat("z", 8000), strings.Repeat("z", 8001)}
	someNumbers = []string{"0", "1", "-1", "2", "0.1", "0.10000000000000001", "1e125", "-1e125", "1e-130", "12345678901234567890",
		"12345678901234567891", "12345678901234567890123456789012345678", "9007199254740993", "9007199254740992", "0.3", "100"}
)

func scalars() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Custom(func(t *rapid.T) any {
			if rapid.IntRange(0, 25).Draw(t, "long") == 25 {
				return rapid.SampledFrom(longStrings).Draw(t, "string")
			}
			return rapid.SampledFrom(someStrings).Draw(t, "string")
		}),
		rapid.Map(rapid.SampledFrom(someNumbers), func(s string) any {
			n, err := value.Number(s)
			if err != nil {
				panic(err)
			}
			return n
		}),
	)
}

func values(depth int) *rapid.Generator[any] {
	if depth == 0 {
		return scalars()
	}
	return rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0, 1:
			return rapid.SliceOfN(values(depth-1), 0, 3).Draw(t, "array")
		case 2, 3:
			return objects(depth-1).Draw(t, "object")
		}
		return scalars().Draw(t, "scalar")
	})
}

func objects(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom(someNames), values(depth), 0, 4)
}

func paths() *rapid.Generator[value.Path] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom(someNames), 1, 4), func(names []string) value.Path { return value.PathOf(names...) })
}

func fields() *rapid.Generator[filter.Field] {
	return rapid.Map(paths(), func(p value.Path) filter.Field { return filter.Field{Path: p} })
}

func filters(depth int, known []doc.Document) *rapid.Generator[filter.Expr] {
	return rapid.Custom(func(t *rapid.T) filter.Expr {
		if depth > 0 && rapid.IntRange(0, 2).Draw(t, "inner") == 0 {
			switch rapid.IntRange(0, 2).Draw(t, "logic") {
			case 0:
				return filter.And{Of: rapid.SliceOfN(filters(depth-1, known), 0, 3).Draw(t, "and")}
			case 1:
				return filter.Or{Of: rapid.SliceOfN(filters(depth-1, known), 0, 3).Draw(t, "or")}
			default:
				return filter.Not{Of: filters(depth-1, known).Draw(t, "not")}
			}
		}
		field := fields().Draw(t, "field")
		operand := values(1)
		if rapid.Bool().Draw(t, "met") {
			// Ask for something that a document has at a path.
			d := rapid.SampledFrom(known).Draw(t, "of")
			if reached := field.Path.Values(d.Data); len(reached) > 0 {
				operand = rapid.SampledFrom(reached)
			}
		}
		switch rapid.IntRange(0, 7).Draw(t, "leaf") {
		case 0:
			return filter.Exists{Field: field, Want: rapid.Bool().Draw(t, "want")}
		case 1:
			return filter.NewIn(field, rapid.SliceOfN(operand, 0, 4).Draw(t, "in"))
		case 2, 3, 4:
			return filter.Compare{Field: field, Op: filter.Eq, Value: operand.Draw(t, "eq")}
		}
		c := filter.Compare{Field: field, Op: rapid.SampledFrom([]filter.Op{filter.Gt, filter.Gte, filter.Lt, filter.Lte}).Draw(t, "op")}
		c.Value = scalars().Draw(t, "bound")
		if s, ok := c.Value.(string); ok {
			c.Instant, c.IsInstant = value.ParseInstant(s)
		}
		return c
	})
}

func pseudoFilters(known []doc.Document) *rapid.Generator[filter.Expr] {
	return rapid.Custom(func(t *rapid.T) filter.Expr {
		d := rapid.SampledFrom(known).Draw(t, "of")
		moment := rapid.SampledFrom([]string{"2026-03-01T12:00:00.123456Z", "2026-03-01T12:00:00.1234561Z", "2026-03-01T12:00:00Z", "no moment"}).Draw(t, "moment")
		c := filter.Compare{Op: rapid.SampledFrom([]filter.Op{filter.Eq, filter.Gt, filter.Gte, filter.Lt, filter.Lte}).Draw(t, "op")}
		switch rapid.IntRange(0, 4).Draw(t, "pseudo") {
		case 0:
			c.Field.Pseudo, c.Value = filter.ID, any(string(d.ID))
		case 1:
			c.Field.Pseudo, c.Value = filter.Root, any(d.ID.Root())
		case 2:
			c.Field.Pseudo = filter.Version
			c.Value = rapid.SampledFrom([]any{json.Number(d.Version.String()), json.Number(d.Version.String() + ".5"), json.Number("1e125"), json.Number("-0.5"), "1"}).Draw(t, "version")
		case 3:
			c.Field.Pseudo, c.Value = filter.CreatedAt, any(moment)
			c.Instant, c.IsInstant = value.ParseInstant(moment)
		case 4:
			return filter.NewIn(filter.Field{Pseudo: filter.UpdatedAt}, []any{moment, nil, json.Number("1")})
		}
		return c
	})
}

// TestSearchAgreesWithMatch compares the index with the matcher: over generated
// documents and filters, Search finds exactly what Match accepts, the may query
// at least that and the sure query at most that; the count is the number; and
// the order is that of the documents' sort keys.
//
// A check asks the engine about many filters, so there are fewer checks than
// usual unless the command line says how many.
func TestSearchAgreesWithMatch(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks != nil && checks.Value.String() == checks.DefValue {
		if err := checks.Value.Set("30"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
	}
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	docs := oddDocuments(t)
	docs = slices.DeleteFunc(docs, func(d doc.Document) bool { return d.ID == "odd/many-names" }) // slow, and not odd in any other way
	seed := map[string]any{}
	for i := range 300 {
		data := objects(2 + i%10/9).Example(i)
		d := document(t, fmt.Sprintf("odd/g%03d", i), string(value.Append(nil, data)))
		d.Version += doc.Version(i % 7)
		docs = append(docs, d)
		for name, v := range data {
			all, _ := seed[name].([]any)
			seed[name] = append(all, v)
		}
	}
	// A document of another collection that has all their paths: one change of
	// the mapping instead of hundreds.
	index(t, c, g, document(t, "seed/1", string(value.Append(nil, seed))))
	index(t, c, g, docs...)
	request := search.Request{From: sourcesOf("odd"), Limit: 1000, Count: true, Now: at}
	bounds := func(rt *rapid.T, filters []filter.Expr) {
		may, sure, err := search.MayAndSure(t.Context(), c, request, filters)
		if err != nil {
			rt.Fatal(err)
		}
		for i, e := range filters {
			for _, d := range docs {
				id, matches := string(d.ID), filter.Match(e, &d)
				if matches && !may[i][id] {
					rt.Fatalf("may misses a match\nfilter %s\ndocument %s %s", described(e), id, value.Append(nil, d.Data))
				}
				if sure[i][id] && !matches {
					rt.Fatalf("sure finds what does not match\nfilter %s\ndocument %s %s", described(e), id, value.Append(nil, d.Data))
				}
			}
		}
	}
	check := func(rt *rapid.T, e filter.Expr, keys []search.SortKey) {
		r := request
		r.Filter, r.Sort = e, keys
		var matching []doc.Document
		for _, d := range docs {
			if filter.Match(e, &d) {
				matching = append(matching, d)
			}
		}
		result, err := c.Search(t.Context(), r)
		if err != nil {
			rt.Fatalf("%s: %v", described(e), err)
		}
		slices.SortFunc(matching, func(a, b doc.Document) int {
			for _, k := range keys {
				c := value.Compare(k.Path.SortKey(a.Data, k.Desc), k.Path.SortKey(b.Data, k.Desc))
				if k.Desc {
					c = -c
				}
				if c != 0 {
					return c
				}
			}
			return strings.Compare(string(a.ID), string(b.ID))
		})
		if len(result.Documents) != len(matching) || result.Count != len(matching) || result.Next != "" {
			rt.Fatalf("found %d, counted %d of %d (next %q)\nfilter %s", len(result.Documents), result.Count, len(matching), result.Next, described(e))
		}
		for i, d := range result.Documents {
			if d.ID != matching[i].ID {
				rt.Fatalf("place %d is %s, not %s\nfilter %s\nsort %s\n%s\n%s", i, d.ID, matching[i].ID, described(e), sorted(keys),
					value.Append(nil, d.Data), value.Append(nil, matching[i].Data))
			}
			if !value.Equal(d.Data, matching[i].Data) || !d.CreatedAt.Equal(at) || d.Version != matching[i].Version {
				rt.Fatalf("document %s came back as another", d.ID)
			}
		}
	}
	t.Run("paths", rapid.MakeCheck(func(rt *rapid.T) {
		var keys []search.SortKey
		for range rapid.IntRange(0, 2).Draw(rt, "keys") {
			keys = append(keys, search.SortKey{Path: paths().Draw(rt, "sort"), Desc: rapid.Bool().Draw(rt, "desc")})
		}
		conditions := rapid.SliceOfN(filters(3, docs), 40, 40).Draw(rt, "filters")
		bounds(rt, conditions)
		check(rt, conditions[0], keys)
	}))
	t.Run("pseudo-fields", rapid.MakeCheck(func(rt *rapid.T) {
		check(rt, pseudoFilters(docs).Draw(rt, "filter"), nil)
	}))
}

func sorted(keys []search.SortKey) string {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s desc=%v ", k.Path, k.Desc)
	}
	return b.String()
}

// described writes a filter for a person, long strings shortened.
func described(e filter.Expr) string {
	text := func(v any) string {
		s := string(value.Append(nil, v))
		if len(s) > 80 {
			return fmt.Sprintf("%s…(%d)", s[:60], len(s))
		}
		return s
	}
	list := func(op string, of []filter.Expr) string {
		var parts []string
		for _, e := range of {
			parts = append(parts, described(e))
		}
		return op + "[" + strings.Join(parts, ", ") + "]"
	}
	switch e := e.(type) {
	case filter.And:
		return list("and", e.Of)
	case filter.Or:
		return list("or", e.Of)
	case filter.Not:
		return list("not", []filter.Expr{e.Of})
	case filter.Compare:
		return fmt.Sprintf("%s %s %s", e.Field, e.Op, text(e.Value))
	case filter.In:
		return fmt.Sprintf("%s in %s", e.Field, text(e.Values))
	case filter.Exists:
		return fmt.Sprintf("%s exists %v", e.Field, e.Want)
	}
	return fmt.Sprint(e)
}
