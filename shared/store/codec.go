package store

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// A document's data is kept as DynamoDB's own types: objects as M, arrays as L,
// strings as S, numbers as N, booleans as BOOL, null as NULL. Two things that
// JSON has and DynamoDB has not are written differently, each reversibly:
//
//   - the empty member name, see escapeName;
//   - containers nested deeper than nativeDepth, see deepContainer.

const (
	// maxNameBytes is the longest member name: DynamoDB documents "less than
	// 64 KB" for attribute names, those inside maps included.
	maxNameBytes = 64<<10 - 1

	// nativeDepth is how deep containers are kept as M and L; the document
	// itself is level 1. DynamoDB documents 32 levels of nesting and counts the
	// attribute as the first and a scalar in the innermost container as the
	// last: 31 containers can hold a scalar, 32 cannot. A document may have 32,
	// so what lies deeper than this is written as JSON text. One level is left
	// as a margin.
	nativeDepth = 30

	// deepContainer begins the text that stands for a container deeper than
	// nativeDepth, deepText the one for a string in that place that would be
	// mistaken for either.
	deepContainer = "$json:"
	deepText      = "$text:"
)

// nameMark writes the empty name, which DynamoDB refuses.
const nameMark = "~"

// escapeName gives the name under which a member is stored. The empty name
// becomes "~", and so that this collides with nothing, a name that consists of
// "~" alone gets one more. All others stay.
func escapeName(name string) string {
	if strings.Trim(name, nameMark) == "" {
		return name + nameMark
	}
	return name
}

// unescapeName is the inverse of escapeName.
func unescapeName(name string) string {
	if name != "" && strings.Trim(name, nameMark) == "" {
		return name[1:]
	}
	return name
}

// encodeData turns a document's data into the attribute that holds it. The data
// is valid: numbers are canonical and nothing is deeper than value.MaxDepth.
// The error is of kind DocumentTooLarge, for a member name that is too long.
func encodeData(data map[string]any) (*types.AttributeValueMemberM, error) {
	m, err := encodeMap(data, 1, nil)
	if err != nil {
		return nil, err
	}
	return &types.AttributeValueMemberM{Value: m}, nil
}

func encodeMap(object map[string]any, depth int, path *step) (map[string]types.AttributeValue, error) {
	m := make(map[string]types.AttributeValue, len(object))
	for name, member := range object {
		if len(name) > maxNameBytes {
			return nil, doc.Errorf(doc.DocumentTooLarge, "a member name is longer than %d bytes", maxNameBytes).
				With("pointer", path.pointer()).With("limit", maxNameBytes).With("actual", len(name))
		}
		v, err := encodeValue(member, depth, &step{up: path, name: name})
		if err != nil {
			return nil, err
		}
		m[escapeName(name)] = v
	}
	return m, nil
}

// encodeValue encodes what stands inside a container of the given depth.
func encodeValue(v any, depth int, path *step) (types.AttributeValue, error) {
	switch v := v.(type) {
	case nil:
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}, nil
	case json.Number:
		return &types.AttributeValueMemberN{Value: string(v)}, nil
	case string:
		if depth >= nativeDepth && marked(v) {
			v = deepText + v
		}
		return &types.AttributeValueMemberS{Value: v}, nil
	case map[string]any:
		if depth >= nativeDepth {
			return &types.AttributeValueMemberS{Value: deepContainer + string(value.Append(nil, v))}, nil
		}
		m, err := encodeMap(v, depth+1, path)
		if err != nil {
			return nil, err
		}
		return &types.AttributeValueMemberM{Value: m}, nil
	case []any:
		if depth >= nativeDepth {
			return &types.AttributeValueMemberS{Value: deepContainer + string(value.Append(nil, v))}, nil
		}
		l := make([]types.AttributeValue, len(v))
		for i, element := range v {
			e, err := encodeValue(element, depth+1, &step{up: path, index: i, element: true})
			if err != nil {
				return nil, err
			}
			l[i] = e
		}
		return &types.AttributeValueMemberL{Value: l}, nil
	}
	return nil, fmt.Errorf("encoding %s: a document holds no %T", path.pointer(), v)
}

