package repair_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/pipeline"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

const (
	margin = time.Second
	settle = 300 * time.Millisecond
)

// rig is a table and an index on the real engines with a queue between them that
// the test empties itself. No stream feeds it: what a write signals is up to the
// test.
type rig struct {
	t      *testing.T
	client *dynamodb.Client
	tables store.Options
	url    string // of the index
	prefix string
	store  *store.Store
	index  *search.Client
	queue  *heldQueue
}

// heldQueue keeps messages until somebody takes them.
type heldQueue struct {
	messages []pipeline.Message
	sent     int
	signals  map[doc.ID]int // how often each was signalled
	losing   bool           // messages do not arrive, but for those of canaries
}

func (q *heldQueue) Send(_ context.Context, out []pipeline.Outgoing) []error {
	for _, o := range out {
		q.sent++
		signals, _, _ := pipeline.Unpack(o.Body)
		lost := q.losing
		for _, s := range signals {
			q.signals[s.ID]++
			lost = lost && s.ID[0] != doc.SystemMark
		}
		if lost {
			continue
		}
		q.messages = append(q.messages, pipeline.Message{ID: strconv.Itoa(q.sent), Body: o.Body})
	}
	return nil
}

func (q *heldQueue) Depth(context.Context) (int, error) { return len(q.messages), nil }

// signalling is a table with a stream for canaries.
type signalling struct {
	*store.Store
	r *rig
}

func (s signalling) PutCanary(ctx context.Context, n int) (doc.Written, error) {
	w, err := s.Store.PutCanary(ctx, n)
	if err == nil {
		s.r.signal(w)
	}
	return w, err
}

func newRig(t *testing.T) *rig {
	t.Helper()
	db, url := enginetest.DynamoDB(t), enginetest.OpenSearch(t)
	name := "repair" + strings.ToLower(rand.Text()[:12])
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(db), Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	for _, in := range store.Schema(name+"-documents", name+"-state") {
		in.StreamSpecification = nil
		if _, err := client.CreateTable(t.Context(), &in); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: in.TableName})
		})
	}
	index, err := search.NewClient(search.Options{URL: url, Prefix: name})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		t: t, client: client, url: url, prefix: name, index: index,
		tables: store.Options{Client: client, Documents: name + "-documents", State: name + "-state", FeedMargin: 45 * time.Second},
		queue:  &heldQueue{signals: map[doc.ID]int{}},
	}
	r.store = store.New(r.tables)
	t.Cleanup(func() { r.request(http.MethodDelete, "/"+name+"-*", "") })
	return r
}

// request asks the index directly, as somebody else would.
func (r *rig) request(method, path, body string) string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode/100 != 2 {
		r.t.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
	}
	return string(text)
}

func (r *rig) repair(change ...func(*repair.Options)) *repair.Repair {
	o := repair.Options{
		Table: signalling{r.store, r}, Index: r.index, State: r.store.State(), Queue: r.queue,
		Margin: margin, Settle: settle, Patience: 300 * time.Millisecond, Budget: 20 * time.Second,
		Sleep: func(_ context.Context, d time.Duration) error {
			r.drain() // others work while it sleeps
			time.Sleep(min(d, 20*time.Millisecond))
			return nil
		},
	}
	for _, c := range change {
		c(&o)
	}
	return repair.New(o)
}

func (r *rig) run(mode repair.Mode, change ...func(*repair.Options)) repair.Report {
	r.t.Helper()
	report, held, err := r.repair(change...).Run(r.t.Context(), mode)
	if err != nil || !held {
		r.t.Fatalf("held %v: %v", held, err)
	}
	return report
}

