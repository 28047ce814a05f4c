package search

import (
	"strconv"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// Projector is the number of the code that makes index documents. Whatever
// changes their content takes the next number, and with it a new generation.
const Projector = 1

// Projection is the index document of one version of a document.
type Projection struct {
	Source  []byte   // its JSON
	Partial []string // the field paths left out of it, each with everything below; "" is the whole document
}

// Reduction says how much of a document its projection leaves out. Each level
// is tried when OpenSearch refuses the one before because of the document.
type Reduction int

// The levels. At each of them the document is found by its id, by what is
// still indexed and, through $partial, by what is not.
const (
	Full         Reduction = iota // everything within the budgets
	KnownFields                   // only leaves for which the index has a field already
	WithoutTree                   // no leaves at all: the envelope, the shape and the text
	EnvelopeOnly                  // the envelope and the text
)

// The names of the system's own fields.
const (
	fieldID         = "$id"
	fieldCollection = "$collection"
	fieldVersion    = "$version"
	fieldCreatedAt  = "$createdAt" // microseconds since 1970
	fieldUpdatedAt  = "$updatedAt" // microseconds since 1970
	fieldExpiresAt  = "$expiresAt" // microseconds since 1970
	fieldDeleted    = "$deleted"
	fieldRoot       = "$root"
	fieldRaw        = "$raw"
	fieldShape      = "$shape"
	fieldPartial    = "$partial"
	fieldSum        = "$sum"
	fieldTree       = "doc"
)

// Project makes the index document of d for the generation g. It is pure: one
// version has one body per generation. A tombstone becomes a marker, which has
// nothing but what hides it and keeps older news out.
func Project(d doc.Document, g collection.Generation) Projection {
	return Reduce(d, g, Full, nil)
}

// Reduce makes the index document of d at a level of reduction. known are the
// fields that the index has, without those it has refused; only the level
// KnownFields looks at them.
func Reduce(d doc.Document, g collection.Generation, level Reduction, known Fields) Projection {
	if d.Deleted {
		return Projection{Source: appendMarker(nil, d)}
	}
	var raw []byte
	if d.Data == nil {
		raw = []byte("{}")
	} else {
		raw = value.Append(nil, d.Data)
	}
	p := projector{text: declaredPaths(g.Text), nested: declaredPaths(g.Nested), chosen: collection.NewSelection(g.Include, g.Exclude)}
	if level == KnownFields {
		p.known, p.onlyKnown = known, true
	}
	var tree, shape []byte
	switch level {
	case EnvelopeOnly:
		p.leaveOut("")
	case WithoutTree:
		p.plant(d.Data)
		p.leaveOut("")
		shape = p.appendShape(nil)
	default:
		p.plant(d.Data)
		tree = p.appendTree(make([]byte, 0, len(raw)+len(raw)/2), p.root)
		shape = p.appendShape(nil)
	}
	partial := p.allPartial()

	dst := make([]byte, 0, 2*len(raw)+len(tree)+len(shape)+512)
	dst = appendEnvelope(dst, d)
	dst = appendMember(dst, fieldSum)
	dst = value.AppendString(dst, value.Sum(d.Data))
	if len(partial) > 0 {
		dst = appendMember(dst, fieldPartial)
		dst = appendTexts(dst, partial)
	}
	if len(shape) > 0 {
		dst = appendMember(dst, fieldShape)
		dst = append(dst, shape...)
	}
	if len(tree) > 2 { // more than {}
		dst = appendMember(dst, fieldTree)
		dst = append(dst, tree...)
	}
	dst = appendMember(dst, fieldRaw)
	dst = value.AppendString(dst, string(raw))
	return Projection{Source: append(dst, '}'), Partial: partial}
}

// appendMarker writes what the index keeps of a deleted document.
func appendMarker(dst []byte, d doc.Document) []byte {
	dst = appendIdentity(dst, d)
	dst = appendMember(dst, fieldDeleted)
	return append(dst, "true}"...)
}

func appendEnvelope(dst []byte, d doc.Document) []byte {
	dst = appendIdentity(dst, d)
	dst = appendMoment(dst, fieldCreatedAt, d.CreatedAt)
	dst = appendMoment(dst, fieldUpdatedAt, d.UpdatedAt)
	return appendMoment(dst, fieldExpiresAt, d.ExpiresAt)
}

func appendIdentity(dst []byte, d doc.Document) []byte {
	dst = append(dst, '{')
	dst = appendMember(dst, fieldID)
	dst = value.AppendString(dst, string(d.ID))
	dst = appendMember(dst, fieldCollection)
	dst = value.AppendString(dst, string(d.ID.Collection()))
	dst = appendMember(dst, fieldRoot)
	dst = value.AppendString(dst, d.ID.Root())
	dst = appendMember(dst, fieldVersion)
	return strconv.AppendInt(dst, int64(d.Version), 10)
}

// appendMoment writes a moment in microseconds since 1970; none for the zero
// time.
func appendMoment(dst []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	dst = appendMember(dst, name)
	return strconv.AppendInt(dst, t.UnixMicro(), 10)
}

// appendMember writes a member name that needs no escapes, with the comma
// where it is not the first.
func appendMember(dst []byte, name string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

func appendTexts(dst []byte, texts []string) []byte {
	dst = append(dst, '[')
	for i, s := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = value.AppendString(dst, s)
	}
	return append(dst, ']')
}
