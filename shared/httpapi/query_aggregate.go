package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

const (
	mostAggregations = 10   // of one query
	mostKeyParts     = 5    // of a group's key
	mostMetrics      = 20   // of one aggregation
	mostPercents     = 20   // of one metric
	largestGroups    = 1000 // groups told of one aggregation
	standardGroups   = 100
)

// namedAggregation is one member of aggregate.
type namedAggregation struct {
	name    string
	metrics []string // the names, in the order of the aggregation's metrics
}

// keyMember is what the key is called in a group, and in an order.
const keyMember = "key"

var standardPercents = []json.Number{"1", "5", "25", "50", "75", "95", "99"}

// parseAggregate reads the member aggregate.
func parseAggregate(v any) ([]namedAggregation, []search.Aggregation, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, nil, at(doc.Errorf(doc.InvalidQuery, `aggregate is an object of named aggregations, such as {"byCountry":{"group":["country"],"metrics":{"orders":{"count":true}}}}`), "/aggregate")
	}
	if len(object) > mostAggregations {
		return nil, nil, at(tooCostly("a query has at most %d aggregations", mostAggregations, len(object)), "/aggregate")
	}
	names, all := []namedAggregation{}, []search.Aggregation{} // not nil: it was asked for
	for _, name := range slices.Sorted(maps.Keys(object)) {
		a, metrics, err := parseAggregation(object[name], value.Pointer("aggregate", name))
		if err != nil {
			return nil, nil, err
		}
		names, all = append(names, namedAggregation{name, metrics}), append(all, a)
	}
	return names, all, nil
}

func tooCostly(format string, limit, actual int) *doc.Error {
	return doc.Errorf(doc.QueryTooCostly, format, limit).With("limit", limit).With("actual", actual)
}

func parseAggregation(v any, pointer string) (a search.Aggregation, metrics []string, err error) {
	a = search.Aggregation{Limit: standardGroups, Order: -1}
	object, ok := v.(map[string]any)
	if !ok {
		return a, nil, at(doc.Errorf(doc.InvalidQuery, "an aggregation is an object with group, metrics, limit, order and missing"), pointer)
	}
	if err := onlyMembers(object, doc.InvalidQuery, pointer, "group", "metrics", "limit", "order", "missing"); err != nil {
		return a, nil, err
	}
	if given, has := object["group"]; has {
		if a.Group, err = parseGroup(given, pointer+"/group"); err != nil {
			return a, nil, err
		}
	}
	if given, has := object["metrics"]; has {
		if a.Metrics, metrics, err = parseMetrics(given, pointer+"/metrics"); err != nil {
			return a, nil, err
		}
	}
	if given, has := object["limit"]; has {
		n, ok := wholeNumber(given)
		if !ok || n < 0 || n > largestGroups {
			return a, nil, at(doc.Errorf(doc.InvalidQuery, "limit is a whole number from 0 to %d", largestGroups).With("limit", largestGroups), pointer+"/limit")
		}
		a.Limit = n
	}
	if given, has := object["missing"]; has {
		if given != "null" {
			return a, nil, at(doc.Errorf(doc.InvalidQuery, `missing is "null", to make a group of the documents without a key, or left out`), pointer+"/missing")
		}
		a.MissingNull = true
	}
	if given, has := object["order"]; has {
		if a.Order, a.Desc, err = parseGroupOrder(given, a, metrics, pointer+"/order"); err != nil {
			return a, nil, err
		}
	}
	return a, metrics, nil
}

// wholeNumber reads an int. Canonical text has no exponent where it is one.
func wholeNumber(v any) (int, bool) {
	number, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(string(number))
	return n, err == nil
}

