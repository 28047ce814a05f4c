package search

import (
	"encoding/json"
	"time"

	"holdfast/shared/filter"
	"holdfast/shared/value"
)

// maxPositions is the most numbers in a path for which every way of reading
// them, as position or as name, is searched.
const maxPositions = 4

// place is where a path leads in the index. The index does not tell array
// elements apart: it has their values at the path without positions, and those
// of arrays inside arrays as well, which paths do not pass through.
type place struct {
	ground
	own      value.Path      // as the ground's conditions have it
	segments []value.Segment // from the document on
	path     string          // all of them taken as names
	readings []string        // every path that the values may stand at; nil: too many to tell
	nests    []string        // the shapes of arrays inside arrays at each step
	doubt    query           // what makes a value at path not surely one that the path reaches
	left     []string        // the entries of $partial that make something at path missing in the index
	partial  query           // something at path is not in the index
	arrays   query           // an array stands on the way, so that missing and null cannot be told apart
}

// place is where a path from the ground leads.
func (g ground) place(p value.Path) place {
	base := len(g.above)
	segments := append(g.above[:base:base], p.Segments()...)
	pl := place{ground: g, own: p, segments: segments, path: fieldPath(segments)}
	var positions, arrays []string
	for i := base; i < len(segments); i++ {
		upTo := fieldPath(segments[:i+1])
		pl.nests = append(pl.nests, shapeTerm(shapeNest, g.local(upTo)))
		if i+1 < len(segments) {
			arrays = append(arrays, shapeTerm(shapeArray, g.local(upTo)))
		}
		if i > base && segments[i].Index >= 0 {
			positions = append(positions, shapeTerm(shapeArray, g.local(fieldPath(segments[:i]))))
		}
	}
	pl.readings = []string{pl.path}
	pl.left = covering(pl.path)
	if len(positions) > 0 {
		pl.readings = withoutPositions(segments, base)
		for _, r := range pl.readings {
			pl.left = append(pl.left, covering(r)...)
		}
		pl.left = distinct(pl.left)
	}
	pl.doubt = terms(pl.shape, append(pl.nests[:len(pl.nests):len(pl.nests)], positions...))
	pl.arrays = terms(pl.shape, arrays)
	pl.partial = nothing
	if g.whole {
		pl.partial = terms(fieldPartial, pl.left)
	}
	return pl
}

// withoutPositions are the field paths that a path can mean when each number in
// it is either a name or a position; nil where there are too many. The first
// step from base on is a name, because there is an object.
func withoutPositions(segments []value.Segment, base int) []string {
	paths := [][]value.Segment{nil}
	positions := 0
	for i, s := range segments {
		if i > base && s.Index >= 0 {
			if positions++; positions > maxPositions {
				return nil
			}
			for _, p := range paths {
				paths = append(paths, p[:len(p):len(p)])
			}
			half := len(paths) / 2
			for j := range half {
				paths[j] = append(paths[j][:len(paths[j]):len(paths[j])], s)
			}
			continue
		}
		for j := range paths {
			paths[j] = append(paths[j][:len(paths[j]):len(paths[j])], s)
		}
	}
	texts := make([]string, len(paths))
	for i, p := range paths {
		texts[i] = fieldPath(p)
	}
	return distinct(texts)
}

func distinct(texts []string) []string {
	seen := make(map[string]bool, len(texts))
	kept := texts[:0:0]
	for _, t := range texts {
		if !seen[t] {
			seen[t] = true
			kept = append(kept, t)
		}
	}
	return kept
}

// holds is the reading of a condition on values that the index holds: may and
// sure make its query for one field path.
func (pl place) holds(may, sure func(path string) query) reading {
	if pl.readings == nil {
		return undecidable
	}
	parts := make([]query, 0, len(pl.readings)+1)
	for _, r := range pl.readings {
		parts = append(parts, may(r))
	}
	r := reading{may: anyOf(append(parts, pl.partial)...), sure: nothing}
	if s := sure(pl.path); s.constant != never {
		r.sure = allOf(s, not(pl.doubt))
	}
	return r
}

func nowhere(string) query { return nothing }

// exists is the reading of "something is there, null included".
func (pl place) exists() reading {
	there := func(path string) query { return terms(pl.shape, presentTerms(pl.local(path))) }
	return pl.holds(there, there)
}

// isNull is the reading of "null or missing". Which of the elements of an array
// lack a member, the index cannot tell.
func (pl place) isNull() reading {
	null := func(path string) query { return term(pl.shape, shapeTerm(shapeNull, pl.local(path))) }
	r := pl.holds(null, null)
	exists := pl.exists()
	r.may = anyOf(r.may, not(exists.sure), pl.arrays)
	r.sure = anyOf(r.sure, allOf(not(exists.may), not(pl.arrays)))
	return r
}

