package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/shared/local/sample"
)

// sampleDocument is a line of the sample data, read without any of Holdfast's
// own code, so that what is expected here is found independently.
type sampleDocument struct {
	ID   string         `json:"id"`
	Data map[string]any `json:"data"`
}

var (
	importSamples sync.Once
	imported      []sampleDocument
)

// samples imports Northwind and the movies once and waits until queries see
// all of them.
func samples(t *testing.T) []sampleDocument {
	t.Helper()
	importSamples.Do(func() {
		movies, err := sample.Movies()
		if err != nil {
			t.Fatal(err)
		}
		var tokens []string
		for _, text := range [][]byte{sample.Northwind(), movies} {
			lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
			for _, line := range lines {
				var d sampleDocument
				if err := json.Unmarshal(line, &d); err != nil {
					t.Fatal(err)
				}
				imported = append(imported, d)
			}
			for part := range slices.Chunk(lines, 500) {
				a := send(t, "POST", "/bulk", string(bytes.Join(part, []byte("\n"))), "Content-Type", "application/x-ndjson")
				told := strings.Split(strings.TrimSpace(string(a.Body)), "\n")
				if a.Status != 200 || len(told) != len(part)+1 || strings.Contains(string(a.Body), `"error"`) {
					t.Fatalf("import: %s", a)
				}
				token, _ := answer{Body: []byte(told[len(part)])}.JSON("token").(string)
				tokens = append(tokens, token)
			}
		}
		for _, token := range tokens {
			// Each wait has 20 seconds at most, and a busy machine may need several.
			for tries := 0; ; tries++ {
				a := send(t, "POST", "/query", fmt.Sprintf(`{"from":"movies","limit":0,"wait":{"tokens":[%q],"timeout":"20s"}}`, token))
				if a.Status == 200 {
					break
				}
				if a.Status != 504 || tries == 10 {
					t.Fatalf("waiting for the import: %s", a)
				}
			}
		}
	})
	if len(imported) == 0 {
		t.Skip("the import failed")
	}
	return imported
}

func (d sampleDocument) in(collection string) bool {
	steps := strings.Split(d.ID, "/")
	var names []string
	for i := 0; i < len(steps); i += 2 {
		names = append(names, steps[i])
	}
	return strings.Join(names, "/") == collection
}

