package pipeline_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/local/faultproxy"
	"holdfast/shared/obs"
	"holdfast/shared/pipeline"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

// rig is an indexer between a real table and a real index, with a proxy before
// the index and a queue that is looked into.
type rig struct {
	t         *testing.T
	store     *store.Store
	state     *store.State
	direct    *search.Client // beside the proxy
	prefix    string
	direction string // URL of OpenSearch
	proxy     *faultproxy.Proxy
	queue     *keptQueue
	indexer   *pipeline.Indexer
	clock     *doc.Clock
}

// keptQueue keeps what is sent.
type keptQueue struct{ sent []pipeline.Outgoing }

func (q *keptQueue) Send(_ context.Context, out []pipeline.Outgoing) []error {
	q.sent = append(q.sent, out...)
	return nil
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dynamo, opensearch := enginetest.DynamoDB(t), enginetest.OpenSearch(t)
	name := strings.ToLower(rand.Text()[:12])
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(dynamo), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	for _, in := range store.Schema("documents-"+name, "state-"+name) {
		in.StreamSpecification = nil // nobody reads it here
		if _, err := client.CreateTable(t.Context(), &in); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: in.TableName})
		})
	}
	r := &rig{t: t, prefix: "pipe" + name, direction: opensearch, clock: doc.NewClock(nil), queue: &keptQueue{}}
	r.store = store.New(store.Options{Client: client, Documents: "documents-" + name, State: "state-" + name, Clock: r.clock})
	r.state = r.store.State()
	r.proxy = faultproxy.Start(opensearch)
	t.Cleanup(r.proxy.Close)
	t.Cleanup(func() { r.call(http.MethodDelete, "/"+r.prefix+"-*", "") })
	r.direct = r.client(opensearch, 0)
	r.start(r.client(r.proxy.URL(), 0))
	return r
}

