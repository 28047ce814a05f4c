package store

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxItemBytes is DynamoDB's limit of an item, 400 KB: names and values of all
// attributes, keys included.
const maxItemBytes = 400 << 10

// itemSize is the size of an item by DynamoDB's rules (developer guide,
// "DynamoDB item sizes and formats"): the UTF-8 length of each attribute's name
// plus the size of its value. The 100 bytes that the guide adds for storage
// billing do not count towards the limit.
func itemSize(item map[string]types.AttributeValue) int {
	size := 0
	for name, v := range item {
		size += len(name) + attributeSize(v)
	}
	return size
}

// attributeSize is the size of one value: strings their UTF-8 length, binaries
// their bytes, null and booleans 1, containers 3 and 1 for each element.
func attributeSize(v types.AttributeValue) int {
	size := 0
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return numberSize(v.Value)
	case *types.AttributeValueMemberBOOL, *types.AttributeValueMemberNULL:
		return 1
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberM:
		size = 3 + len(v.Value)
		for name, member := range v.Value {
			size += len(name) + attributeSize(member)
		}
	case *types.AttributeValueMemberL:
		size = 3 + len(v.Value)
		for _, element := range v.Value {
			size += attributeSize(element)
		}
	case *types.AttributeValueMemberSS:
		for _, s := range v.Value {
			size += len(s)
		}
	case *types.AttributeValueMemberNS:
		for _, s := range v.Value {
			size += numberSize(s)
		}
	case *types.AttributeValueMemberBS:
		for _, b := range v.Value {
			size += len(b)
		}
	}
	return size
}

// maxNumberBytes is the size of the longest number.
const maxNumberBytes = 21

// numberSize is the size of a number. The guide says "approximately 1 byte per
// two significant digits, and 1 byte". Digits before and after the decimal point
// are paired separately, leading and trailing zeros are trimmed, a negative sign
// takes another byte, and zero takes 1. Where the guide leaves room this is the
// larger reading, so that an item that passes here is not refused there.
func numberSize(text string) int {
	text, negative := strings.CutPrefix(text, "-")
	mantissa, exponent := text, ""
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	whole = strings.TrimLeft(whole, "0")
	fraction = strings.TrimRight(fraction, "0")
	if fraction == "" {
		whole = strings.TrimRight(whole, "0")
	}
	if whole == "" {
		fraction = strings.TrimLeft(fraction, "0")
	}
	if whole == "" && fraction == "" {
		return 1
	}
	size := 1 + (len(whole)+1)/2 + (len(fraction)+1)/2
	if exponent != "" {
		// The point of the plain notation lies elsewhere: all digits on one side
		// of it, or split anyhow.
		size = 1 + (len(whole)+len(fraction)+2)/2
	}
	if negative {
		size++
	}
	return min(size, maxNumberBytes)
}
