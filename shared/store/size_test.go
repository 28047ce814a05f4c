package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// The sizes of values, as an engine that follows DynamoDB measures them.
func TestAttributeSize(t *testing.T) {
	list := func(v ...types.AttributeValue) types.AttributeValue { return &types.AttributeValueMemberL{Value: v} }
	n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	for _, c := range []struct {
		v    types.AttributeValue
		want int
	}{
		{str("abc"), 3}, {str("é😀"), 6}, {str(""), 0},
		{trueValue, 1}, {&types.AttributeValueMemberNULL{Value: true}, 1}, {&types.AttributeValueMemberB{Value: []byte{1, 2}}, 2},
		{n("0"), 1}, {n("-0"), 1}, {n("0.00"), 1}, {n("1"), 2}, {n("12"), 2}, {n("123"), 3}, {n("100"), 2}, {n("1.5"), 3}, {n("-1.5"), 4}, {n("-15"), 3},
		{n("0.001"), 2}, {n("1796029203123456"), 9}, {n("12345678901234567890123456789012345678"), 20},
		{n("1e100"), 2}, {n("1.23e-20"), 3}, {n("-1.2345678901234567890123456789012345678"), 21},
		{list(), 3}, {list(str("")), 4}, {list(str(""), str("")), 5}, {list(list(), list()), 11},
		{&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"é": str("")}}, 6},
		{&types.AttributeValueMemberSS{Value: []string{"ab", "c"}}, 3}, {&types.AttributeValueMemberNS{Value: []string{"1", "22"}}, 4},
		{&types.AttributeValueMemberBS{Value: [][]byte{{1}, {2, 3}}}, 3},
	} {
		if got := attributeSize(c.v); got != c.want {
			t.Errorf("%v: %d, want %d", c.v, got, c.want)
		}
	}
	if got := itemSize(map[string]types.AttributeValue{"pk": str("a"), "é": str("bc")}); got != 7 {
		t.Errorf("item: %d", got)
	}
}

// TestMeasureIsAnUpperBound: nothing that is answered takes more than was
// counted, whichever of the two encoders writes it.
func TestMeasureIsAnUpperBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := anyDocument().Draw(t, "data")
		measured, memory := measure(data)
		if real := len(value.Append(nil, data)); measured < real {
			t.Fatalf("measured %d, takes %d: %s", measured, real, value.Append(nil, data))
		}
		if memory < len(bytes.ReplaceAll(value.Append(nil, data), []byte(`\`), nil))/8 {
			t.Fatalf("%d bytes in memory", memory)
		}
		d := doc.Document{ID: "users/1", Version: maxVersion, Data: data}
		envelope := fmt.Sprintf(`%q:{"id":%q,"version":%d,"createdAt":"2026-01-02T03:04:05.123456Z","updatedAt":"2026-01-02T03:04:05.123456Z","data":%s},`,
			d.ID, d.ID, d.Version, value.Append(nil, data))
		if text, _ := answerBytes(d); text < len(envelope) {
			t.Fatalf("measured %d, the envelope takes %d", text, len(envelope))
		}
	})
	small := make([]any, 100_000)
	for i := range small {
		small[i] = json.Number("1")
	}
	if _, memory := measure(small); memory < 100_000*40 {
		t.Errorf("many small numbers: %d bytes in memory", memory)
	}
	if got := textBytes(strings.Repeat("\x01", 10)); got != 62 {
		t.Errorf("control characters: %d", got)
	}
}
