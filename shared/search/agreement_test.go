package search_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/shared/collection"
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
		"two words", "Words, Two", "東京 words",
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

// The collection with declarations. Its paths are some that the generators
// often make.
var (
	declaredNested = []string{"a", "a.b", "b.c", "c", "/a.b"}
	declaredText   = []string{"a", "b", "c", "a.a", "a.c", "b.c", "a.b.a", "c.b", "/a.b/b"}
)

// A language makes filters as clients send them, which ask about documents.
type language struct {
	known []doc.Document
	text  []string // paths on which $text may stand
}

func (l language) filters(depth int) *rapid.Generator[map[string]any] { return l.within(nil, depth) }

// within makes a filter about the document, or about the elements at a path.
func (l language) within(above []string, depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		if depth > 0 && rapid.IntRange(0, 2).Draw(t, "inner") == 0 {
			parts := rapid.SliceOfN(l.within(above, depth-1), 1, 3).Draw(t, "parts")
			list := make([]any, len(parts))
			for i, part := range parts {
				list[i] = part
			}
			return map[string]any{rapid.SampledFrom([]string{"$and", "$or", "$nor"}).Draw(t, "logic"): list}
		}
		conditions := map[string]any{}
		for range rapid.IntRange(1, 2).Draw(t, "conditions") {
			names := rapid.SliceOfN(rapid.SampledFrom(someNames), 1, 3).Draw(t, "path")
			if rapid.Bool().Draw(t, "plain") {
				names = rapid.SliceOfN(rapid.SampledFrom(someNames[:3]), 1, 2).Draw(t, "path")
			}
			conditions[value.PathOf(names...).String()] = l.operators(above, names, depth).Draw(t, "operators")
		}
		return conditions
	})
}

// operators makes one to three operators for a path.
func (l language) operators(above, names []string, depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		object := map[string]any{}
		for range rapid.IntRange(1, 3).Draw(t, "operators") {
			l.operator(t, object, above, names, depth)
		}
		return object
	})
}

func (l language) operator(t *rapid.T, object map[string]any, above, names []string, depth int) {
	whole := append(above[:len(above):len(above)], names...)
	operand := values(1)
	if rapid.Bool().Draw(t, "met") {
		// Ask for something that a document has at a path.
		d := rapid.SampledFrom(l.known).Draw(t, "of")
		if reached := value.PathOf(whole...).Values(d.Data); len(reached) > 0 {
			operand = rapid.SampledFrom(reached)
		}
	}
	list := func(name string, least int) []any {
		return append([]any{}, rapid.SliceOfN(operand, least, 4).Filter(hasNoOperator).Draw(t, name)...)
	}
	switch rapid.IntRange(0, 14).Draw(t, "operator") {
	case 0:
		object["$exists"] = rapid.Bool().Draw(t, "want")
	case 1:
		object["$in"] = list("in", 0)
	case 2:
		object["$nin"] = list("nin", 1)
	case 3, 4:
		object["$eq"] = operand.Draw(t, "eq")
	case 5:
		object["$ne"] = operand.Draw(t, "ne")
	case 6, 7:
		object[rapid.SampledFrom([]string{"$gt", "$gte", "$lt", "$lte"}).Draw(t, "op")] = scalars().Draw(t, "bound")
	case 8:
		object["$type"] = rapid.SampledFrom([]any{"null", "bool", "number", "string", "object", "array", []any{"array", "null"}}).Draw(t, "kind")
	case 9:
		object["$size"] = rapid.SampledFrom([]any{json.Number("0"), json.Number("1"), json.Number("2"), json.Number("3")}).Draw(t, "length")
	case 10:
		object["$all"] = list("all", 0)
	case 11:
		object["$prefix"] = rapid.SampledFrom([]string{"", "x", "long", "\x00", "2024-01-01T0", "é", strings.Repeat("z", 498), strings.Repeat("z", 498) + "é", strings.Repeat("long", 125)}).Draw(t, "prefix")
	case 12:
		if depth > 0 {
			object["$not"] = l.operators(above, names, depth-1).Draw(t, "not")
		}
	case 13:
		if depth > 0 {
			if rapid.IntRange(0, 2).Draw(t, "about") == 0 {
				object["$elemMatch"] = l.operators(whole, nil, depth-1).Draw(t, "elements")
			} else {
				object["$elemMatch"] = l.within(whole, depth-1).Draw(t, "elements")
			}
		}
	case 14:
		if slices.Contains(l.text, value.PathOf(whole...).String()) {
			object["$text"] = rapid.SampledFrom([]string{"x", "xy x", "words", "TWO words", "1", "é", "long" + strings.Repeat("long", 200), "東 words", "0"}).Draw(t, "words")
		}
	}
	if len(object) == 0 {
		object["$exists"] = true
	}
}

