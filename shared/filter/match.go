package filter

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// Match reports whether the document meets the filter, by MongoDB's meaning.
// It looks at nothing but the document: whether it is live is not its question.
func Match(e Expr, d *doc.Document) bool { return matches(e, d, d.Data) }

// matches reads a filter whose paths begin at root: the document's data, or the
// element of an array inside an ElemMatch.
func matches(e Expr, d *doc.Document, root any) bool {
	switch e := e.(type) {
	case And:
		for _, part := range e.Of {
			if !matches(part, d, root) {
				return false
			}
		}
		return true
	case Or:
		for _, part := range e.Of {
			if matches(part, d, root) {
				return true
			}
		}
		return false
	case Not:
		return !matches(e.Of, d, root)
	case Compare:
		if e.Field.Pseudo != "" {
			return e.matchPseudo(d)
		}
		return anyCandidate(e.Field.Path, root, e.holds)
	case In:
		if e.lookup == nil {
			e = NewIn(e.Field, e.Values)
		}
		if e.Field.Pseudo != "" {
			return e.lookup.hasPseudo(e.Field.Pseudo, d)
		}
		return anyCandidate(e.Field.Path, root, e.lookup.has)
	case Exists:
		if e.Field.Pseudo != "" {
			return e.Want // an envelope is complete
		}
		exists := e.Field.Path.Visit(root, func(r value.Reached) bool { return !r.Missing })
		return exists == e.Want
	case Type:
		return anyPresent(e.Field.Path, root, func(v any) bool { return slices.Contains(e.Kinds, KindOf(v)) })
	case Size:
		return anyArray(e.Field.Path, root, func(array []any) bool { return len(array) == e.Length })
	case Prefix:
		if e.Field.Pseudo != "" {
			return e.matchPseudo(d)
		}
		return anyPresent(e.Field.Path, root, func(v any) bool {
			s, ok := v.(string)
			return ok && strings.HasPrefix(s, e.Text)
		})
	case Text:
		return e.match(root)
	case ElemMatch:
		return anyArray(e.Field.Path, root, func(array []any) bool {
			return slices.ContainsFunc(array, func(element any) bool { return e.meets(element, d) })
		})
	}
	return false
}

// anyCandidate reports whether holds is true of something that the path leads
// to: the values there and the elements of arrays among them. Nothing being
// there counts as null, as it does in MongoDB.
func anyCandidate(p value.Path, root any, holds func(any) bool) bool {
	return p.Visit(root, func(r value.Reached) bool {
		if holds(r.Value) { // nil where nothing is
			return true
		}
		array, ok := r.Value.([]any)
		return ok && !r.Whole && !p.IsWhole() && slices.ContainsFunc(array, holds)
	})
}

// anyPresent is anyCandidate where nothing being there counts as nothing.
func anyPresent(p value.Path, root any, holds func(any) bool) bool {
	return p.Visit(root, func(r value.Reached) bool {
		if r.Missing {
			return false
		}
		if holds(r.Value) {
			return true
		}
		array, ok := r.Value.([]any)
		return ok && !r.Whole && !p.IsWhole() && slices.ContainsFunc(array, holds)
	})
}

// anyArray reports whether holds is true of an array that the path leads to.
func anyArray(p value.Path, root any, holds func([]any) bool) bool {
	return p.Visit(root, func(r value.Reached) bool {
		array, ok := r.Value.([]any)
		return ok && holds(array)
	})
}

// meets reports whether an element of the array meets the conditions.
func (e ElemMatch) meets(element any, d *doc.Document) bool {
	if e.Values {
		return matches(e.Of, d, element)
	}
	switch element := element.(type) {
	case map[string]any:
		return matches(e.Of, d, element)
	case []any:
		return matches(e.Of, d, byPosition(element))
	}
	return false
}

// byPosition is an array as an object, which it is to MongoDB.
func byPosition(array []any) map[string]any {
	object := make(map[string]any, len(array))
	for i, element := range array {
		object[strconv.Itoa(i)] = element
	}
	return object
}

// match looks for the words one after the other in all texts.
func (e Text) match(root any) bool {
	wanted := make(map[string]struct{}, len(e.Words))
	for _, w := range e.Words {
		wanted[w] = struct{}{}
	}
	return anyPresent(e.Field.Path, root, func(v any) bool {
		for w := range WordsOf(v) {
			if delete(wanted, w); len(wanted) == 0 {
				return true
			}
		}
		return false
	})
}

