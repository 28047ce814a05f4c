package search_test

import (
	"cmp"
	"encoding/json"
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

// longTexts are strings about the place where the index cuts them: few
// beginnings, which end before the cut, at it and after it, and tails of code
// points of every length, so that many share all that the index keeps, and some
// what it keeps with an end of their own.
func longTexts() *rapid.Generator[string] {
	tails := []string{"", "\x00", "\x00\x00", "a", "b", "\u007f", "é", "\u0080", "\u0800", "東", "\uffff", "😀", "\U00010000", "\U0010FFFF"}
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		b.WriteString(strings.Repeat(rapid.SampledFrom([]string{"x", "x", "y"}).Draw(t, "fill"), search.Cut-rapid.SampledFrom([]int{-1, 0, 1, 3, 4, 4, 5, 5, 6, 6, 6, 9}).Draw(t, "room")))
		for range rapid.IntRange(0, 5).Draw(t, "tails") {
			b.WriteString(rapid.SampledFrom(tails).Draw(t, "tail"))
		}
		if rapid.IntRange(0, 3).Draw(t, "goes on") == 0 {
			b.WriteString(strings.Repeat("z", rapid.SampledFrom([]int{1, 300, 301, 5000}).Draw(t, "further")))
			b.WriteString(rapid.SampledFrom(tails).Draw(t, "end"))
		}
		return b.String()
	})
}

// crowdedValues are mostly long texts, alone and in arrays, and now and then
// something else.
func crowdedValues() *rapid.Generator[any] {
	text := rapid.Map(longTexts(), func(s string) any { return s })
	odd := rapid.SampledFrom([]any{nil, true, json.Number("7"), "", "x", "é", []any{}, map[string]any{}, strings.Repeat("x", 500)})
	return rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			return odd.Draw(t, "odd")
		case 1, 2:
			return rapid.SliceOfN(rapid.OneOf(text, text, odd), 0, 3).Draw(t, "array")
		}
		return text.Draw(t, "text")
	})
}

// crowdedDocuments have a and b to sort by. Texts are drawn from a few, so that
// there are ties.
func crowdedDocuments(t *rapid.T, many int) []doc.Document {
	values := rapid.SliceOfN(crowdedValues(), 1, many).Draw(t, "values")
	one := rapid.SampledFrom(values)
	first := one
	if rapid.Bool().Draw(t, "ties") {
		first = rapid.SampledFrom(values[:min(2, len(values))])
	}
	docs := make([]doc.Document, rapid.IntRange(1, many).Draw(t, "documents"))
	for i := range docs {
		docs[i] = doc.Document{
			ID: doc.ID(fmt.Sprintf("crowds/%02d", i)), CreatedAt: at, UpdatedAt: at, Data: map[string]any{"a": first.Draw(t, "a")},
			Version: doc.VersionAt(at) + doc.Version(rapid.IntRange(0, 2).Draw(t, "version")),
		}
		if rapid.Bool().Draw(t, "has b") {
			docs[i].Data["b"] = one.Draw(t, "b")
		}
	}
	return docs
}

func crowdedSorts() *rapid.Generator[[]search.SortKey] {
	return rapid.Custom(func(t *rapid.T) []search.SortKey {
		var keys []search.SortKey
		for _, name := range rapid.SampledFrom([][]string{{"a"}, {"a"}, {"a", "b"}, {"b", "a"}, {"$version", "a"}, {"a", "$version"}, {"a", "$root", "b"}, {"a", "$id"}, {"b", "a", "$createdAt"}}).Draw(t, "keys") {
			k := search.SortKey{Desc: rapid.Bool().Draw(t, "desc")}
			if strings.HasPrefix(name, "$") {
				k.Pseudo = name
			} else {
				k.Path = value.PathOf(name)
			}
			keys = append(keys, k)
		}
		return keys
	})
}