// drain lets an indexer that knows nothing yet take everything that is queued,
// and once what comes back of that.
func (r *rig) drain() {
	r.t.Helper()
	for most := 2*len(r.queue.messages) + 10; most > 0 && len(r.queue.messages) > 0; most-- {
		batch := r.queue.messages[:min(len(r.queue.messages), 10)]
		r.queue.messages = r.queue.messages[len(batch):]
		indexer := pipeline.NewIndexer(pipeline.IndexerOptions{
			Table: r.store, Index: r.index, Ledger: r.store.State(), Queue: r.queue,
			Generations: pipeline.NewGenerations(store.NewState(r.client, r.tables.State, nil), r.index, nil),
		})
		if failed, err := indexer.Handle(r.t.Context(), batch); err != nil || len(failed) > 0 {
			r.t.Fatalf("%v %v", failed, err)
		}
	}
}

// put writes a document without telling anybody.
func (r *rig) put(id doc.ID, n int) doc.Written {
	r.t.Helper()
	w, err := r.store.Put(r.t.Context(), id, map[string]any{"n": json.Number(strconv.Itoa(n))}, doc.Condition{})
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

// signal tells the indexer about writes.
func (r *rig) signal(written ...doc.Written) {
	r.t.Helper()
	var signals []doc.Signal
	for _, w := range written {
		signals = append(signals, doc.Signal{ID: w.ID, Version: w.Version})
	}
	packed, err := pipeline.Pack(signals, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range packed {
		r.queue.Send(r.t.Context(), []pipeline.Outgoing{{Body: p.Body}})
	}
}

// fill puts documents and sees them indexed.
func (r *rig) fill(c doc.Collection, n int) {
	r.t.Helper()
	var written []doc.Written
	for i := range n {
		written = append(written, r.put(doc.ID(fmt.Sprintf("%s/%d", c, i)), i))
	}
	r.signal(written...)
	r.drain()
}

// proven is what is proven of a generation.
func (r *rig) proven(f collection.Family, number int) (store.Proof, bool) {
	r.t.Helper()
	proofs, err := r.store.State().Proofs(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range proofs {
		if p.Family == f && p.Generation == number && !p.Through.IsZero() {
			return p, true
		}
	}
	return store.Proof{}, false
}

// generation is the one with a number.
func (r *rig) generation(f collection.Family, number int) collection.Generation {
	r.t.Helper()
	all, err := r.store.State().Generations(r.t.Context(), f)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, g := range all {
		if g.Number == number {
			return g
		}
	}
	r.t.Fatalf("family %s has no generation %d", f, number)
	return collection.Generation{}
}

// found are the ids that a query of the collection finds, in the index that
// queries read.
func (r *rig) found(c doc.Collection) map[doc.ID]doc.Version {
	r.t.Helper()
	d, err := r.store.State().CurrentDefinition(r.t.Context(), c)
	if err != nil {
		r.t.Fatal(err)
	}
	all, err := r.store.State().Generations(r.t.Context(), d.Reads())
	if err != nil {
		r.t.Fatal(err)
	}
	g, ok := collection.Read(all)
	if !ok {
		return nil
	}
	if err := r.index.Refresh(r.t.Context(), []collection.Generation{g}); err != nil {
		r.t.Fatal(err)
	}
	result, err := r.index.Search(r.t.Context(), search.Request{From: []search.Source{{Collection: c, Generation: &g}}, Filter: filter.And{}, Limit: 1000})
	if err != nil {
		r.t.Fatal(err)
	}
	found := map[doc.ID]doc.Version{}
	for _, d := range result.Documents {
		found[d.ID] = d.Version
	}
	return found
}

// converges runs repair and the indexer until a condition holds.
func (r *rig) converges(until func() bool, change ...func(*repair.Options)) {
	r.t.Helper()
	var report repair.Report
	for range 40 {
		report = r.run(repair.Prove, change...)
		r.drain()
		if until() {
			return
		}
		time.Sleep(settle / 2)
	}
	text, _ := json.MarshalIndent(report, "", " ")
	var state json.RawMessage
	if record, ok, err := r.store.State().Job(r.t.Context(), "repair/state"); ok && err == nil {
		state = record.Body
	}
	r.t.Fatalf("repair does not get there: %s\n%s", text, state)
}

// later lets repair believe that time has passed.
func later(d time.Duration) func(*repair.Options) {
	return func(o *repair.Options) { o.Now = func() time.Time { return time.Now().Add(d) } }
}