// hasNoOperator reports whether the values may stand in a list.
func hasNoOperator(list []any) bool {
	return !slices.ContainsFunc(list, func(v any) bool {
		object, _ := v.(map[string]any)
		for name := range object {
			if strings.HasPrefix(name, "$") {
				return true
			}
		}
		return false
	})
}

func (l language) parse(t interface{ Fatalf(string, ...any) }, f map[string]any) filter.Expr {
	e, err := filter.Parse(f, filter.ParseOptions{Text: l.text})
	if err != nil {
		t.Fatalf("%s: %v", value.Append(nil, f), err)
	}
	return e
}

func pseudoFilters(known []doc.Document) *rapid.Generator[filter.Expr] {
	return rapid.Custom(func(t *rapid.T) filter.Expr {
		d := rapid.SampledFrom(known).Draw(t, "of")
		moment := rapid.SampledFrom([]string{"2026-03-01T12:00:00.123456Z", "2026-03-01T12:00:00.1234561Z", "2026-03-01T12:00:00Z", "no moment"}).Draw(t, "moment")
		c := filter.Compare{Op: rapid.SampledFrom([]filter.Op{filter.Eq, filter.Gt, filter.Gte, filter.Lt, filter.Lte}).Draw(t, "op")}
		switch rapid.IntRange(0, 5).Draw(t, "pseudo") {
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
			id := string(d.ID)
			e := filter.Prefix{Text: id[:rapid.IntRange(0, len(id)).Draw(t, "cut")]}
			e.Field.Pseudo = rapid.SampledFrom([]string{filter.ID, filter.Root, filter.Version}).Draw(t, "of")
			return e
		case 5:
			return filter.NewIn(filter.Field{Pseudo: filter.UpdatedAt}, []any{moment, nil, json.Number("1")})
		}
		return c
	})
}

// fewChecks is for properties of which one check asks the engine much, unless
// the command line says how many.
func fewChecks(t *testing.T, n int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if checks == nil || checks.Value.String() != checks.DefValue {
		return
	}
	if err := checks.Value.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
}

