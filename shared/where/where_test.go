package where_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/value"
	"holdfast/shared/where"
)

const order = `{"shipped":"1996-08-20T00:00:00Z","required":"1996-08-13T00:00:00Z","never":null,"n":3,"half":2.5,"whole":3.0,
	"big":9223372036854775808,"large":9223372036854775807,"tiny":1e-7,"lines":[{"q":20,"p":1.5},{"q":3,"p":10}],"tags":["a","b"],
	"o":{"a.b":1,"":2},"yes":true}`

func TestHolds(t *testing.T) {
	data, err := value.DecodeDocument([]byte(order))
	if err != nil {
		t.Fatal(err)
	}
	var c where.Compiler
	for text, want := range map[string]string{
		`doc.shipped > doc.required`:                                           "true",
		`doc.shipped < doc.required`:                                           "false",
		`timestamp(doc.shipped).getMonth() == 7`:                               "true",
		`timestamp(doc.shipped) - timestamp(doc.required) == duration("168h")`: "true",
		`doc.never == null`:                                                    "true",
		`doc.never != null && doc.never > "1996"`:                              "false",
		`doc.never > "1996"`:                                                   "error",
		`doc.missing == 1`:                                                     "error",
		`has(doc.missing)`:                                                     "false",
		`has(doc.never)`:                                                       "true",
		`"missing" in doc`:                                                     "false",
		`doc.n == 3`:                                                           "true",
		`doc.n == 3.0`:                                                         "true",
		`doc.n > doc.half && doc.half > 2 && doc.half < 3`:                     "true",
		`doc.whole / 2 == 1`:                                                   "true", // stored as 3, an int
		`doc.n + doc.half == 5.5`:                                              "error",
		`double(doc.n) + doc.half == 5.5`:                                      "true",
		`doc.big == 9223372036854775808.0`:                                     "true",
		`doc.big > 1`:                                                          "true",
		`doc.large == 9223372036854775807`:                                     "true",
		`type(doc.big) == double && type(doc.n) == int`:                        "true",
		`doc.tiny < 0.001 && doc.tiny > 0`:                                     "true",
		`doc.lines[0].q > doc.lines[1].q`:                                      "true",
		`doc.lines.exists(l, l.q >= 20)`:                                       "true",
		`doc.lines.all(l, l.q >= 20)`:                                          "false",
		`doc.lines.map(l, l.q) == [20, 3]`:                                     "true",
		`doc.lines[5].q == 1`:                                                  "error",
		`size(doc.tags) == 2 && "a" in doc.tags`:                               "true",
		`doc.o["a.b"] == 1 && doc.o[""] == 2`:                                  "true",
		`doc.yes`:                                                              "true",
		`doc.n`:                                                                "error",
		`doc.o`:                                                                "error",
		`doc.tags.exists(t, t.matches("^[ab]$"))`:                              "true",
		`doc.tags[0].matches(doc.n == 3 ? "(" : "")`:                           "error",
		`true`: "true",
	} {
		condition, err := c.Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		holds, err := condition.Holds(t.Context(), data)
		got := fmt.Sprint(holds)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: got %s (%v), want %s", text, got, err, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	var c where.Compiler
	for text, want := range map[string]string{
		``:                      "line 1, column",
		`doc.a >`:               "line 1, column 8: ",
		"doc.a > 1 &&\n  other": "line 2, column 3: undeclared reference to 'other'",
		`1 + 1`:                 "type int",
		`"text"`:                "type string",
		`doc.a > 1 && "x" > 1`:  "line 1, column 18: found no matching overload",
		`doc.exec("rm")`:        "undeclared reference to 'exec'",
		strings.Repeat("(", 2000) + "true" + strings.Repeat(")", 2000): "",
	} {
		_, err := c.Compile(text)
		if doc.KindOf(err) != doc.InvalidQuery || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50q: %v", text, err)
		}
	}
	_, err := c.Compile("true" + strings.Repeat(" ", where.MaxBytes))
	var e *doc.Error
	if !errors.As(err, &e) || e.Kind != doc.QueryTooCostly || e.Members["limit"] != where.MaxBytes {
		t.Errorf("%v", err)
	}
}

// Nested loops over a long list end at the limit of cost, not at that of
// patience.
func TestCostIsLimited(t *testing.T) {
	array := make([]any, 5000)
	for i := range array {
		array[i] = strings.Repeat("x", 50)
	}
	data := map[string]any{"a": array}
	var c where.Compiler
	for _, text := range []string{
		`doc.a.all(x, doc.a.all(y, doc.a.all(z, x == y)))`,
		`doc.a.map(x, doc.a.map(y, doc.a)).size() > 0`,
		`doc.a.exists(x, doc.a.exists(y, (x + y).matches("(x+x+)+y")))`,
		`[1,2,3,4,5,6,7,8,9,10].all(a, doc.a.map(x, doc.a + doc.a).size() > 0)`,
	} {
		condition, err := c.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if holds, err := condition.Holds(t.Context(), data); err == nil || holds {
			t.Errorf("%s: %v %v", text, holds, err)
		}
	}
	ended, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	condition, err := c.Compile(`true`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := condition.Holds(ended, data); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestExpressionsAreCompiledOnce(t *testing.T) {
	var c where.Compiler
	first, err := c.Compile(`doc.n > 0`)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Compile(`doc.n > 0`); err != nil || again != first {
		t.Errorf("compiled again (%v)", err)
	}
	for i := range 100 {
		if _, err := c.Compile(fmt.Sprintf("doc.n > %d", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := c.Compile(`doc.n > 0`); err != nil || again == first {
		t.Errorf("the oldest expression was kept (%v)", err)
	}
}

func BenchmarkHolds(b *testing.B) {
	data, err := value.DecodeDocument([]byte(order))
	if err != nil {
		b.Fatal(err)
	}
	var c where.Compiler
	condition, err := c.Compile(`doc.shipped > doc.required`)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if holds, err := condition.Holds(b.Context(), data); err != nil || !holds {
			b.Fatal(holds, err)
		}
	}
}
