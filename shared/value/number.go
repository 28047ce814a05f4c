package value

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"holdfast/shared/doc"
)

// Number turns the text of a JSON number into its canonical form: the exact
// value, with no trailing zeros, laid out as ECMAScript writes numbers, but with
// all of its digits and so that every integer of up to 38 digits is plain: plain
// digits from 1e-6 up to below 1e38, otherwise d.dde+N or d.dde-N. 1.0 becomes
// 1, -0 becomes 0, 1e2 becomes 100.
//
// A number that DynamoDB could not keep exactly is refused with kind
// NumberOutOfRange: more than 38 significant digits (zeros before the first and
// after the last other digit do not count), or a magnitude outside 1e-130 to
// 9.99…e125. Nothing is rounded, neither to zero nor otherwise. Text that is no
// JSON number is refused with kind InvalidJSON.
func Number(text string) (json.Number, error) {
	if isCanonicalInteger(text) {
		return json.Number(text), nil
	}
	d, ok := scan(text, strictGrammar)
	if !ok {
		return "", doc.Errorf(doc.InvalidJSON, "this is not a JSON number")
	}
	return d.canonical()
}

// ParseDecimal turns a number as an engine writes it into the canonical form.
// Besides JSON's grammar it accepts a plus sign, leading zeros and a point
// without digits on one side: 1E+125, +5, .5. Errors are those of Number.
func ParseDecimal(text string) (json.Number, error) {
	if isCanonicalInteger(text) {
		return json.Number(text), nil
	}
	d, ok := scan(text, looseGrammar)
	if !ok {
		return "", doc.Errorf(doc.InvalidJSON, "this is not a decimal number")
	}
	return d.canonical()
}

// CompareNumbers compares two numbers by their exact values: -1, 0 or 1. Their
// text need not be canonical; text that is no number counts as zero.
func CompareNumbers(a, b json.Number) int {
	if a == b {
		return 0
	}
	x, _ := scan(string(a), looseGrammar)
	y, _ := scan(string(b), looseGrammar)
	if c := cmp.Compare(x.sign(), y.sign()); c != 0 || x.digits == 0 {
		return c
	}
	c := cmp.Compare(x.lead, y.lead)
	if c == 0 {
		c = compareDigits(x.mantissa, y.mantissa)
	}
	return c * x.sign()
}

// decimal is a scanned number: ±d.ddd × 10^lead. It refers to the scanned text,
// so scanning allocates nothing.
type decimal struct {
	negative bool
	mantissa string // from the first to the last digit that is not zero; may contain a point
	digits   int    // significant digits: the digits in mantissa; 0 is the number zero
	lead     int    // the power of ten of the first significant digit
}

