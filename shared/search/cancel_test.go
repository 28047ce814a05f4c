package search_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// TestOpenSearchStopsWhenNobodyWaits cancels a search that has a hundred parts
// while OpenSearch is at the first of them. OpenSearch gives it up then: most of
// the parts are never done.
func TestOpenSearchStopsWhenNobodyWaits(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	var docs []doc.Document
	for i := range 2000 {
		docs = append(docs, document(t, fmt.Sprintf("slow/%04d", i), fmt.Sprintf(`{"a":%d,"b":"x%d","c":[%d,"y%d"]}`, i, i*7%2000, i%13, i%101)))
	}
	index(t, c, g, docs...)
	const parts = 100
	path := func(s string) value.Path { return value.PathOf(s) }
	r := search.Request{From: sourcesOf("slow")}
	for range parts {
		r.Aggregate = append(r.Aggregate, search.Aggregation{
			Group: []search.GroupBy{{Field: filter.Field{Path: path("c")}}},
			Metrics: []search.Metric{
				{Kind: search.Cardinality, Path: path("b")}, {Kind: search.Percentiles, Path: path("a"), Percents: []json.Number{"50"}},
			},
			Order: -1, Limit: 1,
		})
	}
	o := observer{t: t, url: enginetest.OpenSearch(t), index: c.IndexName(g)}
	before := o.queries()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := c.Search(ctx, r)
		answered <- err
	}()
	var task string
	for task == "" {
		select {
		case err := <-answered:
			t.Fatalf("the search was over before it was seen: %v", err)
		case <-time.After(5 * time.Millisecond):
			task = o.parent()
		}
	}
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("answered %v", err)
	}
	for o.runs(task) {
		if t.Context().Err() != nil {
			t.Fatal("the search goes on")
		}
		time.Sleep(20 * time.Millisecond)
	}
	done := o.queries() - before
	t.Logf("OpenSearch did %d of %d parts", done, parts)
	if done > parts/2 {
		t.Error("it went on without anybody waiting")
	}
}

// observer looks at what OpenSearch does in an index.
type observer struct {
	t          *testing.T
	url, index string
}

func (o observer) get(path string, into any) (status int) {
	o.t.Helper()
	req, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, o.url+path, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode == http.StatusOK {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		o.t.Fatalf("%s: %d %s: %v", path, res.StatusCode, body, err)
	}
	return res.StatusCode
}

// queries is how many searches in the index were answered.
func (o observer) queries() int {
	var told struct {
		All struct {
			Total struct {
				Search struct {
					Queries int `json:"query_total"`
				} `json:"search"`
			} `json:"total"`
		} `json:"_all"`
	}
	o.get("/"+o.index+"/_stats/search", &told)
	return told.All.Total.Search.Queries
}

// parent is the task of which a search in the index is a part; "" where none
// runs.
func (o observer) parent() string {
	var told struct {
		Nodes map[string]struct {
			Tasks map[string]struct {
				Action      string `json:"action"`
				Description string `json:"description"`
				Parent      string `json:"parent_task_id"`
			} `json:"tasks"`
		} `json:"nodes"`
	}
	o.get("/_tasks?actions=indices:data/read/search&detailed=true", &told)
	for _, node := range told.Nodes {
		for _, task := range node.Tasks {
			if strings.Contains(task.Description, o.index) && task.Parent != "" {
				return task.Parent
			}
		}
	}
	return ""
}

// runs reports whether a task goes on.
func (o observer) runs(task string) bool {
	var told struct {
		Completed bool `json:"completed"`
	}
	return o.get("/_tasks/"+task, &told) == http.StatusOK && !told.Completed
}
