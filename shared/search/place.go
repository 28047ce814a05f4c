package search

import (
	"encoding/json"
	"math"
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
	path     string   // all steps taken as names
	readings []string // every path that the values may stand at; nil: too many to tell
	doubt    query    // what makes a value at path not surely one that the path reaches
	partial  query    // something at path is not in the index
	above    query    // an array stands on the way, so that missing and null cannot be told apart
}

func placeOf(p value.Path) place {
	segments := p.Segments()
	pl := place{path: fieldPath(segments)}
	doubtful, arrays := []string{}, []string{}
	covered := covering(pl.path)
	positions := 0
	for i, s := range segments {
		upTo := fieldPath(segments[:i+1])
		doubtful = append(doubtful, shapeTerm(shapeNest, upTo))
		if i+1 < len(segments) {
			arrays = append(arrays, shapeTerm(shapeArray, upTo))
		}
		if i > 0 && s.Index >= 0 {
			positions++
			doubtful = append(doubtful, shapeTerm(shapeArray, fieldPath(segments[:i])))
		}
	}
	pl.readings = []string{pl.path}
	if positions > 0 {
		pl.readings = withoutPositions(segments)
		for _, r := range pl.readings {
			covered = append(covered, covering(r)...)
		}
	}
	pl.doubt = terms(fieldShape, doubtful)
	pl.above = terms(fieldShape, arrays)
	pl.partial = terms(fieldPartial, distinct(covered))
	return pl
}

// withoutPositions are the field paths that a path can mean when each number in
// it is either a name or a position; nil where there are too many.
func withoutPositions(segments []value.Segment) []string {
	paths := [][]value.Segment{nil}
	positions := 0
	for i, s := range segments {
		if i > 0 && s.Index >= 0 {
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
		return reading{may: everything, sure: nothing}
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
	there := func(path string) query { return terms(fieldShape, presentTerms(path)) }
	return pl.holds(there, there)
}

// isNull is the reading of "null or missing". Which of the elements of an array
// lack a member, the index cannot tell.
func (pl place) isNull() reading {
	null := func(path string) query { return term(fieldShape, shapeTerm(shapeNull, path)) }
	r := pl.holds(null, null)
	exists := pl.exists()
	r.may = anyOf(r.may, not(exists.sure), pl.above)
	r.sure = anyOf(r.sure, allOf(not(exists.may), not(pl.above)))
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
	return reading{may: everything, sure: nothing}
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
			return allOf(append(scalarsAt(path, v), term(fieldShape, lengthTerm(len(v), path)))...)
		}, nowhere)
	case map[string]any:
		return pl.holds(func(path string) query {
			return allOf(append(membersAt(path, v), term(fieldShape, shapeTerm(shapeObject, path)))...)
		}, nowhere)
	}
	return reading{may: everything, sure: nothing}
}

// narrowing is how many values of an array or object operand are searched for;
// the rest is left to looking at the document.
const narrowing = 8

// scalarsAt narrows the search for an array down to where its scalars are too.
func scalarsAt(path string, array []any) []query {
	var parts []query
	for _, v := range array {
		if len(parts) == narrowing {
			break
		}
		if q := scalarAt(path, v); q.constant == undecided {
			parts = append(parts, q)
		}
	}
	return parts
}

// membersAt narrows the search for an object down to where its scalar members
// are too.
func membersAt(path string, object map[string]any) []query {
	var parts []query
	for _, name := range sortedNames(object) {
		if len(parts) == narrowing {
			break
		}
		member := string(appendName([]byte(path+"."), name))
		if q := scalarAt(member, object[name]); q.constant == undecided {
			parts = append(parts, q)
		}
	}
	return parts
}

// scalarAt finds at least the documents that hold the scalar at exactly this
// path of the index; everything where v is no scalar.
func scalarAt(path string, v any) query {
	partial := terms(fieldPartial, covering(path))
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
	fine := func(path string) query { return term(fieldShape, shapeTerm(shapeFine, path)) }
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

// wholeNumber is the largest whole number that is not above v, within the
// range of versions, and whether it is v itself.
func wholeNumber(v json.Number) (floor int64, same bool) {
	double, _ := nearestDouble(v)
	switch {
	case double >= math.MaxInt64:
		return math.MaxInt64, false
	case double <= math.MinInt64:
		return math.MinInt64, false
	}
	return floorOf(v)
}