func (pl place) compare(c filter.Compare) reading {
	if c.Op == filter.Eq {
		return pl.equal(c.Value)
	}
	switch operand := c.Value.(type) {
	case nil:
		if c.Op == filter.Gte || c.Op == filter.Lte {
			return pl.isNull()
		}
		return exactly(nothing)
	case bool:
		return pl.boolRange(c.Op, operand)
	case json.Number:
		return pl.numberRange(c.Op, operand)
	case string:
		if c.IsInstant {
			return pl.instantRange(c.Op, c.Instant)
		}
		return pl.stringRange(c.Op, operand)
	}
	return undecidable
}

func (pl place) equal(v any) reading {
	switch v := v.(type) {
	case nil:
		return pl.isNull()
	case bool:
		is := func(path string) query { return term(leafField(path, leafBool), v) }
		return pl.holds(is, is)
	case string:
		if _, whole := keep(v); !whole {
			return pl.holds(nowhere, nowhere)
		}
		is := func(path string) query { return term(leafField(path, leafString), v) }
		return pl.holds(is, is)
	case json.Number:
		double, exact := nearestDouble(v)
		if !exact {
			is := func(path string) query { return term(leafField(path, leafDecimal), string(v)) }
			return pl.holds(is, is)
		}
		return pl.holds(
			func(path string) query { return term(leafField(path, leafNumber), double) },
			func(path string) query {
				return allOf(term(leafField(path, leafNumber), double), not(present(leafField(path, leafDecimal))))
			})
	case []any:
		return pl.holds(func(path string) query {
			return allOf(append(pl.scalarsAt(path, v), term(pl.shape, lengthTerm(len(v), pl.local(path))))...)
		}, nowhere)
	case map[string]any:
		return pl.holds(func(path string) query {
			return allOf(append(pl.membersAt(path, v), term(pl.shape, shapeTerm(shapeObject, pl.local(path))))...)
		}, nowhere)
	}
	return undecidable
}

// narrowing is how many values of an array or object operand are searched for;
// the rest is left to looking at the document.
const narrowing = 8

// scalarsAt narrows the search for an array down to where its scalars are too.
func (pl place) scalarsAt(path string, array []any) []query {
	var parts []query
	for _, v := range array {
		if len(parts) == narrowing {
			break
		}
		if q := pl.scalarAt(path, v); q.constant == undecided {
			parts = append(parts, q)
		}
	}
	return parts
}

// membersAt narrows the search for an object down to where its scalar members
// are too.
func (pl place) membersAt(path string, object map[string]any) []query {
	var parts []query
	for _, name := range sortedNames(object) {
		if len(parts) == narrowing {
			break
		}
		member := string(appendName([]byte(path+"."), name))
		if q := pl.scalarAt(member, object[name]); q.constant == undecided {
			parts = append(parts, q)
		}
	}
	return parts
}

// scalarAt finds at least the documents that hold the scalar at exactly this
// path of the index; everything where v is no scalar.
func (pl place) scalarAt(path string, v any) query {
	partial := pl.partial
	if partial.constant != never {
		partial = terms(fieldPartial, covering(path))
	}
	switch v := v.(type) {
	case bool:
		return anyOf(term(leafField(path, leafBool), v), partial)
	case string:
		if _, whole := keep(v); !whole {
			return partial
		}
		return anyOf(term(leafField(path, leafString), v), partial)
	case json.Number:
		double, _ := nearestDouble(v)
		return anyOf(term(leafField(path, leafNumber), double), partial)
	}
	return everything
}

// in is the reading of equality with one of the values. Strings, booleans and
// numbers are searched for together.
func (pl place) in(values []any) reading {
	var texts, decimals []string
	var numbers []float64
	var may, sure []query
	add := func(r reading) { may, sure = append(may, r.may), append(sure, r.sure) }
	for _, v := range values {
		switch v := v.(type) {
		case string:
			if _, whole := keep(v); whole {
				texts = append(texts, v)
			} else {
				add(pl.equal(v))
			}
		case json.Number:
			if double, exact := nearestDouble(v); exact {
				numbers = append(numbers, double)
			} else {
				decimals = append(decimals, string(v))
			}
		default:
			add(pl.equal(v))
		}
	}
	if len(texts) > 0 {
		is := func(path string) query { return terms(leafField(path, leafString), texts) }
		add(pl.holds(is, is))
	}
	if len(decimals) > 0 {
		is := func(path string) query { return terms(leafField(path, leafDecimal), decimals) }
		add(pl.holds(is, is))
	}
	if len(numbers) > 0 {
		is := func(path string) query { return terms(leafField(path, leafNumber), numbers) }
		add(pl.holds(is, func(path string) query {
			return allOf(is(path), not(present(leafField(path, leafDecimal))))
		}))
	}
	return reading{may: anyOf(may...), sure: anyOf(sure...)}
}

