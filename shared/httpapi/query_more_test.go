package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"holdfast/shared/doc"
	"holdfast/shared/search"
	"holdfast/shared/value"
	"holdfast/shared/where"
)

// listIndex is an index that holds a list of documents, all of which match. A
// cursor is the place of the next one.
type listIndex struct {
	*fakeIndex
	docs []doc.Document
}

func (l *listIndex) Search(_ context.Context, r search.Request) (search.Result, error) {
	l.asked = append(l.asked, r)
	begin, _ := strconv.Atoi(r.After)
	end := min(begin+r.Limit, len(l.docs))
	result := search.Result{Documents: l.docs[begin:end], Count: len(l.docs), CountExact: true}
	result.CursorAfter = func(i int) (string, error) { return strconv.Itoa(begin + i + 1), nil }
	if end < len(l.docs) && r.Limit > 0 {
		result.Next = strconv.Itoa(end)
	}
	return result, nil
}

// newList makes a query handler over an index and a table that have the same n
// documents.
func newList(t *testing.T, n int, data func(i int) string) (Handler, *listIndex) {
	t.Helper()
	l := &listIndex{fakeIndex: &fakeIndex{}}
	for i := range n {
		tree, err := value.DecodeDocument([]byte(data(i)))
		if err != nil {
			t.Fatal(err)
		}
		d := fakeDocument(doc.ID(fmt.Sprintf("users/%03d", i)), tree)
		l.docs = append(l.docs, d)
		l.table().docs[d.ID] = d
	}
	return Query(QueryOptions{Search: l, Waiter: l.fakeIndex, Reporter: l.fakeIndex, Definitions: l.fakeIndex, Loader: l.table(), Where: &where.Compiler{}}), l
}

func (a answer) idsOf(t *testing.T) string {
	t.Helper()
	var ids []string
	for _, d := range a.json["documents"].([]any) {
		ids = append(ids, strings.TrimPrefix(d.(map[string]any)["id"].(string), "users/"))
	}
	return strings.Join(ids, " ")
}

func TestFieldsOfQueries(t *testing.T) {
	h, _ := newList(t, 1, func(int) string {
		return `{"big":12345678901234567891,"a":[{"b":1.50,"c":2},{"c":3},7],"x.y":1,"z":2}`
	})
	a := send(t, h, "POST", "/query", `{"from":"users","fields":["big","a.b","/x.y","none"]}`)
	if !strings.Contains(string(a.Body), `"data":{"a":[{"b":1.5},{}],"big":12345678901234567891,"x.y":1}}`) {
		t.Errorf("%s", a)
	}
	if a := send(t, h, "POST", "/query", `{"from":"users","fields":[]}`); !strings.Contains(string(a.Body), `"data":{}}`) {
		t.Errorf("%s", a)
	}
}

func TestIncludeInQueries(t *testing.T) {
	h, l := newList(t, 3, func(i int) string {
		return fmt.Sprintf(`{"boss":"users/%03d","lines":[{"p":"products/%d"},{"p":"products/9"},{"p":7},{"p":"no id"}],"tags":["products/1","products/none"]}`, max(i-1, 0), i)
	})
	for i := range 10 {
		id := doc.ID(fmt.Sprintf("products/%d", i))
		l.table().docs[id] = fakeDocument(id, map[string]any{"n": number(i)})
	}
	a := send(t, h, "POST", "/query", `{"from":"users","fields":["boss"],"include":["boss","lines[].p","tags"]}`)
	in, _ := a.json["included"].(map[string]any)
	if len(in) != 5 || in["products/none"] != nil || in["products/9"] == nil || in["products/2"] == nil || in["users/000"] != nil {
		t.Errorf("%s", a)
	}
	if _, told := in["products/none"]; !told {
		t.Errorf("what does not exist is null: %s", a)
	}
	a = send(t, h, "POST", "/query", `{"from":"users","limit":1,"after":"2","include":["boss"]}`)
	if in, _ := a.json["included"].(map[string]any); len(in) != 1 || in["users/001"] == nil {
		t.Errorf("a document of another page is included: %s", a)
	}
	if a := send(t, h, "POST", "/query", `{"from":"users","include":[]}`); fmt.Sprint(a.json["included"]) != "map[]" {
		t.Errorf("%s", a)
	}
	h, _ = newList(t, 101, func(i int) string { return fmt.Sprintf(`{"p":"products/%d"}`, i) })
	a = send(t, h, "POST", "/query", `{"from":"users","limit":101,"include":["p"]}`).expect(t, 400, "too-many")
	if a.json["limit"] != 100.0 || a.json["actual"] != 101.0 || a.json["pointer"] != "/include" {
		t.Errorf("%s", a)
	}
	if a := send(t, h, "POST", "/query", `{"from":"users","limit":100,"include":["p"]}`); a.Status != 200 || len(a.json["included"].(map[string]any)) != 100 {
		t.Errorf("%s", a)
	}
}

