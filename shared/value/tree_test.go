package value_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/shared/value"
)

// parse reads the JSON that a test states.
func parse(t testing.TB, text string) any {
	t.Helper()
	v, err := value.Decode([]byte(text), value.MaxDepth)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	return parse(t, text).(map[string]any)
}

// tree draws a value with at most levels of containers. Names and strings are
// few and short besides odd, so that equal ones occur.
func tree(levels int) *rapid.Generator[any] {
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "b", "a.b", "$a", "/", "~", "0", "1", "\x00", "\"\\\n", "é", "e\u0301", "😀", "\uffff", "2024-01-01T00:00:00Z"}),
		rapid.String(),
	)
	number := rapid.Custom(func(t *rapid.T) any {
		n, err := value.Number(numberText().Draw(t, "number"))
		if err != nil {
			return json.Number("0")
		}
		return n
	})
	scalar := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.IntRange(-2, 2), func(n int) any { return json.Number(fmt.Sprint(n)) }),
		number,
	)
	if levels == 0 {
		return scalar
	}
	below := rapid.Deferred(func() *rapid.Generator[any] { return tree(levels - 1) })
	return rapid.OneOf(
		scalar,
		rapid.Map(rapid.SliceOfN(below, 0, 4), func(a []any) any { return append([]any{}, a...) }),
		rapid.Map(rapid.MapOfN(text, below, 0, 4), func(m map[string]any) any { return m }),
	)
}

// clone copies a tree, its members in another order of insertion.
func clone(v any) any {
	switch v := v.(type) {
	case []any:
		c := make([]any, len(v))
		for i := range v {
			c[i] = clone(v[i])
		}
		return c
	case map[string]any:
		names := slices.Collect(maps.Keys(v))
		rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		c := map[string]any{}
		for _, name := range names {
			c[name] = clone(v[name])
		}
		return c
	}
	return v
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := tree(4).Draw(t, "v")
		before := clone(v)
		text := value.Append([]byte("prefix"), v)[len("prefix"):]
		got, err := value.Decode(text, value.MaxDepth)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !reflect.DeepEqual(got, v) || !value.Equal(got, v) {
			t.Fatalf("%s came back as %#v", text, got)
		}
		if !reflect.DeepEqual(before, v) {
			t.Fatalf("writing changed %#v to %#v", before, v)
		}
		if !json.Valid(text) {
			t.Fatalf("not JSON: %s", text)
		}
		if other := value.Append(nil, before); string(other) != string(text) {
			t.Fatalf("one value, two texts: %s and %s", text, other)
		}
	})
}

func TestEqualIsEqualityOfCanonicalText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := tree(2).Draw(t, "a"), tree(2).Draw(t, "b")
		if rapid.Bool().Draw(t, "same") {
			b = clone(a)
		}
		want := string(value.Append(nil, a)) == string(value.Append(nil, b))
		if got := value.Equal(a, b); got != want {
			t.Fatalf("Equal = %v, texts say %v", got, want)
		}
		x, y := map[string]any{"v": a}, map[string]any{"v": b}
		if (value.Sum(x) == value.Sum(y)) != want {
			t.Fatalf("sums %s and %s, equal: %v", value.Sum(x), value.Sum(y), want)
		}
	})
}

func TestEqualTellsApart(t *testing.T) {
	different := []string{`null`, `{}`, `[]`, `""`, `0`, `false`, `true`, `1`, `"1"`, `"0"`, `"null"`, `[null]`, `{"a":null}`, `{"b":null}`, `[[]]`, `[1,2]`, `[2,1]`, `9007199254740993`, `9007199254740992`, `"é"`, `"e` + "\u0301" + `"`}
	for i, a := range different {
		for j, b := range different {
			if got := value.Equal(parse(t, a), parse(t, b)); got != (i == j) {
				t.Errorf("Equal(%s, %s) = %v", a, b, got)
			}
		}
	}
	if !value.Equal(parse(t, `{"a":1,"b":[1.0,-0]}`), parse(t, `{"b":[1e0,0],"a":1.00}`)) {
		t.Error("one document written in two ways is not equal")
	}
}

func TestSumIsStable(t *testing.T) {
	// The sum is stored in the index: another text or hash would make every document differ.
	if got, want := value.Sum(object(t, `{"b":[1.0,"é\n"],"a":null}`)), "c46d0a23acf19afe51d9fc9a08040e14"; got != want {
		t.Errorf("Sum = %s, want %s", got, want)
	}
}

