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

// Expr is a node of a filter: And, Or, Not, Compare, In or Exists, always as a
// plain struct and never a pointer. Nodes are not changed after Parse.
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

func (And) expr()     {}
func (Or) expr()      {}
func (Not) expr()     {}
func (Compare) expr() {}
func (In) expr()      {}
func (Exists) expr()  {}

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
// of their first use.
func Fields(e Expr) []Field {
	var fields []Field
	seen := map[string]bool{}
	var walk func(Expr)
	use := func(f Field) {
		if text := f.String(); !seen[text] {
			seen[text] = true
			fields = append(fields, f)
		}
	}
	walk = func(e Expr) {
		switch e := e.(type) {
		case And:
			for _, part := range e.Of {
				walk(part)
			}
		case Or:
			for _, part := range e.Of {
				walk(part)
			}
		case Not:
			walk(e.Of)
		case Compare:
			use(e.Field)
		case In:
			use(e.Field)
		case Exists:
			use(e.Field)
		}
	}
	walk(e)
	return fields
}
