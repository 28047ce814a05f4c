package search_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/shared/doc"
	"holdfast/shared/search"
)

// bulkServer answers bulk requests: respond is given the number of the request
// and its action lines.
func bulkServer(t *testing.T, bulkBytes int, respond func(w http.ResponseWriter, request int, ids []string, bytes int)) *search.Client {
	t.Helper()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var ids []string
		for i, line := range bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n")) {
			if i%2 == 1 {
				continue
			}
			var action struct {
				Index struct {
					ID          string `json:"_id"`
					VersionType string `json:"version_type"`
				} `json:"index"`
			}
			if err := json.Unmarshal(line, &action); err != nil || action.Index.VersionType != "external_gte" {
				t.Errorf("action %s", line)
			}
			ids = append(ids, action.Index.ID)
		}
		respond(w, int(requests.Add(1)), ids, len(body))
	}))
	t.Cleanup(server.Close)
	c, err := search.NewClient(search.Options{URL: server.URL, Prefix: "p", BulkBytes: bulkBytes})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func operations(n, bytes int) []search.Operation {
	ops := make([]search.Operation, n)
	for i := range ops {
		ops[i] = search.Operation{
			ID: doc.ID(fmt.Sprintf("c/%d", i)), Version: doc.Version(i + 1), Generation: sharedGeneration(),
			Source: []byte(`{"$raw":"` + strings.Repeat("x", bytes) + `"}`),
		}
	}
	return ops
}

func items(w io.Writer, item string, n int) {
	_, _ = fmt.Fprintf(w, `{"items":[%s]}`, strings.TrimSuffix(strings.Repeat(item+",", n), ","))
}

const applied = `{"index":{"status":200}}`

func kinds(outcomes []search.Outcome) []search.OutcomeKind {
	ks := make([]search.OutcomeKind, len(outcomes))
	for i, o := range outcomes {
		ks[i] = o.Kind
	}
	return ks
}

func mustWrite(t *testing.T, c *search.Client, ops []search.Operation) []search.Outcome {
	t.Helper()
	outcomes, err := c.Write(t.Context(), ops)
	if err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != len(ops) {
		t.Fatalf("%d outcomes", len(outcomes))
	}
	return outcomes
}

func TestBulkOutcomes(t *testing.T) {
	for _, c := range []struct {
		item string
		want search.Outcome
	}{
		{`{"index":{"status":201}}`, search.Outcome{Kind: search.Applied, Status: 201}},
		{`{"index":{"status":409,"error":{"type":"version_conflict_engine_exception"}}}`, search.Outcome{Kind: search.Stale, Status: 409}},
		{`{"index":{"status":400,"error":{"type":"mapper_parsing_exception","reason":"failed to parse field [doc.a.$num] of type [double] in document with id 'c/0'. Preview of field's value: 'secret'"}}}`,
			search.Outcome{Kind: search.Refused, Status: 400, Reason: "mapper_parsing_exception", Field: "doc.a.$num"}},
		{`{"index":{"status":400,"error":{"type":"illegal_argument_exception","reason":"Limit of total fields [10000] has been exceeded"}}}`,
			search.Outcome{Kind: search.Refused, Status: 400, Reason: "illegal_argument_exception: the index has its most fields"}},
		{`{"index":{"status":400,"error":{"type":"validation_exception","reason":"Validation Failed: 1: this action would add [2] total shards, but this cluster currently has [1000]/[1000] maximum shards open;"}}}`,
			search.Outcome{Kind: search.Environment, Status: 400, Reason: "opensearch could not write: validation_exception"}},
		{`{"index":{"status":400,"error":{"type":"index_closed_exception"}}}`, search.Outcome{Kind: search.Environment, Status: 400, Reason: "opensearch could not write: index_closed_exception"}},
		{`{"index":{"status":404,"error":{"type":"index_not_found_exception"}}}`, search.Outcome{Kind: search.Environment, Status: 404, Reason: "the index is missing", IndexMissing: true}},
		{`{"index":{"status":403,"error":{"type":"cluster_block_exception"}}}`, search.Outcome{Kind: search.Environment, Status: 403, Reason: "opensearch could not write: cluster_block_exception"}},
		{`{"index":{"status":429,"error":{"type":"rejected_execution_exception"}}}`, search.Outcome{Kind: search.Environment, Status: 429, Reason: "opensearch could not write: rejected_execution_exception"}},
		{`{"index":{"status":503,"error":{"type":"unavailable_shards_exception"}}}`, search.Outcome{Kind: search.Environment, Status: 503, Reason: "opensearch could not write: unavailable_shards_exception"}},
		{`{}`, search.Outcome{Kind: search.Environment, Reason: "the answer of opensearch did not tell"}},
	} {
		client := bulkServer(t, 0, func(w http.ResponseWriter, _ int, ids []string, _ int) { items(w, c.item, len(ids)) })
		for _, got := range mustWrite(t, client, operations(2, 10)) {
			if got != c.want {
				t.Errorf("%s\n got %+v\nwant %+v", c.item, got, c.want)
			}
		}
	}
}

func TestBulkIsCutByBytes(t *testing.T) {
	var sizes []int
	client := bulkServer(t, 8<<20, func(w http.ResponseWriter, _ int, ids []string, bytes int) {
		sizes = append(sizes, bytes)
		items(w, applied, len(ids))
	})
	for i, o := range mustWrite(t, client, operations(30, 390_000)) {
		if o.Kind != search.Applied {
			t.Fatal(i, o)
		}
	}
	if len(sizes) != 2 || slices.Max(sizes) > 8<<20 {
		t.Fatalf("requests of %v bytes", sizes)
	}
}

