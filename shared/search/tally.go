package search

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/value"
)

// tally gathers the groups of one aggregation: documents one by one, and whole
// groups as the index has them.
type tally struct {
	asked  Aggregation
	nested value.Path // of the array whose elements are counted
	inner  []value.Path
	isIn   []bool // whether a metric's path is below nested; its rest is in rest
	rest   []value.Path
	groups map[string]*group
}

// group is what is known of one group.
type group struct {
	key     []any // as it is told
	order   []any // as it is ordered: instants are numbers here
	docs    int
	figures []figure
	touched doc.ID // the document that was counted last
}

// figure gathers one metric of one group.
type figure struct {
	count       int // numbers
	sum, lost   float64
	least, most float64             // of the numbers
	extreme     any                 // of all scalars, for Min and Max
	numbers     []float64           // for Percentiles
	different   map[string]struct{} // keys, for Cardinality
	told        any                 // what the index says, where that cannot be merged
	isTold      bool
	hasSome     bool // with isTold: there were values
}

// keyPart is one part of a group's key.
type keyPart struct{ told, order any }

func newTally(asked Aggregation, nested string) *tally {
	t := &tally{asked: asked, groups: map[string]*group{}, isIn: make([]bool, len(asked.Metrics)), rest: make([]value.Path, len(asked.Metrics))}
	if len(asked.Group) == 0 {
		t.group(nil)
	}
	if nested == "" {
		return t
	}
	depth := steps(nested)
	within := func(p value.Path) value.Path { return value.PathOf(p.Names()[depth:]...) }
	for _, g := range asked.Group {
		t.inner = append(t.inner, within(g.Field.Path))
	}
	t.nested = value.PathOf(asked.Group[0].Field.Path.Names()[:depth]...)
	for i, m := range asked.Metrics {
		if m.Kind != Count && below(nested, m.Path) {
			t.isIn[i], t.rest[i] = true, within(m.Path)
		}
	}
	return t
}

// group is the group with the key, made where it is new.
func (t *tally) group(key []keyPart) *group {
	g := &group{figures: make([]figure, len(t.asked.Metrics))}
	for _, part := range key {
		g.key, g.order = append(g.key, part.told), append(g.order, part.order)
	}
	var room [64]byte
	name := room[:0]
	for _, v := range g.order {
		name = append(value.Append(name, v), ',')
	}
	if have := t.groups[string(name)]; have != nil {
		return have
	}
	t.groups[string(name)] = g
	return g
}

