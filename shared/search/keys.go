package search

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"holdfast/shared/value"
)

// scalarOf is the inverse of orderKey. It reports false for a text that
// orderKey cannot have written for a whole scalar.
func scalarOf(key string) (any, bool) {
	if key == "" {
		return nil, false
	}
	switch key[0] {
	case nullKey[0]:
		return nil, key == nullKey
	case numberTag:
		return numberOf(key)
	case stringTag:
		return key[1:], true
	}
	return key == trueKey, key == trueKey || key == falseKey
}

// numberOf is the inverse of numberKey.
func numberOf(key string) (any, bool) {
	if key == string(numberTag)+"5" {
		return json.Number("0"), true
	}
	if len(key) < 6 {
		return nil, false
	}
	scaled, err := strconv.Atoi(key[2:5])
	if err != nil {
		return nil, false
	}
	digits, negative := key[5:], key[1] == '4'
	if negative {
		scaled = 999 - scaled
		var b strings.Builder
		for _, c := range []byte(strings.TrimSuffix(digits, "~")) {
			b.WriteByte('9' - (c - '0'))
		}
		digits = "-0." + b.String()
	} else {
		digits = "0." + digits
	}
	n, err := value.ParseDecimal(digits + "e" + strconv.Itoa(scaled-exponentBias))
	return n, err == nil
}

// stepOf is which multiple of the step lies at or below the number.
func stepOf(n, step json.Number) *big.Int {
	x, ok1 := new(big.Rat).SetString(string(n))
	y, ok2 := new(big.Rat).SetString(string(step))
	if !ok1 || !ok2 || y.Sign() <= 0 {
		return new(big.Int)
	}
	x.Quo(x, y)
	return new(big.Int).Div(x.Num(), x.Denom()) // Euclidean: down, for a positive denominator
}

// stepAt is which multiple of the step a bucket of OpenSearch begins at.
func stepAt(begin float64, step json.Number) *big.Int {
	double, _ := nearestDouble(step)
	k, _ := new(big.Float).SetFloat64(math.Round(begin / double)).Int(nil)
	return k
}

// timesStep is the k-th multiple of the step.
func timesStep(k *big.Int, step json.Number) json.Number {
	mantissa, exponent := string(step), 0
	if at := strings.IndexByte(mantissa, 'e'); at >= 0 {
		exponent, _ = strconv.Atoi(mantissa[at+1:])
		mantissa = mantissa[:at]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	factor, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		return "0"
	}
	product := factor.Mul(factor, k)
	n, err := value.ParseDecimal(product.String() + "e" + strconv.Itoa(exponent-len(fraction)))
	if err == nil {
		return n
	}
	f, _ := new(big.Float).SetInt(product).Float64()
	return numberText(f * math.Pow10(exponent-len(fraction)))
}

// numberText is a double as JSON, in canonical text within the range of stored
// numbers.
func numberText(f float64) json.Number {
	text := strconv.FormatFloat(f, 'e', -1, 64)
	if n, err := value.ParseDecimal(text); err == nil {
		return n
	}
	return json.Number(text)
}
