package value

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"holdfast/shared/doc"
)

// DecodeDocument reads a document: one JSON object of at most MaxDepth levels,
// with nothing but white space around it.
//
// The errors are those of Decode, and NotAnObject where the text is other JSON.
func DecodeDocument(b []byte) (map[string]any, error) {
	v, err := Decode(b, MaxDepth)
	if err != nil {
		return nil, err
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, doc.Errorf(doc.NotAnObject, "a document is a JSON object").With("pointer", "")
	}
	return object, nil
}

// Decode reads exactly one JSON value in which containers are nested at most
// maxDepth deep. Strings are kept code point for code point, numbers by value.
//
// What cannot be kept is refused, never repaired. Every error has the member
// pointer, the place in the text by RFC 6901. The kinds are InvalidJSON (also
// for duplicate names, invalid UTF-8, lone surrogates and text after the
// value), NumberOutOfRange and DocumentTooDeep.
func Decode(b []byte, maxDepth int) (any, error) {
	d := decoders.Get().(*decoder)
	defer d.release()
	d.text, d.maxDepth = b, maxDepth
	d.input = *bytes.NewBuffer(b) // which the tokenizer reads in place
	d.tokens.Reset(&d.input)
	token, err := d.tokens.ReadToken()
	if errors.Is(err, io.EOF) {
		return nil, doc.Errorf(doc.InvalidJSON, "the text is empty").With("pointer", "")
	}
	if err != nil {
		return nil, d.syntaxError(err)
	}
	v, err := d.value(token, 0)
	if err != nil {
		return nil, err
	}
	// The tokenizer reads streams of values; here one value is all there is.
	if _, err := d.tokens.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, doc.Errorf(doc.InvalidJSON, "there is more text after the value").With("pointer", "")
	}
	return v, nil
}

// Names of members repeat, within a document and from one to the next. Short
// ones are kept with the decoder, up to a number that bounds its memory.
const (
	keptNames     = 1024
	keptNameBytes = 32
)

// decoder keeps the tokenizer, whose tables for duplicate names are worth using
// again, names of members, and what is needed to explain a refusal.
type decoder struct {
	tokens   *jsontext.Decoder
	input    bytes.Buffer
	names    map[string]string
	text     []byte
	maxDepth int
}

var decoders = sync.Pool{New: func() any {
	return &decoder{tokens: jsontext.NewDecoder(&bytes.Buffer{}), names: map[string]string{}}
}}

// release gives the decoder back without its hold on the text.
func (d *decoder) release() {
	d.text, d.input = nil, bytes.Buffer{}
	d.tokens.Reset(&d.input)
	decoders.Put(d)
}

// value turns the token just read, and what belongs to it, into a tree. depth
// is the number of containers around it.
func (d *decoder) value(token jsontext.Token, depth int) (any, error) {
	switch token.Kind() {
	case 'n':
		return nil, nil
	case 't':
		return true, nil
	case 'f':
		return false, nil
	case '"':
		return token.String(), nil
	case '0':
		n, err := Number(token.String())
		if err != nil {
			return nil, d.locate(err)
		}
		return n, nil
	case '{', '[':
		if depth == d.maxDepth {
			return nil, tooDeep(string(d.tokens.StackPointer()), d.maxDepth, deepest(d.text))
		}
		if token.Kind() == '{' {
			return d.object(depth + 1)
		}
		return d.array(depth + 1)
	}
	return nil, doc.Errorf(doc.InvalidJSON, "unexpected text").With("pointer", string(d.tokens.StackPointer()))
}

func (d *decoder) object(depth int) (any, error) {
	object := map[string]any{}
	for d.tokens.PeekKind() == '"' {
		quoted, err := d.tokens.ReadValue()
		if err != nil {
			return nil, d.syntaxError(err)
		}
		name := d.name(quoted)
		token, err := d.tokens.ReadToken()
		if err != nil {
			return nil, d.syntaxError(err)
		}
		if object[name], err = d.value(token, depth); err != nil {
			return nil, err
		}
	}
	if _, err := d.tokens.ReadToken(); err != nil { // the end, or what should not stand here
		return nil, d.syntaxError(err)
	}
	return object, nil
}

