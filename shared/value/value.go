// Package value holds what Holdfast knows about JSON values: how they are read
// strictly, written canonically, compared exactly and reached by paths.
//
// A value is a tree of nil, bool, string, json.Number, []any and
// map[string]any. Every json.Number in a tree is in canonical text, so that
// equal numbers are equal strings; Decode, Number and ParseDecimal produce it.
// Trees are treated as immutable: no function here changes one it was given.
//
// The package is pure: no engine, no clock.
package value

import (
	"strings"
)

// Limits of a stored document.
const (
	// MaxDepth is how deep containers may be nested, the document itself
	// counting as one: the depth that DynamoDB keeps of an attribute.
	MaxDepth = 32
	// MaxDigits is how many significant digits a number may have: what DynamoDB
	// keeps of one.
	MaxDigits = 38
	// MinExponent and MaxExponent bound the power of ten of a number's leading
	// digit: DynamoDB keeps magnitudes from 1e-130 up to, but not including,
	// 1e126.
	MinExponent = -130
	MaxExponent = 125
)

// pointerEscapes are those of RFC 6901, section 3.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// Pointer joins names and positions into an RFC 6901 pointer. Without segments
// it is "", which points to the whole.
func Pointer(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		_, _ = pointerEscapes.WriteString(&b, s)
	}
	return b.String()
}
