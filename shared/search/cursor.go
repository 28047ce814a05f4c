package search

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/value"
)

// position is where a document stands in a sorted answer: a value per sort
// key, each a string or a json.Number of a whole number.
type position []any

func (p position) compare(q position, order []orderBy) int {
	for i, by := range order {
		c := compareSortValues(p[i], q[i])
		if by.desc {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func compareSortValues(a, b any) int {
	if a, ok := a.(json.Number); ok {
		if b, ok := b.(json.Number); ok {
			return value.CompareNumbers(a, b)
		}
	}
	s, _ := a.(string)
	t, _ := b.(string)
	return strings.Compare(s, t)
}

// sortValues decodes the sort values of a hit or a cursor.
func sortValues(raw []json.RawMessage) (position, bool) {
	p := make(position, len(raw))
	for i, text := range raw {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if d.Decode(&p[i]) != nil {
			return nil, false
		}
		switch v := p[i].(type) {
		case string:
		case json.Number:
			if _, err := strconv.ParseInt(string(v), 10, 64); err != nil {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return p, true
}

// A cursor is the version of its layout, a checksum and what it says, so that
// an altered one is noticed. It holds nothing that the answer did not.
const (
	cursorLayout   = 1
	cursorChecksum = 8 // bytes
)

type cursorContent struct {
	Query string            `json:"q"`
	After []json.RawMessage `json:"a"`
}

// encodeCursor makes the cursor that goes on after a position of a query.
func encodeCursor(query string, after position) (string, error) {
	content := cursorContent{Query: query, After: make([]json.RawMessage, len(after))}
	for i, v := range after {
		text, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		content.After[i] = text
	}
	text, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(slices.Concat([]byte{cursorLayout}, sum[:cursorChecksum], text)), nil
}

// decodeCursor reads a cursor for a query. Errors are of kind InvalidCursor and
// CursorMismatch.
func decodeCursor(s, query string, order []orderBy) (position, error) {
	invalid := doc.Errorf(doc.InvalidCursor, "the cursor is not one that a query gave")
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < 1+cursorChecksum || b[0] != cursorLayout {
		return nil, invalid
	}
	text := b[1+cursorChecksum:]
	sum := sha256.Sum256(text)
	if !bytes.Equal(sum[:cursorChecksum], b[1:1+cursorChecksum]) {
		return nil, invalid
	}
	var content cursorContent
	if json.Unmarshal(text, &content) != nil {
		return nil, invalid
	}
	if content.Query != query {
		return nil, doc.Errorf(doc.CursorMismatch, "the cursor belongs to a query with another from, filter or sort")
	}
	after, ok := sortValues(content.After)
	if !ok || len(after) != len(order) {
		return nil, invalid
	}
	return after, nil
}

// queryName is a text that is equal for equal from, filter and sort.
func queryName(r Request) string {
	var b []byte
	names := make([]string, len(r.From))
	for i, s := range r.From {
		names[i] = string(s.Collection)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		b = value.Append(b, name)
	}
	b = append(b, '|')
	b = appendExpr(b, r.Filter)
	for _, k := range r.Sort {
		b = append(b, '|')
		b = value.Append(b, k.field().String())
		b = strconv.AppendBool(b, k.Desc)
	}
	b = append(b, '|')
	b = value.Append(b, r.Variant)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// appendExpr writes a filter so that different ones differ.
func appendExpr(dst []byte, e filter.Expr) []byte {
	list := func(name byte, parts []filter.Expr) []byte {
		dst = append(dst, name, '(')
		for _, part := range parts {
			dst = append(appendExpr(dst, part), ',')
		}
		return append(dst, ')')
	}
	switch e := e.(type) {
	case filter.And:
		return list('a', e.Of)
	case filter.Or:
		return list('o', e.Of)
	case filter.Not:
		return list('n', []filter.Expr{e.Of})
	case filter.Compare:
		dst = append(dst, e.Op...)
		dst = value.Append(dst, e.Field.String())
		return value.Append(dst, e.Value)
	case filter.In:
		dst = append(dst, 'i')
		dst = value.Append(dst, e.Field.String())
		return value.Append(dst, e.Values)
	case filter.Exists:
		dst = append(dst, 'e')
		dst = value.Append(dst, e.Field.String())
		return strconv.AppendBool(dst, e.Want)
	}
	return dst
}