// name is the text of a member's name, which the tokenizer has found valid.
func (d *decoder) name(quoted jsontext.Value) string {
	text := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		plain, _ := jsontext.AppendUnquote(nil, quoted)
		return string(plain)
	}
	if len(text) > keptNameBytes {
		return string(text)
	}
	if name, ok := d.names[string(text)]; ok {
		return name
	}
	if len(d.names) >= keptNames {
		clear(d.names)
	}
	name := string(text)
	d.names[name] = name
	return name
}

func (d *decoder) array(depth int) (any, error) {
	array := []any{}
	for {
		token, err := d.tokens.ReadToken()
		if err != nil {
			return nil, d.syntaxError(err)
		}
		if token.Kind() == ']' {
			return array, nil
		}
		v, err := d.value(token, depth)
		if err != nil {
			return nil, err
		}
		array = append(array, v)
	}
}

// locate adds the place of the token just read to an error about it.
func (d *decoder) locate(err error) error {
	var e *doc.Error
	if errors.As(err, &e) {
		return e.With("pointer", string(d.tokens.StackPointer()))
	}
	return err
}

// syntaxError says what the tokenizer stumbled over, and where.
func (d *decoder) syntaxError(err error) error {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		// Only the end of the text between two tokens comes without a place.
		return doc.Errorf(doc.InvalidJSON, "the text ends before the value does").
			With("pointer", string(d.tokens.StackPointer()))
	}
	refuse := func(format string, args ...any) error {
		return doc.Errorf(doc.InvalidJSON, format, args...).With("pointer", string(syntax.JSONPointer))
	}
	at := min(max(int(syntax.ByteOffset), 0), len(d.text))
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return refuse("the name %q occurs twice in one object", syntax.JSONPointer.LastToken())
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refuse("the text ends before the value does")
	case startsInvalidUTF8(d.text[at:]):
		return refuse("the text is not valid UTF-8 at byte %d", at)
	}
	return refuse("%v, at byte %d", syntax.Err, at)
}

func startsInvalidUTF8(b []byte) bool {
	r, size := utf8.DecodeRune(b)
	return r == utf8.RuneError && size == 1
}

func tooDeep(pointer string, limit, actual int) error {
	return doc.Errorf(doc.DocumentTooDeep, "containers are nested %d deep; at most %d levels are kept", actual, limit).
		With("pointer", pointer).With("limit", limit).With("actual", actual)
}

// deepest counts how deep the brackets of a JSON text are nested, in one pass
// and without memory, whatever the depth. Its result is what a refusal tells;
// what stands after the refused place was not checked to be JSON.
func deepest(text []byte) int {
	depth, most := 0, 0
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return most
}

// CheckDepth refuses a document that is nested deeper than MaxDepth, with kind
// DocumentTooDeep. It is for documents that arrived inside an envelope: pointer
// is where in the envelope v stands, and begins the error's pointer.
func CheckDepth(v map[string]any, pointer string) error {
	actual := Depth(v)
	if actual <= MaxDepth {
		return nil
	}
	return tooDeep(pointer+pastDepth(v, MaxDepth), MaxDepth, actual)
}

// Depth is how deep containers are nested in v: 0 for a scalar, 1 for a
// container of scalars.
func Depth(v any) int {
	most := 0
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			most = max(most, Depth(member))
		}
	case []any:
		for _, element := range v {
			most = max(most, Depth(element))
		}
	default:
		return 0
	}
	return most + 1
}

// pastDepth is the pointer to the first container, in the order of canonical
// text, that has limit containers around it; v is nested deeper than limit.
func pastDepth(v any, limit int) string {
	if limit == 0 {
		return ""
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if Depth(v[name]) >= limit {
				return Pointer(name) + pastDepth(v[name], limit-1)
			}
		}
	case []any:
		for i, element := range v {
			if Depth(element) >= limit {
				return Pointer(strconv.Itoa(i)) + pastDepth(element, limit-1)
			}
		}
	}
	return ""
}
