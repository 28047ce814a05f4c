package value_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

var (
	digits38 = "12345678901234567890123456789012345678"
	digits39 = digits38 + "9"
)

func TestNumberIsCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"0":                                   "0",
		"-0":                                  "0",
		"0.0":                                 "0",
		"-0.000e-7":                           "0",
		"0e999":                               "0",
		"0E+999999999":                        "0",
		"0e99999999999999999999999":           "0",
		"1":                                   "1",
		"-1":                                  "-1",
		"1.0":                                 "1",
		"10":                                  "10",
		"1e2":                                 "100",
		"1E+2":                                "100",
		"100e-2":                              "1",
		"12.50":                               "12.5",
		"-12.50e1":                            "-125",
		"0.1":                                 "0.1",
		"0.000001":                            "0.000001",
		"1e-6":                                "0.000001",
		"1e-7":                                "1e-7",
		"0.00000012":                          "1.2e-7",
		"123456789012345678901":               "123456789012345678901",
		"1e20":                                "100000000000000000000",
		"1e37":                                "1" + strings.Repeat("0", 37),
		"1e38":                                "1e+38",
		"1234567890123456789012":              "1234567890123456789012",
		"9007199254740993":                    "9007199254740993",
		"1234567890123456789":                 "1234567890123456789",
		digits38:                              digits38,
		"0." + digits38:                       "0." + digits38,
		"1e125":                               "1e+125",
		"9.9e125":                             "9.9e+125",
		"-1e125":                              "-1e+125",
		"1" + strings.Repeat("0", 125):        "1e+125",
		"1e-130":                              "1e-130",
		"10e-131":                             "1e-130",
		"0." + strings.Repeat("0", 129) + "1": "1e-130",
		"0." + strings.Repeat("0", 500) + "1e501":       "1",
		"1" + strings.Repeat("0", 500) + "e-500":        "1",
		digits38 + strings.Repeat("0", 80):              "1.2345678901234567890123456789012345678e+117",
		strings.Repeat("9", 38) + "e88":                 "9." + strings.Repeat("9", 37) + "e+125",
		"1." + strings.Repeat("0", 100):                 "1",
		"1.00000000000000000000000000000000000000000e2": "100",
	} {
		got, err := value.Number(text)
		if err != nil || string(got) != want {
			t.Errorf("Number(%s) = %s, %v; want %s", text, got, err, want)
		}
		if again, err := value.Number(want); err != nil || string(again) != want {
			t.Errorf("Number(%s) = %s, %v; canonical text must stay", want, again, err)
		}
	}
}

func TestNumberRefusesWhatCannotBeKept(t *testing.T) {
	for _, text := range []string{
		digits39, "0." + digits39, digits39 + "e-40", "1" + strings.Repeat("0", 38) + "1", "1." + strings.Repeat("0", 37) + "1",
		"1e126", "-1e126", "10e125", "1e400", "1e99999999999999999999", "1e-131", "0.1e-130", "1e-400", "-1e-99999999999999999999",
		"1" + strings.Repeat("0", 126),
	} {
		if got, err := value.Number(text); doc.KindOf(err) != doc.NumberOutOfRange {
			t.Errorf("Number(%s) = %s, %v; want %s", text, got, err, doc.NumberOutOfRange)
		}
	}
	_, err := value.Number(digits39)
	members := err.(*doc.Error).Members
	if members["limit"] != 38 || members["actual"] != 39 {
		t.Errorf("members of the refusal of 39 digits: %v", members)
	}
}

func TestNumberRefusesWhatIsNoJSONNumber(t *testing.T) {
	for _, text := range []string{"", "-", "+1", "01", "-01", "00", ".5", "5.", "1.e2", "1e", "1e+", "e5", "1e5.0", "1.2.3", "0x10", "NaN", "Infinity", "-Infinity", "1 ", " 1", "1_000", "--1", "1-", "٣"} {
		if got, err := value.Number(text); doc.KindOf(err) != doc.InvalidJSON {
			t.Errorf("Number(%q) = %q, %v; want %s", text, got, err, doc.InvalidJSON)
		}
	}
}