// byContent is the order of an answer, by the documents alone.
func byContent(a, b doc.Document, keys []search.SortKey) int {
	for _, k := range keys {
		var c int
		switch k.Pseudo {
		case "":
			c = value.Compare(k.Path.SortKey(a.Data, k.Desc), k.Path.SortKey(b.Data, k.Desc))
		case filter.ID:
			c = cmp.Compare(a.ID, b.ID)
		case filter.Root:
			c = cmp.Compare(a.ID.Root(), b.ID.Root())
		case filter.Version:
			c = cmp.Compare(a.Version, b.Version)
		}
		if k.Desc {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(a.ID, b.ID)
}

// TestCursorsAmongLongStrings takes a cursor behind any of some documents and
// looks on which side of it each of them is: by content in full, however long
// the strings are and however little of them the cursor has.
func TestCursorsAmongLongStrings(t *testing.T) {
	fewChecks(t, 3000) // quick ones
	rapid.Check(t, func(rt *rapid.T) {
		docs := crowdedDocuments(rt, 12)
		keys := crowdedSorts().Draw(rt, "sort")
		last := rapid.SampledFrom(docs).Draw(rt, "last")
		past := rapid.Bool().Draw(rt, "past")
		c, err := search.CursorAmong(keys, docs, last, past)
		if err != nil {
			rt.Fatal(err)
		}
		if most := 8 << 10 * len(keys) * 3; c.Size > most {
			rt.Fatalf("a cursor of %d bytes", c.Size)
		}
		for _, d := range docs {
			after := byContent(d, last, keys) > 0
			if past && c.Shares(d) {
				after = false
			}
			if c.After(d) != after {
				rt.Fatalf("%s after %s: %v", d.ID, last.ID, !after)
			}
			switch {
			case c.Shares(d) && !past:
				after = true // a crowd is fetched as a whole
			case past && c.Shares(d):
				after = false
			}
			if c.Fetched(d) != after {
				rt.Fatalf("%s is fetched after %s: %v", d.ID, last.ID, !after)
			}
		}
	})
}

// Neither the text that a page compares nor a cursor grows without end.
func TestCrowdsHaveLimits(t *testing.T) {
	keys := []search.SortKey{{Path: value.PathOf("a")}}
	crowd := func(many int, text func(i int) string) (docs []doc.Document) {
		for i := range many {
			docs = append(docs, doc.Document{ID: doc.ID(fmt.Sprintf("crowds/%04d", i)), Data: map[string]any{"a": text(i)}})
		}
		return docs
	}
	large := strings.Repeat("x", 390_000)
	many := search.MaxCrowdText/len(large) + 1
	if docs := crowd(10*many, func(i int) string { return large + fmt.Sprint(i%10) }); true {
		if c, err := search.CursorAmong(keys, docs, docs[5], false); err != nil || c.Size > 12_000 {
			t.Errorf("few texts in many documents: %d bytes, %v", c.Size, err)
		}
	}
	docs := crowd(many, func(i int) string { return large + fmt.Sprint(i) })
	if _, err := search.CursorAmong(keys, docs, docs[5], false); doc.KindOf(err) != doc.QueryTooCostly {
		t.Errorf("much text: %v", err)
	}
	staircase := func(i int) string { return strings.Repeat("x", search.Cut+i) + "y" }
	docs = crowd(search.MaxTurnBytes/2+10, staircase)
	if _, err := search.CursorAmong(keys, docs, docs[len(docs)-1], false); doc.KindOf(err) != doc.QueryTooCostly {
		t.Errorf("many turns: %v", err)
	}
	docs = docs[:search.MaxTurnBytes/4]
	slices.Reverse(docs)
	c, err := search.CursorAmong(keys, docs, docs[0], false)
	if err != nil || c.Size > 20_000 {
		t.Fatalf("%d bytes, %v", c.Size, err)
	}
	for _, d := range docs {
		if c.After(d) != (byContent(d, docs[0], keys) > 0) {
			t.Fatalf("%s stands on the wrong side", d.ID)
		}
	}
}
