package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// anyValue generates valid values, odd ones often.
func anyValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 5
		if depth > 0 {
			kinds = 8
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return json.Number(fmt.Sprint(rapid.Int64().Draw(t, "int")))
		case 3:
			return rapid.SampledFrom([]string{"", "$json:{}", "$json:[1]", "$json:", "$text:", "$text:$json:", "$"}).Draw(t, "odd text")
		case 4:
			return rapid.String().Draw(t, "text")
		case 5:
			return rapid.SliceOfN(anyValue(depth-1), 0, 3).Draw(t, "array")
		}
		names := rapid.OneOf(rapid.SampledFrom([]string{"", "~", "~~", "~~~", "a~", "~a"}), rapid.StringN(0, 5, -1))
		return rapid.MapOfN(names, anyValue(depth-1), 0, 3).Draw(t, "object")
	})
}

func anyDocument() *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		v := anyValue(3).Draw(t, "value")
		// Half of them as deep as they may be.
		levels := rapid.SampledFrom([]int{0, 0, 1, 5, value.MaxDepth - 8, value.MaxDepth - 5, value.MaxDepth - 4, value.MaxDepth - 4}).Draw(t, "levels")
		for i := range levels {
			if i%3 == 1 {
				v = []any{v, "$json:x"}
			} else {
				v = map[string]any{"": v}
			}
		}
		data := map[string]any{"v": v}
		if depth := value.Depth(data); depth > value.MaxDepth {
			t.Fatalf("generated %d levels", depth)
		}
		return data
	})
}

func TestCodecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := anyDocument().Draw(t, "data")
		encoded, err := encodeData(data)
		if err != nil {
			t.Fatal(err)
		}
		checkLimits(t, encoded, 1)
		decoded, err := decodeMap(encoded.Value, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !value.Equal(data, decoded) {
			t.Fatalf("%s became %s", value.Append(nil, data), value.Append(nil, decoded))
		}
	})
}

// checkLimits fails for what DynamoDB would refuse: an empty name, or a level
// beyond the documented 32, the attribute itself being the first.
func checkLimits(t *rapid.T, v types.AttributeValue, level int) {
	if level > 32 {
		t.Fatalf("a value on level %d", level)
	}
	switch v := v.(type) {
	case *types.AttributeValueMemberM:
		for name, member := range v.Value {
			if name == "" {
				t.Fatalf("an empty name")
			}
			checkLimits(t, member, level+1)
		}
	case *types.AttributeValueMemberL:
		for _, element := range v.Value {
			checkLimits(t, element, level+1)
		}
	}
}

func TestEscapedNamesDoNotCollide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.StringMatching(`[~a]{0,4}`)
		a, b := names.Draw(t, "a"), names.Draw(t, "b")
		if unescapeName(escapeName(a)) != a {
			t.Fatalf("%q is stored as %q and read as %q", a, escapeName(a), unescapeName(escapeName(a)))
		}
		if (a == b) != (escapeName(a) == escapeName(b)) || escapeName(a) == "" {
			t.Fatalf("%q and %q are stored as %q and %q", a, b, escapeName(a), escapeName(b))
		}
	})
}

func TestDecodeDeepKeepsOtherToolsText(t *testing.T) {
	for _, s := range []string{"$json:", "$json:{", "$json:1", `$json:"x"`, "$text:", "$text:x", "plain", `$json:{"a":1,"a":2}`} {
		if v := decodeDeep(s); v != s {
			t.Errorf("%q was read as %v", s, v)
		}
	}
}

func TestEncodeRefusals(t *testing.T) {
	long := strings.Repeat("n", maxNameBytes)
	if _, err := encodeData(map[string]any{long: nil}); err != nil {
		t.Errorf("the longest name: %v", err)
	}
	_, err := encodeData(map[string]any{"a/b": []any{nil, map[string]any{long + "n": nil}}})
	var e *doc.Error
	if !errors.As(err, &e) || e.Kind != doc.DocumentTooLarge || e.Members["pointer"] != "/a~1b/1" || e.Members["limit"] != maxNameBytes {
		t.Errorf("a longer name: %v", err)
	}
	if _, err := encodeData(map[string]any{"a": 1.5}); err == nil || doc.KindOf(err) != doc.Internal {
		t.Errorf("what is no value: %v", err)
	}
}

func TestDecodeItemNeverPanics(t *testing.T) {
	odd := []types.AttributeValue{
		nil, str(""), str("/"), str("x/y"), str("$x/y"), str("-1"), num(-5), num(0), num(7), &types.AttributeValueMemberN{Value: "1e99"}, &types.AttributeValueMemberN{Value: "x"},
		trueValue, &types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberM{}, &types.AttributeValueMemberL{Value: []types.AttributeValue{nil}},
		&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"": nil, "~": &types.UnknownUnionMember{}}}, &types.AttributeValueMemberB{}, &types.AttributeValueMemberSS{},
	}
	attrs := []string{attrPK, attrSK, attrVersion, attrNonce, attrCreatedAt, attrUpdatedAt, attrData, attrDeleted, attrExpiresAt, attrTTL, attrBucket, attrCollection}
	rapid.Check(t, func(t *rapid.T) {
		item := map[string]types.AttributeValue{}
		if rapid.Bool().Draw(t, "valid key") {
			item = itemKey("users/1")
		}
		for _, attr := range attrs[len(item):] {
			if rapid.Bool().Draw(t, attr) {
				item[attr] = rapid.SampledFrom(odd).Draw(t, "value")
			}
		}
		d, err := DecodeItem(item)
		if err == nil && (d.ID == "" || d.Version <= 0 || d.Deleted == (d.Data != nil)) {
			t.Fatalf("%v was read as %+v", item, d)
		}
	})
}

func TestItemIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segments := rapid.SliceOfN(rapid.StringMatching(`[a-c.$ é]{1,3}`), 2, 6).Draw(t, "segments")
		id, err := doc.ParseID(strings.Join(segments, "/"))
		if err != nil {
			t.Skip()
		}
		if got, err := itemID(itemKey(id)); err != nil || got != id {
			t.Fatalf("%s was read as %s, %v", id, got, err)
		}
	})
	for _, key := range [][2]string{{"users/1", "x"}, {"users", "/"}, {"users", "/1"}, {"users/1/2", "/"}, {"users/1", ""}, {"users/1", "//"}, {"users/1", "/a/"}, {"", "/"}, {"$/x", "/"}} {
		if id, err := itemID(map[string]types.AttributeValue{attrPK: str(key[0]), attrSK: str(key[1])}); err == nil {
			t.Errorf("%v was read as %s", key, id)
		}
	}
}

func benchmarkDocument() map[string]any {
	lines := make([]any, 20)
	for i := range lines {
		lines[i] = map[string]any{"product": fmt.Sprintf("products/%d", i), "quantity": json.Number("12"), "price": json.Number("13.75"), "note": "a few words about it"}
	}
	return map[string]any{"customer": "customers/7", "orderDate": "2026-01-02T03:04:05Z", "lines": lines, "shipped": true}
}

func BenchmarkEncode(b *testing.B) {
	data := benchmarkDocument()
	b.SetBytes(int64(len(value.Append(nil, data))))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encodeData(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data := benchmarkDocument()
	encoded, err := encodeData(data)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(value.Append(nil, data))))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeMap(encoded.Value, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDocumentSize(b *testing.B) {
	encoded, err := encodeData(benchmarkDocument())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		documentSize("orders/1", encoded, 3)
	}
}
