package search

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"holdfast/shared/doc"
)

// UnmarshalJSONFrom reads a hit. Hits are nearly all of what a search answers,
// so they are read without reflection.
func (h *hit) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return eachMember(d, func(name []byte) (err error) {
		switch string(name) {
		case `"_source"`:
			return eachMember(d, func(name []byte) error { return h.readSource(d, name) })
		case `"sort"`:
			return eachElement(d, func() error {
				v, err := d.ReadValue()
				h.Sort = append(h.Sort, json.RawMessage(v.Clone()))
				return err
			})
		case `"matched_queries"`:
			return eachElement(d, func() error {
				text, err := readText(d)
				h.Matched = append(h.Matched, text)
				return err
			})
		}
		return d.SkipValue()
	})
}

func (h *hit) readSource(d *jsontext.Decoder, name []byte) (err error) {
	var text string
	switch string(name) {
	case `"` + fieldID + `"`:
		text, err = readText(d)
		h.Source.ID = doc.ID(text)
	case `"` + fieldRaw + `"`:
		h.Source.Raw, err = readText(d)
	case `"` + fieldVersion + `"`:
		var n *int64
		if n, err = readWhole(d); err == nil {
			h.Source.Version = doc.Version(*n)
		}
	case `"` + fieldCreatedAt + `"`:
		h.Source.CreatedAt, err = readWhole(d)
	case `"` + fieldUpdatedAt + `"`:
		h.Source.UpdatedAt, err = readWhole(d)
	case `"` + fieldExpiresAt + `"`:
		h.Source.ExpiresAt, err = readWhole(d)
	default:
		err = d.SkipValue()
	}
	return err
}

// eachMember reads an object. Names are given as they stand in the text, which
// OpenSearch writes without escapes.
func eachMember(d *jsontext.Decoder, read func(name []byte) error) error {
	if err := expect(d, '{'); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return err
		}
		if err := read(name); err != nil {
			return err
		}
	}
	return expect(d, '}')
}

func eachElement(d *jsontext.Decoder, read func() error) error {
	if err := expect(d, '['); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		if err := read(); err != nil {
			return err
		}
	}
	return expect(d, ']')
}

func expect(d *jsontext.Decoder, kind jsontext.Kind) error {
	token, err := d.ReadToken()
	if err == nil && token.Kind() != kind {
		err = fmt.Errorf("a hit has %s where %s belongs", token.Kind(), kind)
	}
	return err
}

func readText(d *jsontext.Decoder) (string, error) {
	v, err := d.ReadValue()
	if err != nil {
		return "", err
	}
	if v.Kind() != '"' {
		return "", fmt.Errorf("a hit has %s where a string belongs", v.Kind())
	}
	return unquote(v[1 : len(v)-1])
}

// unquote is the string that valid JSON has between quotes. Most of what is read
// are documents, in which every name and string is quoted once more, so the
// escapes that they need are undone right here.
func unquote(quoted []byte) (string, error) {
	next := bytes.IndexByte(quoted, '\\')
	if next < 0 {
		return string(quoted), nil
	}
	b := make([]byte, 0, len(quoted))
	for rest := quoted; ; {
		b = append(b, rest[:next]...)
		switch c := rest[next+1]; c {
		case '"', '\\', '/':
			b = append(b, c)
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		default:
			text, err := jsontext.AppendUnquote(nil, slices.Concat([]byte{'"'}, quoted, []byte{'"'}))
			return string(text), err
		}
		rest = rest[next+2:]
		if next = bytes.IndexByte(rest, '\\'); next < 0 {
			return string(append(b, rest...)), nil
		}
	}
}

func readWhole(d *jsontext.Decoder) (*int64, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	if token.Kind() != '0' {
		return nil, fmt.Errorf("a hit has %s where a number belongs", token.Kind())
	}
	n, err := token.Int()
	return &n, err
}
