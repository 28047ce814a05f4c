package search

import (
	"slices"

	"holdfast/shared/filter"
	"holdfast/shared/value"
)

// maxNestedDepth is how many elements inside elements are decided by the index
// alone. Each level says its conditions twice, so that they would soon be too
// many.
const maxNestedDepth = 3

// elemMatch is the reading of "one element meets all of it".
//
// At a declared nested path each object is an index document of its own, so the
// conditions are decided on it. Elsewhere the index has the values of all
// elements together: that each condition is met by some element narrows the
// search, and looking decides, unless there is only one condition.
func (g ground) elemMatch(e filter.ElemMatch) reading {
	outer := g.place(e.Field.Path)
	together := g.together(outer, e)
	if e.Values || !g.declared.nested[outer.path] || len(outer.readings) != 1 || g.depth == maxNestedDepth {
		return together
	}
	inner := ground{
		above: outer.segments, within: outer.path, shape: leafField(outer.path, leafShape), depth: g.depth + 1,
		declared: g.declared, most: g.most,
	}
	r := inner.translate(e.Of)
	counts := term(inner.shape, shapeTerm(shapeObject, inner.local(outer.path)))
	may := nested(outer.path, allOf(counts, r.may))
	sure := nested(outer.path, allOf(counts, r.sure))
	// An element that is an array is none of these index documents, and what is
	// listed as left out is missing in them. The list is the document's, so
	// elements inside elements are covered by the outermost.
	last := len(outer.nests) - 1
	left := nothing
	if g.whole {
		left = terms(fieldPartial, distinct(append(outer.left, g.leftOut(e.Of, outer.own)...)))
	}
	elsewhere := anyOf(left, term(g.shape, outer.nests[last]))
	return reading{
		may:  anyOf(may, allOf(together.may, elsewhere)),
		sure: allOf(sure, not(left), not(terms(g.shape, outer.nests[:last]))),
	}
}

// leftOut are the entries of $partial that make something that the filter looks
// at in the elements at a path missing in the index.
func (g ground) leftOut(e filter.Expr, above value.Path) []string {
	var left []string
	for _, f := range filter.Fields(e) {
		left = append(left, g.place(above.Join(f.Path)).left...)
	}
	return left
}

// together is the reading of conditions on elements whose values the index
// does not keep apart.
func (g ground) together(outer place, e filter.ElemMatch) reading {
	array := func(path string) query { return term(g.shape, shapeTerm(shapeArray, g.local(path))) }
	some := g.some(e.Of, outer.own, e.Values)
	r := reading{may: allOf(outer.holds(array, nowhere).may, some.may), sure: nothing}
	if some.sure.constant != never {
		// With no array on the way there is one value, and this is its array.
		r.sure = allOf(array(outer.path), some.sure, not(outer.arrays), not(outer.doubt))
	}
	return r
}

// some is the reading of "some element meets e" for the elements of the one
// array at a path.
//
// In the documents that it may hold for, each condition is met by some element;
// that an element does not meet a condition, the values of all elements do not
// tell. It is sure for a single condition: that something below the array meets
// it. values says that the condition is on the elements themselves; then what
// holds of the array as well is no proof.
func (g ground) some(e filter.Expr, above value.Path, values bool) reading {
	proof := true
	switch e := e.(type) {
	case filter.And:
		may, sure := g.someOfAll(e.Of, above, values)
		r := reading{may: allOf(may...), sure: nothing}
		if len(sure) == 1 {
			r.sure = sure[0]
		}
		return r
	case filter.Or:
		may, sure := g.someOfAll(e.Of, above, values)
		return reading{may: anyOf(may...), sure: anyOf(sure...)}
	case filter.Not:
		return undecidable
	case filter.Exists:
		if !e.Want {
			return undecidable
		}
		proof = !values
	case filter.Type:
		proof = !values || !slices.Contains(e.Kinds, filter.Array)
	case filter.Text:
		proof = len(e.Words) == 1
	case filter.Size, filter.ElemMatch:
		proof = !values
	}
	r := g.condition(joined(e, above))
	if !proof {
		r.sure = nothing
	}
	return r
}

func (g ground) someOfAll(parts []filter.Expr, above value.Path, values bool) (may, sure []query) {
	for _, part := range parts {
		r := g.some(part, above, values)
		may, sure = append(may, r.may), append(sure, r.sure)
	}
	return may, sure
}

// joined is a condition on an element as one on what the element is part of.
func joined(e filter.Expr, above value.Path) filter.Expr {
	switch e := e.(type) {
	case filter.Compare:
		e.Field.Path = above.Join(e.Field.Path)
		return e
	case filter.In:
		e.Field.Path = above.Join(e.Field.Path)
		return e
	case filter.Exists:
		e.Field.Path = above.Join(e.Field.Path)
		return e
	case filter.Type:
		e.Field.Path = above.Join(e.Field.Path)
		return e
	case filter.Size:
		e.Field.Path = above.Join(e.Field.Path)
		return e
	case filter.Prefix:
		e.Field.Path = above.Join(e.Field.Path)
		return e
	case filter.Text:
		e.Field.Path = above.Join(e.Field.Path)
		return e
	case filter.ElemMatch:
		e.Field.Path = above.Join(e.Field.Path)
		return e
	}
	return e
}