// A page ends before a document that would come without what it refers to;
// only of the first one the rest is named.
func TestPagesFitWithWhatTheyInclude(t *testing.T) {
	large := map[string]any{"s": strings.Repeat("x", 390_000)}
	h, l := newList(t, 10, func(i int) string {
		return fmt.Sprintf(`{"p":["products/%d-1","products/%d-2","products/%d-3"]}`, i, i, i)
	})
	for i := range 10 {
		for j := range 3 {
			id := doc.ID(fmt.Sprintf("products/%d-%d", i, j+1))
			l.table().docs[id] = fakeDocument(id, large)
		}
	}
	seen, after := 0, ""
	for range 10 {
		a := send(t, h, "POST", "/query", `{"from":"users","include":["p"]`+after+`}`)
		docs, in := len(a.json["documents"].([]any)), a.json["included"].(map[string]any)
		if a.Status != 200 || len(in) != 3*docs || docs == 0 || docs > 4 || len(a.Body) > answerBytes || a.json["remaining"] != nil {
			t.Fatalf("%d documents, %d included, %d bytes", docs, len(in), len(a.Body))
		}
		seen += docs
		next, more := a.json["next"].(string)
		if !more {
			break
		}
		after = `,"after":"` + next + `"`
	}
	if seen != 10 {
		t.Errorf("%d of 10 documents were seen", seen)
	}
	h, l = newList(t, 2, func(i int) string {
		return `{"p":["` + strings.Join(strings.Fields(fmt.Sprint(rangeOf("products/%d", 20))), `","`) + `"]}`
	})
	for i := range 20 {
		id := doc.ID(fmt.Sprintf("products/%d", i))
		l.table().docs[id] = fakeDocument(id, large)
	}
	a := send(t, h, "POST", "/query", `{"from":"users","include":["p"]}`)
	in, remaining := a.json["included"].(map[string]any), a.json["remaining"].([]any)
	if len(a.json["documents"].([]any)) != 1 || a.json["next"] != "1" || len(in)+len(remaining) != 20 || len(in) < 10 || len(a.Body) > answerBytes {
		t.Errorf("%d included, %d remaining, %d bytes", len(in), len(remaining), len(a.Body))
	}
}

type texts []string

func (t texts) String() string { return strings.Join(t, " ") }

func rangeOf(format string, n int) texts {
	var all texts
	for i := range n {
		all = append(all, fmt.Sprintf(format, i))
	}
	return all
}

