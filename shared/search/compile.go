package search

import (
	"maps"

	"holdfast/shared/filter"
	"holdfast/shared/value"
)

// reading is a filter in OpenSearch's terms, twice: may finds at least the
// documents that match, sure finds none that do not. Where the two differ, the
// document itself decides.
type reading struct {
	may, sure query
}

// exactly is a reading without doubt.
func exactly(q query) reading { return reading{may: q, sure: q} }

// clauses are those of a search, which asks both.
func (r reading) clauses() int { return r.may.clauses + r.sure.clauses }

// maxQueryClauses keeps one request below OpenSearch's limit of 1,024 clauses,
// with room for what every search adds.
const maxQueryClauses = 900

// coarseClauses is the most clauses that one condition gets in a filter that
// has too many: 256 conditions stay within the limit then.
const coarseClauses = 3

// compile translates a filter. One that would take too many clauses gets no
// sure query, so that every document it may find is looked at, and where that
// is not enough, conditions that take many clauses are only looked at.
func compile(e filter.Expr, d declared) reading {
	g := groundOf(d)
	r := g.translate(e)
	if r.clauses() > maxQueryClauses {
		r.sure = nothing
	}
	if r.may.clauses > maxQueryClauses {
		g.most = coarseClauses
		r.may = g.translate(e).may
	}
	return r
}

// ground is what the conditions of a filter are about: a document, or one
// element of a declared nested path, which is an index document of its own.
type ground struct {
	above    []value.Segment // the path of the element; none for a document
	within   string          // that path in the index
	shape    string          // the field with its shapes
	whole    bool            // a document: what the index leaves out of it is listed
	depth    int             // of elements inside elements
	declared declared
	most     int // clauses for one condition
}

// groundOf is the ground of conditions on documents.
func groundOf(d declared) ground {
	return ground{shape: fieldShape, whole: true, declared: d, most: maxQueryClauses}
}

// local is a path as the ground's shapes tell it: from the element on.
func (g ground) local(path string) string { return fromElement(path, g.within) }

// declared are the field paths that all collections of a search declare.
type declared struct {
	nested, text map[string]bool
}

// declaredBy is what all the sources declare. Those without an index have no
// document that anything could be declared of.
func declaredBy(from []Source) declared {
	var d declared
	first := true
	for _, s := range from {
		if s.Generation == nil {
			continue
		}
		nested, text := declaredPaths(s.Generation.Nested), declaredPaths(s.Generation.Text)
		if first {
			d, first = declared{nested: nested, text: text}, false
			continue
		}
		maps.DeleteFunc(d.nested, func(path string, _ bool) bool { return !nested[path] })
		maps.DeleteFunc(d.text, func(path string, _ bool) bool { return !text[path] })
	}
	return d
}

func (g ground) translate(e filter.Expr) reading {
	switch e := e.(type) {
	case filter.And:
		may, sure := g.translateAll(e.Of)
		return reading{may: allOf(may...), sure: allOf(sure...)}
	case filter.Or:
		may, sure := g.translateAll(e.Of)
		return reading{may: anyOf(may...), sure: anyOf(sure...)}
	case filter.Not:
		return g.translate(e.Of).negated()
	}
	r := g.condition(e)
	if r.may.clauses > g.most {
		r.may = everything
	}
	if r.sure.clauses > g.most {
		r.sure = nothing
	}
	return r
}

func (g ground) translateAll(parts []filter.Expr) (may, sure []query) {
	for _, part := range parts {
		r := g.translate(part)
		may, sure = append(may, r.may), append(sure, r.sure)
	}
	return may, sure
}

// negated is the reading of the opposite: what is not sure to match may be one.
func (r reading) negated() reading { return reading{may: not(r.sure), sure: not(r.may)} }

// undecidable is the reading of what only looking decides.
var undecidable = reading{may: everything, sure: nothing}

// condition translates a filter that has no parts of its own kind.
func (g ground) condition(e filter.Expr) reading {
	switch e := e.(type) {
	case filter.Compare:
		if e.Field.Pseudo != "" {
			return comparePseudo(e)
		}
		return g.place(e.Field.Path).compare(e)
	case filter.In:
		if e.Field.Pseudo != "" {
			return inPseudo(e)
		}
		return g.place(e.Field.Path).in(e.Values)
	case filter.Exists:
		r := exactly(everything) // an envelope is complete
		if e.Field.Pseudo == "" {
			r = g.place(e.Field.Path).exists()
		}
		if !e.Want {
			return r.negated()
		}
		return r
	case filter.Type:
		return g.place(e.Field.Path).ofKind(e.Kinds)
	case filter.Size:
		return g.place(e.Field.Path).ofLength(e.Length)
	case filter.Prefix:
		if e.Field.Pseudo != "" {
			return prefixPseudo(e)
		}
		return g.place(e.Field.Path).beginsWith(e.Text)
	case filter.Text:
		pl := g.place(e.Field.Path)
		if !g.declared.text[pl.path] {
			return undecidable
		}
		return pl.hasWords(e.Words)
	case filter.ElemMatch:
		return g.elemMatch(e)
	}
	// What this compiler does not know is decided by looking.
	return undecidable
}
