package lambdahost_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/httpapi"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/local/sample"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// plainWorld is the rest of the world of a query that waits for nothing.
type plainWorld struct{}

func (plainWorld) Definition(_ context.Context, c doc.Collection) (collection.Definition, error) {
	return collection.Definition{Name: c}, nil
}

func (w plainWorld) CurrentDefinition(ctx context.Context, c doc.Collection) (collection.Definition, error) {
	return w.Definition(ctx, c)
}

func (plainWorld) Generations(context.Context, collection.Family) ([]collection.Generation, error) {
	return []collection.Generation{collection.First(collection.Definition{}, search.Projector)}, nil
}

func (plainWorld) Staleness(context.Context, []doc.Collection, freshness.Waited) freshness.Staleness {
	return freshness.Staleness{Stale: true, Notice: "It is not known how current this is."}
}

// recorder keeps the latest request to OpenSearch and how long its answer took,
// from the sending to the last byte.
type recorder struct {
	url, media string
	body       []byte
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.url, r.media, r.body = req.URL.String(), req.Header.Get("Content-Type"), body
	req.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(req)
}

// BenchmarkQueryAgainstRaw sends what a query for a page of 25 orders is
// compiled to, raw and through the handler, in turn, and tells the ratio of the
// medians: what the handler adds to OpenSearch's own time.
//
//	go test ./shared/lambdahost -run '^$' -bench QueryAgainstRaw -benchtime 1000x
func BenchmarkQueryAgainstRaw(b *testing.B) {
	url := enginetest.OpenSearch(b)
	name := make([]byte, 6)
	_, _ = rand.Read(name)
	prefix := "holdfast-bench-" + hex.EncodeToString(name)
	recorded := &recorder{}
	client, err := search.NewClient(search.Options{URL: url, Prefix: prefix, Transport: recorded})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodDelete, url+"/"+prefix+"-*", nil)
		if err == nil {
			var res *http.Response
			if res, err = http.DefaultClient.Do(req); err == nil {
				err = res.Body.Close()
			}
		}
		if err != nil {
			b.Error(err)
		}
	})
	importNorthwind(b, client)
	h := httpapi.Query(httpapi.QueryOptions{Search: client, Reporter: plainWorld{}, Definitions: plainWorld{}})
	request := &httpapi.Request{
		Method: http.MethodPost, Path: "/query", ID: "r", Header: http.Header{"Content-Type": {"application/json"}},
		Body: []byte(`{"from":"customers/orders","filter":{"freight":{"$gte":20},"shipAddress.country":{"$in":["Germany","USA","France"]}},"sort":[{"orderDate":"desc"}]}`),
	}
	cooked := func() time.Duration {
		begun := time.Now()
		res := h.Serve(b.Context(), request)
		took := time.Since(begun)
		if res.Status != http.StatusOK || bytes.Count(res.Body, []byte(`"data":`)) != 25 {
			b.Fatalf("%d %.300s", res.Status, res.Body)
		}
		return took
	}
	raw := func() time.Duration {
		begun := time.Now()
		res, err := http.Post(recorded.url, recorded.media, bytes.NewReader(recorded.body))
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		took := time.Since(begun)
		if err != nil || res.StatusCode != http.StatusOK || bytes.Count(text, []byte(`"$raw"`)) < 25 {
			b.Fatalf("%v %d %.300s", err, res.StatusCode, text)
		}
		return took
	}
	for range 100 { // warm
		cooked()
		raw()
	}
	var raws, cookeds []time.Duration
	b.ResetTimer()
	for i := range b.N {
		// Each goes first as often as the other.
		if i%2 == 0 {
			raws, cookeds = append(raws, raw()), append(cookeds, cooked())
			continue
		}
		cookeds, raws = append(cookeds, cooked()), append(raws, raw())
	}
	b.StopTimer()
	b.ReportMetric(float64(median(raws).Microseconds()), "raw-µs")
	b.ReportMetric(float64(median(cookeds).Microseconds()), "handler-µs")
	b.ReportMetric(float64(median(cookeds))/float64(median(raws)), "ratio")
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}

func importNorthwind(b *testing.B, client *search.Client) {
	b.Helper()
	g := collection.First(collection.Definition{}, search.Projector)
	if err := client.Ensure(b.Context(), g); err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	var ops []search.Operation
	for line := range bytes.Lines(sample.Northwind()) {
		var d struct {
			ID   doc.ID          `json:"id"`
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(line, &d); err != nil {
			b.Fatal(err)
		}
		data, err := value.DecodeDocument(d.Data)
		if err != nil {
			b.Fatal(err)
		}
		full := doc.Document{ID: d.ID, Version: doc.VersionAt(now), CreatedAt: now, UpdatedAt: now, Data: data}
		ops = append(ops, search.Operation{ID: d.ID, Version: full.Version, Generation: g, Source: search.Project(full, g).Source})
	}
	outcomes, err := client.Write(b.Context(), ops)
	if err != nil {
		b.Fatal(err)
	}
	for i, o := range outcomes {
		if o.Kind != search.Applied {
			b.Fatal(fmt.Errorf("document %s: %s", ops[i].ID, o.Reason))
		}
	}
	if err := client.Refresh(b.Context(), []collection.Generation{g}); err != nil {
		b.Fatal(err)
	}
}