func TestVerifiedReading(t *testing.T) {
	h, l := newList(t, 10, func(i int) string { return fmt.Sprintf(`{"n":%d,"v":"old"}`, i) })
	table := l.table().docs
	delete(table, "users/000")
	delete(table, "users/003")
	change := func(id doc.ID, data map[string]any) {
		d := table[id]
		d.Version, d.Data = d.Version+7, data
		table[id] = d
	}
	change("users/001", map[string]any{"n": number(1), "v": "new"})
	change("users/004", map[string]any{"n": number(-4)})
	change("users/005", map[string]any{"n": "text"})
	for _, c := range []struct{ body, ids, next, dropped string }{
		{`"limit":25`, "001 002 006 007 008 009", "", "4"},
		{`"limit":2`, "001 002", "3", "1"},
		{`"limit":2,"after":"3"`, "006 007", "8", "3"},
		{`"limit":3,"after":"7"`, "007 008 009", "", "0"},
		{`"limit":0`, "", "", "0"},
	} {
		a := send(t, h, "POST", "/query", `{"from":"users","filter":{"n":{"$gte":0}},"read":"verified","count":true,`+c.body+`}`)
		next, _ := a.json["next"].(string)
		staleness := a.json["staleness"].(map[string]any)
		if a.idsOf(t) != c.ids || next != c.next || fmt.Sprint(staleness["dropped"]) != c.dropped || a.json["examined"] == nil || a.json["count"] == nil {
			t.Errorf("%s: %s", c.body, a)
		}
		if exact := a.json["count"].(map[string]any)["exact"]; exact != (c.dropped == "0") {
			t.Errorf("%s: what was dropped was counted, so the count is not exact: %s", c.body, a)
		}
	}
	a := send(t, h, "POST", "/query", `{"from":"users","filter":{"n":{"$gte":0}},"where":"doc.v == 'new'","read":"verified"}`)
	if a.idsOf(t) != "001" || !strings.Contains(string(a.Body), `{"n":1,"v":"new"}`) || !strings.Contains(string(a.Body), `"version":1796029203123463`) {
		t.Errorf("the current version is told: %s", a)
	}
	for _, r := range l.asked {
		if r.Variant == "" {
			t.Errorf("a cursor belongs to the way of reading")
		}
	}
	l.table().err = doc.Errorf(doc.Throttled, "slow")
	send(t, h, "POST", "/query", `{"from":"users","read":"verified"}`).expect(t, 429, "throttled")
}

func TestAggregatesOfQueries(t *testing.T) {
	h, f := newQuery()
	f.result.Aggregates = []search.Aggregate{
		{Groups: []search.Group{{Key: []any{"France", nil}, Figures: []any{json.Number("4237.84"), json.Number("77")}}}, Others: 3, Exact: true, Estimated: []bool{false, false}},
		{Groups: []search.Group{{Key: []any{}, Figures: []any{map[string]any{"50": json.Number("2"), "approximate": true}}}}, Exact: false, Estimated: []bool{true}},
	}
	a := send(t, h, "POST", "/query", `{"from":"users","limit":0,"aggregate":{"p":{"metrics":{"spread":{"percentiles":{"field":"n","percents":[50,5e1]}}}},
		"byCountry":{"group":["country",{"date":"at","every":"1M","zone":"Europe/Berlin"},{"number":"n","every":0.5},"$root"],"metrics":{"orders":{"count":true},"freight":{"sum":"freight"}},"limit":5e1,"order":{"freight":"desc"},"missing":"null"}}}`)
	want := `,"aggregates":{"byCountry":{"groups":[{"key":["France",null],"freight":4237.84,"orders":77}],"others":3,"exact":true},` +
		`"p":{"groups":[{"key":[],"spread":{"50":2,"approximate":true}}],"others":0,"exact":false,"approximate":["spread"]}}`
	if a.Status != 200 || !strings.Contains(string(a.Body), want) {
		t.Errorf("%s", a.Body)
	}
	asked := f.asked[0].Aggregate
	if len(asked) != 2 || asked[0].Limit != 50 || asked[0].Order != 0 || !asked[0].Desc || !asked[0].MissingNull || len(asked[0].Group) != 4 ||
		asked[0].Group[1].Zone.String() != "Europe/Berlin" || asked[0].Group[2].Step != "0.5" || asked[0].Group[3].Field.Pseudo != "$root" ||
		asked[1].Limit != 100 || asked[1].Order >= 0 || fmt.Sprint(asked[1].Metrics[0].Percents) != "[50]" {
		t.Errorf("%+v", asked)
	}
	if a := send(t, h, "POST", "/query", `{"from":"users","aggregate":{}}`); fmt.Sprint(a.json["aggregates"]) != "map[]" {
		t.Errorf("%s", a)
	}
	f.result.Aggregates = []search.Aggregate{{Estimated: []bool{}}}
	f.result.Aggregates[0].Groups = []search.Group{{Key: []any{strings.Repeat("x", answerBytes)}}}
	a = send(t, h, "POST", "/query", `{"from":"users","aggregate":{"a":{"group":["x"]}}}`).expect(t, 400, "query-too-costly")
	if a.json["pointer"] != "/aggregate" {
		t.Errorf("%s", a)
	}
}

