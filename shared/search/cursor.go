package search

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
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
		if len(text) > 0 && text[0] == '"' {
			if v := string(text[1 : len(text)-1]); !strings.Contains(v, `\`) {
				p[i] = v // valid JSON, and nothing in it to undo
				continue
			}
			var v string
			if json.Unmarshal(text, &v) != nil {
				return nil, false
			}
			p[i] = v
			continue
		}
		if _, err := strconv.ParseInt(string(text), 10, 64); err != nil {
			return nil, false
		}
		p[i] = json.Number(text)
	}
	return p, true
}

// A cursor is the version of its layout, a code that only who has the key can
// make, and what it says. It holds nothing that the answer did not, but only
// what a query gave can be asked for.
const (
	cursorLayout = 1
	cursorCode   = 16 // bytes of the HMAC-SHA256
)

// sign is the code of a cursor's layout and content.
func sign(key, content []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte{cursorLayout})
	h.Write(content)
	return h.Sum(nil)[:cursorCode]
}

type cursorContent struct {
	Query string `json:"q"`
	// After are the sort values, those of a crowd without the last ones.
	After []json.RawMessage `json:"a"`
	// Within are the keys of a mark within a crowd, each a value or an array of
	// one string, which has the turns.
	Within []json.RawMessage `json:"w,omitempty"`
	Past   bool              `json:"p,omitempty"`
}

// encodeCursor makes the cursor that goes on after a mark in a query's answer.
func encodeCursor(key []byte, query string, after *mark) (string, error) {
	content := cursorContent{Query: query, Past: after.past}
	values := make([]any, len(after.at), len(after.at)+len(after.within))
	copy(values, after.at)
	for _, e := range after.within {
		if e.long {
			values = append(values, []string{base64.RawStdEncoding.EncodeToString(appendTurns(nil, e.turns))})
		} else {
			values = append(values, e.value)
		}
	}
	for i, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			return "", fmt.Errorf("write a cursor: %w", err)
		}
		if i < len(after.at) {
			content.After = append(content.After, text)
		} else {
			content.Within = append(content.Within, text)
		}
	}
	text, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("write a cursor: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(slices.Concat([]byte{cursorLayout}, sign(key, text), text)), nil
}

// decodeCursor reads a cursor for a query. Errors are of kind InvalidCursor and
// CursorMismatch.
func decodeCursor(key []byte, s, query string, order []orderBy) (*mark, error) {
	invalid := doc.Errorf(doc.InvalidCursor, "the cursor is not one that a query gave")
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < 1+cursorCode || b[0] != cursorLayout {
		return nil, invalid
	}
	text := b[1+cursorCode:]
	if !hmac.Equal(sign(key, text), b[1:1+cursorCode]) {
		return nil, invalid
	}
	var content cursorContent
	if json.Unmarshal(text, &content) != nil {
		return nil, invalid
	}
	if content.Query != query {
		return nil, doc.Errorf(doc.CursorMismatch, "the cursor belongs to a query with another from, filter or sort")
	}
	after, ok := content.mark()
	if !ok || !after.fits(len(order)) {
		return nil, invalid
	}
	return after, nil
}

func (c cursorContent) mark() (*mark, bool) {
	at, ok := sortValues(c.After)
	if !ok {
		return nil, false
	}
	m := &mark{at: at, past: c.Past}
	for _, text := range c.Within {
		var encoded []string
		if json.Unmarshal(text, &encoded) == nil && len(encoded) == 1 {
			b, err := base64.RawStdEncoding.DecodeString(encoded[0])
			turns, ok := readTurns(b)
			if err != nil || !ok {
				return nil, false
			}
			m.within = append(m.within, edge{long: true, turns: turns})
			continue
		}
		v, ok := sortValues([]json.RawMessage{text})
		if !ok {
			return nil, false
		}
		m.within = append(m.within, edge{value: v[0]})
	}
	return m, true
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
		b = value.AppendString(b, name)
	}
	b = append(b, '|')
	b = appendExpr(b, r.Filter)
	for _, k := range r.Sort {
		b = append(b, '|')
		b = value.AppendString(b, k.field().String())
		b = strconv.AppendBool(b, k.Desc)
	}
	b = append(b, '|')
	b = value.AppendString(b, r.Variant)
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
	field := func(name string, f filter.Field) {
		dst = append(dst, name...)
		dst = value.AppendString(dst, f.String())
	}
	switch e := e.(type) {
	case filter.And:
		return list('a', e.Of)
	case filter.Or:
		return list('o', e.Of)
	case filter.Not:
		return list('n', []filter.Expr{e.Of})
	case filter.Compare:
		field(string(e.Op), e.Field)
		return value.Append(dst, e.Value)
	case filter.In:
		field("i", e.Field)
		return value.Append(dst, e.Values)
	case filter.Exists:
		field("e", e.Field)
		return strconv.AppendBool(dst, e.Want)
	case filter.Type:
		field("t", e.Field)
		for _, k := range e.Kinds {
			dst = value.AppendString(dst, string(k))
		}
		return dst
	case filter.Size:
		field("s", e.Field)
		return strconv.AppendInt(dst, int64(e.Length), 10)
	case filter.Prefix:
		field("p", e.Field)
		return value.AppendString(dst, e.Text)
	case filter.Text:
		field("w", e.Field)
		for _, word := range e.Words {
			dst = value.AppendString(dst, word)
		}
		return dst
	case filter.ElemMatch:
		field("m", e.Field)
		dst = strconv.AppendBool(dst, e.Values)
		return list('m', []filter.Expr{e.Of})
	}
	return dst
}
