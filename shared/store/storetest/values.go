package storetest

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"encoding/json"
	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// oddValues puts what JSON allows and stores tend to change, and loads it again.
func oddValues(t *testing.T, b *bench) {
	texts := []string{
		`{}`, `{"a":null}`, `{"a":[]}`, `{"a":{}}`, `{"a":""}`, `{"a":[[],{},"",null,[[]]]}`,
		`{"":1}`, `{"":{"":{"":[{"":null}]}}}`, `{"":1,"~":2,"~~":3,"~~~":{"~":{"":0}}}`, `{"~a":1,"a~":2,"~a~":3}`,
		`{"n":12345678901234567890123456789012345678}`, `{"n":0.12345678901234567890123456789012345678}`,
		`{"n":-99999999999999999999999999999999999999}`, `{"n":1e125}`, `{"n":-1e125}`, `{"n":9.9999999999999999999999999999999999999e125}`,
		`{"n":1e-130}`, `{"n":-1e-130}`, `{"n":-0}`, `{"n":1.0}`, `{"n":1e2}`, `{"n":0.1}`, `{"n":1234567890123456789}`, `{"n":1e21}`, `{"n":1e-7}`,
		`{"pk":"x","sk":"y","version":"z","data":{"data":1},"ttl":5,"deleted":true,"nonce":[]}`,
		`{"$json:":"$json:{}","$text:":["$text:","$json:[1]"]}`,
		`{"a.b":{"c/d":{"~1":1}},"$ref":"#","_id":7,"a b":"\ttab","ü":"日本","😀":"😀"}`,
		`{"s":"<script>&amp; \"quoted\" \\back\/slash"}`,
		`{"s":"true","t":true,"f":false,"z":"null","n":"1","a":[true,1,"1",null]}`,
	}
	var controls strings.Builder
	for c := range 0x20 {
		fmt.Fprintf(&controls, `\u%04x`, c)
	}
	texts = append(texts, `{"s":"`+controls.String()+`","`+controls.String()+`":1}`, `{"s":"\u007f\u0080\u2028\u2029\ufeff\uffff\ud83d\ude00"}`)
	for _, depth := range []int{28, 29, 30, 31, 32} {
		arrays := depth - 1
		texts = append(texts,
			strings.Repeat(`{"a":`, depth)+`"leaf"`+strings.Repeat(`}`, depth),
			strings.Repeat(`{"":`, depth-1)+`{}`+strings.Repeat(`}`, depth-1),
			`{"a":`+strings.Repeat(`[`, arrays)+`1.50,"$json:{}","$text:x","$json:",null`+strings.Repeat(`]`, arrays)+`}`,
			`{"a":`+strings.Repeat(`[`, arrays)+strings.Repeat(`]`, arrays)+`}`,
		)
	}
	for i, text := range texts {
		data := object(t, text)
		id := doc.ID(fmt.Sprintf("odd/%d", i))
		b.put(t, id, data)
		b.same(t, id, data)
		many, err := b.Store.LoadMany(b.ctx, []doc.ID{id}, 0)
		if err != nil || !value.Equal(many.Documents[id].Data, data) {
			t.Errorf("load of many: %v, got %s, put %s", err, value.Append(nil, many.Documents[id].Data), text)
		}
	}
}

// roundTrip holds for all documents what oddValues holds for some.
func roundTrip(t *testing.T, b *bench) {
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		data := Document().Draw(rt, "data")
		n++
		id := doc.ID(fmt.Sprintf("round/%d", n%7)) // over older ones too
		w := b.put(rt, id, data)
		got := b.load(rt, id)
		if !value.Equal(got.Data, data) {
			rt.Fatalf("got %s, put %s", value.Append(nil, got.Data), value.Append(nil, data))
		}
		if got.Version != w.Version {
			rt.Fatalf("version %d, written %d", got.Version, w.Version)
		}
	})
}

// Document generates valid documents, the odd ones more often than life does.
func Document() *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		data := tree(t, 3)
		if rapid.IntRange(0, 9).Draw(t, "deep") == 0 {
			// Under a chain of containers, where stores come to their limits.
			for range rapid.IntRange(20, value.MaxDepth-5).Draw(t, "levels") {
				data = map[string]any{name(t): data}
			}
		}
		if m, ok := data.(map[string]any); ok {
			return m
		}
		return map[string]any{name(t): data}
	})
}

func tree(t *rapid.T, depth int) any {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return number(t)
	case 3, 4:
		return text(t)
	case 5:
		array := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "elements") {
			array = append(array, tree(t, depth-1))
		}
		return array
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		object[name(t)] = tree(t, depth-1)
	}
	return object
}