func (d decimal) sign() int {
	switch {
	case d.digits == 0:
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// hugeExponent stands for every exponent from it on. It is far beyond what the
// digits of any text in memory could bring back into range, and far enough from
// an int's limits for sums.
const hugeExponent = 1 << 40

// The bounds of a magnitude, as a refusal names them.
var (
	largest  = json.Number("9." + strings.Repeat("9", MaxDigits-1) + "e+" + strconv.Itoa(MaxExponent))
	smallest = json.Number("1e" + strconv.Itoa(MinExponent))
)

type grammar bool

const (
	strictGrammar grammar = false // RFC 8259
	looseGrammar  grammar = true
)

// scan reads a number in one pass over its text.
func scan(s string, loose grammar) (d decimal, ok bool) {
	i := 0
	if i < len(s) && (s[i] == '-' || bool(loose) && s[i] == '+') {
		d.negative = s[i] == '-'
		i++
	}
	start := i
	first, last := -1, -1 // where the first and the last digit that is not zero stand
	point := -1
	for ; i < len(s); i++ {
		c := s[i]
		if c == '.' && point < 0 {
			point = i
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		if c != '0' {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	end := i
	whole, fraction := end-start, 0 // digits before and after the point
	if point >= 0 {
		whole, fraction = point-start, end-point-1
	}
	if whole+fraction == 0 {
		return decimal{}, false
	}
	if !loose && (whole == 0 || point >= 0 && fraction == 0 || whole > 1 && s[start] == '0') {
		return decimal{}, false
	}
	exponent := 0
	if i < len(s) {
		exponent, ok = scanExponent(s[i:])
		if !ok {
			return decimal{}, false
		}
	}
	if first < 0 {
		return decimal{}, true
	}
	d.mantissa = s[first : last+1]
	d.digits = len(d.mantissa)
	if first < point && point < last {
		d.digits--
	}
	integerEnd := start + whole // where the digit of 10^0 ends
	if first < integerEnd {
		d.lead = integerEnd - 1 - first + exponent
	} else {
		d.lead = point - first + exponent
	}
	return d, true
}

// scanExponent reads e, an optional sign and digits, to the end of s.
func scanExponent(s string) (n int, ok bool) {
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	s = s[1:]
	negative := false
	if s != "" && (s[0] == '+' || s[0] == '-') {
		negative = s[0] == '-'
		s = s[1:]
	}
	if s == "" {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int(s[i]-'0'), hugeExponent)
	}
	if negative {
		n = -n
	}
	return n, true
}

// canonical checks the range and lays the number out.
func (d decimal) canonical() (json.Number, error) {
	if d.digits == 0 {
		return "0", nil
	}
	if d.digits > MaxDigits {
		return "", doc.Errorf(doc.NumberOutOfRange, "the number has %d significant digits; at most %d are kept exactly", d.digits, MaxDigits).
			With("limit", MaxDigits).With("actual", d.digits)
	}
	if d.lead > MaxExponent {
		return "", doc.Errorf(doc.NumberOutOfRange, "the number's magnitude is above 9.99…e%d", MaxExponent).With("limit", largest)
	}
	if d.lead < MinExponent {
		return "", doc.Errorf(doc.NumberOutOfRange, "the number is not zero, but its magnitude is below 1e%d", MinExponent).With("limit", smallest)
	}
	var room [MaxDigits + 24]byte
	out := room[:0]
	if d.negative {
		out = append(out, '-')
	}
	var digitRoom [MaxDigits]byte
	digits := digitRoom[:0]
	for i := range len(d.mantissa) {
		if c := d.mantissa[i]; c != '.' {
			digits = append(digits, c)
		}
	}
	// After ECMA-262, Number::toString: n is the number of digits before the point.
	switch n := d.lead + 1; {
	case len(digits) <= n && n <= MaxDigits:
		out = append(out, digits...)
		for range n - len(digits) {
			out = append(out, '0')
		}
	case 0 < n && n <= MaxDigits:
		out = append(out, digits[:n]...)
		out = append(out, '.')
		out = append(out, digits[n:]...)
	case -6 < n && n <= 0:
		out = append(out, "0."...)
		for range -n {
			out = append(out, '0')
		}
		out = append(out, digits...)
	default:
		out = append(out, digits[0])
		if len(digits) > 1 {
			out = append(out, '.')
			out = append(out, digits[1:]...)
		}
		out = append(out, 'e')
		if d.lead >= 0 {
			out = append(out, '+')
		}
		out = strconv.AppendInt(out, int64(d.lead), 10)
	}
	return json.Number(out), nil
}

// isCanonicalInteger is the short way for most numbers: an integer of up to 18
// digits stands for itself.
func isCanonicalInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > 18 || digits[0] == '0' && len(s) > 1 {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

// compareDigits compares two runs of digits as fractions; points in them are
// skipped. Neither ends with a zero.
func compareDigits(a, b string) int {
	for {
		a, b = skipPoint(a), skipPoint(b)
		if a == "" || b == "" {
			return cmp.Compare(len(a), len(b))
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
}

func skipPoint(s string) string { return strings.TrimPrefix(s, ".") }