func marked(s string) bool {
	return strings.HasPrefix(s, deepContainer) || strings.HasPrefix(s, deepText)
}

// step is one step of the way to a value, kept on the stack of the encoding so
// that a pointer is only written when there is an error.
type step struct {
	up      *step
	name    string
	index   int
	element bool
}

func (s *step) pointer() string {
	var segments []string
	for ; s != nil; s = s.up {
		if s.element {
			segments = append(segments, strconv.Itoa(s.index))
		} else {
			segments = append(segments, s.name)
		}
	}
	slices.Reverse(segments)
	return value.Pointer(segments...)
}

// decodeMap turns a stored map at the given depth into an object. It takes
// whatever DynamoDB can hold: sets become arrays in a fixed order and binary
// values base64 text, so that items written by other tools can be read.
func decodeMap(m map[string]types.AttributeValue, depth int) (map[string]any, error) {
	object := make(map[string]any, len(m))
	for name, member := range m {
		v, err := decodeValue(member, depth)
		if err != nil {
			return nil, err
		}
		object[unescapeName(name)] = v
	}
	return object, nil
}

func decodeValue(v types.AttributeValue, depth int) (any, error) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		if depth == nativeDepth {
			return decodeDeep(v.Value), nil
		}
		return v.Value, nil
	case *types.AttributeValueMemberN:
		return number(v.Value)
	case *types.AttributeValueMemberBOOL:
		return v.Value, nil
	case *types.AttributeValueMemberNULL:
		return nil, nil
	case *types.AttributeValueMemberM:
		return decodeMap(v.Value, depth+1)
	case *types.AttributeValueMemberL:
		array := make([]any, len(v.Value))
		for i, element := range v.Value {
			e, err := decodeValue(element, depth+1)
			if err != nil {
				return nil, err
			}
			array[i] = e
		}
		return array, nil
	case *types.AttributeValueMemberB:
		return base64.StdEncoding.EncodeToString(v.Value), nil
	case *types.AttributeValueMemberSS:
		return sorted(v.Value), nil
	case *types.AttributeValueMemberBS:
		texts := make([]string, len(v.Value))
		for i, b := range v.Value {
			texts[i] = base64.StdEncoding.EncodeToString(b)
		}
		return sorted(texts), nil
	case *types.AttributeValueMemberNS:
		numbers := make([]json.Number, len(v.Value))
		for i, text := range v.Value {
			n, err := value.ParseDecimal(text)
			if err != nil {
				return nil, fmt.Errorf("decoding the number %q: %w", text, err)
			}
			numbers[i] = n
		}
		slices.SortFunc(numbers, value.CompareNumbers)
		array := make([]any, len(numbers))
		for i, n := range numbers {
			array[i] = n
		}
		return array, nil
	}
	return nil, fmt.Errorf("decoding: unknown attribute type %T", v)
}

func number(text string) (any, error) {
	n, err := value.ParseDecimal(text)
	if err != nil {
		return nil, fmt.Errorf("decoding the number %q: %w", text, err)
	}
	return n, nil
}

// sorted is a set's members as an array. Sets have no order; a fixed one keeps
// the index document of a version the same at every reading.
func sorted(set []string) []any {
	set = slices.Sorted(slices.Values(set))
	array := make([]any, len(set))
	for i, s := range set {
		array[i] = s
	}
	return array
}

// decodeDeep undoes what encodeValue did to values inside the deepest native
// container. Text that is marked but not readable was written by another tool
// and stays as it is.
func decodeDeep(s string) any {
	if text, ok := strings.CutPrefix(s, deepText); ok {
		if marked(text) {
			return text
		}
		return s
	}
	if text, ok := strings.CutPrefix(s, deepContainer); ok {
		v, err := value.Decode([]byte(text), value.MaxDepth)
		if err == nil {
			switch v.(type) {
			case map[string]any, []any:
				return v
			}
		}
	}
	return s
}
