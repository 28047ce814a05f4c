package search

import (
	"holdfast/shared/filter"
)

// reading is a filter in OpenSearch's terms, twice: may finds at least the
// documents that match, sure finds none that do not. Where the two differ, the
// document itself decides.
type reading struct {
	may, sure query
}

// exactly is a reading without doubt.
func exactly(q query) reading { return reading{may: q, sure: q} }

// maxQueryClauses keeps one request below OpenSearch's limit of 1,024 clauses,
// with room for what every search adds.
const maxQueryClauses = 900

// compile translates a filter. One that would take too many clauses gets no
// sure query, so that every document it may find is looked at.
func compile(e filter.Expr) reading {
	r := translate(e)
	if r.may.clauses+r.sure.clauses > maxQueryClauses {
		r.sure = nothing
	}
	return r
}

func translate(e filter.Expr) reading {
	switch e := e.(type) {
	case filter.And:
		may, sure := make([]query, len(e.Of)), make([]query, len(e.Of))
		for i, part := range e.Of {
			r := translate(part)
			may[i], sure[i] = r.may, r.sure
		}
		return reading{may: allOf(may...), sure: allOf(sure...)}
	case filter.Or:
		may, sure := make([]query, len(e.Of)), make([]query, len(e.Of))
		for i, part := range e.Of {
			r := translate(part)
			may[i], sure[i] = r.may, r.sure
		}
		return reading{may: anyOf(may...), sure: anyOf(sure...)}
	case filter.Not:
		r := translate(e.Of)
		return reading{may: not(r.sure), sure: not(r.may)}
	case filter.Compare:
		if e.Field.Pseudo != "" {
			return comparePseudo(e)
		}
		return placeOf(e.Field.Path).compare(e)
	case filter.In:
		if e.Field.Pseudo != "" {
			return inPseudo(e)
		}
		return placeOf(e.Field.Path).in(e.Values)
	case filter.Exists:
		var r reading
		if e.Field.Pseudo != "" {
			r = exactly(everything)
		} else {
			r = placeOf(e.Field.Path).exists()
		}
		if !e.Want {
			r = reading{may: not(r.sure), sure: not(r.may)}
		}
		return r
	}
	// A node that this compiler does not know is decided by looking.
	return reading{may: everything, sure: nothing}
}