func TestAppendReplacesBytesThatAreNoText(t *testing.T) {
	if got := string(value.Append(nil, map[string]any{"a\xffb": "\xc3"})); got != "{\"a\ufffdb\":\"\ufffd\"}" {
		t.Errorf("%q", got)
	}
}

func TestCompareFollowsTheOrderOfTypes(t *testing.T) {
	// Each line is one place in the order; what stands in a line compares as equal.
	places := [][]string{
		{`null`, `{}`, `{"a":5}`, `[]`, `[[]]`, `[null,7]`, `[{"a":1},9]`, `[[],1]`},
		{`-1e125`}, {`-5`, `[-5]`, `[3,-5,"x"]`, `[true,[1,[-5]]]`}, {`0`}, {`1e-130`}, {`0.5`}, {`9007199254740992`}, {`9007199254740993`}, {`1e125`},
		{`""`}, {`"A"`}, {`"a"`, `["b","a",true]`}, {`"é"`}, {`"` + "\uffff" + `"`}, {`"😀"`},
		{`false`, `[false,true]`}, {`true`, `[true]`},
	}
	for i, line := range places {
		for j, other := range places {
			for _, a := range line {
				for _, b := range other {
					want := 0
					if i < j {
						want = -1
					} else if i > j {
						want = 1
					}
					if got := value.Compare(parse(t, a), parse(t, b)); got != want {
						t.Errorf("Compare(%s, %s) = %d, want %d", a, b, got, want)
					}
				}
			}
		}
	}
}

func TestSortKeyOfArrays(t *testing.T) {
	tests := []struct{ v, ascending, descending string }{
		{`5`, `5`, `5`},
		{`{"a":1}`, `null`, `null`},
		{`[]`, `null`, `null`},
		{`[3,1,2]`, `1`, `3`},
		{`["b",7,true]`, `7`, `true`},
		{`[null,7]`, `null`, `7`},
		{`[{"a":1},7]`, `null`, `7`},
		{`[[],[2,[9]],5]`, `null`, `9`},
	}
	for _, test := range tests {
		if got := value.SortKey(parse(t, test.v), false); !value.Equal(got, parse(t, test.ascending)) {
			t.Errorf("SortKey(%s, ascending) = %v, want %s", test.v, got, test.ascending)
		}
		if got := value.SortKey(parse(t, test.v), true); !value.Equal(got, parse(t, test.descending)) {
			t.Errorf("SortKey(%s, descending) = %v, want %s", test.v, got, test.descending)
		}
	}
}

func TestCompareIsAnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := tree(2).Draw(t, "a"), tree(2).Draw(t, "b"), tree(2).Draw(t, "c")
		if value.Compare(a, a) != 0 {
			t.Fatal("a value differs from itself")
		}
		if value.Compare(a, b) != -value.Compare(b, a) {
			t.Fatal("the order depends on the side")
		}
		if value.Compare(a, b) <= 0 && value.Compare(b, c) <= 0 && value.Compare(a, c) > 0 {
			t.Fatal("not transitive")
		}
		if value.Equal(a, b) && value.Compare(a, b) != 0 {
			t.Fatal("equal values are ordered")
		}
	})
}

// sample is a document of about 2 KB.
var sample = func() string {
	var b strings.Builder
	b.WriteString(`{"company":"Alfreds Futterkiste","customer":"customers/ALFKI","freight":29.46,"orderDate":"1997-08-25T00:00:00Z","shipAddress":{"city":"Berlin","country":"Germany","street":"Obere Str. 57","zip":12209},"details":[`)
	for i := range 16 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"product":"products/%d","name":"Rössle Sauerkraut %d","quantity":%d,"price":%d.65,"discount":0.25,"gift":false}`, i, i, i*3, i)
	}
	b.WriteString(`]}`)
	return b.String()
}()

func BenchmarkDecode(b *testing.B) {
	text := []byte(sample)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := value.DecodeDocument(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	v := object(b, sample)
	var buffer []byte
	b.SetBytes(int64(len(sample)))
	b.ReportAllocs()
	for b.Loop() {
		buffer = value.Append(buffer[:0], v)
	}
}

func BenchmarkCompareNumbers(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		value.CompareNumbers("123.456", "123.457")
	}
}