func (d sampleDocument) at(path ...string) any {
	var v any = d.Data
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

func (d sampleDocument) moment(t *testing.T, name string) (at time.Time, ok bool) {
	text, ok := d.at(name).(string)
	if !ok {
		return at, false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatalf("%s: %v", d.ID, err)
	}
	return at, true
}

// expected are the ids of the documents that are wanted, in id order.
func expected(docs []sampleDocument, collection string, wanted func(sampleDocument) bool) []string {
	ids := []string{}
	for _, d := range docs {
		if d.in(collection) && wanted(d) {
			ids = append(ids, d.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// all follows a query through its pages.
func all(t *testing.T, body string) (ids []string, pages []answer) {
	t.Helper()
	after := ""
	for {
		a := query(t, strings.Replace(body, "{", "{"+after, 1))
		pages = append(pages, a)
		ids = append(ids, a.ids()...)
		next, more := a.JSON("next").(string)
		if !more {
			return ids, pages
		}
		if len(pages) > 1000 {
			t.Fatal("pages without end")
		}
		after = fmt.Sprintf(`"after":%q,`, next)
	}
}

func sameIDs(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%s: got %d %v, want %d %v", what, len(got), got, len(want), want)
	}
}

// French orders with 20 or more of one product on one line: both conditions
// are met by the same element.
func TestExampleOrdersWithMuchOfOneProduct(t *testing.T) {
	docs := samples(t)
	product := "products/18"
	got, pages := all(t, fmt.Sprintf(`{"from":"customers/orders","count":true,"limit":3,
		"filter":{"shipAddress.country":"France","details":{"$elemMatch":{"product":%q,"quantity":{"$gte":20}}}}}`, product))
	want := expected(docs, "customers/orders", func(d sampleDocument) bool {
		lines, _ := d.at("details").([]any)
		return d.at("shipAddress", "country") == "France" && slices.ContainsFunc(lines, func(line any) bool {
			l := line.(map[string]any)
			return l["product"] == product && l["quantity"].(float64) >= 20
		})
	})
	sameIDs(t, "orders", got, want)
	if n := fmt.Sprint(pages[0].JSON("count", "value")); n != fmt.Sprint(len(want)) {
		t.Errorf("counted %s of %d", n, len(want))
	}
}

// Orders that were shipped late, which compares two fields of one document.
func TestExampleLateOrders(t *testing.T) {
	docs := samples(t)
	neither := 0
	want := expected(docs, "customers/orders", func(d sampleDocument) bool {
		shipped, ok := d.moment(t, "shippedDate")
		required, ok2 := d.moment(t, "requiredDate")
		if !ok || !ok2 {
			neither++
		}
		return ok && ok2 && shipped.After(required)
	})
	got, pages := all(t, `{"from":"customers/orders","where":"doc.shippedDate > doc.requiredDate","scan":true,"limit":1000,"count":true}`)
	sameIDs(t, "late orders", got, want)
	if a := pages[0]; fmt.Sprint(a.JSON("examined")) != "830" || fmt.Sprint(a.JSON("whereErrors")) != fmt.Sprint(neither) || fmt.Sprint(a.JSON("count", "value")) != fmt.Sprint(len(want)) {
		t.Errorf("examined %v, errors %v of %d, count %v", a.JSON("examined"), a.JSON("whereErrors"), neither, a.JSON("count"))
	}
	got, pages = all(t, `{"from":"customers/orders","filter":{"shipAddress.country":"France","shippedDate":{"$ne":null}},"where":"doc.shippedDate > doc.requiredDate","limit":2}`)
	french := slices.DeleteFunc(slices.Clone(want), func(id string) bool {
		i := slices.IndexFunc(docs, func(d sampleDocument) bool { return d.ID == id })
		return docs[i].at("shipAddress", "country") != "France"
	})
	sameIDs(t, "late French orders", got, french)
	if fmt.Sprint(pages[0].JSON("whereErrors")) != "0" {
		t.Errorf("%s", pages[0])
	}
}

// Freight by country and month, dearest first, and what is beyond the limit.
func TestExampleFreightByCountryAndMonth(t *testing.T) {
	docs := samples(t)
	type sum struct {
		orders  int
		freight float64
	}
	months := map[string]*sum{}
	total := 0
	for _, d := range docs {
		at, dated := d.moment(t, "orderDate")
		country, ok := d.at("shipAddress", "country").(string)
		if !d.in("customers/orders") || !dated || !ok {
			continue
		}
		total++
		key := fmt.Sprintf(`[%q,%q]`, country, time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC).Format(time.RFC3339))
		if months[key] == nil {
			months[key] = &sum{}
		}
		months[key].orders++
		months[key].freight += d.at("freight").(float64)
	}
	for _, limit := range []int{1000, 10} {
		a := query(t, fmt.Sprintf(`{"from":"customers/orders","limit":0,"aggregate":{"freight":{
			"group":["shipAddress.country",{"date":"orderDate","every":"1M","zone":"UTC"}],
			"metrics":{"orders":{"count":true},"freight":{"sum":"freight"}},"limit":%d,"order":{"freight":"desc"}}}}`, limit))
		groups, _ := a.JSON("aggregates", "freight", "groups").([]any)
		if len(groups) != min(limit, len(months)) || a.JSON("aggregates", "freight", "exact") != true {
			t.Fatalf("%d groups of %d: %s", len(groups), len(months), a)
		}
		told, before := 0, math.Inf(1)
		for _, g := range groups {
			group := g.(map[string]any)
			key, _ := json.Marshal(group["key"])
			freight, _ := group["freight"].(json.Number).Float64()
			orders, _ := group["orders"].(json.Number).Int64()
			want := months[string(key)]
			if want == nil || int(orders) != want.orders || math.Abs(freight-want.freight) > 1e-6 || freight > before {
				t.Fatalf("%s: %v, want %+v", key, group, want)
			}
			told, before = told+int(orders), freight
		}
		if others := fmt.Sprint(a.JSON("aggregates", "freight", "others")); others != fmt.Sprint(total-told) {
			t.Errorf("limit %d: %s others, want %d", limit, others, total-told)
		}
	}
}

// The latest ten orders of a customer, with the customer and the products.
func TestExampleLatestOrdersOfACustomer(t *testing.T) {
	docs := samples(t)
	customer := "customers/SAVEA"
	orders := slices.DeleteFunc(slices.Clone(docs), func(d sampleDocument) bool {
		return !d.in("customers/orders") || d.at("customer") != customer
	})
	slices.SortFunc(orders, func(a, b sampleDocument) int {
		if c := strings.Compare(b.at("orderDate").(string), a.at("orderDate").(string)); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	want, references := []string{}, map[string]bool{customer: true}
	for _, o := range orders[:10] {
		want = append(want, o.ID)
		for _, line := range o.at("details").([]any) {
			references[line.(map[string]any)["product"].(string)] = true
		}
	}
	for _, read := range []string{"indexed", "verified"} {
		a := query(t, fmt.Sprintf(`{"from":"customers/orders","filter":{"$root":%q},"sort":[{"orderDate":"desc"}],"limit":10,
			"fields":["orderDate","freight","details[].product"],"include":["customer","details[].product"],"read":%q}`, customer, read))
		sameIDs(t, "orders", a.ids(), want)
		included, _ := a.JSON("included").(map[string]any)
		if len(included) != len(references) {
			t.Errorf("%d are included, want %d", len(included), len(references))
		}
		for id := range references {
			if (answer{Body: a.Body}).JSON("included", id, "data") == nil {
				t.Errorf("%s is not included", id)
			}
		}
		first := a.JSON("documents").([]any)[0].(map[string]any)["data"].(map[string]any)
		if len(first) != 3 || first["shipAddress"] != nil {
			t.Errorf("the fields asked for: %v", first)
		}
	}
}

// Names with spaces are names like others; titles that are numbers are numbers.
func TestExampleMovies(t *testing.T) {
	docs := samples(t)
	got, _ := all(t, `{"from":"movies","filter":{"US Gross":{"$gte":300000000},"/Major Genre":{"$in":["Adventure","Action"]}},"limit":7}`)
	sameIDs(t, "blockbusters", got, expected(docs, "movies", func(d sampleDocument) bool {
		gross, _ := d.at("US Gross").(float64)
		return gross >= 300_000_000 && (d.at("Major Genre") == "Adventure" || d.at("Major Genre") == "Action")
	}))
	got, _ = all(t, `{"from":"movies","filter":{"Title":{"$gte":0}},"limit":1000}`)
	sameIDs(t, "titles that are numbers", got, expected(docs, "movies", func(d sampleDocument) bool {
		_, number := d.at("Title").(float64)
		return number
	}))
	counts := map[string]int{}
	missing := 0
	for _, d := range docs {
		if !d.in("movies") {
			continue
		}
		if rating, ok := d.at("MPAA Rating").(string); ok {
			counts[rating]++
		} else {
			missing++
		}
	}
	a := query(t, `{"from":"movies","limit":0,"aggregate":{"ratings":{"group":["MPAA Rating"],"missing":"null","metrics":{"movies":{"count":true},"worst":{"min":"IMDB Rating"},"titles":{"max":"Title"}}}}}`)
	groups := a.JSON("aggregates", "ratings", "groups").([]any)
	if len(groups) != len(counts)+1 {
		t.Fatalf("%s", a)
	}
	for i, g := range groups {
		key, n := g.(map[string]any)["key"].([]any)[0], fmt.Sprint(g.(map[string]any)["movies"])
		rating, isText := key.(string)
		if i == 0 && (key != nil || n != fmt.Sprint(missing)) || i > 0 && (!isText || n != fmt.Sprint(counts[rating])) {
			t.Errorf("%v: %s movies", key, n)
		}
	}
}

// A deep page: what stands far down is reached page by page, each document
// seen exactly once, and the last ones are those that the order ends with.
func TestExampleADeepPage(t *testing.T) {
	docs := samples(t)
	got, pages := all(t, `{"from":"movies","sort":[{"IMDB Votes":"desc"}],"fields":["Title"],"limit":300}`)
	movies := slices.DeleteFunc(slices.Clone(docs), func(d sampleDocument) bool { return !d.in("movies") })
	slices.SortFunc(movies, func(a, b sampleDocument) int {
		x, ok := a.at("IMDB Votes").(float64)
		y, ok2 := b.at("IMDB Votes").(float64)
		switch {
		case ok && ok2 && x != y:
			return int(y) - int(x)
		case ok != ok2 && ok: // descending: what is missing comes last
			return -1
		case ok != ok2:
			return 1
		}
		return strings.Compare(a.ID, b.ID)
	})
	want := make([]string, len(movies))
	for i, m := range movies {
		want[i] = m.ID
	}
	if len(want) != 3201 || !slices.Equal(got, want) {
		t.Errorf("%d of %d in another order", len(got), len(want))
	}
	if len(pages) != 11 || len(pages[10].ids()) != 201 {
		t.Errorf("%d pages", len(pages))
	}
}
