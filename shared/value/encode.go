package value

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"
)

// Append appends the canonical JSON text of v to dst: members sorted by the
// bytes of their names, no white space, only those escapes that JSON demands,
// numbers as they stand. Equal values give equal text.
//
// v is a tree as the package describes it; another Go type in it is a mistake
// of the program and panics. Bytes that are not UTF-8, which no decoded tree
// has, are written as U+FFFD.
func Append(dst []byte, v any) []byte {
	names := nameStacks.Get().(*[]string)
	w := writer{out: dst, names: (*names)[:0]}
	w.value(v)
	*names = w.names
	nameStacks.Put(names)
	return w.out
}

// Sum is a checksum of a document's content: the first 16 bytes of the SHA-256
// of its canonical text, in hex. Equal documents have equal sums.
func Sum(data map[string]any) string {
	buffer := sumBuffers.Get().(*[]byte)
	text := Append((*buffer)[:0], data)
	sum := sha256.Sum256(text)
	*buffer = text
	sumBuffers.Put(buffer)
	return hex.EncodeToString(sum[:16])
}

var (
	nameStacks = sync.Pool{New: func() any { return new([]string) }}
	sumBuffers = sync.Pool{New: func() any { return new([]byte) }}
)

// writer appends to out. names is a stack: each object being written has its
// sorted names above those of the objects around it.
type writer struct {
	out   []byte
	names []string
}

func (w *writer) value(v any) {
	switch v := v.(type) {
	case nil:
		w.out = append(w.out, "null"...)
	case bool:
		if v {
			w.out = append(w.out, "true"...)
		} else {
			w.out = append(w.out, "false"...)
		}
	case string:
		w.out = AppendString(w.out, v)
	case json.Number:
		w.out = append(w.out, v...)
	case []any:
		w.array(v)
	case map[string]any:
		w.object(v)
	default:
		panic(fmt.Sprintf("value: a tree holds a %T", v))
	}
}

func (w *writer) array(v []any) {
	w.out = append(w.out, '[')
	for i, element := range v {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.value(element)
	}
	w.out = append(w.out, ']')
}

func (w *writer) object(v map[string]any) {
	base := len(w.names)
	for name := range v {
		w.names = append(w.names, name)
	}
	slices.Sort(w.names[base:])
	w.out = append(w.out, '{')
	for i := range len(v) {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		// The stack may move while members are written, so it is indexed anew.
		name := w.names[base+i]
		w.out = AppendString(w.out, name)
		w.out = append(w.out, ':')
		w.value(v[name])
	}
	w.out = append(w.out, '}')
	clear(w.names[base:]) // what is kept for the next call is the room, not the strings
	w.names = w.names[:base]
}

const hexDigits = "0123456789abcdef"

// appendString writes s in quotes. RFC 8259 demands escapes for the quotation
// mark, the backslash and U+0000 to U+001F; all else stands for itself.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, s[done:i]...)
				dst = append(dst, "\ufffd"...)
				done = i + 1
			}
			i += size
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[done:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		}
		i++
		done = i
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}
