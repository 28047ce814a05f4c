package where

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"pgregory.net/rapid"
)

// reference is the language as package cel puts it together.
func reference(t *testing.T) *cel.Env {
	t.Helper()
	env, err := cel.NewEnv(
		cel.Variable(variable, cel.DynType),
		cel.CrossTypeNumericComparisons(true),
		cel.CustomTypeAdapter(adapter{types.DefaultTypeAdapter}),
		cel.ParserRecursionLimit(MaxDepth),
		cel.ParserExpressionSizeLimit(MaxBytes),
	)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// byReference says what package cel makes of an expression: what is wrong with
// it, or the value, or that it fails.
func byReference(t *testing.T, env *cel.Env, text string, data map[string]any) string {
	t.Helper()
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		return fmt.Sprintf("%d:%d %s", first.Location.Line(), first.Location.Column(), first.Message)
	}
	program, err := env.Program(ast, cel.CostLimit(MaxCost), cel.InterruptCheckFrequency(checkEvery))
	if err != nil {
		return "no program"
	}
	result, _, err := program.ContextEval(t.Context(), map[string]any{variable: data})
	if err != nil {
		return "fails"
	}
	return fmt.Sprintf("%s %v", result.Type().TypeName(), result.Value())
}

func byOurs(t *testing.T, env *environment, text string, data map[string]any) string {
	t.Helper()
	checked, wrong := env.check(text)
	if len(wrong) > 0 {
		return fmt.Sprintf("%d:%d %s", wrong[0].Location.Line(), wrong[0].Location.Column(), wrong[0].Message)
	}
	program, err := env.program(checked)
	if err != nil {
		return "no program"
	}
	result, err := program.evaluate(t.Context(), data)
	if err != nil {
		return "fails"
	}
	return fmt.Sprintf("%s %v", result.Type().TypeName(), result.Value())
}

var order = map[string]any{
	"freight": json.Number("12.5"), "quantity": json.Number("3"), "huge": json.Number("99999999999999999999999999999999999999"),
	"customer": "customers/7", "shipped": "2026-03-10T05:16:23Z", "paid": true, "note": nil,
	"address": map[string]any{"city": "Reims", "country": "France"},
	"lines":   []any{map[string]any{"product": "products/1", "price": json.Number("9.8")}, map[string]any{"product": "products/2", "price": json.Number("-1")}},
	"tags":    []any{"a", "b", json.Number("3"), []any{}}, "many": manyNumbers(),
}

func manyNumbers() []any {
	all := make([]any, 3000)
	for i := range all {
		all[i] = json.Number(fmt.Sprint(i))
	}
	return all
}