func TestParseDecimalReadsWhatEnginesWrite(t *testing.T) {
	for text, want := range map[string]string{
		"1E+125": "1e+125", "+5": "5", ".5": "0.5", "5.": "5", "007": "7", "-0": "0", "1E-130": "1e-130", "0E-10": "0", "100": "100", "-.50E1": "-5",
	} {
		if got, err := value.ParseDecimal(text); err != nil || string(got) != want {
			t.Errorf("ParseDecimal(%s) = %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "+", ".", "-.", "1e", "abc", "1E+126x", "Infinity"} {
		if got, err := value.ParseDecimal(text); doc.KindOf(err) != doc.InvalidJSON {
			t.Errorf("ParseDecimal(%q) = %q, %v; want a refusal", text, got, err)
		}
	}
	if _, err := value.ParseDecimal("1E+126"); doc.KindOf(err) != doc.NumberOutOfRange {
		t.Errorf("ParseDecimal(1E+126): %v", err)
	}
}

// numberText draws the text of a number that can be kept, in a random layout.
func numberText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		digits := rapid.StringMatching(`[0-9]{1,20}`).Draw(t, "digits")
		whole := strings.TrimLeft(digits, "0")
		if whole == "" {
			whole = "0"
		}
		text := whole
		if rapid.Bool().Draw(t, "point") {
			text += "." + rapid.StringMatching(`[0-9]{1,18}`).Draw(t, "fraction")
		}
		if rapid.Bool().Draw(t, "exponent") {
			text += rapid.SampledFrom([]string{"e", "E", "e+", "e-"}).Draw(t, "e") + fmt.Sprint(rapid.IntRange(0, 100).Draw(t, "n"))
		}
		if rapid.Bool().Draw(t, "negative") {
			text = "-" + text
		}
		return text
	})
}

func rat(t interface{ Fatalf(string, ...any) }, text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("no number: %s", text)
	}
	return r
}

func TestNumbersAgreeWithExactArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := numberText().Draw(t, "x"), numberText().Draw(t, "y")
		if rapid.Bool().Draw(t, "related") { // the same value or nearly so, written differently
			y = rapid.SampledFrom([]string{x + "0", x + "e0", x + ".0", x + "1", "-" + x}).Draw(t, "variant")
		}
		a, errA := value.Number(x)
		b, errB := value.Number(y)
		if errA != nil || errB != nil {
			t.Skip("not a number that is kept")
		}
		ratX, ratY := rat(t, x), rat(t, y)
		if rat(t, string(a)).Cmp(ratX) != 0 {
			t.Fatalf("%s became %s", x, a)
		}
		want := ratX.Cmp(ratY)
		if got := value.CompareNumbers(a, b); got != want {
			t.Fatalf("CompareNumbers(%s, %s) = %d, want %d", a, b, got, want)
		}
		if got := value.CompareNumbers(json.Number(x), json.Number(y)); got != want {
			t.Fatalf("CompareNumbers(%s, %s) = %d, want %d, also in other layouts", x, y, got, want)
		}
		if (a == b) != (want == 0) {
			t.Fatalf("%s and %s became %s and %s", x, y, a, b)
		}
	})
}

func TestNumberRangeAgreesWithExactArithmetic(t *testing.T) {
	low, high := rat(t, "1e-130"), rat(t, "1e126")
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[1-9][0-9]{0,41}`).Draw(t, "digits")
		text := fmt.Sprintf("%se%d", digits, rapid.SampledFrom([]int{-180, -172, -168, -135, -131, -130, -129, 0, 84, 88, 100, 124, 125, 126}).Draw(t, "exponent"))
		r := rat(t, text)
		kept := len(strings.TrimRight(digits, "0")) <= value.MaxDigits && r.Cmp(low) >= 0 && r.Cmp(high) < 0
		n, err := value.Number(text)
		if (err == nil) != kept {
			t.Fatalf("Number(%s) = %s, %v; kept should be %v", text, n, err, kept)
		}
		if kept && rat(t, string(n)).Cmp(r) != 0 {
			t.Fatalf("Number(%s) = %s", text, n)
		}
	})
}

func TestCompareNumbersBySpecialPairs(t *testing.T) {
	ascending := []string{"-1e+125", "-1e+40", "-100", "-99.5", "-1e-130", "0", "1e-130", "1e-7", "0.000001", "0.5", "0.51", "1", "1.5", "15", "150", "9007199254740992", "9007199254740993", "1e+40", "1.1e+40", "9.9e+125"}
	for i, a := range ascending {
		for j, b := range ascending {
			if got, want := value.CompareNumbers(json.Number(a), json.Number(b)), cmp.Compare(i, j); got != want {
				t.Errorf("CompareNumbers(%s, %s) = %d, want %d", a, b, got, want)
			}
		}
	}
}