// knownCases are documents and filters at which the two readings could part,
// which chance makes too seldom.
func knownCases(t *testing.T) (docs []doc.Document, filters []map[string]any) {
	long := `"` + longStrings[0] + `"`
	for i, data := range []string{
		`{"a":[{"b":` + long + `,"c":1},{"c":2}]}`, `{"a":[{"b":` + long + `}]}`, `{"a":[{"b":"x"},{"b":"y","c":` + long + `}]}`,
		`{"a":{"b":[{"c":1}]}}`, `{"a":{"b":1}}`, `{"a":[{"b":{"a":1,"b":3}}]}`, `{"a":[{"b":[{"a":1},{"a":2,"b":3}]},{"b":{"a":1,"b":3}}]}`, `{"a":[{"b":[{"a":1,"b":3}]}]}`,
		`{"a":[[{"b":1}],{"b":2}]}`, `{"a":[[{"b":1}]]}`, `{"a":[[[{"b":1}]]]}`, `{"a":[{"b":[[{"c":1}]]}]}`, `{"c":[[{"b":"x"}]],"b":[[{"c":[{"a":1}]}]]}`,
		`{"a":[{"b":{"c":1}},{"b":[{"c":2}]}]}`, `{"a":[{"b":5},{"b":[6]}]}`, `{"b":[{"c":{"a":1}},{"c":[{"a":2}]}]}`,
		`{"a":[1,{"b":null},null]}`, `{"a":[1]}`, `{"a":[]}`, `{"a":[{}]}`, `{"a":[{"b":[]}]}`, `{"a":[{"b":[null]}]}`, `{"a":null}`, `{"a":[{"b":1},{"b":2}]}`, `{"a":[{"b":[1,2]}]}`,
		`{"a":["x","y"]}`, `{"b":[{"c":"two x"},{"c":"y two"}]}`, `{"a":["x"," y x"],"c":[{"b":"x"},{"b":"words two"}]}`, `{"c":{"b":"two words x"},"b":[{"c":"x"},{"c":"y"}]}`, `{"a":[[["two words"]]],"b":"` + strings.Repeat("w", 8001) + ` x"}`,
	} {
		docs = append(docs, document(t, fmt.Sprintf("odd/known%02d", i), data))
	}
	for _, text := range []string{
		`{"a":{"$elemMatch":{"b":` + long + `}}}`, `{"a":{"$elemMatch":{"b":{"$ne":` + long + `}}}}`, `{"a":{"$elemMatch":{"b":{"$prefix":"long"},"c":1}}}`,
		`{"a":{"$elemMatch":{"b":{"$not":{"$prefix":"long"}}}}}`, `{"a":{"$elemMatch":{"c":{"$nin":["x",` + long + `]}}}}`, `{"a":{"$not":{"$elemMatch":{"b":` + long + `}}}}`,
		`{"a":{"$elemMatch":{"b":{"$gt":0}}}}`, `{"a":{"$elemMatch":{"b":1}}}`, `{"a":{"$elemMatch":{"b":{"$ne":1}}}}`, `{"a":{"$elemMatch":{"b":null}}}`, `{"a":{"$elemMatch":{"b":{"$exists":false}}}}`,
		`{"a":{"$elemMatch":{}}}`, `{"a":{"$elemMatch":{"0.b":1}}}`, `{"a":{"$elemMatch":{"b":{"$size":0}}}}`, `{"a":{"$elemMatch":{"b":{"$type":"array"}}}}`, `{"a":{"$elemMatch":{"b":{"$gt":1,"$lt":2}}}}`,
		`{"a":{"$elemMatch":{"b":{"$elemMatch":{"a":1,"b":3}}}}}`, `{"a":{"$elemMatch":{"b":{"$not":{"$elemMatch":{"a":1}}}}}}`, `{"a.b":{"$elemMatch":{"a":1,"b":3}}}`, `{"a.b":{"$elemMatch":{"c":1}}}`,
		`{"a":{"$elemMatch":{"b.a":1,"b.b":3}}}`, `{"b.c":{"$elemMatch":{"a":1}}}`, `{"a":{"$elemMatch":{"$ne":1}}}`, `{"a":{"$elemMatch":{"$type":"object"}}}`, `{"a":{"$elemMatch":{"$eq":null}}}`,
		`{"a":{"$elemMatch":{"$exists":true}}}`, `{"a":{"$elemMatch":{"$size":1}}}`, `{"a":{"$elemMatch":{"$type":"array"}}}`, `{"a":{"$elemMatch":{"$elemMatch":{"b":1}}}}`,
		`{"a.b":{"$elemMatch":{"$eq":5}}}`, `{"a.b":{"$elemMatch":{"$in":[5,6]}}}`, `{"a.b":{"$elemMatch":{"c":2}}}`, `{"a.b":{"$not":{"$elemMatch":{"c":1}}}}`,
		`{"a.0":{"$elemMatch":{"b":1}}}`, `{"a":{"$all":[1,null]}}`, `{"a":{"$all":[{"$elemMatch":{"b":1}},{"$elemMatch":{"b":2}}]}}`,
	} {
		filters = append(filters, tree(t, text).(map[string]any))
	}
	return docs, filters
}

// knownTexts are the same for $text, which needs declared paths.
func knownTexts(t *testing.T) (filters []map[string]any) {
	for _, text := range []string{
		`{"a":{"$text":"x"}}`, `{"a":{"$text":"Y X"}}`, `{"a":{"$text":"two words"}}`, `{"a":{"$elemMatch":{"$text":"y x"}}}`, `{"c.b":{"$text":"words x"}}`, `{"c":{"$elemMatch":{"b":{"$text":"words x"}}}}`,
		`{"c":{"$elemMatch":{"b":{"$text":"WORDS two"}}}}`, `{"c":{"$elemMatch":{"b":{"$text":"x"}}}}`, `{"c":{"$not":{"$elemMatch":{"b":{"$text":"x"}}}}}`, `{"b.c":{"$text":"x y"}}`,
		`{"b":{"$elemMatch":{"c":{"$text":"x y"}}}}`, `{"b":{"$elemMatch":{"c":{"$text":"x two"}}}}`, `{"b":{"$not":{"$elemMatch":{"c":{"$text":"y x"}}}}}`,
		`{"b":{"$text":"x"}}`, `{"b":{"$not":{"$text":"x y"}}}`, `{"b":{"$text":"` + strings.Repeat("w", 999) + `"}}`,
	} {
		filters = append(filters, tree(t, text).(map[string]any))
	}
	return filters
}

// TestSearchAgreesWithMatch compares the index with the matcher: over generated
// documents and filters, Search finds exactly what Match accepts, the may query
// at least that and the sure query at most that; the count is the number; and
// the order is that of the documents' sort keys. It does so in the shared index
// and in one with declared nested and full-text paths.
func TestSearchAgreesWithMatch(t *testing.T) {
	fewChecks(t, 12)
	for name, definition := range map[string]collection.Definition{
		"shared":   {Name: "odd"},
		"declared": {Name: "odd", Nested: declaredNested, Text: declaredText},
	} {
		t.Run(name, func(t *testing.T) { agree(t, definition) })
	}
}