func name(t *rapid.T) string {
	if rapid.IntRange(0, 3).Draw(t, "odd name") == 0 {
		return rapid.SampledFrom([]string{"", "~", "~~", "~a", ".", "$", "$json:", "data", "pk", "\x00", "a.b", "/", "é"}).Draw(t, "name")
	}
	return rapid.StringN(0, 8, -1).Draw(t, "name")
}

func text(t *rapid.T) string {
	if rapid.IntRange(0, 3).Draw(t, "odd text") == 0 {
		return rapid.SampledFrom([]string{"", "$json:{}", "$json:[", "$text:", "$text:$json:1", "\x00\x1f", "~", "null", "\u2028", "😀"}).Draw(t, "text")
	}
	return rapid.String().Draw(t, "text")
}

// number draws from the whole range: any digits, any exponent.
func number(t *rapid.T) json.Number {
	if rapid.Bool().Draw(t, "small") {
		n, err := value.Number(fmt.Sprint(rapid.Int64().Draw(t, "int")))
		if err != nil {
			t.Fatalf("%v", err)
		}
		return n
	}
	digits := rapid.StringMatching(`[1-9][0-9]{0,37}`).Draw(t, "digits")
	exponent := rapid.IntRange(-130, 125-len(digits)+1).Draw(t, "exponent")
	sign := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign")
	n, err := value.Number(fmt.Sprintf("%s%se%d", sign, digits, exponent))
	if err != nil {
		t.Fatalf("%se%d: %v", digits, exponent, err)
	}
	return n
}

// size finds the largest document that is taken and proves that one byte more
// is refused, with the limit and its own size.
func size(t *testing.T, b *bench) {
	if !b.ItemLimit {
		t.Skip("this store does not claim the limit")
	}
	const limit = 400 << 10
	id := doc.ID("sizes/" + strings.Repeat("é", 40))
	with := func(n int) map[string]any {
		return map[string]any{
			"text": strings.Repeat("x", n), "": []any{nil, true, json.Number("-1.5"), map[string]any{"ü": json.Number("100")}},
		}
	}
	_, err := b.Store.Put(b.ctx, id, with(limit), doc.Condition{})
	e := wantKind(t, err, doc.DocumentTooLarge)
	actual, ok := e.Members["actual"].(int)
	if !ok || e.Members["limit"] != limit {
		t.Fatalf("members %v", e.Members)
	}
	fits := limit - (actual - limit)
	_, err = b.Store.Put(b.ctx, id, with(fits+1), doc.Condition{})
	if e := wantKind(t, err, doc.DocumentTooLarge); e.Members["actual"] != limit+1 {
		t.Errorf("members %v, want one more than the limit", e.Members)
	}
	if _, err := b.Store.Load(b.ctx, id); doc.KindOf(err) != doc.NotFound {
		t.Errorf("after the refusals: %v", err)
	}
	b.put(t, id, with(fits))
	b.same(t, id, with(fits))
	b.put(t, id, with(fits-1))
	b.same(t, id, with(fits-1))
	_, err = b.Store.Put(b.ctx, id, map[string]any{"a": []any{map[string]any{strings.Repeat("n", 64<<10): nil}}}, doc.Condition{})
	if e := wantKind(t, err, doc.DocumentTooLarge); e.Members["pointer"] != "/a/0" {
		t.Errorf("a name too long: members %v", e.Members)
	}
}

// ids puts under odd ids and sees that none stands for another.
func ids(t *testing.T, b *bench) {
	long := strings.Repeat("日", (doc.MaxIDBytes-4)/3)
	texts := []string{
		"a/b", "a/B", "A/b", "a/b/c", "a/b/c/d", "a/b /c", "a b/c+d", "a/%2F", "a/%252F", "a/?x=1", "a/#f", "a/&", "a/\"", `a/\`, "a/ü", "a/u\u0308",
		"a/😀", "a/...", "a/.b", "a/~", "a/*", "a/1", "a/01", "a/1/", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p",
		"x/" + long, long + "/x", "x/y/" + strings.Repeat("z", doc.MaxIDBytes-4),
	}
	var kept []doc.ID
	for _, s := range texts {
		id, err := doc.ParseID(s)
		if err != nil {
			continue // not an id, so nothing for a store to keep
		}
		kept = append(kept, id)
	}
	kept = append(kept, "$canary/x")
	if len(kept) < len(texts)-1 {
		t.Fatalf("only %d of %d are ids", len(kept), len(texts))
	}
	for i, id := range kept {
		if w := b.put(t, id, counter(i)); !w.Created || w.ID != id {
			t.Errorf("%s: %+v, want it created: another id stands for it", id, w)
		}
	}
	many, err := b.Store.LoadMany(b.ctx, kept, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range kept {
		got := b.load(t, id)
		if got.ID != id || !value.Equal(got.Data, counter(i)) || !value.Equal(many.Documents[id].Data, counter(i)) {
			t.Errorf("%s: got %s", id, value.Append(nil, got.Data))
		}
	}
}
