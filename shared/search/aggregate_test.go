package search_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// The paths of the documents that are aggregated: plain ones, one through an
// array, one below a declared array, one with a number.
var aggregatedPaths = []string{"a", "b", "when", "list", "o.a", "o.when", "lines.sku", "lines.n", "lines.when", "lines", "list.0", "none"}

func aggregatedScalars() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.SampledFrom([]string{"", "x", "y", "é", "1", "2024-01-31T23:30:00Z", "2024-02-01T00:30:00+01:00", "2024-03-31T01:59:59.999999999Z",
			"2024-10-27T00:30:00Z", "2024-10-27T01:30:00Z", "1969-12-31T23:59:59.9Z", "1890-01-01T00:00:00Z", "2024-12-30T00:00:00Z"}), func(s string) any { return s }),
		rapid.Map(rapid.SampledFrom([]string{"0", "1", "-1", "2.5", "49.99", "50", "100", "-50", "12345678901234567891", "0.10000000000000000001", "1e125", "-1e-130", "99"}), func(s string) any {
			n, err := value.Number(s)
			if err != nil {
				panic(err)
			}
			return n
		}),
	)
}

func aggregatedDocuments() *rapid.Generator[map[string]any] {
	scalar := aggregatedScalars()
	list := rapid.Map(rapid.SliceOfN(scalar, 0, 3), func(l []any) any { return l })
	element := rapid.MapOfN(rapid.SampledFrom([]string{"sku", "n", "when"}), rapid.OneOf(scalar, scalar, list), 0, 3)
	some := rapid.OneOf(scalar, scalar, scalar, list)
	return rapid.Custom(func(t *rapid.T) map[string]any {
		data := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "when"}), some, 0, 3).Draw(t, "plain")
		if rapid.Bool().Draw(t, "has list") {
			data["list"] = list.Draw(t, "list")
		}
		if rapid.Bool().Draw(t, "has o") {
			data["o"] = rapid.MapOfN(rapid.SampledFrom([]string{"a", "when"}), some, 0, 2).Draw(t, "o")
		}
		lines := []any{}
		for _, e := range rapid.SliceOfN(element, 0, 3).Draw(t, "lines") {
			lines = append(lines, e)
		}
		switch rapid.IntRange(0, 12).Draw(t, "odd") {
		case 0:
			lines = append(lines, scalar.Draw(t, "scalar among elements"))
		case 1:
			lines = []any{lines}
		case 2:
			data["lines"] = element.Draw(t, "one line")
			return data
		case 3:
			data["a"] = strings.Repeat("long", 2500) + fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "long"))
		case 4:
			data["list"] = []any{list.Draw(t, "inner"), "x"}
		case 5:
			return data
		}
		data["lines"] = lines
		return data
	})
}

func aggregations() *rapid.Generator[search.Aggregation] {
	path := rapid.Map(rapid.SampledFrom(aggregatedPaths), func(s string) value.Path {
		p, err := value.ParsePath(s)
		if err != nil {
			panic(err)
		}
		return p
	})
	zones := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "+05:30", "Australia/Lord_Howe", "America/Sao_Paulo"})
	return rapid.Custom(func(t *rapid.T) search.Aggregation {
		a := search.Aggregation{Limit: rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "limit"), Order: -1, MissingNull: rapid.Bool().Draw(t, "missing")}
		for range rapid.IntRange(0, 2).Draw(t, "parts") {
			g := search.GroupBy{Field: filter.Field{Path: path.Draw(t, "by")}}
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0, 1:
				zone, ok := search.ParseZone(zones.Draw(t, "zone"))
				unit, ok2 := search.ParseUnit(rapid.SampledFrom([]string{"1y", "1q", "1M", "1w", "1d", "1h", "1m", "6h", "7d", "90s"}).Draw(t, "every"))
				if !ok || !ok2 {
					t.Fatal("no zone or unit")
				}
				g.Unit, g.Zone = unit, zone
			case 2:
				g.Step = rapid.SampledFrom([]json.Number{"50", "1", "0.5", "1000000"}).Draw(t, "step")
			case 3:
				g.Field = filter.Field{Pseudo: filter.Root}
			}
			a.Group = append(a.Group, g)
		}
		kinds := []search.MetricKind{search.Count, search.Sum, search.Avg, search.Min, search.Max, search.Stats}
		if rapid.IntRange(0, 4).Draw(t, "estimates") == 0 {
			kinds = append(kinds, search.Percentiles, search.Cardinality)
		}
		for range rapid.IntRange(0, 3).Draw(t, "metrics") {
			a.Metrics = append(a.Metrics, search.Metric{
				Kind: rapid.SampledFrom(kinds).Draw(t, "metric"), Path: path.Draw(t, "of"), Percents: []json.Number{"0", "50", "100"},
			})
		}
		if len(a.Metrics) > 0 && rapid.Bool().Draw(t, "ordered") && a.Metrics[0].Kind == search.Count {
			a.Order = 0
		}
		a.Desc = rapid.Bool().Draw(t, "desc")
		return a
	})
}

