package value_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels-1) + `{}` + strings.Repeat(`}`, levels-1)
}

func TestDecodeDocumentKeepsEveryValue(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                    `{}`,
		" \t\r\n{ \"b\" : 1 , \"a\" : [ ] } \n": `{"a":[],"b":1}`,
		`{"a":null,"b":{},"c":[],"d":"","e":false}`:                `{"a":null,"b":{},"c":[],"d":"","e":false}`,
		`{"":1,"$x":2,"a.b":3,"/":4,"~":5,"deleted":true,"_id":6}`: `{"":1,"$x":2,"/":4,"_id":6,"a.b":3,"deleted":true,"~":5}`,
		`{"a":1.0,"b":-0,"c":1e125,"d":1E-130}`:                    `{"a":1,"b":0,"c":1e+125,"d":1e-130}`,
		`{"a":` + digits38 + `}`:                                   `{"a":` + digits38 + `}`,
		`{"a":"\u0000\u0001\u001f\b\f\n\r\t\"\\\/\u007f"}`:         `{"a":"\u0000\u0001\u001f\b\f\n\r\t\"\\/` + "\x7f" + `"}`,
		`{"a":"\ud83d\ude00\u00e9\u2028\ufffd\uffff"}`:             "{\"a\":\"😀é\u2028\ufffd\uffff\"}",
		"{\"e\u0301\":\"<>&\",\"\u00e9\":\"not composed\"}":        "{\"e\u0301\":\"<>&\",\"\u00e9\":\"not composed\"}",
		`{"\u0061":1}`:              `{"a":1}`,
		`{"a":[[],[[]],[null,{}]]}`: `{"a":[[],[[]],[null,{}]]}`,
		nested(32):                  nested(32),
		`{"a":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`: `{"a":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`,
	} {
		got, err := value.DecodeDocument([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if back := string(value.Append(nil, got)); back != want {
			t.Errorf("%s came back as %s, want %s", text, back, want)
		}
	}
}

func TestEveryControlCharacterIsKept(t *testing.T) {
	for r := range rune(0x20) {
		text := fmt.Sprintf(`{"\u%04x":"\u%04X"}`, r, r)
		got, err := value.DecodeDocument([]byte(text))
		want := map[string]any{string(r): string(r)}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %q, %v", text, got, err)
		}
		if _, err := value.DecodeDocument([]byte(`{"a":"` + string(r) + `"}`)); doc.KindOf(err) != doc.InvalidJSON {
			t.Errorf("U+%04X not escaped: %v", r, err)
		}
		again, err := value.DecodeDocument(value.Append(nil, got))
		if err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("U+%04X came back as %q, %v", r, again, err)
		}
	}
}

