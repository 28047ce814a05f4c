package filter

import (
	"encoding/json"
	"maps"
	"slices"
)

// Kind is the kind of a JSON value, as $type names it.
type Kind string

// The kinds.
const (
	Null   Kind = "null"
	Bool   Kind = "bool"
	Number Kind = "number"
	String Kind = "string"
	Object Kind = "object"
	Array  Kind = "array"
)

// KindOf is the kind of a decoded value.
func KindOf(v any) Kind {
	switch v.(type) {
	case bool:
		return Bool
	case json.Number:
		return Number
	case string:
		return String
	case map[string]any:
		return Object
	case []any:
		return Array
	}
	return Null
}

// kindNames are the names that $type takes: JSON's, and MongoDB's for the same
// values. All numbers are of one kind here, whatever MongoDB would store them as.
var kindNames = map[string]Kind{
	"null": Null, "bool": Bool, "boolean": Bool, "number": Number, "string": String, "object": Object, "array": Array,
	"double": Number, "int": Number, "long": Number, "decimal": Number,
}

// kindNumbers are MongoDB's numbers of the same types.
var kindNumbers = map[json.Number]Kind{
	"1": Number, "2": String, "3": Object, "4": Array, "8": Bool, "10": Null, "16": Number, "18": Number, "19": Number,
}

// kinds reads the operand of $type: a name or number, or an array of them.
func (p *parser) kinds(v any, at *place) ([]Kind, error) {
	list, ok := v.([]any)
	if !ok {
		k, err := kind(v, at)
		return []Kind{k}, err
	}
	if len(list) == 0 {
		return nil, invalid(at, "$type takes a type or an array of at least one")
	}
	if len(list) > p.maxTerms {
		return nil, tooCostly(at, "$type", "types", p.maxTerms, len(list))
	}
	kinds := make([]Kind, len(list))
	for i, element := range list {
		var err error
		if kinds[i], err = kind(element, at.at(i)); err != nil {
			return nil, err
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds), nil
}

func kind(v any, at *place) (k Kind, err error) {
	var known bool
	switch v := v.(type) {
	case string:
		k, known = kindNames[v]
	case json.Number:
		k, known = kindNumbers[v]
	}
	if !known {
		return "", invalid(at, "there is no such type; the types are %q", slices.Sorted(maps.Keys(kindNames)))
	}
	return k, nil
}
