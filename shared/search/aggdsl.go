package search

import (
	"strconv"
	"time"

	"holdfast/shared/filter"
)

// The names of the parts of an aggregation as OpenSearch is asked for it.
const (
	aggGroups  = "g" // the groups
	aggWithout = "z" // what has no key
	aggInner   = "n" // the elements of a nested array
	aggOwner   = "d" // the documents of those elements
	nullsOf    = "x" // after a metric's name: whether its different values include null
)

// aggBuckets is how many buckets, those inside others included, one request may
// make: OpenSearch's limit is 65,535.
const aggBuckets = 60000

// plan is how one aggregation is asked for.
type plan struct {
	asked  Aggregation
	nested string
}

// composite reports whether groups are fetched in pages of a composite
// aggregation. Stretches of one number or time are made by a histogram, which
// counts a document once in each, however many of its values lie there.
func (p plan) composite() bool {
	return len(p.asked.Group) > 1 || len(p.asked.Group) == 1 && p.asked.Group[0].plain()
}

// body is the request for the groups after a key of the page before.
func (p plan) body(q query, after any) object {
	body := object{"query": q.dsl(), "size": 0, "track_total_hits": true}
	var aggs object
	switch {
	case len(p.asked.Group) == 0:
		aggs = p.metrics()
	case p.composite():
		aggs = object{aggGroups: object{"composite": p.sources(after), "aggs": p.metrics()}}
	default:
		by := p.asked.Group[0]
		kind, histogram := by.histogram()
		histogram["min_doc_count"] = 1
		aggs = object{aggGroups: object{kind: histogram, "aggs": p.metrics()}}
		if p.asked.MissingNull {
			aggs[aggWithout] = object{
				"filter": not(present(histogram["field"].(string))).dsl(), "aggs": p.metrics(),
			}
		}
	}
	if p.nested != "" {
		aggs = p.inside(aggs)
	}
	if len(aggs) > 0 {
		body["aggs"] = aggs
	}
	return body
}

// inside aggregates over the elements of the nested array. Beside the elements
// the index has an entry for what else stands in the array; only it has a key
// at the array's own path.
func (p plan) inside(aggs object) object {
	elements := object{"filter": not(present(leafField(p.nested, leafKey))).dsl(), "aggs": aggs}
	return object{aggInner: object{
		"nested": object{"path": fieldTree + "." + p.nested},
		"aggs":   object{aggInner: elements},
	}}
}

func (p plan) sources(after any) object {
	sources := make([]object, len(p.asked.Group))
	for i, by := range p.asked.Group {
		kind, source := by.histogram()
		if by.plain() {
			kind, source = "terms", object{"field": by.keyField()}
		}
		source["missing_bucket"] = p.asked.MissingNull && by.Field.Pseudo == ""
		sources[i] = object{"k" + strconv.Itoa(i): object{kind: source}}
	}
	composite := object{"sources": sources, "size": p.pageSize()}
	if after != nil {
		composite["after"] = after
	}
	return composite
}

// pageSize is how many groups one request may make with all that is inside
// them. One more than the limit shows that there are too many.
func (p plan) pageSize() int {
	inside := 2
	for _, m := range p.asked.Metrics {
		switch m.Kind {
		case Min, Max, Cardinality:
			inside++
		}
	}
	return min(MaxGroups+1, aggBuckets/inside)
}

func (by GroupBy) keyField() string {
	switch by.Field.Pseudo {
	case filter.ID, filter.Root:
		return by.Field.Pseudo
	}
	return leafField(fieldPath(by.Field.Path.Segments()), leafKey)
}

func (by GroupBy) histogram() (kind string, body object) {
	at := fieldPath(by.Field.Path.Segments())
	if by.Step != "" {
		return "histogram", object{"field": leafField(at, leafNumber), "interval": by.Step}
	}
	body = object{"field": leafField(at, leafDate)}
	zone := by.Zone
	if zone == nil {
		zone = time.UTC
	}
	if !by.plain() {
		by.Unit.dsl(body, zone)
	}
	return "date_histogram", body
}

// metrics are the aggregations inside each group.
func (p plan) metrics() object {
	own, outer := object{}, object{}
	for i, m := range p.asked.Metrics {
		into := own
		if p.nested != "" && m.Kind != Count && !below(p.nested, m.Path) {
			into = outer
		}
		m.dsl(into, "m"+strconv.Itoa(i))
	}
	if p.nested != "" {
		owner := object{"reverse_nested": object{}}
		if len(outer) > 0 {
			owner["aggs"] = outer
		}
		own[aggOwner] = owner
	}
	return own
}

func (m Metric) dsl(into object, name string) {
	if m.Kind == Count {
		return
	}
	at := fieldPath(m.Path.Segments())
	number, key := leafField(at, leafNumber), leafField(at, leafKey)
	switch m.Kind {
	case Sum, Avg, Stats:
		into[name] = object{"stats": object{"field": number}}
	case Min, Max:
		order := "asc"
		if m.Kind == Max {
			order = "desc"
		}
		into[name] = object{"terms": object{
			"field": key, "size": 1, "order": object{"_key": order}, "exclude": []string{nullKey},
		}}
	case Percentiles:
		into[name] = object{"percentiles": object{"field": number, "percents": m.Percents, "keyed": false}}
	case Cardinality:
		into[name] = object{"cardinality": object{"field": key, "precision_threshold": preciseCardinality}}
		into[name+nullsOf] = object{"terms": object{"field": key, "size": 1, "include": []string{nullKey}}}
	}
}

// preciseCardinality is up to where OpenSearch's numbers of different values
// are close to exact.
const preciseCardinality = 3000
