package search

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The texts of the $key leaf order every scalar as sorts do: null, numbers by
// their exact value, strings by code point, booleans. The first byte tells the
// type. Being ordinary text they also serve as exact typed keys.
const (
	nullKey   = "0"
	numberTag = '1'
	stringTag = '2'
	falseKey  = "3f"
	trueKey   = "3t"
)

// keptBytes is the longest string in bytes that $str and $key hold. Lucene
// refuses terms above 32,766 bytes; far below it, the terms of a long text cost
// more than they help. A longer string is found through $partial and put in
// order by looking.
const keptBytes = 8000

// orderKey is the $key text of a scalar; anything else sorts with null.
func orderKey(v any) string {
	if s, ok := v.(string); ok {
		if kept, whole := keep(s); !whole {
			// Not the key of the string that ends here. How the two stand to each
			// other and to others with this beginning, the index need not know.
			return string(stringTag) + kept + "\x00"
		}
	}
	return wholeKey(v)
}

// wholeKey is orderKey with strings in full: it orders all scalars.
func wholeKey(v any) string {
	switch v := v.(type) {
	case json.Number:
		return numberKey(string(v))
	case string:
		return string(stringTag) + v
	case bool:
		if v {
			return trueKey
		}
		return falseKey
	}
	return nullKey
}

// keep is the beginning of s that is indexed and whether that is all of it.
func keep(s string) (kept string, whole bool) {
	return beginningOf(s, keptBytes), len(s) <= keptBytes
}

// beginningOf is at most that many bytes of s, cut between code points.
func beginningOf(s string, bytes int) string {
	if len(s) <= bytes {
		return s
	}
	for !utf8.RuneStart(s[bytes]) {
		bytes--
	}
	return s[:bytes]
}

// exponentBias makes the exponents of all numbers that are kept, -130 to 126,
// positive and three digits long.
const exponentBias = 500

// numberKey writes a canonical number so that texts compare as the values do:
// a sign, a biased exponent and the digits, with every digit complemented for
// negative numbers and a final "~", above all digits, so that there the shorter
// of two with a common beginning comes later.
func numberKey(text string) string {
	negative, digits, exponent := decimalParts(text)
	if digits == "" {
		return string(numberTag) + "5"
	}
	var b strings.Builder
	b.Grow(len(digits) + 6)
	b.WriteByte(numberTag)
	scaled := exponent + exponentBias
	if !negative {
		b.WriteByte('6')
		writeThree(&b, scaled)
		b.WriteString(digits)
		return b.String()
	}
	b.WriteByte('4')
	writeThree(&b, 999-scaled)
	for i := range len(digits) {
		b.WriteByte('9' - (digits[i] - '0'))
	}
	b.WriteByte('~')
	return b.String()
}

func writeThree(b *strings.Builder, n int) {
	n = min(max(n, 0), 999)
	b.WriteByte(byte('0' + n/100))
	b.WriteByte(byte('0' + n/10%10))
	b.WriteByte(byte('0' + n%10))
}

// decimalParts takes a JSON number apart: its value is 0.digits × 10^exponent,
// with neither leading nor trailing zeros in digits, which are empty for zero.
func decimalParts(text string) (negative bool, digits string, exponent int) {
	text, negative = strings.CutPrefix(text, "-")
	mantissa := text
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		mantissa = text[:at]
		exponent, _ = strconv.Atoi(text[at+1:])
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = whole + fraction
	exponent += len(whole)
	trimmed := strings.TrimLeft(digits, "0")
	exponent -= len(digits) - len(trimmed)
	return negative, strings.TrimRight(trimmed, "0"), exponent
}
