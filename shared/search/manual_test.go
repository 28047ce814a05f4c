package search_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
	"time"
	"net/http"
	"io"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

func TestManual(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"northwind", "movies", "flights"} {
		f, _ := os.Open("/work/shared/data/" + name + ".ndjson")
		sc := bufio.NewScanner(f)
		sc.Buffer(nil, 1<<20)
		var ops []search.Operation
		var project time.Duration
		raw, src, partial := 0, 0, 0
		kinds := map[search.OutcomeKind]int{}
		start := time.Now()
		var write time.Duration
		flush := func() {
			t0 := time.Now()
			out, err := c.Write(t.Context(), ops)
			write += time.Since(t0)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range out {
				kinds[o.Kind]++
				if o.Kind != search.Applied { t.Log(o) }
			}
			ops = nil
		}
		for sc.Scan() {
			var line struct {
				ID   string
				Data json.RawMessage
			}
			json.Unmarshal(sc.Bytes(), &line)
			d := document(t, line.ID, string(line.Data))
			raw += len(line.Data)
			t0 := time.Now()
			p := search.Project(d, g)
			project += time.Since(t0)
			src += len(p.Source)
			partial += len(p.Partial)
			ops = append(ops, search.Operation{ID: d.ID, Version: d.Version, Generation: g, Source: p.Source})
			if len(ops) == 1000 {
				flush()
			}
		}
		flush()
		n := 0
		for _, k := range kinds {
			n += k
		}
		t.Logf("%s: %d docs %v, raw %d, source %d, partial %d, project %v, write %v total %v = %.0f docs/s", name, n, kinds, raw, src, partial, project, write, time.Since(start), float64(n)/write.Seconds())
	}
	c.Refresh(t.Context(), []collection.Generation{g})
	known, _ := c.MappedFields(t.Context(), g)
	t.Logf("mapped leaves %d", len(known))
	for _, p := range []string{"/_mapping", "/_stats/store,docs"} {
		res, _ := http.Get(os.Getenv("HOLDFAST_TEST_OPENSEARCH") + "/" + c.IndexName(g) + p)
		b, _ := io.ReadAll(res.Body)
		t.Logf("%s %d bytes %.200s", p, len(b), b)
	}
	path := func(s string) filter.Field { p, _ := value.ParsePath(s); return filter.Field{Path: p} }
	for _, q := range []search.Request{
		{From: sourcesOf("flights"), Limit: 25, Count: true},
		{From: sourcesOf("flights"), Limit: 1000},
		{From: sourcesOf("flights"), Limit: 25, Count: true, Sort: []search.SortKey{{Path: path("delay").Path, Desc: true}}},
		{From: sourcesOf("flights"), Limit: 25, Count: true, Filter: filter.Compare{Field: path("delay"), Op: filter.Gt, Value: json.Number("100")}},
		{From: sourcesOf("movies"), Limit: 25, Count: true, Filter: filter.Compare{Field: path("Title"), Op: filter.Eq, Value: json.Number("1776")}},
		{From: sourcesOf("customers/orders"), Limit: 25, Count: true, Filter: filter.Compare{Field: path("shipAddress.country"), Op: filter.Eq, Value: "France"}},
	} {
		for range 2 {
			t0 := time.Now()
			r, err := c.Search(t.Context(), q)
			t.Log(time.Since(t0), len(r.Documents), r.Count, r.Examined, r.Next != "", err)
		}
	}
	_ = doc.ID("")
}
