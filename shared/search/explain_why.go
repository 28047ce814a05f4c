package search

import (
	"fmt"

	"holdfast/shared/filter"
)

// eachUndecided visits the conditions of a filter that the index cannot decide
// about every document. Those that do not matter, because the rest of what they
// are part of is decided whatever they say, are passed over.
func (g ground) eachUndecided(e filter.Expr, visit func(filter.Expr)) {
	if g.translate(e).exact() {
		return
	}
	switch e := e.(type) {
	case filter.And:
		for _, part := range e.Of {
			g.eachUndecided(part, visit)
		}
	case filter.Or:
		for _, part := range e.Of {
			g.eachUndecided(part, visit)
		}
	case filter.Not:
		g.eachUndecided(e.Of, visit)
	default:
		visit(e)
	}
}

// fieldOf is where a condition looks.
func fieldOf(e filter.Expr) (f filter.Field) {
	for _, f = range filter.Fields(e) {
		return f
	}
	return f
}

// why says why the index cannot decide a condition about every document.
func (g ground) why(e filter.Expr) string {
	r := g.condition(e)
	pl := g.place(fieldOf(e).Path)
	elements, ofElements := e.(filter.ElemMatch)
	whole, long := operands(e)
	switch {
	case r.may.clauses > g.most || r.sure.clauses > g.most:
		return "The condition is too large for the index, so the documents are looked at."
	case ofElements && r.sure.constant != never:
		return "Where the index is not sure that one element meets all of it, the documents are looked at."
	case ofElements && !elements.Values && !g.declared.nested[pl.path] && len(pl.readings) == 1:
		return "The index keeps the values of an array's elements together unless the array is declared as nested, so only the documents tell whether one element meets all of it."
	case ofElements:
		return "Only the documents tell whether one element meets all of it."
	case pl.readings == nil:
		return fmt.Sprintf("A path with more than %d numbers, each of which may be a position or a name, is followed in the documents.", maxPositions)
	case whole:
		return "Whole arrays and objects are compared in the documents."
	case long > 0:
		return fmt.Sprintf("Texts of more than %d bytes are compared in the documents.", long)
	case r.sure.constant == never:
		return "Only the documents tell."
	}
	return "The index decides, except about documents whose values there it has only in part or rounded, or whose arrays on the way it cannot tell apart: these are looked at."
}

// operands tells of a condition whether it compares with a whole array or object,
// and, where it compares with a longer text than the index does, how many bytes
// of it the index compares.
func operands(e filter.Expr) (whole bool, long int) {
	look := func(v any, most int) {
		switch v := v.(type) {
		case []any, map[string]any:
			whole = true
		case string:
			if len(v) > most {
				long = most
			}
		}
	}
	switch e := e.(type) {
	case filter.Compare:
		most := rangeBytes
		if e.Op == filter.Eq {
			most = keptBytes
		}
		look(e.Value, most)
	case filter.In:
		for _, v := range e.Values {
			look(v, keptBytes)
		}
	case filter.Prefix:
		look(e.Text, rangeBytes)
	}
	return whole, long
}