func TestDecodeDocumentRefuses(t *testing.T) {
	tests := []struct {
		name, text string
		kind       doc.Kind
		pointer    string
	}{
		{"nothing", ``, doc.InvalidJSON, ""},
		{"white space", " \n", doc.InvalidJSON, ""},
		{"a byte order mark", "\ufeff{}", doc.InvalidJSON, ""},
		{"text after the document", `{} x`, doc.InvalidJSON, ""},
		{"two documents", `{}{}`, doc.InvalidJSON, ""},
		{"a bracket too many", `{"a":1}}`, doc.InvalidJSON, ""},
		{"NUL after the document", "{}\x00", doc.InvalidJSON, ""},
		{"an early end", `{"a":[1,{"b":`, doc.InvalidJSON, "/a/1/b"},
		{"an early end in a string", `{"a":["x`, doc.InvalidJSON, "/a/0"},
		{"a missing value", `{"a":{"b":}}`, doc.InvalidJSON, "/a/b"},
		{"a trailing comma", `{"a":[1,]}`, doc.InvalidJSON, "/a"},
		{"a comment", `{"a":1/*x*/}`, doc.InvalidJSON, ""},
		{"single quotes", `{'a':1}`, doc.InvalidJSON, ""},
		{"a name that is no string", `{1:2}`, doc.InvalidJSON, ""},
		{"NaN", `{"a":[0,NaN]}`, doc.InvalidJSON, "/a/1"},
		{"Infinity", `{"a":Infinity}`, doc.InvalidJSON, "/a"},
		{"-Infinity", `{"a":-Infinity}`, doc.InvalidJSON, "/a"},
		{"a leading zero", `{"a":{"b":01}}`, doc.InvalidJSON, "/a"},
		{"a plus sign", `{"a":+1}`, doc.InvalidJSON, "/a"},
		{"True", `{"a":True}`, doc.InvalidJSON, "/a"},
		{"a bad escape", `{"a":"\x41"}`, doc.InvalidJSON, "/a"},
		{"a control character", "{\"a\":\"\n\"}", doc.InvalidJSON, "/a"},
		{"a duplicate name", `{"a":[1,{"b":1,"c":2,"b":1}]}`, doc.InvalidJSON, "/a/1/b"},
		{"a duplicate name, written differently", `{"a":{"b":1,"\u0062":1}}`, doc.InvalidJSON, "/a/b"},
		{"a duplicate odd name", `{"~/":1,"~/":1}`, doc.InvalidJSON, "/~0~1"},
		{"a duplicate empty name", `{"":1,"":1}`, doc.InvalidJSON, "/"},
		{"a lone high surrogate", `{"a":["\ud800"]}`, doc.InvalidJSON, "/a/0"},
		{"a lone low surrogate", `{"a":"\udc00"}`, doc.InvalidJSON, "/a"},
		{"surrogates in the wrong order", `{"a":"\udc00\ud800"}`, doc.InvalidJSON, "/a"},
		{"a lone surrogate in a name", `{"a":{"\ud800":1}}`, doc.InvalidJSON, "/a"},
		{"invalid UTF-8", "{\"a\":[1,\"\xff\"]}", doc.InvalidJSON, "/a/1"},
		{"an overlong form", "{\"a\":\"\xc0\x80\"}", doc.InvalidJSON, "/a"},
		{"a surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", doc.InvalidJSON, "/a"},
		{"beyond U+10FFFF", "{\"a\":\"\xf4\x90\x80\x80\"}", doc.InvalidJSON, "/a"},
		{"invalid UTF-8 in a name", "{\"a\":{\"\xff\":1}}", doc.InvalidJSON, "/a"},
		{"39 digits", `{"a":{"b":[0,` + digits39 + `]}}`, doc.NumberOutOfRange, "/a/b/1"},
		{"1e126", `{"a/b":1e126}`, doc.NumberOutOfRange, "/a~1b"},
		{"1e-131", `{"a":-1e-131}`, doc.NumberOutOfRange, "/a"},
		{"a huge exponent", `{"a":1e99999999999999999999999999}`, doc.NumberOutOfRange, "/a"},
		{"33 levels", nested(33), doc.DocumentTooDeep, strings.Repeat("/a", 32)},
		{"33 levels of arrays", `{"a":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`, doc.DocumentTooDeep, "/a" + strings.Repeat("/0", 31)},
		{"null", `null`, doc.NotAnObject, ""},
		{"an array", `[{}]`, doc.NotAnObject, ""},
		{"a string", `"x"`, doc.NotAnObject, ""},
		{"a number", ` 1 `, doc.NotAnObject, ""},
		{"no object and no JSON", `[1`, doc.InvalidJSON, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v, err := value.DecodeDocument([]byte(test.text))
			var refusal *doc.Error
			if !errors.As(err, &refusal) || refusal.Kind != test.kind {
				t.Fatalf("%.80s = %v, %v; want %s", test.text, v, err, test.kind)
			}
			if pointer, ok := refusal.Members["pointer"]; !ok || pointer != test.pointer {
				t.Errorf("%.80s: pointer %q, want %q (%v)", test.text, pointer, test.pointer, err)
			}
		})
	}
}

func TestHostileDepthIsRefusedAtOnce(t *testing.T) {
	const levels = 100_000
	for _, text := range []string{
		`{"a":` + strings.Repeat("[", levels-1),
		strings.Repeat(`{"a":`, levels),
	} {
		b := []byte(text)
		var err error
		allocations := testing.AllocsPerRun(3, func() { _, err = value.DecodeDocument(b) })
		var refusal *doc.Error
		if !errors.As(err, &refusal) || refusal.Kind != doc.DocumentTooDeep {
			t.Fatalf("%.20s…: %v", text, err)
		}
		if refusal.Members["limit"] != value.MaxDepth || refusal.Members["actual"] != levels {
			t.Errorf("members: limit %v, actual %v", refusal.Members["limit"], refusal.Members["actual"])
		}
		if allocations > 1000 {
			t.Errorf("%v allocations for a refusal", allocations)
		}
	}
}

func TestDepthIgnoresBracketsInStrings(t *testing.T) {
	_, err := value.DecodeDocument([]byte(`{"x":"[[[[\"[[[","a":` + nested(32) + `}`))
	if doc.KindOf(err) != doc.DocumentTooDeep || err.(*doc.Error).Members["actual"] != 33 {
		t.Errorf("%v", err)
	}
}