// Every function and macro of the language, what is wrong in every phase, and
// what costs too much.
var expressions = []string{
	`doc.freight > 10`, `doc.freight > 10.0 && doc.quantity == 3`, `doc.quantity + 1 == 4`, `doc.quantity / 0 == 1`, `doc.quantity % 2 == 1`, `-doc.quantity < 0`,
	`doc.huge > 1`, `doc.huge == doc.huge`, `doc.missing == 1`, `has(doc.missing)`, `has(doc.address.city)`, `!has(doc.address.zip)`, `doc["address"]["city"] == "Reims"`,
	`doc.note == null`, `doc.paid`, `doc.customer`, `doc`, `doc.tags[0] == "a"`, `doc.tags[9] == "a"`, `"a" in doc.tags`, `"city" in doc.address`, `3 in doc.tags`,
	`doc.lines.all(l, l.price > 0)`, `doc.lines.exists(l, l.price > 0)`, `doc.lines.exists_one(l, l.price > 0)`, `doc.lines.existsOne(l, l.price > 0)`,
	`doc.lines.map(l, l.price) == [9.8, -1]`, `doc.lines.map(l, l.price > 0, l.product) == ["products/1"]`, `doc.lines.filter(l, l.price > 0).size() == 1`,
	`size(doc.customer) == 11`, `doc.customer.startsWith("customers/")`, `doc.customer.endsWith("7")`, `doc.customer.contains("s/")`, `doc.customer.matches("^c.*[0-9]$")`,
	`doc.customer.matches("(")`, `doc.customer.matches(doc.customer)`, `timestamp(doc.shipped).getFullYear() == 2026`, `timestamp(doc.shipped) < timestamp("2027-01-01T00:00:00Z")`,
	`timestamp(doc.shipped).getHours("Europe/Paris") == 6`, `timestamp(doc.customer) == timestamp(doc.shipped)`, `duration("1h") > duration("59m")`, `timestamp(doc.shipped) + duration("1h") > timestamp(doc.shipped)`,
	`int("7") == 7`, `int(doc.freight) == 12`, `double("1.5") == 1.5`, `string(doc.quantity) == "3"`, `uint(3) == 3u`, `bool("true")`, `bytes("a") == b"a"`, `dyn(1) == 1.0`, `type(doc.freight) == double`,
	`doc.paid ? doc.quantity == 3 : doc.missing`, `doc.missing || doc.paid`, `doc.missing && false`, `doc.missing && doc.paid`, `[1, 2.0, "x"][1] == 2`, `{"a": 1}["a"] == 1`, `{"a": 1}.a == 1`,
	`doc.many.all(n, n >= 0)`, `doc.many.all(n, doc.many.all(m, n <= m || n > m))`, `doc.many.map(n, n * 2).filter(n, n > 5).size() > 0`, `doc.many.exists(n, n == 5)`,
	`1 + "a"`, `doc.freight >`, `unknown == 1`, `doc.freight.size(1, 2)`, `"abc" > 1`, `!1`, `1 + 1`, `"text"`, `doc.?x`, `doc[?"x"]`, `foo(doc)`, `doc.lines.all(1, true)`, `google.protobuf.Timestamp{seconds: 1} == timestamp(1)`,
	`cel.bind(x, doc, x.paid)`, "doc.`a-b` == 1", `9223372036854775807 + 1 == 0`, `1u - 2u == 0u`, `"\q"`, ``, ` `, `// note`, `true // note`, "doc.paid\n&& doc.oops(", `'a' + 'b' == "ab"`, `[1] + [2] == [1, 2]`,
}

func TestTheLanguageIsThatOfPackageCel(t *testing.T) {
	ours, err := newEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	theirs := reference(t)
	for _, text := range append(expressions, strings.Repeat("(", 60)+"true"+strings.Repeat(")", 60), strings.Repeat("!", 200)+"true", strings.Repeat("true && ", 500)+"true") {
		if got, want := byOurs(t, ours, text, order), byReference(t, theirs, text, order); got != want {
			t.Errorf("%s\ngives %s\nnot   %s", text, got, want)
		}
	}
	if t.Failed() {
		return
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := expression(3).Draw(rt, "expression")
		if got, want := byOurs(t, ours, text, order), byReference(t, theirs, text, order); got != want {
			rt.Fatalf("%s\ngives %s\nnot   %s", text, got, want)
		}
	})
}

// expression draws expressions, sensible or not.
func expression(depth int) *rapid.Generator[string] {
	if depth == 0 {
		return rapid.SampledFrom([]string{
			"doc.freight", "doc.quantity", "doc.customer", "doc.paid", "doc.note", "doc.lines", "doc.tags", "doc.address.city", "doc.missing", "doc.huge", "x",
			"1", "-2", "2.5", "3u", `"a"`, "true", "null", "[1, 2]", `{"a": 1}`, `timestamp(doc.shipped)`, `duration("1h")`,
		})
	}
	return rapid.Custom(func(t *rapid.T) string {
		part := func() string { return expression(rapid.IntRange(0, depth-1).Draw(t, "depth")).Draw(t, "part") }
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return "(" + part() + rapid.SampledFrom([]string{" + ", " - ", " * ", " / ", " % ", " == ", " != ", " < ", " >= ", " && ", " || ", " in "}).Draw(t, "operator") + part() + ")"
		case 1:
			return part() + "." + rapid.SampledFrom([]string{"size()", "contains(\"a\")", "matches(\"a+\")", "getHours()", "city"}).Draw(t, "member")
		case 2:
			return part() + "." + rapid.SampledFrom([]string{"all", "exists", "exists_one", "filter", "map"}).Draw(t, "macro") + "(x, " + part() + ")"
		case 3:
			return rapid.SampledFrom([]string{"size", "int", "double", "string", "type", "has", "!", "-"}).Draw(t, "function") + "(" + part() + ")"
		}
		return "(" + part() + " ? " + part() + " : " + part() + ")"
	})
}