// TestAggregationsAgreeWithDocuments compares what the index and the few looks
// at documents say together with what the documents say alone.
func TestAggregationsAgreeWithDocuments(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks != nil && checks.Value.String() == checks.DefValue {
		if err := checks.Value.Set("150"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
	}
	c := newIndex(t)
	var docs []doc.Document
	for i := range 150 {
		docs = append(docs, document(t, fmt.Sprintf("orders/%d/lines/%d", i%7, i), string(value.Append(nil, aggregatedDocuments().Example(i)))))
	}
	gone := document(t, "orders/1/lines/expired", `{"a":"expired"}`)
	gone.ExpiresAt = at
	deleted := doc.Document{ID: "orders/1/lines/deleted", Version: gone.Version, Deleted: true}
	for _, nested := range [][]string{nil, {"lines"}} {
		g := collection.First(collection.Definition{Name: "orders/lines", Index: collection.Own, Nested: nested}, search.Projector)
		if nested != nil {
			g.Family = "orders/lines/nested"
		}
		if err := c.Ensure(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		index(t, c, g, append([]doc.Document{gone, deleted}, docs...)...)
		from := []search.Source{{Collection: "orders/lines", Generation: &g}}
		t.Run(fmt.Sprintf("nested %v", nested), rapid.MakeCheck(func(rt *rapid.T) {
			r := search.Request{From: from, Filter: filter.And{}, Now: at, Aggregate: rapid.SliceOfN(aggregations(), 1, 3).Draw(rt, "aggregations")}
			switch rapid.IntRange(0, 3).Draw(rt, "filter") {
			case 0:
				r.Filter = filter.Exists{Field: filter.Field{Path: value.PathOf("a")}, Want: true}
			case 1: // decided by looking
				r.Filter = filter.Compare{Field: filter.Field{Path: value.PathOf("list")}, Op: filter.Eq, Value: []any{}}
			}
			want, err := search.AggregateInMemory(r, docs)
			if err != nil {
				rt.Fatal(err)
			}
			got, err := c.Search(t.Context(), r)
			if err != nil {
				rt.Fatal(err)
			}
			for i := range want {
				sameAggregate(rt, r.Aggregate[i], got.Aggregates[i], want[i])
			}
		}))
	}
}

func sameAggregate(rt *rapid.T, a search.Aggregation, got, want search.Aggregate) {
	keys := func(answer search.Aggregate) (texts []string) {
		for _, g := range answer.Groups {
			texts = append(texts, string(value.Append(nil, g.Key)))
		}
		return texts
	}
	if fmt.Sprint(keys(got)) != fmt.Sprint(keys(want)) || got.Others != want.Others || got.Exact != want.Exact {
		rt.Fatalf("%+v\n got %d others %v\nwant %d others %v", a, got.Others, keys(got), want.Others, keys(want))
	}
	for i, g := range got.Groups {
		for j, m := range a.Metrics {
			if !sameFigure(m, g.Figures[j], want.Groups[i].Figures[j]) {
				rt.Fatalf("%+v\ngroup %s, %s of %s: got %s, want %s", a, value.Append(nil, g.Key), m.Kind, m.Path, value.Append(nil, g.Figures[j]), value.Append(nil, want.Groups[i].Figures[j]))
			}
		}
	}
}

// sameFigure allows doubles what rounding takes, and estimates of percentiles
// the numbers between.
func sameFigure(m search.Metric, got, want any) bool {
	switch m.Kind {
	case search.Sum, search.Avg:
		return near(got, want)
	case search.Stats:
		g, w := got.(map[string]any), want.(map[string]any)
		return g["count"] == w["count"] && near(g["min"], w["min"]) && near(g["max"], w["max"]) && near(g["avg"], w["avg"]) && near(g["sum"], w["sum"])
	case search.Percentiles:
		g, w := got.(map[string]any), want.(map[string]any)
		return near(g["0"], w["0"]) && near(g["100"], w["100"]) && (g["50"] == nil) == (w["50"] == nil)
	}
	return value.Equal(got, want)
}

func near(a, b any) bool {
	x, ok1 := a.(json.Number)
	y, ok2 := b.(json.Number)
	if !ok1 || !ok2 {
		return a == nil && b == nil
	}
	f, _ := x.Float64()
	g, _ := y.Float64()
	return math.Abs(f-g) <= 1e-9*max(math.Abs(f), math.Abs(g), 1e-100) || math.Abs(f-g) < 1e112 && math.Abs(f)+math.Abs(g) > 1e124
}

func TestGroupsOfManyKinds(t *testing.T) {
	orders := []string{
		`{"customer":"a","freight":10,"date":"1996-07-04T00:00:00Z","lines":[{"p":"x","q":1},{"p":"y","q":2}]}`,
		`{"customer":"a","freight":2.5,"date":"1996-07-31T22:30:00Z","lines":[{"p":"x","q":4}]}`,
		`{"customer":"b","freight":60,"date":"1996-08-01T00:00:00Z","lines":[]}`,
		`{"customer":7,"freight":"none","date":"soon"}`,
		`{"customer":null,"freight":12345678901234567891}`,
		`{}`,
	}
	var docs []doc.Document
	for i, o := range orders {
		docs = append(docs, document(t, fmt.Sprintf("orders/%d", i), o))
	}
	berlin, _ := search.ParseZone("Europe/Berlin")
	month, _ := search.ParseUnit("1M")
	path := func(s string) filter.Field { return filter.Field{Path: value.PathOf(strings.Split(s, ".")...)} }
	count := search.Metric{Kind: search.Count}
	of := func(kind search.MetricKind, s string) search.Metric {
		return search.Metric{Kind: kind, Path: path(s).Path}
	}
	for _, c := range []struct {
		a      search.Aggregation
		nested bool
		want   string
	}{
		{search.Aggregation{Order: -1, Limit: 1, Metrics: []search.Metric{count, of(search.Sum, "customer"), of(search.Avg, "none"), of(search.Max, "customer"), of(search.Min, "freight")}}, false,
			`[] 6 7 null "b" 2.5|others 0`},
		{search.Aggregation{Order: -1, Limit: 10, Group: []search.GroupBy{{Field: path("customer")}}, Metrics: []search.Metric{count, of(search.Max, "freight")}}, false,
			`[7] 1 "none"|["a"] 2 10|["b"] 1 60|others 0`},
		{search.Aggregation{Order: -1, Limit: 10, MissingNull: true, Group: []search.GroupBy{{Field: path("customer")}}, Metrics: []search.Metric{count, of(search.Max, "freight")}}, false,
			`[null] 2 12345678901234567891|[7] 1 "none"|["a"] 2 10|["b"] 1 60|others 0`},
		{search.Aggregation{Order: 1, Desc: true, Limit: 2, Group: []search.GroupBy{{Field: path("customer")}}, Metrics: []search.Metric{count, of(search.Sum, "freight")}}, false,
			`["b"] 1 60|["a"] 2 12.5|others 1`},
		{search.Aggregation{Order: -1, Limit: 10, Group: []search.GroupBy{{Field: path("date"), Unit: month, Zone: time.UTC}}, Metrics: []search.Metric{count}}, false,
			`["1996-07-01T00:00:00Z"] 2|["1996-08-01T00:00:00Z"] 1|others 0`},
		{search.Aggregation{Order: -1, Limit: 10, Group: []search.GroupBy{{Field: path("date"), Unit: month, Zone: berlin}}, Metrics: []search.Metric{count}}, false,
			`["1996-07-01T00:00:00+02:00"] 1|["1996-08-01T00:00:00+02:00"] 2|others 0`},
		{search.Aggregation{Order: -1, Limit: 10, Group: []search.GroupBy{{Field: path("freight"), Step: "0.1"}}}, false,
			`[2.5]|[10]|[60]|[12345678901234567891]|others 0`},
		{search.Aggregation{Order: -1, Limit: 10, Group: []search.GroupBy{{Field: path("lines.p")}}, Metrics: []search.Metric{count, of(search.Sum, "lines.q")}}, false,
			`["x"] 2 7|["y"] 1 3|others 0`}, // every element of the document
		{search.Aggregation{Order: -1, Limit: 10, Group: []search.GroupBy{{Field: path("lines.p")}}, Metrics: []search.Metric{count, of(search.Sum, "lines.q"), of(search.Sum, "freight")}}, true,
			`["x"] 2 5 12.5|["y"] 1 2 10|others 0`}, // the element's own
		{search.Aggregation{Order: -1, Limit: 10, Group: []search.GroupBy{{Field: filter.Field{Pseudo: filter.Root}}}, Metrics: []search.Metric{of(search.Cardinality, "customer")}}, false,
			`["orders/0"] 1|["orders/1"] 1|["orders/2"] 1|["orders/3"] 1|["orders/4"] 0|["orders/5"] 0|others 0`},
	} {
		g := collection.Generation{Number: 1}
		r := search.Request{From: []search.Source{{Collection: "orders", Generation: &g}}, Filter: filter.And{}, Aggregate: []search.Aggregation{c.a}}
		if c.nested {
			g.Nested = []string{"lines"}
		}
		answers, err := search.AggregateInMemory(r, docs)
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, g := range answers[0].Groups {
			text := string(value.Append(nil, g.Key))
			for _, f := range g.Figures {
				text += " " + string(value.Append(nil, f))
			}
			parts = append(parts, text)
		}
		parts = append(parts, fmt.Sprintf("others %d", answers[0].Others))
		if got := strings.Join(parts, "|"); got != c.want {
			t.Errorf("%+v\n got %s\nwant %s", c.a, got, c.want)
		}
	}
}

func TestKeysOfGroupsAreExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := scalars().Draw(rt, "scalar")
		if s, ok := v.(string); ok && len(s) > 8000 {
			return
		}
		if back, ok := search.ScalarOf(search.OrderKey(v)); !ok || !value.Equal(back, v) {
			rt.Fatalf("%s became %v", value.Append(nil, v), back)
		}
	})
	for _, s := range []string{"-12345678901234567890123456789012345678", "1e-130", "-9.9999999999999999999999999999999999999e+125", "0.5", "-0.05", "100"} {
		n, err := value.Number(s)
		if err != nil {
			t.Fatal(err)
		}
		if back, ok := search.ScalarOf(search.OrderKey(n)); !ok || back != n {
			t.Errorf("%s became %v", s, back)
		}
	}
}

