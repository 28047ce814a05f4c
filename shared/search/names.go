package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/shared/value"
)

// escapeSign begins an escaped byte in a field name, "~2E" for a dot, and is
// alone the name of a member whose name is empty.
const escapeSign = '~'

const upperHex = "0123456789ABCDEF"

// appendName appends the field name of a member name. What OpenSearch refuses
// or reads as something else is escaped, byte by byte: dots, which would be
// steps; a leading $, which would meet the typed leaves; asterisks, which would
// be patterns; empty and blank names; white space at either end; control
// characters; and the escape sign itself. Everything else, names that OpenSearch
// uses at the top level included, is taken below "doc" as it is.
func appendName(dst []byte, name string) []byte {
	if name == "" {
		return append(dst, escapeSign)
	}
	for i, r := range name {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(name[i:])
		}
		ends := i == 0 || i+size == len(name)
		switch {
		case r == '.', r == '*', r == escapeSign, r == '$' && i == 0,
			unicode.IsControl(r), ends && unicode.IsSpace(r):
			for _, b := range []byte(name[i : i+size]) {
				dst = append(dst, escapeSign, upperHex[b>>4], upperHex[b&15])
			}
		default:
			dst = append(dst, name[i:i+size]...)
		}
	}
	return dst
}

// plainName is the inverse of appendName. It reports false for a text that
// appendName cannot have written.
func plainName(field string) (string, bool) {
	if field == string(escapeSign) {
		return "", true
	}
	if field == "" {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(field); i++ {
		if field[i] != escapeSign {
			b.WriteByte(field[i])
			continue
		}
		if i+2 >= len(field) {
			return "", false
		}
		high := strings.IndexByte(upperHex, field[i+1])
		low := strings.IndexByte(upperHex, field[i+2])
		if high < 0 || low < 0 {
			return "", false
		}
		b.WriteByte(byte(high<<4 | low))
		i += 2
	}
	name := b.String()
	return name, string(appendName(nil, name)) == field
}

// fieldPath joins the field names of the segments by dots.
func fieldPath(segments []value.Segment) string {
	var dst []byte
	for i, s := range segments {
		if i > 0 {
			dst = append(dst, '.')
		}
		dst = appendName(dst, s.Name)
	}
	return string(dst)
}

// declaredPaths are the field paths of the paths that a definition names. One
// that is no path names nothing.
func declaredPaths(texts []string) map[string]bool {
	if len(texts) == 0 {
		return nil
	}
	paths := make(map[string]bool, len(texts))
	for _, text := range texts {
		if p, err := value.ParsePath(text); err == nil && len(p.Segments()) > 0 {
			paths[fieldPath(p.Segments())] = true
		}
	}
	return paths
}