// rangeOps are the relations in OpenSearch's words.
var rangeOps = map[filter.Op]string{filter.Gt: "gt", filter.Gte: "gte", filter.Lt: "lt", filter.Lte: "lte"}

// inclusive and strict are the two relations that look the same way as op.
func inclusive(op filter.Op) string { return rangeOps[op][:2] + "e" }
func strict(op filter.Op) string    { return rangeOps[op][:2] }

// rangeBytes is the longest operand of a string range that OpenSearch is given:
// it makes a state machine of the operand's bytes, and refuses one of more than
// a thousand states.
const rangeBytes = 500

func (pl place) stringRange(op filter.Op, operand string) reading {
	field := func(path string) string { return leafField(path, leafString) }
	if len(operand) <= rangeBytes {
		in := func(path string) query { return rangeOf(field(path), rangeOps[op], operand) }
		return pl.holds(in, in)
	}
	// What comes after the operand comes after its beginning too, and what comes
	// before its beginning comes before the operand.
	beginning := beginningOf(operand, rangeBytes)
	if op == filter.Gt || op == filter.Gte {
		return pl.holds(func(path string) query { return rangeOf(field(path), "gt", beginning) }, nowhere)
	}
	return pl.holds(
		func(path string) query { return present(field(path)) },
		func(path string) query { return rangeOf(field(path), "lt", beginning) })
}

// numberRange compares doubles. Rounding keeps order, so a strict comparison of
// doubles is never wrong and an inclusive one misses nothing; between them lie
// the values with the operand's own double, of which those without $dec are the
// shortest decimal of that double.
func (pl place) numberRange(op filter.Op, operand json.Number) reading {
	double, exact := nearestDouble(operand)
	may := func(path string) query { return rangeOf(leafField(path, leafNumber), inclusive(op), double) }
	sure := func(path string) query { return rangeOf(leafField(path, leafNumber), strict(op), double) }
	if !exact {
		return pl.holds(may, sure)
	}
	if op == filter.Gte || op == filter.Lte {
		return pl.holds(may, func(path string) query {
			same := allOf(term(leafField(path, leafNumber), double), not(present(leafField(path, leafDecimal))))
			return anyOf(sure(path), same)
		})
	}
	return pl.holds(func(path string) query {
		finer := allOf(term(leafField(path, leafNumber), double), present(leafField(path, leafDecimal)))
		return anyOf(sure(path), finer)
	}, sure)
}

func (pl place) boolRange(op filter.Op, operand bool) reading {
	var values []bool
	for _, v := range []bool{false, true} {
		less, greater := !v && operand, v && !operand
		switch {
		case less && (op == filter.Lt || op == filter.Lte),
			greater && (op == filter.Gt || op == filter.Gte),
			v == operand && (op == filter.Gte || op == filter.Lte):
			values = append(values, v)
		}
	}
	in := func(path string) query { return terms(leafField(path, leafBool), values) }
	if len(values) == 0 {
		return exactly(nothing)
	}
	return pl.holds(in, in)
}

// instantRange compares milliseconds, rounded down. Instants in the operand's
// own millisecond are decided by looking, unless neither side has more than
// milliseconds.
func (pl place) instantRange(op filter.Op, at time.Time) reading {
	ms := at.UnixMilli()
	may := func(path string) query { return rangeOf(leafField(path, leafDate), inclusive(op), ms) }
	sure := func(path string) query { return rangeOf(leafField(path, leafDate), strict(op), ms) }
	if at.Nanosecond()%int(time.Millisecond) != 0 {
		return pl.holds(may, sure)
	}
	fine := func(path string) query { return term(pl.shape, shapeTerm(shapeFine, pl.local(path))) }
	same := func(path string) query { return term(leafField(path, leafDate), ms) }
	switch op {
	case filter.Gte: // rounding down cannot pass a whole millisecond
		return pl.holds(may, may)
	case filter.Lt:
		return pl.holds(sure, sure)
	case filter.Gt:
		return pl.holds(func(path string) query { return anyOf(sure(path), allOf(same(path), fine(path))) }, sure)
	}
	return pl.holds(may, func(path string) query { return anyOf(sure(path), allOf(same(path), not(fine(path)))) })
}