func parseGroup(v any, pointer string) ([]search.GroupBy, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, at(doc.Errorf(doc.InvalidQuery, `group is a list of paths, {"date":path,"every":"1M"} and {"number":path,"every":50}`), pointer)
	}
	if len(list) > mostKeyParts {
		return nil, at(tooCostly("a group's key has at most %d parts", mostKeyParts, len(list)), pointer)
	}
	var parts []search.GroupBy
	for i, v := range list {
		part, err := parseKeyPart(v, pointer+"/"+strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func parseKeyPart(v any, pointer string) (g search.GroupBy, err error) {
	if text, ok := v.(string); ok {
		g.Field, err = parseAggregated(text, pointer, filter.ID, filter.Root)
		return g, err
	}
	object, ok := v.(map[string]any)
	date, isDate := object["date"]
	number, isNumber := object["number"]
	if !ok || isDate == isNumber {
		return g, at(doc.Errorf(doc.InvalidQuery, `a part of a key is a path, {"date":path,"every":"1M","zone":"UTC"} or {"number":path,"every":50}`), pointer)
	}
	if isNumber {
		if err := onlyMembers(object, doc.InvalidQuery, pointer, "number", "every"); err != nil {
			return g, err
		}
		if g.Field, err = parseAggregated(number, pointer+"/number"); err != nil {
			return g, err
		}
		step, ok := object["every"].(json.Number)
		if f, err := step.Float64(); !ok || err != nil || !(f > 0) {
			return g, at(doc.Errorf(doc.InvalidQuery, "every is a number above 0"), pointer+"/every")
		}
		g.Step = step
		return g, nil
	}
	if err := onlyMembers(object, doc.InvalidQuery, pointer, "date", "every", "zone"); err != nil {
		return g, err
	}
	if g.Field, err = parseAggregated(date, pointer+"/date"); err != nil {
		return g, err
	}
	every, _ := object["every"].(string)
	if g.Unit, ok = search.ParseUnit(every); !ok {
		return g, at(doc.Errorf(doc.InvalidQuery, "every is 1y, 1q, 1M, 1w, 1d, 1h or 1m, or a number of days, hours, minutes or seconds of fixed length, such as 15m"), pointer+"/every")
	}
	g.Zone = time.UTC
	if zone, has := object["zone"]; has {
		text, _ := zone.(string)
		if g.Zone, ok = search.ParseZone(text); !ok {
			return g, at(doc.Errorf(doc.InvalidQuery, "zone is the name of a time zone, such as Europe/Berlin, or an offset, such as +02:00"), pointer+"/zone")
		}
		if g.Unit.IsFixed() && g.Zone != time.UTC {
			return g, at(doc.Errorf(doc.InvalidQuery, "stretches of a fixed length, which %s is, are counted in UTC", every), pointer+"/zone")
		}
	}
	return g, nil
}

// parseAggregated reads a path, or one of the pseudo-fields that are allowed.
func parseAggregated(v any, pointer string, pseudo ...string) (filter.Field, error) {
	text, ok := v.(string)
	if !ok {
		return filter.Field{}, at(doc.Errorf(doc.InvalidQuery, "a path is a string"), pointer)
	}
	if strings.HasPrefix(text, "$") && !slices.Contains(pseudo, text) {
		return filter.Field{}, at(doc.Errorf(doc.InvalidQuery, "of the envelope, groups may be made by $id and $root; a document's own name with a leading $ is reached by a pointer, /%s", text), pointer)
	}
	field, err := filter.ParseField(text)
	if err != nil {
		return filter.Field{}, at(doc.Errorf(doc.InvalidQuery, "%s", detailOf(err)), pointer)
	}
	return field, nil
}

func parseMetrics(v any, pointer string) (metrics []search.Metric, names []string, err error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, nil, at(doc.Errorf(doc.InvalidQuery, `metrics is an object of named figures, such as {"orders":{"count":true},"freight":{"sum":"freight"}}`), pointer)
	}
	if len(object) > mostMetrics {
		return nil, nil, at(tooCostly("an aggregation has at most %d metrics", mostMetrics, len(object)), pointer)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		here := pointer + value.Pointer(name)
		if name == keyMember {
			return nil, nil, at(doc.Errorf(doc.InvalidQuery, "a metric is not called key: that is where a group's key stands"), here)
		}
		m, err := parseMetric(object[name], here)
		if err != nil {
			return nil, nil, err
		}
		metrics, names = append(metrics, m), append(names, name)
	}
	return metrics, names, nil
}

var metricKinds = []search.MetricKind{
	search.Count, search.Sum, search.Avg, search.Min, search.Max, search.Stats, search.Percentiles, search.Cardinality,
}

func parseMetric(v any, pointer string) (m search.Metric, err error) {
	refused := doc.Errorf(doc.InvalidQuery, `a metric has one member: {"count":true}, {"sum":path}, avg, min, max, stats or cardinality with a path, or {"percentiles":{"field":path,"percents":[50,95]}}`)
	object, ok := v.(map[string]any)
	if !ok || len(object) != 1 {
		return m, at(refused, pointer)
	}
	for name, of := range object {
		pointer += value.Pointer(name)
		m.Kind = search.MetricKind(name)
		switch {
		case !slices.Contains(metricKinds, m.Kind):
			return m, at(refused, pointer)
		case m.Kind == search.Count:
			if of != true {
				return m, at(doc.Errorf(doc.InvalidQuery, "count is true: it counts documents"), pointer)
			}
			return m, nil
		case m.Kind == search.Percentiles:
			inner, ok := of.(map[string]any)
			if !ok {
				return m, at(doc.Errorf(doc.InvalidQuery, `percentiles takes {"field":path,"percents":[50,95]}`), pointer)
			}
			if err := onlyMembers(inner, doc.InvalidQuery, pointer, "field", "percents"); err != nil {
				return m, err
			}
			if m.Percents, err = parsePercents(inner, pointer+"/percents"); err != nil {
				return m, err
			}
			pointer += "/field"
			of = inner["field"]
		}
		field, err := parseAggregated(of, pointer)
		if err != nil {
			return m, err
		}
		m.Path = field.Path
	}
	return m, nil
}

func parsePercents(object map[string]any, pointer string) ([]json.Number, error) {
	given, has := object["percents"]
	if !has {
		return standardPercents, nil
	}
	list, ok := given.([]any)
	if !ok || len(list) == 0 {
		return nil, at(doc.Errorf(doc.InvalidQuery, "percents is a list of numbers from 0 to 100"), pointer)
	}
	if len(list) > mostPercents {
		return nil, at(tooCostly("at most %d percentiles are computed", mostPercents, len(list)), pointer)
	}
	var percents []json.Number
	for i, v := range list {
		n, ok := v.(json.Number)
		if f, err := n.Float64(); !ok || err != nil || f < 0 || f > 100 {
			return nil, at(doc.Errorf(doc.InvalidQuery, "a percentile is a number from 0 to 100"), pointer+"/"+strconv.Itoa(i))
		}
		if !slices.Contains(percents, n) {
			percents = append(percents, n)
		}
	}
	return percents, nil
}

// parseGroupOrder reads {"metric":"desc"}, or {"key":"desc"}.
func parseGroupOrder(v any, a search.Aggregation, names []string, pointer string) (by int, desc bool, err error) {
	object, ok := v.(map[string]any)
	if !ok || len(object) != 1 {
		return 0, false, at(doc.Errorf(doc.InvalidQuery, `order has one member, the name of a metric or key, such as {"freight":"desc"}`), pointer)
	}
	for name, order := range object {
		pointer += value.Pointer(name)
		by = slices.Index(names, name)
		switch {
		case name != keyMember && by < 0:
			return 0, false, at(doc.Errorf(doc.InvalidQuery, "the aggregation has no metric of this name"), pointer)
		case by >= 0 && !a.Metrics[by].CanOrder():
			return 0, false, at(doc.Errorf(doc.InvalidQuery, "groups are not ordered by stats or percentiles, which are several figures"), pointer)
		case order != "asc" && order != "desc":
			return 0, false, at(doc.Errorf(doc.InvalidQuery, "the order is asc or desc"), pointer)
		}
		desc = order == "desc"
	}
	return by, desc, nil
}

// appendAggregates writes the member aggregates.
func appendAggregates(dst []byte, names []namedAggregation, answers []search.Aggregate) []byte {
	dst = append(dst, `,"aggregates":{`...)
	for i, a := range answers[:min(len(answers), len(names))] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, names[i].name), `:{"groups":[`...)
		for j, g := range a.Groups {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, `{"key":`...)
			dst = value.Append(dst, g.Key)
			for k, figure := range g.Figures {
				dst = append(dst, ',')
				dst = append(appendText(dst, names[i].metrics[k]), ':')
				dst = value.Append(dst, figure)
			}
			dst = append(dst, '}')
		}
		dst = append(dst, `],"others":`...)
		dst = strconv.AppendInt(dst, int64(a.Others), 10)
		dst = append(dst, `,"exact":`...)
		dst = strconv.AppendBool(dst, a.Exact)
		estimates := []any{}
		for k, estimated := range a.Estimated {
			if estimated {
				estimates = append(estimates, names[i].metrics[k])
			}
		}
		if len(estimates) > 0 {
			dst = append(dst, `,"approximate":`...)
			dst = value.Append(dst, estimates)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}
