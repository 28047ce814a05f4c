package search_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"holdfast/shared/search"
)

// What is written without reflection is what encoding/json writes.
func TestRequestsAreWrittenAsJSON(t *testing.T) {
	leaf := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Int(), func(n int) any { return n }), rapid.Map(rapid.Int64(), func(n int64) any { return n }),
		rapid.Map(rapid.Float64Range(-1e300, 1e300), func(f float64) any { return f }), rapid.Map(rapid.SliceOf(rapid.Float64Range(-1, 1)), func(f []float64) any { return f }),
		rapid.Map(rapid.SliceOf(rapid.String()), func(s []string) any { return s }), rapid.SampledFrom([]any{nil, json.Number("1.50e3"), json.RawMessage(`{"a":[1]}`), []json.Number{"1", "2.5"}}),
	)
	var tree func(depth int) *rapid.Generator[any]
	tree = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf,
			rapid.Map(rapid.MapOfN(rapid.String(), tree(depth-1), 0, 12), func(m map[string]any) any { return m }),
			rapid.Map(rapid.SliceOfN(tree(depth-1), 0, 3), func(l []any) any { return l }),
			rapid.Map(rapid.SliceOfN(rapid.MapOfN(rapid.String(), tree(depth-1), 0, 2), 0, 3), func(l []map[string]any) any { return l }),
		)
	}
	rapid.Check(t, func(rt *rapid.T) {
		v := tree(4).Draw(rt, "tree")
		got, err := search.AppendDSL([]byte("x"), v)
		if err != nil {
			rt.Fatal(err)
		}
		want, err := json.Marshal(v)
		if err != nil {
			rt.Fatal(err)
		}
		if string(got[:1]) != "x" || !reflect.DeepEqual(jsonTree(rt, string(got[1:])), jsonTree(rt, string(want))) {
			rt.Fatalf("got  %s\nwant %s", got, want)
		}
		again, _ := search.AppendDSL([]byte("x"), v)
		if string(again) != string(got) {
			rt.Fatalf("once %s\nthen %s", got, again)
		}
	})
	if _, err := search.AppendDSL(nil, map[string]any{"a": []any{make(chan int)}}); err == nil {
		t.Error("a channel was written")
	}
}

// jsonTree differs from null where text is not JSON alone.
func jsonTree(t rapid.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestStringsAreUnquoted(t *testing.T) {
	check := func(t rapid.TB, quoted string) {
		t.Helper()
		var want string
		if err := json.Unmarshal([]byte(`"`+quoted+`"`), &want); err != nil {
			t.Fatalf("%q: %v", quoted, err)
		}
		if got, err := search.Unquote([]byte(quoted)); err != nil || got != want {
			t.Fatalf("%q: got %q, want %q, %v", quoted, got, want, err)
		}
	}
	for _, quoted := range []string{
		``, `plain`, `é東😀`, `\"`, `\\`, `\/`, `\n\t\r\b\f`, `\u0000`, `\u00e9x`, `\ud83d\ude00`, `a\"b\\c\nd`, `\\u0041`, `\\\u0041\"`, `{\"a\":\"x\\n\\\"y\"}`, `x\u2028\\`,
	} {
		check(t, quoted)
	}
	rapid.Check(t, func(rt *rapid.T) {
		text, err := json.Marshal(rapid.String().Draw(rt, "text"))
		if err != nil {
			rt.Fatal(err)
		}
		check(rt, string(text[1:len(text)-1]))
		twice, err := json.Marshal(string(text))
		if err != nil {
			rt.Fatal(err)
		}
		check(rt, string(twice[1:len(twice)-1]))
	})
}