func TestBulkIsCutByCount(t *testing.T) {
	var counts []int
	client := bulkServer(t, 0, func(w http.ResponseWriter, _ int, ids []string, _ int) {
		counts = append(counts, len(ids))
		items(w, applied, len(ids))
	})
	mustWrite(t, client, operations(4100, 1))
	if !slices.Equal(counts, []int{2000, 2000, 100}) {
		t.Fatalf("requests of %v operations", counts)
	}
}

// A request that is too large is halved until it fits; the one document that
// never fits is refused, its neighbours are not.
func TestBulkTooLargeIsSplit(t *testing.T) {
	client := bulkServer(t, 0, func(w http.ResponseWriter, _ int, ids []string, bytes int) {
		if bytes > 2500 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		items(w, applied, len(ids))
	})
	ops := operations(9, 500)
	ops[4].Source = []byte(`{"$raw":"` + strings.Repeat("x", 4000) + `"}`)
	for i, o := range mustWrite(t, client, ops) {
		want := search.Applied
		if i == 4 {
			want = search.Refused
		}
		if o.Kind != want {
			t.Errorf("operation %d: %+v", i, o)
		}
	}
}

// A request that cannot be read at all is halved as well, so that the one
// operation at fault is found.
func TestBulkUnreadableIsSplit(t *testing.T) {
	client := bulkServer(t, 0, func(w http.ResponseWriter, _ int, ids []string, _ int) {
		if slices.Contains(ids, "c/2") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"type":"parse_exception","reason":"secret"},"status":400}`)
			return
		}
		items(w, applied, len(ids))
	})
	got := kinds(mustWrite(t, client, operations(5, 1)))
	if !slices.Equal(got, []search.OutcomeKind{search.Applied, search.Applied, search.Refused, search.Applied, search.Applied}) {
		t.Fatal(got)
	}
}

// What fails as a whole is the environment's fault, and so is all that would
// have come after it.
func TestBulkWholeFailures(t *testing.T) {
	for _, status := range []int{401, 403, 404, 408, 429, 500, 502, 503, 504} {
		sent := 0
		client := bulkServer(t, 1000, func(w http.ResponseWriter, request int, ids []string, _ int) {
			sent++
			if request == 2 {
				w.WriteHeader(status)
				return
			}
			items(w, applied, len(ids))
		})
		got := kinds(mustWrite(t, client, operations(4, 700)))
		want := []search.OutcomeKind{search.Applied, search.Environment, search.Environment, search.Environment}
		if !slices.Equal(got, want) || sent != 2 {
			t.Errorf("%d: %v after %d requests", status, got, sent)
		}
	}
}

func TestBulkShardLimitIsTheEnvironment(t *testing.T) {
	client := bulkServer(t, 0, func(w http.ResponseWriter, _ int, _ []string, _ int) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"type":"validation_exception","reason":"this action would add [1] total shards"},"status":400}`)
	})
	for _, o := range mustWrite(t, client, operations(2, 1)) {
		if o.Kind != search.Environment {
			t.Error(o)
		}
	}
}

// An answer that ends early tells about its beginning only.
func TestBulkGarbledAnswers(t *testing.T) {
	whole := `{"items":[` + applied + `,` + applied + `,` + applied + `]}`
	for cut := range len(whole) {
		client := bulkServer(t, 0, func(w http.ResponseWriter, _ int, _ []string, _ int) { _, _ = io.WriteString(w, whole[:cut]) })
		told := strings.Count(whole[:cut], `}}`)
		for i, o := range mustWrite(t, client, operations(3, 1)) {
			if want := i < told; (o.Kind == search.Applied) != want || !want && o.Kind != search.Environment {
				t.Fatalf("cut at %d: operation %d is %v", cut, i, o.Kind)
			}
		}
	}
	for _, text := range []string{"", "null", "[]", "<html>", `{"items":null}`, `{"items":{}}`, `{"items":[[]]}`, `{"items":[{"index":{"status":"x"}}]}`} {
		client := bulkServer(t, 0, func(w http.ResponseWriter, _ int, _ []string, _ int) { _, _ = io.WriteString(w, text) })
		for i, o := range mustWrite(t, client, operations(2, 1)) {
			if o.Kind != search.Environment {
				t.Errorf("%s: operation %d is %v", text, i, o.Kind)
			}
		}
	}
}

// brokenTransport fails every request, once it was received or before.
type brokenTransport struct {
	err   error
	calls int
}

func (b *brokenTransport) RoundTrip(*http.Request) (*http.Response, error) {
	b.calls++
	return nil, b.err
}

// A write is sent once, whatever happens.
func TestBulkIsSentOnce(t *testing.T) {
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, errors.New("connection refused"), context.DeadlineExceeded} {
		broken := &brokenTransport{err: err}
		client, newErr := search.NewClient(search.Options{URL: "http://127.0.0.1:1", Prefix: "p", Transport: broken})
		if newErr != nil {
			t.Fatal(newErr)
		}
		for _, o := range mustWrite(t, client, operations(3, 1)) {
			if o.Kind != search.Environment || o.Status != 0 {
				t.Errorf("%v: %+v", err, o)
			}
		}
		if broken.calls != 1 {
			t.Errorf("%v: sent %d times", err, broken.calls)
		}
	}
}

func TestReadsAreSentTwiceAtMost(t *testing.T) {
	broken := &brokenTransport{err: io.EOF}
	client, err := search.NewClient(search.Options{URL: "http://127.0.0.1:1", Prefix: "p", Transport: broken})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Search(t.Context(), search.Request{From: sourcesOf("a"), Limit: 1})
	if doc.KindOf(err) != doc.IndexUnavailable || broken.calls != 2 {
		t.Fatalf("%v after %d calls", err, broken.calls)
	}
}
