// Package filter is the query language's filters: MongoDB's vocabulary with
// MongoDB's meaning. Parse makes a tree of a closed set of nodes once; Match is
// its reading in memory, other packages translate the same tree for an engine.
//
// The package is pure: no engine, no clock.
package filter

import (
	"time"

	"holdfast/shared/value"
)

// Expr is a node of a filter: And, Or, Not, Compare, In, Exists, Type, Size,
// Prefix, Text or ElemMatch, always as a plain struct and never a pointer. Nodes
// are not changed after Parse.
type Expr interface{ expr() }

// And holds where all of its parts hold; without parts it holds everywhere.
type And struct{ Of []Expr }

// Or holds where at least one of its parts holds.
type Or struct{ Of []Expr }

// Not holds where its part does not hold.
type Not struct{ Of Expr }

// Compare holds where something that the field leads to stands in the relation
// Op to Value. What a path leads to includes the elements of an array it ends
// at, besides the array itself.
//
// Eq takes any value; nil equals null and missing. The other operators take
// scalars and compare within one type only; of nil, Gte and Lte mean equality
// and Gt and Lt hold nowhere.
//
// With IsInstant set, Instant is Value's moment and moments are compared: of a
// path only strings in strict RFC 3339 can then match. It is set for the
// operators other than Eq where Value is such a string, and always for
// $createdAt and $updatedAt.
type Compare struct {
	Field     Field
	Op        Op
	Value     any
	IsInstant bool
	Instant   time.Time // in UTC
}

// In holds where Compare with Eq holds for at least one of Values. Without
// values it holds nowhere. NewIn makes it fast to match.
type In struct {
	Field  Field
	Values []any
	lookup *lookup
}

// Exists tells whether the field leads to anything, null included (Want true),
// or to nothing (Want false).
type Exists struct {
	Field Field
	Want  bool
}

// Type holds where something that the field leads to is of one of the kinds.
// Of an array its elements count as well, and the array is an array whatever is
// in it. What is missing is of no kind.
type Type struct {
	Field Field
	Kinds []Kind // in order, each once
}

// Size holds where the field leads to an array of exactly that length.
type Size struct {
	Field  Field
	Length int
}

// Prefix holds where something that the field leads to is a string that begins
// with the text, code point by code point. Every string begins with "".
type Prefix struct {
	Field Field
	Text  string
}

// Text holds where every one of the words is in some text that the field leads
// to, not necessarily all in the same one. Strings are texts, and numbers are by
// their canonical text. What a word is, Words tells.
type Text struct {
	Field Field
	Words []string // folded, in order, each once; at least one
}

// ElemMatch holds where the field leads to an array of which one element meets
// all that Of says.
//
// Of is about the element: its paths begin there. Only objects can meet it, and
// arrays, whose elements count as members named by their positions, as they do
// in MongoDB. With Values set, any element can meet it: its fields have no steps
// and mean the element as a whole, so that an element that is an array stands
// for itself only.
type ElemMatch struct {
	Field  Field
	Of     Expr
	Values bool
}

func (And) expr()       {}
func (Or) expr()        {}
func (Not) expr()       {}
func (Compare) expr()   {}
func (In) expr()        {}
func (Exists) expr()    {}
func (Type) expr()      {}
func (Size) expr()      {}
func (Prefix) expr()    {}
func (Text) expr()      {}
func (ElemMatch) expr() {}

// Op is the relation of a Compare, as it is written in a filter.
type Op string

// The relations.
const (
	Eq  Op = "$eq"
	Gt  Op = "$gt"
	Gte Op = "$gte"
	Lt  Op = "$lt"
	Lte Op = "$lte"
)

// The pseudo-fields, which address the envelope instead of the document.
const (
	ID        = "$id"        // text
	Root      = "$root"      // text: the first two segments of the id
	Version   = "$version"   // number
	CreatedAt = "$createdAt" // instant
	UpdatedAt = "$updatedAt" // instant
)

// IsPseudo reports whether the name is that of a pseudo-field.
func IsPseudo(name string) bool {
	switch name {
	case ID, Root, Version, CreatedAt, UpdatedAt:
		return true
	}
	return false
}

// Field is where a condition looks: at a path in the document or, where Pseudo
// is not empty, at a pseudo-field.
type Field struct {
	Path   value.Path
	Pseudo string
}

// ParseField reads a pseudo-field or a path. Errors are those of
// value.ParsePath.
func ParseField(s string) (Field, error) {
	if IsPseudo(s) {
		return Field{Pseudo: s}, nil
	}
	p, err := value.ParsePath(s)
	return Field{Path: p}, err
}

// String is the field as it is written in a filter. Equal fields have equal
// texts.
func (f Field) String() string {
	if f.Pseudo != "" {
		return f.Pseudo
	}
	return f.Path.String()
}

// Fields lists the fields that an expression looks at, each once, in the order
// of their first use. Those inside an ElemMatch are told with the path to the
// array in front.
func Fields(e Expr) []Field {
	var fields []Field
	seen := map[string]bool{}
	var walk func(e Expr, above value.Path)
	walk = func(e Expr, above value.Path) {
		var f Field
		switch e := e.(type) {
		case And:
			for _, part := range e.Of {
				walk(part, above)
			}
			return
		case Or:
			for _, part := range e.Of {
				walk(part, above)
			}
			return
		case Not:
			walk(e.Of, above)
			return
		case Compare:
			f = e.Field
		case In:
			f = e.Field
		case Exists:
			f = e.Field
		case Type:
			f = e.Field
		case Size:
			f = e.Field
		case Prefix:
			f = e.Field
		case Text:
			f = e.Field
		case ElemMatch:
			f = e.Field
		}
		if f.Pseudo == "" {
			f.Path = above.Join(f.Path)
		}
		if text := f.String(); !seen[text] {
			seen[text] = true
			fields = append(fields, f)
		}
		if e, ok := e.(ElemMatch); ok {
			walk(e.Of, f.Path)
		}
	}
	walk(e, value.Path{})
	return fields
}