func TestStretchesOfTime(t *testing.T) {
	for _, c := range []struct{ every, zone, at, want string }{
		{"1M", "UTC", "2024-02-29T12:00:00Z", "2024-02-01T00:00:00Z"},
		{"1q", "UTC", "2024-06-30T23:59:59.999Z", "2024-04-01T00:00:00Z"},
		{"1y", "Europe/Berlin", "2023-12-31T23:00:00Z", "2024-01-01T00:00:00+01:00"},
		{"1w", "UTC", "2024-12-29T00:00:00Z", "2024-12-23T00:00:00Z"}, // a Sunday
		{"1d", "Europe/Berlin", "2024-03-31T12:00:00Z", "2024-03-31T00:00:00+01:00"},
		{"1h", "Europe/Berlin", "2024-10-27T01:30:00Z", "2024-10-27T02:00:00+01:00"}, // the second 2 o'clock
		{"1h", "Europe/Berlin", "2024-10-27T00:30:00Z", "2024-10-27T02:00:00+02:00"},
		{"1d", "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T01:00:00-02:00"}, // midnight was skipped
		{"1h", "+05:30", "2024-01-01T00:10:00Z", "2024-01-01T05:00:00+05:30"},
		{"1y", "Europe/Berlin", "1880-05-05T00:00:00Z", "1879-12-31T23:06:32Z"}, // 53:28 before Greenwich
		{"6h", "UTC", "1969-12-31T23:00:00Z", "1969-12-31T18:00:00Z"},
		// The years of four digits have an end, and clocks somewhere are beyond it.
		{"1y", "+02:00", "9999-12-31T23:00:00Z", "9999-12-31T22:00:00Z"},
		{"1d", "UTC", "9999-12-31T23:59:59-12:00", "9999-12-31T23:00:00-01:00"},
		{"1m", "UTC", "9999-12-31T23:59:59-23:59", "9999-12-31T23:59:00-23:59"},
		{"1y", "Asia/Tokyo", "9999-12-31T23:59:59.999Z", "9999-12-31T15:00:00Z"},
		{"1h", "-05:00", "0000-01-01T00:30:00Z", "0000-01-01T00:00:00Z"},
		{"1h", "UTC", "0000-01-01T00:30:00+05:00", "0000-01-01T00:00:00+05:00"},
		{"1m", "UTC", "0000-01-01T00:10:10+23:59", "0000-01-01T00:10:00+23:59"},
		{"1y", "UTC", "0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"},
		{"1y", "-05:00", "0001-01-01T00:00:00Z", "0000-01-01T00:00:00-05:00"},
		{"1y", "America/New_York", "0001-01-01T00:00:00Z", "0000-01-01T04:56:02Z"},
		{"1w", "UTC", "0000-01-03T00:00:00Z", "0000-01-03T00:00:00Z"},
	} {
		unit, ok := search.ParseUnit(c.every)
		zone, ok2 := search.ParseZone(c.zone)
		if !ok || !ok2 {
			t.Fatal(c)
		}
		if got, ok := (search.GroupBy{Unit: unit, Zone: zone}).Start(c.at); !ok || got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
	for _, s := range []string{"", "1", "M", "0d", "2M", "3q", "1.5h", "-1d", "01d", "+1d", "1x", "1ms", "400d", "99999999999999999999s"} {
		if _, ok := search.ParseUnit(s); ok {
			t.Errorf("%q is no unit", s)
		}
	}
	for _, s := range []string{"", "Local", "Mars/Phobos", "../etc/passwd", "+25:00", "+2"} {
		if _, ok := search.ParseZone(s); ok {
			t.Errorf("%q is no zone", s)
		}
	}
}

func TestAggregationsHaveLimits(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	many := make([]string, search.MaxGroups/5+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	var docs []doc.Document
	for i := range 5 {
		d := document(t, fmt.Sprintf("wide/%d", i), `{}`)
		var list []any
		for _, s := range many {
			list = append(list, fmt.Sprintf("%d-%s", i, s))
		}
		d.Data = map[string]any{"l": list, "long": strings.Repeat("z", 9000), "n": json.Number("1")}
		docs = append(docs, d)
	}
	index(t, c, g, docs...)
	by := func(name string) search.Aggregation {
		return search.Aggregation{Order: -1, Limit: 10, Group: []search.GroupBy{{Field: filter.Field{Path: value.PathOf(name)}}}}
	}
	r := search.Request{From: sourcesOf("wide"), Now: at, Aggregate: []search.Aggregation{by("l")}}
	_, err := c.Search(t.Context(), r)
	var e *doc.Error
	if !errors.As(err, &e) || e.Kind != doc.QueryTooCostly || e.Members["limit"] != search.MaxGroups {
		t.Errorf("too many groups: %v", err)
	}
	r.Filter = filter.Compare{Field: filter.Field{Pseudo: filter.ID}, Op: filter.Lt, Value: "wide/4"}
	result, err := c.Search(t.Context(), r)
	if err != nil || len(result.Aggregates[0].Groups) != 10 || result.Aggregates[0].Others != 4*len(many)-10 {
		t.Errorf("%v %+v", err, result)
	}
	r.Aggregate = []search.Aggregation{by("long")}
	result, err = c.Search(t.Context(), r)
	if err != nil || result.Examined != 4 || len(result.Aggregates[0].Groups) != 1 || result.Aggregates[0].Groups[0].Key[0] != strings.Repeat("z", 9000) {
		t.Errorf("what the index does not hold is looked at: %v, examined %d", err, result.Examined)
	}
	search.LimitExamined(c, 3)
	if _, err = c.Search(t.Context(), r); !errors.As(err, &e) || e.Kind != doc.QueryTooCostly || e.Members["limit"] != 3 {
		t.Errorf("beyond the budget: %v", err)
	}
	r.Aggregate = []search.Aggregation{by("n")}
	if result, err = c.Search(t.Context(), r); err != nil || result.Examined != 0 || !slices.Equal(result.Aggregates[0].Groups[0].Key, []any{json.Number("1")}) {
		t.Errorf("other paths are as they were: %v", err)
	}
}

// Collections of several indexes are aggregated together, whichever of them has
// a field at a path.
func TestAggregationsOverSeveralIndexes(t *testing.T) {
	c := newIndex(t)
	shared := sharedGeneration()
	own := collection.First(collection.Definition{Name: "own", Index: collection.Own}, search.Projector)
	for _, g := range []collection.Generation{shared, own} {
		if err := c.Ensure(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	docs := map[collection.Family][]doc.Document{}
	var all []doc.Document
	for i := range 30 {
		one := document(t, fmt.Sprintf("some/%d", i), fmt.Sprintf(`{"k":"k%d","n":%d,"here":%d,"at":"2024-0%d-01T00:00:00Z"}`, i%4, i, i%3, 1+i%5))
		two := document(t, fmt.Sprintf("own/%d", i), fmt.Sprintf(`{"k":%d,"n":"%d","there":[%d,null]}`, i%4, i, i%3))
		docs[shared.Family], docs[own.Family] = append(docs[shared.Family], one), append(docs[own.Family], two)
		all = append(all, one, two)
	}
	index(t, c, shared, docs[shared.Family]...)
	index(t, c, own, docs[own.Family]...)
	month, _ := search.ParseUnit("1M")
	r := search.Request{Filter: filter.And{}, Now: at, From: []search.Source{
		{Collection: "some", Generation: &shared}, {Collection: "own", Generation: &own}, {Collection: "none"},
	}}
	for _, missing := range []bool{false, true} {
		for _, by := range [][]search.GroupBy{
			nil,
			{{Field: filter.Field{Path: value.PathOf("k")}}},
			{{Field: filter.Field{Path: value.PathOf("here")}}, {Field: filter.Field{Path: value.PathOf("there")}}},
			{{Field: filter.Field{Path: value.PathOf("there")}}},
			{{Field: filter.Field{Path: value.PathOf("at")}, Unit: month, Zone: time.UTC}},
			{{Field: filter.Field{Path: value.PathOf("here")}, Step: "2"}, {Field: filter.Field{Path: value.PathOf("k")}}},
		} {
			path := func(s string) value.Path { return value.PathOf(s) }
			r.Aggregate = append(r.Aggregate, search.Aggregation{Group: by, Order: -1, Limit: 100, MissingNull: missing, Metrics: []search.Metric{
				{Kind: search.Count}, {Kind: search.Sum, Path: path("n")}, {Kind: search.Min, Path: path("n")}, {Kind: search.Max, Path: path("n")},
				{Kind: search.Max, Path: path("here")}, {Kind: search.Cardinality, Path: path("there")},
			}})
		}
	}
	want, err := search.AggregateInMemory(r, all)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Search(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range got.Aggregates {
		text := func(a search.Aggregate) string { return fmt.Sprintf("%v %d %v", a.Groups, a.Others, a.Exact) }
		if text(a) != text(want[i]) {
			t.Errorf("%+v\n got %s\nwant %s", r.Aggregate[i].Group, text(a), text(want[i]))
		}
	}
}

// The index has a group without a key in two parts: what lacks the path, and
// what has null among others there. Figures that cannot be had from two parts
// are of both all the same.
func TestTheGroupWithoutAKeyIsOne(t *testing.T) {
	c := newIndex(t)
	var docs []doc.Document
	for i, text := range []string{`{"f":1}`, `{"k":[null],"f":3}`, `{"k":"x","f":5}`} {
		docs = append(docs, document(t, fmt.Sprintf("twoparts/%d", i), text))
	}
	g := collection.First(collection.Definition{Name: "twoparts", Index: collection.Own}, search.Projector)
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	index(t, c, g, docs...)
	of := func(kind search.MetricKind) search.Metric {
		return search.Metric{Kind: kind, Path: value.PathOf("f"), Percents: []json.Number{"0", "100"}}
	}
	r := search.Request{
		From: []search.Source{{Collection: "twoparts", Generation: &g}}, Filter: filter.And{}, Now: at,
		Aggregate: []search.Aggregation{{
			Order: -1, Limit: 10, MissingNull: true, Group: []search.GroupBy{{Field: filter.Field{Path: value.PathOf("k")}}},
			Metrics: []search.Metric{of(search.Percentiles), of(search.Cardinality), of(search.Sum)},
		}},
	}
	got, err := c.Search(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	groups := got.Aggregates[0].Groups
	if len(groups) != 2 {
		t.Fatalf("%+v", groups)
	}
	if text := string(value.Append(nil, groups[0].Figures)); text != `[{"0":1,"100":3,"approximate":true},2,4]` {
		t.Errorf("%s", text)
	}
}