func (r *rig) client(url string, bulkBytes int) *search.Client {
	c, err := search.NewClient(search.Options{URL: url, Prefix: r.prefix, BulkBytes: bulkBytes, Log: obs.Discard()})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// start makes a fresh indexer, as a new process has it.
func (r *rig) start(index *search.Client) {
	r.indexer = pipeline.NewIndexer(pipeline.IndexerOptions{
		Table: r.store, Index: index, Ledger: r.state, Queue: r.queue,
		Generations: pipeline.NewGenerations(r.state, index, nil),
	})
}

// call speaks to OpenSearch directly.
func (r *rig) call(method, path, body string) string {
	req, err := http.NewRequestWithContext(context.Background(), method, r.direction+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func (r *rig) put(id doc.ID, data map[string]any) doc.Signal {
	r.t.Helper()
	w, err := r.store.Put(r.t.Context(), id, data, doc.Condition{})
	if err != nil {
		r.t.Fatal(err)
	}
	return doc.Signal{ID: id, Version: w.Version}
}

func (r *rig) delete(id doc.ID) doc.Signal {
	r.t.Helper()
	w, err := r.store.Delete(r.t.Context(), id, doc.Condition{})
	if err != nil {
		r.t.Fatal(err)
	}
	return doc.Signal{ID: id, Version: w.Version}
}

// index runs an invocation with a deadline.
func (r *rig) index(timeout time.Duration, bodies ...string) pipeline.Report {
	r.t.Helper()
	var messages []pipeline.Message
	for i, body := range bodies {
		messages = append(messages, pipeline.Message{ID: fmt.Sprint(i), Body: body})
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), timeout)
	defer cancel()
	r.queue.sent = nil
	report, failed := r.indexer.Index(ctx, messages)
	checkReport(r.t, report)
	if len(failed) > 0 {
		r.t.Fatalf("not acknowledged: %v, %+v", failed, report)
	}
	return report
}

func (r *rig) bodies(signals ...doc.Signal) []string {
	packed, err := pipeline.Pack(signals, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	var bodies []string
	for _, p := range packed {
		bodies = append(bodies, p.Body)
	}
	return bodies
}

// sent is what went back, and with how many tries.
func (r *rig) sent() (signals []doc.Signal, tries int, bodies []string) {
	r.t.Helper()
	for _, m := range r.queue.sent {
		s, n, err := pipeline.Unpack(m.Body)
		if err != nil {
			r.t.Fatal(err)
		}
		if m.Delay <= 0 {
			r.t.Errorf("sent back without a delay")
		}
		signals, tries, bodies = append(signals, s...), max(tries, n), append(bodies, m.Body)
	}
	return signals, tries, bodies
}

func (r *rig) versions(signals []doc.Signal) map[doc.ID]doc.Version {
	r.t.Helper()
	var ids []doc.ID
	for _, s := range signals {
		ids = append(ids, s.ID)
	}
	generations, err := r.state.Generations(r.t.Context(), collection.SharedFamily)
	if err != nil || len(generations) != 1 {
		r.t.Fatalf("%v %v", generations, err)
	}
	versions, err := r.direct.Versions(r.t.Context(), []search.VersionOf{{Generation: generations[0], IDs: ids}})
	if err != nil {
		r.t.Fatal(err)
	}
	return versions
}

func (r *rig) quarantined() int {
	r.t.Helper()
	n, err := r.state.CountQuarantined(r.t.Context(), []doc.Collection{"users"})
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// Failures of the environment, each longer than any number of attempts: nothing
// is lost, nothing is quarantined, and when it is over everything is there.
func TestEnvironmentFailuresAreNoAttempts(t *testing.T) {
	r := newRig(t)
	signals := []doc.Signal{
		r.put("users/1", map[string]any{"a": json.Number("1")}),
		r.put("users/2", map[string]any{"a": "text"}),
		r.put("users/3", map[string]any{}),
	}
	if report := r.index(time.Minute, r.bodies(signals...)...); report.Applied != 3 {
		t.Fatalf("%+v", report)
	}
	for _, c := range []struct {
		name  string
		fault faultproxy.Fault
	}{
		{"429", faultproxy.Answer(429, `{"error":{"type":"circuit_breaking_exception","reason":"too much"},"status":429}`)},
		{"503", faultproxy.Answer(503, `{"error":{"type":"cluster_manager_not_discovered_exception"},"status":503}`)},
		{"502 of something in between", faultproxy.Answer(502, `<html>Bad gateway</html>`)},
		{"403 block", faultproxy.Answer(403, `{"error":{"type":"cluster_block_exception","reason":"blocked by: [FORBIDDEN/10/cluster create-index blocked (api)]"},"status":403}`)},
		{"no connection", faultproxy.Drop()},
		{"answer lost", faultproxy.LoseAnswer(0)},
		{"answer cut", faultproxy.LoseAnswer(40)},
		{"disk full", faultproxy.RejectItems(403, "cluster_block_exception", func(string) bool { return true })},
		{"queue full", faultproxy.RejectItems(429, "opensearch_rejected_execution_exception", func(string) bool { return true })},
		{"no shards left", faultproxy.RejectItems(400, "validation_exception", func(string) bool { return true })},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.t = t
			var changed []doc.Signal
			for _, s := range signals {
				changed = append(changed, r.put(s.ID, map[string]any{"a": c.name}))
			}
			bodies := r.bodies(changed...)
			r.proxy.Set(faultproxy.Rule{Path: "/_bulk", Fault: c.fault})
			for try := 1; try <= 12; try++ { // far more often than a queue delivers a message
				report := r.index(time.Minute, bodies...)
				back, tries, again := r.sent()
				if report.Requeued != 3 || len(back) != 3 || tries != try {
					t.Fatalf("%+v, sent back %v with %d tries", report, back, tries)
				}
				bodies = again
			}
			if n := r.quarantined(); n != 0 {
				t.Errorf("%d documents in quarantine", n)
			}
			r.proxy.Set()
			if report := r.index(time.Minute, bodies...); report.Applied != 3 {
				t.Errorf("%+v", report)
			}
			versions := r.versions(changed)
			for _, s := range changed {
				if versions[s.ID] != s.Version {
					t.Errorf("%s is at %d, not %d", s.ID, versions[s.ID], s.Version)
				}
			}
		})
	}
}

// An index that does not answer in time costs one request, and the signals go
// back before the function's own end.
func TestASlowIndexGoesBackInTime(t *testing.T) {
	r := newRig(t)
	var signals []doc.Signal
	for i := range 30 {
		signals = append(signals, r.put(doc.ID(fmt.Sprintf("users/%d", i)), map[string]any{}))
	}
	r.index(time.Minute, r.bodies(signals[0])...)
	r.proxy.Take()
	r.proxy.Set(faultproxy.Rule{Path: "/_bulk", Fault: faultproxy.Delay(time.Hour)})
	report := r.index(pipeline.DefaultMargin+500*time.Millisecond, r.bodies(signals...)...)
	if back, tries, _ := r.sent(); report.Requeued != 30 || len(back) != 30 || tries != 1 {
		t.Errorf("%+v, sent back %d with %d tries", report, len(back), tries)
	}
	if seen := r.proxy.Take(); len(seen) != 1 {
		t.Errorf("seen %+v", seen)
	}
}

// Only what failed goes back, and what the index has already counts as done.
func TestOnlyFailedIDsGoBack(t *testing.T) {
	r := newRig(t)
	var signals []doc.Signal
	for i := range 20 {
		signals = append(signals, r.put(doc.ID(fmt.Sprintf("users/%d", i)), map[string]any{}))
	}
	r.proxy.Set(faultproxy.Rule{Path: "/_bulk", Fault: faultproxy.RejectItems(429, "opensearch_rejected_execution_exception",
		func(id string) bool { return id == "users/7" || id == "users/13" })})
	report := r.index(time.Minute, r.bodies(signals...)...)
	back, _, _ := r.sent()
	if report.Applied != 18 || report.Requeued != 2 || fmt.Sprint(back) != fmt.Sprint([]doc.Signal{signals[7], signals[13]}) {
		t.Errorf("%+v, sent back %v", report, back)
	}
	// Nothing of a lost answer is lost, and what it did is not undone.
	r.proxy.Set(faultproxy.Rule{Path: "/_bulk", Fault: faultproxy.LoseAnswer(0)})
	r.index(time.Minute, r.bodies(back...)...)
	if v := r.versions(back); v["users/7"] != back[0].Version || v["users/13"] != back[1].Version {
		t.Errorf("the index has %v", v)
	}
}

// 409: news that is late and news that comes twice are done. An older state that
// a slow process still holds loses against a newer one and against a delete,
// also when the index has long forgotten deleted versions.
func TestLateNewsLoses(t *testing.T) {
	r := newRig(t)
	old := r.put("users/1", map[string]any{"state": "old"})
	slow, err := r.store.Load(t.Context(), "users/1") // somebody reads it, and sleeps
	if err != nil {
		t.Fatal(err)
	}
	if report := r.index(time.Minute, r.bodies(old, old)...); report.Applied != 1 || report.Merged != 1 {
		t.Fatalf("%+v", report)
	}
	r.call(http.MethodPut, "/"+r.prefix+"-*/_settings", `{"index":{"gc_deletes":"100ms"}}`)
	gone := r.delete("users/1")
	if report := r.index(time.Minute, r.bodies(gone)...); report.Applied != 1 {
		t.Fatalf("%+v", report)
	}
	time.Sleep(500 * time.Millisecond) // what OpenSearch remembers of deletes is collected
	r.call(http.MethodPost, "/"+r.prefix+"-*/_refresh", "")
	r.call(http.MethodPost, "/"+r.prefix+"-*/_flush?force=true", "")
	generations, err := r.state.Generations(t.Context(), collection.SharedFamily)
	if err != nil {
		t.Fatal(err)
	}
	late, err := r.direct.Write(t.Context(), []search.Operation{{
		ID: slow.ID, Version: slow.Version, Generation: generations[0], Source: search.Project(slow, generations[0]).Source,
	}})
	if err != nil || late[0].Kind != search.Stale {
		t.Fatalf("a late write is %v, %v", late[0], err)
	}
	// The same through the indexer, whose table is set back to the old state.
	r.start(r.client(r.proxy.URL(), 0))
	x := pipeline.NewIndexer(pipeline.IndexerOptions{
		Table: oldTable{slow}, Index: r.direct, Ledger: r.state, Queue: r.queue, Generations: pipeline.NewGenerations(r.state, r.direct, nil),
	})
	report, failed := x.Index(t.Context(), []pipeline.Message{{ID: "m", Body: r.bodies(old)[0]}})
	if report.Stale != 1 || len(failed) > 0 {
		t.Errorf("%+v", report)
	}
	if v := r.versions([]doc.Signal{gone}); v["users/1"] != gone.Version {
		t.Errorf("the index has %v, the delete was %d", v, gone.Version)
	}
}

// oldTable holds one document as it once was.
type oldTable struct{ d doc.Document }

func (o oldTable) Revisions(_ context.Context, _ []doc.ID, _ int, visit func([]doc.Document, []doc.ID) error) error {
	return visit([]doc.Document{o.d}, nil)
}

// A document that the index refuses is reduced and recorded, and its neighbours
// are not touched. Here the index is full: its mapping takes no new field.
func TestARefusedDocumentIsIndexedInPart(t *testing.T) {
	r := newRig(t)
	first := r.put("users/1", map[string]any{"known": "x"})
	r.index(time.Minute, r.bodies(first)...)
	mapping := r.call(http.MethodGet, "/"+r.prefix+"-*/_mapping", "")
	fields := bytes.Count([]byte(mapping), []byte(`"type"`))
	r.call(http.MethodPut, "/"+r.prefix+"-*/_settings", fmt.Sprintf(`{"index":{"mapping.total_fields.limit":%d}}`, fields))

	data := map[string]any{"known": "y"}
	for i := range 20 { // more than the count of fields may be off by
		data[fmt.Sprintf("newer%d", i)] = json.Number("1")
	}
	refused := r.put("users/2", data)
	good := r.put("users/3", map[string]any{"known": "y"})
	report := r.index(time.Minute, r.bodies(refused, good)...)
	if report.Partial != 1 || report.Applied != 1 {
		t.Fatalf("%+v", report)
	}
	entries, err := r.state.Quarantine(t.Context(), []doc.ID{"users/2", "users/3"})
	if err != nil || len(entries) != 1 || !entries["users/2"].Partial || entries["users/2"].Version != refused.Version {
		t.Errorf("%+v %v", entries, err)
	}
	if reason := entries["users/2"].Reason; reason == "" || strings.Contains(reason, "newer") {
		t.Errorf("the reason is %q", reason)
	}
	if v := r.versions([]doc.Signal{refused, good}); v["users/2"] != refused.Version || v["users/3"] != good.Version {
		t.Errorf("the index has %v", v)
	}
	r.call(http.MethodPost, "/"+r.prefix+"-*/_refresh", "")
	found := r.call(http.MethodPost, "/"+r.prefix+"-*/_search?filter_path=hits.hits._id", `{"query":{"term":{"doc.known.$str":"y"}}}`)
	if !strings.Contains(found, "users/2") || !strings.Contains(found, "users/3") {
		t.Errorf("by its other field is found: %s", found)
	}

	// The next version is good again, and the entry goes.
	better := r.put("users/2", map[string]any{"known": "z"})
	if report := r.index(time.Minute, r.bodies(better)...); report.Applied != 1 {
		t.Errorf("%+v", report)
	}
	if n := r.quarantined(); n != 0 {
		t.Errorf("%d documents in quarantine", n)
	}
}

// The index is deleted under a running indexer: it is created again, with its
// mapping, and not by the cluster's own idea of one.
func TestALostIndexIsCreatedAgain(t *testing.T) {
	r := newRig(t)
	s := r.put("users/1", map[string]any{"a": "x"})
	r.index(time.Minute, r.bodies(s)...)
	r.call(http.MethodDelete, "/"+r.prefix+"-*", "")
	if report := r.index(time.Minute, r.bodies(s)...); report.Applied != 1 {
		t.Fatalf("%+v", report)
	}
	if mapping := r.call(http.MethodGet, "/"+r.prefix+"-*/_mapping", ""); !strings.Contains(mapping, `"strict"`) {
		t.Errorf("its mapping is %.300s", mapping)
	}
}

// Thirty documents of 390 KB are more than one request takes; none of the
// requests is larger than it may be.
func TestRequestsAreCutByBytes(t *testing.T) {
	r := newRig(t)
	var signals []doc.Signal
	for i := range 30 {
		text := strings.Repeat(fmt.Sprintf("line %d of a long text. ", i), 390<<10/24)
		signals = append(signals, r.put(doc.ID(fmt.Sprintf("users/%d", i)), map[string]any{"text": text[:min(len(text), 390<<10)]}))
	}
	r.proxy.Take()
	report := r.index(2*time.Minute, r.bodies(signals...)...)
	if report.Applied != 30 {
		t.Fatalf("%+v", report)
	}
	requests, largest := 0, 0
	for _, s := range r.proxy.Take() {
		if strings.HasSuffix(s.Path, "/_bulk") {
			requests, largest = requests+1, max(largest, s.Bytes)
		}
	}
	if requests < 2 || largest > search.DefaultBulkBytes {
		t.Errorf("%d requests, the largest of %d bytes", requests, largest)
	}
	t.Logf("%d requests, the largest of %d KB", requests, largest>>10)
	// A smaller domain refuses what is above its limit: the request is halved.
	r.start(r.client(r.proxy.URL(), 0))
	var changed []doc.Signal
	for i := range 4 {
		changed = append(changed, r.put(doc.ID(fmt.Sprintf("users/%d", i)), map[string]any{"text": strings.Repeat("y", 390<<10)}))
	}
	r.proxy.Set(faultproxy.Rule{Path: "/_bulk", Times: 1, Fault: faultproxy.Answer(413, `{"Message":"Request size exceeded"}`)})
	if report := r.index(2*time.Minute, r.bodies(changed...)...); report.Applied != 4 {
		t.Errorf("%+v", report)
	}
	if seen := r.proxy.Take(); len(seen) < 3 {
		t.Errorf("seen %+v", seen)
	}
}
