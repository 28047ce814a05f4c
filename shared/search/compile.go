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

// coarseClauses is the most clauses that one condition gets in a filter that
// has too many: 256 conditions stay within the limit then.
const coarseClauses = 3

// compile translates a filter. One that would take too many clauses gets no
// sure query, so that every document it may find is looked at, and where that
// is not enough, conditions that take many clauses are only looked at.
func compile(e filter.Expr) reading {
	r := translate(e, maxQueryClauses)
	if r.may.clauses+r.sure.clauses > maxQueryClauses {
		r.sure = nothing
	}
	if r.may.clauses > maxQueryClauses {
		r.may = translate(e, coarseClauses).may
	}
	return r
}

// translate gives no condition a query of more than most clauses.
func translate(e filter.Expr, most int) reading {
	switch e := e.(type) {
	case filter.And:
		may, sure := translateAll(e.Of, most)
		return reading{may: allOf(may...), sure: allOf(sure...)}
	case filter.Or:
		may, sure := translateAll(e.Of, most)
		return reading{may: anyOf(may...), sure: anyOf(sure...)}
	case filter.Not:
		return translate(e.Of, most).negated()
	}
	r := condition(e)
	if r.may.clauses > most {
		r.may = everything
	}
	if r.sure.clauses > most {
		r.sure = nothing
	}
	return r
}

func translateAll(parts []filter.Expr, most int) (may, sure []query) {
	for _, part := range parts {
		r := translate(part, most)
		may, sure = append(may, r.may), append(sure, r.sure)
	}
	return may, sure
}

// negated is the reading of the opposite: what is not sure to match may be one.
func (r reading) negated() reading { return reading{may: not(r.sure), sure: not(r.may)} }

// condition translates a filter that has no parts.
func condition(e filter.Expr) reading {
	switch e := e.(type) {
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
		r := exactly(everything) // an envelope is complete
		if e.Field.Pseudo == "" {
			r = placeOf(e.Field.Path).exists()
		}
		if !e.Want {
			return r.negated()
		}
		return r
	}
	// What this compiler does not know is decided by looking.
	return reading{may: everything, sure: nothing}
}
