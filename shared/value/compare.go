package value

import (
	"cmp"
	"encoding/json"
	"strings"
)

// Equal reports whether two trees are the same JSON value. The members of an
// object have no order; null and missing differ; numbers are equal when their
// canonical texts are.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case string:
		b, ok := b.(string)
		return ok && a == b
	case json.Number:
		b, ok := b.(json.Number)
		return ok && a == b
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !Equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, member := range a {
			other, ok := b[name]
			if !ok || !Equal(member, other) {
				return false
			}
		}
		return true
	}
	return false
}

// Compare is the order of ascending sorts: missing (which is nil here) and
// null, then numbers, strings by code point, false, true. Objects and empty
// arrays stand with missing, an array where its smallest element does. So
// Compare orders by SortKey; values that it calls 0 need not be Equal.
func Compare(a, b any) int {
	return compareScalars(SortKey(a, false), SortKey(b, false))
}

// SortKey is the scalar that decides where v stands in a sort: v itself for a
// scalar, nil for an object and an empty array, and for an array the smallest
// of its elements' keys, or the largest where the sort is descending. Two keys
// are compared with Compare.
func SortKey(v any, desc bool) any {
	switch v := v.(type) {
	case map[string]any:
		return nil
	case []any:
		var key extreme
		for _, element := range v {
			key.offer(SortKey(element, desc), desc)
		}
		return key.scalar
	}
	return v
}

// SortKey is the scalar that decides where a document stands in a sort by the
// path: the smallest (desc: the largest) of the keys of all values that the
// path reaches, and nil where it reaches none.
func (p Path) SortKey(data map[string]any, desc bool) any {
	var key extreme
	p.Visit(data, func(r Reached) bool {
		if !r.Missing {
			key.offer(SortKey(r.Value, desc), desc)
		}
		return false
	})
	return key.scalar
}

// extreme keeps the smallest or largest of the scalars it is offered.
type extreme struct {
	scalar  any
	offered bool
}

func (e *extreme) offer(scalar any, largest bool) {
	if e.offered {
		c := compareScalars(scalar, e.scalar)
		if c == 0 || (c > 0) != largest {
			return
		}
	}
	e.scalar, e.offered = scalar, true
}

func compareScalars(a, b any) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	switch a := a.(type) {
	case json.Number:
		return CompareNumbers(a, b.(json.Number))
	case string:
		return strings.Compare(a, b.(string))
	case bool:
		switch b := b.(bool); {
		case a == b:
			return 0
		case b:
			return -1
		}
		return 1
	}
	return 0
}

// rank is the place of a scalar's type in the order of types.
func rank(v any) int {
	switch v.(type) {
	case json.Number:
		return 1
	case string:
		return 2
	case bool:
		return 3
	}
	return 0
}