func TestCheckDepth(t *testing.T) {
	decode := func(text string) map[string]any {
		v, err := value.Decode([]byte(text), 100)
		if err != nil {
			t.Fatal(err)
		}
		return v.(map[string]any)
	}
	if err := value.CheckDepth(decode(nested(32)), "/data"); err != nil {
		t.Errorf("32 levels: %v", err)
	}
	err := value.CheckDepth(decode(`{"c":{},"b":[1,`+nested(40)+`],"z":`+nested(50)+`}`), "/operations/0/data")
	var refusal *doc.Error
	if !errors.As(err, &refusal) || refusal.Kind != doc.DocumentTooDeep {
		t.Fatalf("51 levels: %v", err)
	}
	want := map[string]any{"pointer": "/operations/0/data/b/1" + strings.Repeat("/a", 30), "limit": 32, "actual": 51}
	if !reflect.DeepEqual(refusal.Members, want) {
		t.Errorf("members %v, want %v", refusal.Members, want)
	}
}

func TestDecodeTakesAnyValueToItsDepth(t *testing.T) {
	for text, want := range map[string]any{`null`: nil, ` true`: true, `"x"`: "x", `[]`: []any{}} {
		if got, err := value.Decode([]byte(text), 1); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Decode(%s) = %v, %v", text, got, err)
		}
	}
	if _, err := value.Decode([]byte(nested(33)), 33); err != nil {
		t.Error(err)
	}
	if _, err := value.Decode([]byte(`[[]]`), 1); doc.KindOf(err) != doc.DocumentTooDeep {
		t.Error(err)
	}
}

func TestDecodedTreesDoNotShareTheText(t *testing.T) {
	text := []byte(`{"name":"text","n":1.5}`)
	v, err := value.DecodeDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		text[i] = 'x'
	}
	if got := string(value.Append(nil, v)); got != `{"n":1.5,"name":"text"}` {
		t.Error(got)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,-0.5e-7,"é\ud83d\ude00\u0000",null,true,{}]}`, nested(33), `{"a":1,"a":2}`, `{"a":"\ud800"}`, `[1e126]`, "\xef\xbb\xbf{}", `{"a":00}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := value.Decode(b, value.MaxDepth)
		if err != nil {
			var refusal *doc.Error
			if !errors.As(err, &refusal) {
				t.Fatalf("%q: an error of another type: %v", b, err)
			}
			if _, ok := refusal.Members["pointer"].(string); !ok {
				t.Fatalf("%q: no pointer: %v", b, err)
			}
			return
		}
		text := value.Append(nil, v)
		again, err := value.Decode(text, value.MaxDepth)
		if err != nil {
			t.Fatalf("%q became %q: %v", b, text, err)
		}
		if !value.Equal(v, again) || !reflect.DeepEqual(v, again) {
			t.Fatalf("%q became %q", b, text)
		}
		if second := value.Append(nil, again); string(second) != string(text) {
			t.Fatalf("%q and %q", text, second)
		}
	})
}

func TestNamesAreKeptApart(t *testing.T) {
	// More names than a decoder remembers, long and escaped ones, read twice.
	var b strings.Builder
	want := map[string]any{}
	b.WriteByte('{')
	for i := range 3000 {
		name := fmt.Sprintf("n%d", i)
		switch i % 3 {
		case 1:
			name = strings.Repeat("long", 20) + name
		case 2:
			name = "\"\\é" + name
		}
		want[name] = name
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", value.Append(nil, name), value.AppendString(nil, name))
	}
	b.WriteByte('}')
	for range 2 {
		text := []byte(b.String())
		got, err := value.DecodeDocument(text)
		clear(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%d names of %d, %v", len(got), len(want), err)
		}
	}
}

func TestADecoderForgetsRefusedText(t *testing.T) {
	for _, refused := range []string{`{"a":[{"b":`, `{"a":1,"a":2}`, nested(33), `{"a":"\ud800"}`, `{"a":1e999}`, `{} {`} {
		if _, err := value.DecodeDocument([]byte(refused)); err == nil {
			t.Errorf("%s was accepted", refused)
		}
		if got, err := value.DecodeDocument([]byte(`{"a":1}`)); err != nil || string(value.Append(nil, got)) != `{"a":1}` {
			t.Errorf("after %.20s: %v, %v", refused, got, err)
		}
	}
}
