package where

import (
	"encoding/json"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// adapter shows the values of a document to expressions, each when it is
// reached: whole numbers within 64 bits are int, all others double.
type adapter struct{ types.Adapter }

func (a adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case nil:
		return types.NullValue
	case bool:
		return types.Bool(v)
	case string:
		return types.String(v)
	case json.Number:
		return number(v)
	case []any:
		return types.NewDynamicList(a, v)
	case map[string]any:
		return types.NewStringInterfaceMap(a, v)
	}
	return a.Adapter.NativeToValue(v)
}

// number takes canonical text, in which whole numbers of up to 38 digits have
// neither point nor exponent.
func number(n json.Number) ref.Val {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return types.Int(i)
	}
	f, _ := strconv.ParseFloat(string(n), 64) // magnitudes of documents are those of doubles
	return types.Double(f)
}
