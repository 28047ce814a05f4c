package search

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"holdfast/shared/value"
)

// appendDSL writes what requests are made of as JSON, the members of objects in
// order, so that equal requests are equal texts: OpenSearch remembers answers by
// them. It does so without the reflection that half the time of making a request
// would go to.
func appendDSL(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case object:
		return appendMembers(dst, v)
	case []object:
		return appendElementsDSL(dst, v)
	case []any:
		return appendElementsDSL(dst, v)
	case position:
		return appendElementsDSL(dst, v)
	case []string:
		return appendTexts(dst, v), nil
	case string:
		return value.AppendString(dst, v), nil
	case json.Number:
		return append(dst, v...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return dst, fmt.Errorf("write a request: %w", err)
	}
	return append(dst, text...), nil
}

func appendMembers(dst []byte, o object) (_ []byte, err error) {
	var room [8]string
	names := room[:0]
	for name := range o {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(value.AppendString(dst, name), ':')
		if dst, err = appendDSL(dst, o[name]); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func appendElementsDSL[T any](dst []byte, of []T) (_ []byte, err error) {
	dst = append(dst, '[')
	for i, v := range of {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendDSL(dst, v); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}