// add counts one document.
func (t *tally) add(d *doc.Document) error {
	if t.inner == nil {
		return t.addTo(d, t.keysOf(d, d.Data), func(g *group) {
			for i, m := range t.asked.Metrics {
				g.figures[i].take(m, m.Path, d.Data)
			}
		})
	}
	for _, element := range elementsAt(t.nested, d.Data) {
		err := t.addTo(d, t.keysOf(d, element), func(g *group) {
			for i, m := range t.asked.Metrics {
				switch {
				case t.isIn[i]:
					g.figures[i].take(m, t.rest[i], element)
				case g.touched != d.ID:
					g.figures[i].take(m, m.Path, d.Data)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addTo adds to the group of each combination of keys.
func (t *tally) addTo(d *doc.Document, parts [][]keyPart, take func(*group)) error {
	combinations := 1
	for _, part := range parts {
		combinations *= len(part)
		if combinations > MaxGroups {
			return tooManyGroups()
		}
	}
	key := make([]keyPart, len(parts))
	for n := range combinations {
		for i, part := range parts {
			key[i] = part[n%len(part)]
			n /= len(part)
		}
		g := t.group(key)
		take(g)
		if g.touched != d.ID {
			g.docs++
			g.touched = d.ID
		}
	}
	if len(t.groups) > MaxGroups {
		return tooManyGroups()
	}
	return nil
}

// keysOf are the different keys that a document, or an element, has for each
// part of a group's key.
func (t *tally) keysOf(d *doc.Document, data map[string]any) [][]keyPart {
	parts := make([][]keyPart, len(t.asked.Group))
	for i, by := range t.asked.Group {
		switch by.Field.Pseudo {
		case filter.ID:
			parts[i] = []keyPart{{string(d.ID), string(d.ID)}}
			continue
		case filter.Root:
			parts[i] = []keyPart{{d.ID.Root(), d.ID.Root()}}
			continue
		}
		path := by.Field.Path
		if t.inner != nil {
			path = t.inner[i]
		}
		seen := map[string]bool{}
		reached, hasNull := false, false
		scalars(path, data, func(v any) {
			reached = true
			part, ok := by.part(v)
			if !ok {
				hasNull = hasNull || v == nil && by.plain()
				return
			}
			name := string(value.Append(nil, part.order))
			if !seen[name] {
				seen[name] = true
				parts[i] = append(parts[i], part)
			}
		})
		if t.asked.MissingNull && (!reached || hasNull || len(parts[i]) == 0) {
			parts[i] = append(parts[i], keyPart{})
		}
	}
	return parts
}

func (by GroupBy) plain() bool { return by.Step == "" && by.Unit == (Unit{}) }

// part is the key that a scalar gives; false where it gives none.
func (by GroupBy) part(v any) (keyPart, bool) {
	switch {
	case by.Step != "":
		n, ok := v.(json.Number)
		if !ok {
			return keyPart{}, false
		}
		return by.stepPart(stepOf(n, by.Step)), true
	case by.Unit != (Unit{}):
		s, _ := v.(string)
		at, ok := value.ParseInstant(s)
		if !ok {
			return keyPart{}, false
		}
		return by.timePart(by.Unit.start(at, by.Zone)), true
	}
	return keyPart{v, v}, v != nil
}

func (by GroupBy) stepPart(k *big.Int) keyPart {
	n := timesStep(k, by.Step)
	return keyPart{n, n}
}

func (by GroupBy) timePart(start time.Time) keyPart {
	zone := by.Zone
	if by.Unit.IsFixed() {
		zone = time.UTC
	}
	part := keyPart{told: unwritable{}, order: json.Number(strconv.FormatInt(start.UnixMilli(), 10))}
	if text, ok := instantText(start.In(zone)); ok {
		part.told = text
	}
	return part
}

// unwritable is the start of a stretch of time that cannot be told, because it
// lies before the year 0. The stretch itself can have instants in that year.
type unwritable struct{}

// scalars visits every scalar that the path leads to, through all arrays; an
// object and an empty array are null.
func scalars(p value.Path, data map[string]any, visit func(any)) {
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			if len(v) == 0 {
				visit(nil)
			}
			for _, element := range v {
				walk(element)
			}
		case map[string]any:
			visit(nil)
		default:
			visit(v)
		}
	}
	p.Visit(data, func(r value.Reached) bool {
		if !r.Missing {
			walk(r.Value)
		}
		return false
	})
}

// elementsAt are the objects at the path, through all arrays.
func elementsAt(p value.Path, data map[string]any) []map[string]any {
	var elements []map[string]any
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, element := range v {
				walk(element)
			}
		case map[string]any:
			elements = append(elements, v)
		}
	}
	for _, v := range p.Values(data) {
		walk(v)
	}
	return elements
}

// take adds what the document has at the path.
func (f *figure) take(m Metric, path value.Path, data map[string]any) {
	if m.Kind == Count {
		return
	}
	scalars(path, data, func(v any) {
		if v == nil {
			return
		}
		switch m.Kind {
		case Min, Max:
			f.offer(m.Kind, v)
			return
		case Cardinality:
			if f.different == nil {
				f.different = map[string]struct{}{}
			}
			f.different[string(value.Append(nil, v))] = struct{}{}
			return
		}
		n, ok := v.(json.Number)
		if !ok {
			return
		}
		double, _ := nearestDouble(n)
		f.merge(1, double, double, double)
		if m.Kind == Percentiles {
			f.numbers = append(f.numbers, double)
		}
	})
}

// merge adds numbers of which the count, sum and bounds are known. Sums keep
// what rounding loses, as OpenSearch's do.
func (f *figure) merge(count int, sum, least, most float64) {
	if count == 0 {
		return
	}
	if f.count == 0 || least < f.least {
		f.least = least
	}
	if f.count == 0 || most > f.most {
		f.most = most
	}
	f.count += count
	// Kahan's summation.
	corrected := sum - f.lost
	next := f.sum + corrected
	f.lost = (next - f.sum) - corrected
	f.sum = next
}

// offer is the next candidate for the smallest or largest scalar.
func (f *figure) offer(kind MetricKind, v any) {
	c := value.Compare(v, f.extreme)
	if f.extreme == nil || kind == Min && c < 0 || kind == Max && c > 0 {
		f.extreme = v
	}
}

// result is the figure as it is told.
func (f *figure) result(m Metric, docs int) any {
	if f.isTold {
		return f.told
	}
	switch m.Kind {
	case Count:
		return json.Number(strconv.Itoa(docs))
	case Sum:
		return numberText(f.sum)
	case Avg:
		if f.count == 0 {
			return nil
		}
		return numberText(f.sum / float64(f.count))
	case Min, Max:
		return f.extreme
	case Stats:
		stats := map[string]any{"count": json.Number(strconv.Itoa(f.count)), "sum": numberText(f.sum), "min": nil, "max": nil, "avg": nil}
		if f.count > 0 {
			stats["min"], stats["max"] = numberText(f.least), numberText(f.most)
			stats["avg"] = numberText(f.sum / float64(f.count))
		}
		return stats
	case Percentiles:
		slices.Sort(f.numbers)
		return percentilesOf(m, func(_ int, percent float64) (float64, bool) { return quantile(f.numbers, percent/100) })
	case Cardinality:
		return json.Number(strconv.Itoa(len(f.different)))
	}
	return nil
}

// percentilesOf is the figure of Percentiles, which says that it is an
// estimate.
func percentilesOf(m Metric, at func(i int, percent float64) (float64, bool)) any {
	told := map[string]any{"approximate": true}
	for i, percent := range m.Percents {
		double, _ := nearestDouble(percent)
		told[string(percent)] = nil
		if v, ok := at(i, double); ok {
			told[string(percent)] = numberText(v)
		}
	}
	return told
}

// quantile lies between the two numbers that are next to it.
func quantile(sorted []float64, q float64) (float64, bool) {
	if len(sorted) == 0 {
		return 0, false
	}
	at := q * float64(len(sorted)-1)
	low := int(math.Floor(at))
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (sorted[high]-sorted[low])*(at-float64(low)), true
}

// answer orders the groups and leaves out those beyond the limit. estimated
// tells which metrics the index estimated. The error is of kind InvalidQuery
// where the key of a group cannot be told.
func (t *tally) answer(estimated []bool) (Aggregate, error) {
	a := Aggregate{Groups: []Group{}, Exact: true, Estimated: make([]bool, len(t.asked.Metrics))}
	copy(a.Estimated, estimated)
	for i, m := range t.asked.Metrics {
		a.Estimated[i] = a.Estimated[i] || m.Kind == Percentiles
	}
	type entry struct {
		*group
		figures []any
	}
	entries := make([]entry, 0, len(t.groups))
	for _, g := range t.groups {
		e := entry{group: g, figures: make([]any, len(t.asked.Metrics))}
		for i, m := range t.asked.Metrics {
			e.figures[i] = g.figures[i].result(m, g.docs)
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(x, y entry) int {
		c := 0
		if by := t.asked.Order; by >= 0 && len(t.asked.Metrics) > 0 {
			// What has no figure comes last, whichever way the order goes.
			v, w := x.figures[by], y.figures[by]
			if c = cmp.Compare(missing(v), missing(w)); c == 0 {
				c = value.Compare(v, w)
				if t.asked.Desc {
					c = -c
				}
			}
			if c != 0 {
				return c
			}
			return compareKeys(x.order, y.order)
		}
		c = compareKeys(x.order, y.order)
		if t.asked.Desc {
			c = -c
		}
		return c
	})
	for i, e := range entries {
		if i >= t.asked.Limit {
			a.Others += e.docs
			continue
		}
		key := e.key
		if key == nil {
			key = []any{}
		}
		if slices.Contains(key, any(unwritable{})) {
			return Aggregate{}, doc.Errorf(doc.InvalidQuery, "a stretch of time with documents in it begins before the year 0, which RFC 3339 cannot tell; leave those documents out by a filter")
		}
		a.Groups = append(a.Groups, Group{Key: key, Figures: e.figures})
	}
	return a, nil
}

func missing(v any) int {
	if v == nil {
		return 1
	}
	return 0
}

// compareKeys orders keys part by part, as sorts order values.
func compareKeys(a, b []any) int {
	for i := range a {
		if c := value.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

func tooManyGroups() error {
	return doc.Errorf(doc.QueryTooCostly, "an aggregation has at most %d groups, those beyond its limit included", MaxGroups).
		With("limit", MaxGroups)
}