// holds compares one candidate.
func (c Compare) holds(candidate any) bool {
	if c.Op == Eq {
		return value.Equal(candidate, c.Value)
	}
	switch operand := c.Value.(type) {
	case nil:
		return candidate == nil && (c.Op == Gte || c.Op == Lte)
	case json.Number:
		n, ok := candidate.(json.Number)
		return ok && c.Op.admits(value.CompareNumbers(n, operand))
	case string:
		s, ok := candidate.(string)
		if !ok {
			return false
		}
		if c.IsInstant {
			at, ok := value.ParseInstant(s)
			return ok && c.Op.admits(at.Compare(c.Instant))
		}
		return c.Op.admits(strings.Compare(s, operand))
	case bool:
		b, ok := candidate.(bool)
		return ok && c.Op.admits(cmp.Compare(asInt(b), asInt(operand)))
	}
	return false
}

// matchPseudo compares a pseudo-field. Instants are always compared as such.
func (c Compare) matchPseudo(d *doc.Document) bool {
	switch c.Field.Pseudo {
	case ID:
		operand, ok := c.Value.(string)
		return ok && c.Op.admits(strings.Compare(string(d.ID), operand))
	case Root:
		operand, ok := c.Value.(string)
		return ok && c.Op.admits(strings.Compare(d.ID.Root(), operand))
	case Version:
		operand, ok := c.Value.(json.Number)
		return ok && c.Op.admits(value.CompareNumbers(json.Number(d.Version.String()), operand))
	case CreatedAt:
		return c.IsInstant && c.Op.admits(d.CreatedAt.Compare(c.Instant))
	case UpdatedAt:
		return c.IsInstant && c.Op.admits(d.UpdatedAt.Compare(c.Instant))
	}
	return false
}

func (e Prefix) matchPseudo(d *doc.Document) bool {
	switch e.Field.Pseudo {
	case ID:
		return strings.HasPrefix(string(d.ID), e.Text)
	case Root:
		return strings.HasPrefix(d.ID.Root(), e.Text)
	}
	return false
}

// admits reports whether a three-way comparison, candidate against operand,
// fulfils the relation.
func (op Op) admits(c int) bool {
	switch op {
	case Eq:
		return c == 0
	case Gt:
		return c > 0
	case Gte:
		return c >= 0
	case Lt:
		return c < 0
	case Lte:
		return c <= 0
	}
	return false
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// NewIn makes an In whose values are found by look-up, however many they are.
func NewIn(field Field, values []any) In {
	return In{Field: field, Values: values, lookup: newLookup(field, values)}
}

// lookup is a set of values. Scalars are its map's keys; equal numbers are
// equal strings, and the types of keys keep "1", 1 and true apart.
type lookup struct {
	scalars    map[any]struct{}
	containers []any
	instants   []time.Time // the values as instants, for the fields that are such
}

func newLookup(field Field, values []any) *lookup {
	l := &lookup{scalars: make(map[any]struct{}, len(values))}
	for _, v := range values {
		switch v := v.(type) {
		case []any, map[string]any:
			l.containers = append(l.containers, v)
		case string:
			l.scalars[v] = struct{}{}
			if at, ok := value.ParseInstant(v); ok && isInstantField(field) {
				l.instants = append(l.instants, at)
			}
		default:
			l.scalars[v] = struct{}{}
		}
	}
	return l
}

func (l *lookup) has(candidate any) bool {
	switch candidate.(type) {
	case []any, map[string]any:
		return slices.ContainsFunc(l.containers, func(v any) bool { return value.Equal(candidate, v) })
	}
	_, ok := l.scalars[candidate]
	return ok
}

func (l *lookup) hasPseudo(name string, d *doc.Document) bool {
	switch name {
	case ID:
		return l.has(string(d.ID))
	case Root:
		return l.has(d.ID.Root())
	case Version:
		return l.has(json.Number(d.Version.String()))
	case CreatedAt:
		return slices.ContainsFunc(l.instants, d.CreatedAt.Equal)
	case UpdatedAt:
		return slices.ContainsFunc(l.instants, d.UpdatedAt.Equal)
	}
	return false
}