func agree(t *testing.T, definition collection.Definition) {
	c := newIndex(t)
	g := collection.First(definition, search.Projector)
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	docs := oddDocuments(t)
	docs = slices.DeleteFunc(docs, func(d doc.Document) bool { return d.ID == "odd/many-names" }) // slow, and not odd in any other way
	cases, caseFilters := knownCases(t)
	docs = append(docs, cases...)
	if len(definition.Text) > 0 {
		caseFilters = append(caseFilters, knownTexts(t)...)
	}
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
	l := language{known: docs, text: definition.Text}
	source := search.Source{Collection: "odd", Generation: &g}
	request := search.Request{From: []search.Source{source}, Limit: 1000, Count: true, Now: at}
	pairs, fromChance := 0, 0
	bounds := func(rt rapid.TB, filters []map[string]any) {
		parsed := make([]filter.Expr, len(filters))
		for i, f := range filters {
			parsed[i] = l.parse(rt, f)
		}
		may, sure, err := search.MayAndSure(t.Context(), c, request, parsed)
		if err != nil {
			rt.Fatal(err)
		}
		for i, e := range parsed {
			for _, d := range docs {
				pairs++
				id, matches := string(d.ID), filter.Match(e, &d)
				if matches && !may[i][id] {
					rt.Fatalf("may misses a match\nfilter %s\ndocument %s %s", value.Append(nil, filters[i]), id, value.Append(nil, d.Data))
				}
				if sure[i][id] && !matches {
					rt.Fatalf("sure finds what does not match\nfilter %s\ndocument %s %s", value.Append(nil, filters[i]), id, value.Append(nil, d.Data))
				}
			}
		}
	}
	check := func(rt rapid.TB, e filter.Expr, described string, keys []search.SortKey) {
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
			rt.Fatalf("%s: %v", described, err)
		}
		slices.SortFunc(matching, func(a, b doc.Document) int { return bySortKeys(a, b, keys) })
		if len(result.Documents) != len(matching) || result.Count != len(matching) || result.Next != "" {
			rt.Fatalf("found %d, counted %d of %d (next %q)\nfilter %s", len(result.Documents), result.Count, len(matching), result.Next, described)
		}
		for i, d := range result.Documents {
			if d.ID != matching[i].ID {
				rt.Fatalf("place %d is %s, not %s\nfilter %s\nsort %s\n%s\n%s", i, d.ID, matching[i].ID, described, sorted(keys),
					value.Append(nil, d.Data), value.Append(nil, matching[i].Data))
			}
			if !value.Equal(d.Data, matching[i].Data) || !d.CreatedAt.Equal(at) || d.Version != matching[i].Version {
				rt.Fatalf("document %s came back as another", d.ID)
			}
		}
	}
	t.Run("known cases", func(t *testing.T) {
		bounds(t, caseFilters)
		for _, f := range caseFilters {
			check(t, l.parse(t, f), string(value.Append(nil, f)), nil)
		}
	})
	generated := t.Run("paths", rapid.MakeCheck(func(rt *rapid.T) {
		asked := pairs
		defer func() { fromChance += pairs - asked }()
		var keys []search.SortKey
		for range rapid.IntRange(0, 2).Draw(rt, "keys") {
			keys = append(keys, search.SortKey{Path: paths().Draw(rt, "sort"), Desc: rapid.Bool().Draw(rt, "desc")})
		}
		filters := rapid.SliceOfN(l.filters(3), 40, 40).Draw(rt, "filters")
		bounds(rt, filters)
		for _, f := range filters[:3] {
			check(rt, l.parse(rt, f), string(value.Append(nil, f)), keys)
		}
	}))
	t.Run("pseudo-fields", rapid.MakeCheck(func(rt *rapid.T) {
		e := pseudoFilters(docs).Draw(rt, "filter")
		check(rt, e, fmt.Sprintf("%#v", e), nil)
	}))
	t.Logf("%d documents, %d pairs of a document and a filter", len(docs), pairs)
	if least := 20_000; generated && fromChance > 0 && fromChance < least {
		t.Errorf("only %d pairs by chance", fromChance)
	}
}

// bySortKeys is the order of an answer, by the documents alone.
func bySortKeys(a, b doc.Document, keys []search.SortKey) int {
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
}

func sorted(keys []search.SortKey) string {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s desc=%v ", k.Path, k.Desc)
	}
	return b.String()
}