func TestRefusalsOfFurtherMembers(t *testing.T) {
	h, f := newQuery()
	many := func(n int, element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	members := func(n int, v string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"m%d":%s`, i, v))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	for _, c := range []struct{ members, kind, pointer string }{
		{`"fields":"a"`, "invalid-query", "/fields"},
		{`"fields":[1]`, "invalid-query", "/fields/0"},
		{`"fields":["a","b..c"]`, "invalid-query", "/fields/1"},
		{`"fields":` + many(101, `"a"`), "query-too-costly", "/fields"},
		{`"include":{"a":1}`, "invalid-query", "/include"},
		{`"include":["$x"]`, "invalid-query", "/include/0"},
		{`"read":"fast"`, "invalid-query", "/read"},
		{`"read":null`, "invalid-query", "/read"},
		{`"scan":1`, "invalid-query", "/scan"},
		{`"where":"true"`, "invalid-query", "/where"},
		{`"where":"true","filter":{}`, "invalid-query", "/where"},
		{`"where":"true","scan":false`, "invalid-query", "/where"},
		{`"where":true,"scan":true`, "invalid-query", "/where"},
		{`"where":"","scan":true`, "invalid-query", "/where"},
		{`"where":"doc.a >","scan":true`, "invalid-query", "/where"},
		{`"where":"` + strings.Repeat(" ", where.MaxBytes) + `true","scan":true`, "query-too-costly", "/where"},
		{`"where":"true","scan":true,"aggregate":{}`, "invalid-query", "/where"},
		{`"aggregate":[]`, "invalid-query", "/aggregate"},
		{`"aggregate":` + members(11, `{}`), "query-too-costly", "/aggregate"},
		{`"aggregate":{"a/b":1}`, "invalid-query", "/aggregate/a~1b"},
		{`"aggregate":{"a":{"by":1}}`, "invalid-query", "/aggregate/a/by"},
		{`"aggregate":{"a":{"group":"x"}}`, "invalid-query", "/aggregate/a/group"},
		{`"aggregate":{"a":{"group":` + many(6, `"x"`) + `}}`, "query-too-costly", "/aggregate/a/group"},
		{`"aggregate":{"a":{"group":["x",7]}}`, "invalid-query", "/aggregate/a/group/1"},
		{`"aggregate":{"a":{"group":["$version"]}}`, "invalid-query", "/aggregate/a/group/0"},
		{`"aggregate":{"a":{"group":[{"date":"x","number":"x"}]}}`, "invalid-query", "/aggregate/a/group/0"},
		{`"aggregate":{"a":{"group":[{"date":"x"}]}}`, "invalid-query", "/aggregate/a/group/0/every"},
		{`"aggregate":{"a":{"group":[{"date":"x","every":"2M"}]}}`, "invalid-query", "/aggregate/a/group/0/every"},
		{`"aggregate":{"a":{"group":[{"date":"x","every":"1M","zone":"Mars"}]}}`, "invalid-query", "/aggregate/a/group/0/zone"},
		{`"aggregate":{"a":{"group":[{"date":"x","every":"2h","zone":"Europe/Berlin"}]}}`, "invalid-query", "/aggregate/a/group/0/zone"},
		{`"aggregate":{"a":{"group":[{"date":"$root","every":"1M"}]}}`, "invalid-query", "/aggregate/a/group/0/date"},
		{`"aggregate":{"a":{"group":[{"date":"x","every":"1M","x":1}]}}`, "invalid-query", "/aggregate/a/group/0/x"},
		{`"aggregate":{"a":{"group":[{"number":"x","every":0}]}}`, "invalid-query", "/aggregate/a/group/0/every"},
		{`"aggregate":{"a":{"group":[{"number":"x","every":"5"}]}}`, "invalid-query", "/aggregate/a/group/0/every"},
		{`"aggregate":{"a":{"metrics":[]}}`, "invalid-query", "/aggregate/a/metrics"},
		{`"aggregate":{"a":{"metrics":` + members(21, `{"count":true}`) + `}}`, "query-too-costly", "/aggregate/a/metrics"},
		{`"aggregate":{"a":{"metrics":{"key":{"count":true}}}}`, "invalid-query", "/aggregate/a/metrics/key"},
		{`"aggregate":{"a":{"metrics":{"m":{}}}}`, "invalid-query", "/aggregate/a/metrics/m"},
		{`"aggregate":{"a":{"metrics":{"m":{"median":"x"}}}}`, "invalid-query", "/aggregate/a/metrics/m/median"},
		{`"aggregate":{"a":{"metrics":{"m":{"count":"x"}}}}`, "invalid-query", "/aggregate/a/metrics/m/count"},
		{`"aggregate":{"a":{"metrics":{"m":{"sum":true}}}}`, "invalid-query", "/aggregate/a/metrics/m/sum"},
		{`"aggregate":{"a":{"metrics":{"m":{"sum":"$version"}}}}`, "invalid-query", "/aggregate/a/metrics/m/sum"},
		{`"aggregate":{"a":{"metrics":{"m":{"percentiles":"x"}}}}`, "invalid-query", "/aggregate/a/metrics/m/percentiles"},
		{`"aggregate":{"a":{"metrics":{"m":{"percentiles":{"percents":[5]}}}}}`, "invalid-query", "/aggregate/a/metrics/m/percentiles/field"},
		{`"aggregate":{"a":{"metrics":{"m":{"percentiles":{"field":"x","percents":[5,101]}}}}}`, "invalid-query", "/aggregate/a/metrics/m/percentiles/percents/1"},
		{`"aggregate":{"a":{"metrics":{"m":{"percentiles":{"field":"x","percents":[]}}}}}`, "invalid-query", "/aggregate/a/metrics/m/percentiles/percents"},
		{`"aggregate":{"a":{"limit":1001}}`, "invalid-query", "/aggregate/a/limit"},
		{`"aggregate":{"a":{"missing":true}}`, "invalid-query", "/aggregate/a/missing"},
		{`"aggregate":{"a":{"order":"n"}}`, "invalid-query", "/aggregate/a/order"},
		{`"aggregate":{"a":{"order":{"n":"asc"}}}`, "invalid-query", "/aggregate/a/order/n"},
		{`"aggregate":{"a":{"order":{"key":"up"}}}`, "invalid-query", "/aggregate/a/order/key"},
		{`"aggregate":{"a":{"metrics":{"s":{"stats":"x"}},"order":{"s":"asc"}}}`, "invalid-query", "/aggregate/a/order/s"},
	} {
		a := send(t, h, "POST", "/query", `{"from":"a",`+c.members+`}`).expect(t, 400, c.kind)
		if a.json["pointer"] != c.pointer {
			t.Errorf("%.100s: pointer %v, want %q", c.members, a.json["pointer"], c.pointer)
		}
	}
	if len(f.asked) != 0 {
		t.Errorf("the index was asked %v", f.asked)
	}
	a := send(t, h, "POST", "/query", `{"from":"a","where":"doc.a > 1 &&\n other","scan":true}`)
	if detail, _ := a.json["detail"].(string); !strings.HasPrefix(detail, "line 2, column 2: undeclared reference to 'other'") {
		t.Errorf("%s", a)
	}
}

func TestWhereInQueries(t *testing.T) {
	h, f := newQuery()
	f.result = search.Result{Examined: 0, WhereErrors: 0}
	a := send(t, h, "POST", "/query", `{"from":"a","where":"doc.n > 1","filter":{"n":{"$exists":true}},"scan":false}`)
	if a.Status != 200 || a.json["examined"] != 0.0 || a.json["whereErrors"] != 0.0 {
		t.Errorf("%s", a)
	}
	r := f.asked[0]
	if r.Where == nil || !strings.Contains(r.Variant, "doc.n > 1") {
		t.Fatalf("%+v", r)
	}
	if holds, err := r.Where(t.Context(), map[string]any{"n": number(2)}); err != nil || !holds {
		t.Error(err)
	}
	h = Query(QueryOptions{Search: f, Waiter: f, Reporter: f, Definitions: f})
	send(t, h, "POST", "/query", `{"from":"a","where":"true","scan":true}`).expect(t, 400, "invalid-query")
}
