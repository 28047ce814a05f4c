package search

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"holdfast/shared/filter"
	"holdfast/shared/value"
)

// MaxGroups is the most groups that one aggregation may have, those that are
// not returned included.
const MaxGroups = 10000

// Aggregation sorts the documents of a search into groups by what they have at
// some paths, and computes figures for each group.
//
// What is counted are documents. One whose path leads through an array is in
// the group of each of its elements, and its figures take all of its elements.
// Only where all groups are of paths below one array that every source declares
// as nested, each element stands for itself: figures of paths below the array
// take that element's values alone.
//
// Null, a missing value, an object and an empty array are no keys.
type Aggregation struct {
	Group   []GroupBy // none: one group of everything
	Metrics []Metric
	Limit   int // most groups in the answer
	// Order is the place in Metrics of the figure that the groups are ordered
	// by, one that CanOrder; negative: by key. Ties are in the order of keys.
	Order int
	Desc  bool
	// MissingNull makes a group with key null of what has no key.
	MissingNull bool
}

// GroupBy is one part of a group's key: the value at a path; or, with a Unit,
// the start of the stretch of time in which the RFC 3339 text there lies; or,
// with a Step, the multiple of it at or below the number there.
type GroupBy struct {
	Field filter.Field // the pseudo-fields ID and Root, or a path
	Unit  Unit
	Zone  *time.Location // of the stretches of time
	Step  json.Number    // canonical and above 0
}

// MetricKind is what a metric computes.
type MetricKind string

// The metrics. Sums, averages and what Stats says are doubles over the numbers
// at a path. Min and Max go over all scalars but null there, in the order of
// sorts, and are exact. Percentiles, over the numbers, and Cardinality, the
// number of different scalars but null, are estimates where there are many.
const (
	Count       MetricKind = "count"
	Sum         MetricKind = "sum"
	Avg         MetricKind = "avg"
	Min         MetricKind = "min"
	Max         MetricKind = "max"
	Stats       MetricKind = "stats"
	Percentiles MetricKind = "percentiles"
	Cardinality MetricKind = "cardinality"
)

// Metric is one figure of each group.
type Metric struct {
	Kind     MetricKind
	Path     value.Path    // for all but Count
	Percents []json.Number // for Percentiles: canonical, from 0 to 100
}

// CanOrder reports whether groups can be ordered by the metric's figure.
func (m Metric) CanOrder() bool { return m.Kind != Stats && m.Kind != Percentiles }

// merges reports whether the figure of a whole can be had from those of its
// parts.
func (m Metric) merges() bool { return m.Kind != Percentiles && m.Kind != Cardinality }

// Aggregate is the answer to one Aggregation.
type Aggregate struct {
	Groups []Group
	// Others is the sum of the counts of the groups that are not in the answer:
	// how many documents they have, one in several of them counted in each.
	Others int
	// Exact says that the groups and their counts are those of the documents.
	Exact bool
	// Estimated tells of each metric whether its figures are estimates.
	Estimated []bool
}

// Group is one group of an aggregation.
type Group struct {
	Key     []any // one for each GroupBy
	Figures []any // one for each Metric, as JSON values
}

// noGroups are the answers where there are no documents.
func noGroups(asked []Aggregation) []Aggregate {
	answers := make([]Aggregate, len(asked))
	for i, a := range asked {
		answers[i], _ = newTally(a, "").answer(nil) // no key that could not be told
	}
	return answers
}

// nestedFor is the field path of the declared array whose elements the
// aggregation counts; "" where it counts documents as wholes.
func (s *search) nestedFor(a Aggregation) string {
	if len(a.Group) == 0 {
		return ""
	}
	found := ""
	for path := range declaredBy(s.request.From).nested {
		everywhere := true
		for _, g := range a.Group {
			everywhere = everywhere && g.Field.Pseudo == "" && below(path, g.Field.Path)
		}
		if everywhere && len(path) > len(found) {
			found = path
		}
	}
	return found
}

// below reports whether the path leads into the members of what stands at a
// field path, other than by positions.
func below(at string, p value.Path) bool {
	segments := p.Segments()
	for _, s := range segments {
		if s.Index >= 0 {
			return false
		}
	}
	return strings.HasPrefix(fieldPath(segments), at+".")
}

// doubtful finds at least the documents whose part in the aggregation the index
// cannot tell: something at one of the paths was left out of it, or what it has
// there is not what the path reaches.
func (a Aggregation) doubtful(nested string) query {
	var parts []query
	look := func(p value.Path) {
		parts = append(parts, terms(fieldPartial, covering(fieldPath(p.Segments()))), astray(p))
	}
	for _, m := range a.Metrics {
		if m.Kind != Count {
			look(m.Path)
		}
	}
	for _, g := range a.Group {
		if g.Field.Pseudo != "" {
			continue
		}
		look(g.Field.Path)
		at := fieldPath(g.Field.Path.Segments())
		if g.Step != "" {
			parts = append(parts, beyondSteps(at, g.Step))
		}
		if a.MissingNull && nested != "" && g.plain() {
			// Null and missing make one group here and two in the index, and one
			// document may have elements in both.
			parts = append(parts, terms(fieldShape, []string{
				shapeTerm(shapeNull, at), shapeTerm(shapeObject, at), lengthTerm(0, at),
			}))
		}
		if len(a.Group) > 1 && (g.Step != "" || g.Unit != (Unit{})) {
			parts = append(parts, several(g.Field.Path, nested))
		}
	}
	return anyOf(parts...)
}

// astray finds the documents in which the index may have values at the path's
// place that the path does not reach, or lack some that it does: arrays inside
// arrays on the way, or an array where the path has a number.
func astray(p value.Path) query {
	var shapes []string
	for i, s := range p.Segments() {
		if i == 0 {
			continue
		}
		above := fieldPath(p.Segments()[:i])
		shapes = append(shapes, shapeTerm(shapeNest, above))
		if s.Index >= 0 {
			shapes = append(shapes, shapeTerm(shapeArray, above))
		}
	}
	return terms(fieldShape, distinct(shapes))
}

// several finds the documents that may have several values at the path, or one
// element of the nested array: OpenSearch counts a document twice that has two
// of them in one stretch of a key with several parts.
func several(p value.Path, nested string) query {
	var shapes []string
	for i := range p.Segments() {
		if at := fieldPath(p.Segments()[:i+1]); len(at) > len(nested) {
			shapes = append(shapes, shapeTerm(shapeArray, at))
		}
	}
	return terms(fieldShape, shapes)
}

// beyondSteps finds the numbers that OpenSearch's doubles may put at a wrong
// multiple of the step: those that no double is, and those so many steps from
// zero that doubles lie further apart than steps.
func beyondSteps(at string, step json.Number) query {
	double, _ := nearestDouble(step)
	far := double * (1 << 52)
	return anyOf(present(leafField(at, leafDecimal)),
		rangeOf(leafField(at, leafNumber), "gte", far), rangeOf(leafField(at, leafNumber), "lte", -far))
}

// exactInDoubles reports whether multiples of the step are doubles, so that
// OpenSearch makes no mistake at their bounds.
func exactInDoubles(step json.Number) bool {
	double, exact := nearestDouble(step)
	const fine = 1 << 20
	return exact && double*fine == math.Trunc(double*fine) && double < 1<<52
}
