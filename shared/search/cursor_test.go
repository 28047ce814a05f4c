package search_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

func sortValue() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Map(rapid.SampledFrom(someStrings), func(s string) any { return search.OrderKey(s) }),
		rapid.Map(rapid.Int64(), func(n int64) any { return json.Number(strconv.FormatInt(n, 10)) }),
	)
}

func TestAlteredCursorsAreRefused(t *testing.T) {
	key, other := []byte("one secret"), []byte("another secret")
	rapid.Check(t, func(t *rapid.T) {
		after := rapid.SliceOfN(sortValue(), 1, 4).Draw(t, "position")
		cursor, err := search.EncodeCursor(key, "query", after)
		if err != nil {
			t.Fatal(err)
		}
		got, err := search.DecodeCursor(key, cursor, "query", len(after))
		if err != nil || !reflect.DeepEqual([]any(got), after) {
			t.Fatalf("%v came back as %v, %v", after, got, err)
		}
		refused := func(what string, key []byte, cursor, query string, keys int, want doc.Kind) {
			if _, err := search.DecodeCursor(key, cursor, query, keys); doc.KindOf(err) != want {
				t.Fatalf("%s: %v", what, err)
			}
		}
		refused("another query", key, cursor, "other", len(after), doc.CursorMismatch)
		refused("another key", other, cursor, "query", len(after), doc.InvalidCursor)
		refused("another number of keys", key, cursor, "query", len(after)+1, doc.InvalidCursor)
		raw, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil {
			t.Fatal(err)
		}
		raw[rapid.IntRange(0, len(raw)-1).Draw(t, "byte")] ^= byte(rapid.IntRange(1, 255).Draw(t, "change"))
		refused("a byte altered", key, base64.RawURLEncoding.EncodeToString(raw), "query", len(after), doc.InvalidCursor)
		cut := rapid.IntRange(0, len(cursor)-1).Draw(t, "cut")
		refused("shortened", key, cursor[:cut], "query", len(after), doc.InvalidCursor)
		refused("lengthened", key, cursor+"AAAA", "query", len(after), doc.InvalidCursor)
	})
}

// TestCursorsBelongToOneFilter takes care that no two filters share cursors.
func TestCursorsBelongToOneFilter(t *testing.T) {
	l := language{known: oddDocuments(t), text: declaredText}
	rapid.Check(t, func(t *rapid.T) {
		f := l.filters(3).Draw(t, "filter")
		g := l.filters(3).Draw(t, "other")
		if rapid.Bool().Draw(t, "near") {
			// The same but for one operand.
			text := string(value.Append(nil, f))
			g = tree(t, strings.Replace(text, "1", "2", rapid.IntRange(0, 3).Draw(t, "changes"))).(map[string]any)
		}
		e, err := filter.Parse(g, filter.ParseOptions{Text: l.text})
		if err != nil {
			t.Skip("no filter any more")
		}
		same := reflect.DeepEqual(l.parse(t, f), e)
		if equal := search.QueryName(search.Request{Filter: l.parse(t, f)}) == search.QueryName(search.Request{Filter: e}); equal != same {
			t.Fatalf("cursors are shared: %v\n%s\n%s", equal, value.Append(nil, f), value.Append(nil, g))
		}
	})
}

func TestTheKeyOfCursorsIsReadOnce(t *testing.T) {
	reads, broken := 0, errors.New("no table")
	fail := true
	c, err := search.NewClient(search.Options{URL: "http://index", Prefix: "x", Transport: &capture{}, CursorKey: func(context.Context) ([]byte, error) {
		reads++
		if fail {
			return nil, broken
		}
		return []byte("secret"), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := search.Request{From: sourcesOf("things"), Filter: filter.And{}, Limit: 1}
	if _, err := c.Search(t.Context(), r); !errors.Is(err, broken) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := c.Search(t.Context(), search.Request{From: r.From, Count: true}); err != nil {
		t.Errorf("a count needs no key: %v", err)
	}
	fail = false
	for range 3 {
		if _, err := c.Search(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if reads != 2 {
		t.Errorf("the key was read %d times", reads)
	}
	cursor, err := search.EncodeCursor([]byte("secret"), search.QueryName(r), []any{"things/1"})
	if err != nil {
		t.Fatal(err)
	}
	r.After = cursor
	if _, err := c.Search(t.Context(), r); err != nil {
		t.Errorf("a cursor of another process with the same key: %v", err)
	}
}
