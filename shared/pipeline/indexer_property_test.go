package pipeline_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/pipeline"
	"holdfast/shared/search"
)

// Whatever fails on the way, no signal is lost: after every invocation each of
// them is settled, in a new message, or in a message that is not acknowledged.
// When the failures end, the index has everything, and the quarantine has
// exactly the documents that the index refuses.
func TestNothingIsLostInAnyEnvironment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		ids := make([]doc.ID, 12)
		for i := range ids {
			ids[i] = doc.ID(fmt.Sprintf("%s/%d", []string{"users", "orders", "invoices"}[i%3], i))
			if rapid.IntRange(0, 9).Draw(t, "gone") > 0 {
				w.table[ids[i]] = doc.Document{ID: ids[i], Version: doc.Version(100 + i), Deleted: i%5 == 4, Data: map[string]any{"a": "x"}}
			}
			if rapid.IntRange(0, 4).Draw(t, "refused") == 0 {
				w.refused[ids[i]] = search.Reduction(rapid.IntRange(1, int(search.EnvelopeOnly)+1).Draw(t, "below"))
			}
		}
		w.definitions["orders"] = collection.Definition{Index: collection.Own}
		if rapid.Bool().Draw(t, "two generations") {
			for n, state := range []collection.GenerationState{collection.Active, collection.Building} {
				g := collection.Generation{Family: "orders", Number: n + 1, Projector: search.Projector, State: state}
				w.generations["orders"] = append(w.generations["orders"], g)
			}
		}
		w.sliceOf = rapid.IntRange(1, 12).Draw(t, "slice")
		x := w.indexer(rapid.SampledFrom([]int{1, 300, 1 << 20}).Draw(t, "bytes"))

		queue := map[string]pipeline.Message{}
		add := func(body string) {
			id := fmt.Sprintf("m%d", len(queue)+int(w.now.Unix()))
			for queue[id].ID != "" {
				id += "'"
			}
			queue[id] = pipeline.Message{ID: id, Body: body}
		}
		for range rapid.IntRange(1, 5).Draw(t, "messages") {
			var signals []doc.Signal
			for _, id := range rapid.SliceOfN(rapid.SampledFrom(ids), 1, 8).Draw(t, "signals") {
				signals = append(signals, doc.Signal{ID: id, Version: doc.Version(rapid.IntRange(1, 120).Draw(t, "version"))})
			}
			packed, err := pipeline.Pack(signals, rapid.IntRange(0, 9).Draw(t, "tries"))
			if err != nil {
				t.Fatal(err)
			}
			add(packed[0].Body)
		}
		wanted := map[doc.ID]bool{}
		for _, m := range queue {
			signals, _, _ := pipeline.Unpack(m.Body)
			for _, s := range signals {
				wanted[s.ID] = true
			}
		}

		for round := range 20 {
			w.now = w.now.Add(time.Minute)
			clear(w.broken)
			w.environment = nil
			if round < 5 {
				for _, what := range []string{"table", "queue", "quarantine", "fields", "ensure", "generations", "definitions", "lag"} {
					w.broken[what] = rapid.IntRange(0, 5).Draw(t, what) == 0
				}
				w.environment = func(op search.Operation) (search.Outcome, bool) {
					switch rapid.IntRange(0, 9).Draw(t, "write") {
					case 0:
						return search.Outcome{Kind: search.Environment, Status: 429}, true
					case 1:
						delete(w.indexes, indexName(op.Generation))
					case 2:
						return search.Outcome{Kind: search.Environment, Status: 403}, true
					}
					return search.Outcome{}, false
				}
			}
			var messages []pipeline.Message
			for _, m := range queue {
				messages = append(messages, m)
			}
			w.sent = nil
			report, failed := x.Index(context.Background(), messages)
			checkReport(t, report)
			if report.Messages != len(messages) || report.Unreadable != 0 {
				t.Fatalf("%d messages: %+v", len(messages), report)
			}
			kept := map[string]pipeline.Message{}
			for _, id := range failed {
				kept[id] = queue[id]
			}
			if report.Returned > 0 != (len(failed) > 0) || report.Requeued > 0 != (len(w.sent) > 0) {
				t.Fatalf("%+v, failed %v, sent %d", report, failed, len(w.sent))
			}
			queue = kept
			for _, m := range w.sent {
				add(m.Body)
			}
			if round >= 5 && len(queue) == 0 {
				break
			}
		}
		if len(queue) > 0 {
			t.Fatalf("the queue is never empty: %v", queue)
		}
		for id := range wanted {
			d, ok := w.table[id]
			if !ok {
				continue
			}
			level, refused := w.refused[id]
			entry, listed := w.quarantined[id]
			refused = refused && !d.Deleted
			if listed != refused || listed && (entry.Version != d.Version || entry.Partial != (level <= search.EnvelopeOnly)) {
				t.Fatalf("%s is refused %v below %d, the quarantine says %v %+v", id, refused, level, listed, entry)
			}
		}
	})
}

// The same without lost indexes: then the index ends up with every document.
func TestTheIndexEndsUpWithEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		var signals []doc.Signal
		for i := range 30 {
			id := doc.ID(fmt.Sprintf("users/%d", i))
			w.table[id] = doc.Document{ID: id, Version: doc.Version(100 + i), Deleted: i%7 == 3, Data: map[string]any{"a": "x"}}
			signals = append(signals, doc.Signal{ID: id, Version: 5})
		}
		w.sliceOf = rapid.IntRange(1, 30).Draw(t, "slice")
		x := w.indexer(1000)
		packed, err := pipeline.Pack(signals, 0)
		if err != nil {
			t.Fatal(err)
		}
		pending := []pipeline.Message{{ID: "m", Body: packed[0].Body}}
		for round := 0; len(pending) > 0; round++ {
			if round > 30 {
				t.Fatal("the queue is never empty")
			}
			w.environment = func(search.Operation) (search.Outcome, bool) {
				fails := round < 20 && rapid.IntRange(0, 2).Draw(t, "write") == 0
				return search.Outcome{Kind: search.Environment, Status: 503}, fails
			}
			w.sent = nil
			report, failed := x.Index(context.Background(), pending)
			checkReport(t, report)
			if len(failed) > 0 {
				t.Fatalf("not acknowledged: %v", failed)
			}
			pending = nil
			for i, m := range w.sent {
				pending = append(pending, pipeline.Message{ID: fmt.Sprint(i), Body: m.Body})
			}
		}
		for id, d := range w.table {
			if got := w.indexes["$shared-1"][id].version; got != d.Version {
				t.Fatalf("%s is at %d in the index, not %d", id, got, d.Version)
			}
		}
		if len(w.quarantined) > 0 {
			t.Fatalf("an environment led to the quarantine: %v", w.quarantined)
		}
	})
}

// What the time does not allow goes back before the time is over. If something
// was done, nothing is wrong, so it goes back without a delay and without
// counting as a try; if nothing was, it waits.
func TestTheRestGoesBackInTime(t *testing.T) {
	for _, c := range []struct {
		name    string
		taking  time.Duration // of one write
		applied int
		tries   int
		delay   time.Duration
	}{
		{"in part", 4 * time.Second, 30, 3, 0},
		{"not at all", time.Minute, 0, 4, 8 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.sliceOf = 10
				w.generations["$shared"] = []collection.Generation{{Family: "$shared", Number: 1, Projector: search.Projector, State: collection.Active}}
				w.indexes["$shared-1"] = map[doc.ID]held{}
				var signals []doc.Signal
				for i := range 100 {
					id := doc.ID(fmt.Sprintf("users/%d", i))
					w.table[id] = doc.Document{ID: id, Version: 10, Data: map[string]any{}}
					signals = append(signals, doc.Signal{ID: id, Version: 10})
				}
				const timeout = 20 * time.Second
				ctx, cancel := context.WithTimeout(context.Background(), timeout)
				defer cancel()
				w.onWrite = func() {
					w.environment = func(search.Operation) (search.Outcome, bool) { return search.Outcome{}, false }
					time.Sleep(min(c.taking, timeout-pipeline.DefaultMargin+time.Millisecond))
				}
				began := time.Now()
				packed, err := pipeline.Pack(signals, 3)
				if err != nil {
					t.Fatal(err)
				}
				report, failed := w.indexer(4000).Index(ctx, []pipeline.Message{{ID: "m", Body: packed[0].Body}})
				checkReport(t, report)
				if report.Applied != c.applied || report.Requeued != 100-c.applied || len(failed) > 0 {
					t.Errorf("%+v, not acknowledged: %v", report, failed)
				}
				if left := timeout - time.Since(began); left <= 0 {
					t.Errorf("%s were left to send the rest back", left)
				}
				for _, m := range w.sent {
					if _, tries, _ := pipeline.Unpack(m.Body); tries != c.tries || m.Delay != c.delay {
						t.Errorf("sent with %d tries and a delay of %s", tries, m.Delay)
					}
				}
			})
		})
	}
}

// Ten messages of a hundred documents of 390 KB are 390 MB; a function has 256.
// The live heap is looked at whenever the index is written to, when the slice of
// the table, its projections and their neighbours are all there.
func TestMemoryIsBounded(t *testing.T) {
	const (
		size = 390 << 10
		most = 80 << 20 // of live heap; the rest of the function's memory is for garbage and requests
	)
	if testing.Short() {
		t.Skip("takes seconds")
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(200 << 20))
	for _, shape := range []struct {
		name      string
		documents int
		data      func(i int) map[string]any
	}{
		{"one long text", 1000, func(i int) map[string]any {
			return map[string]any{"n": fmt.Sprint(i), "text": strings.Repeat("holdfast ", size/9)}
		}},
		{"many short values", 100, func(i int) map[string]any {
			list := make([]any, 0, size/100)
			for k := range size / 100 {
				list = append(list, map[string]any{"name": fmt.Sprintf("name %d of %d", k, i), "text": strings.Repeat("x", 40), "more": true})
			}
			return map[string]any{"list": list}
		}},
	} {
		t.Run(shape.name, func(t *testing.T) {
			source := &bigTable{world: newWorld(), data: shape.data, size: size}
			w := source.world
			w.generations["$shared"] = []collection.Generation{{Family: "$shared", Number: 1, Projector: search.Projector, State: collection.Active}}
			index := &weighingIndex{world: w}
			clock := func() time.Time { return w.now }
			x := pipeline.NewIndexer(pipeline.IndexerOptions{
				Table: source, Index: index, Ledger: w, Queue: w, Now: clock, Generations: pipeline.NewGenerations(w, w, clock),
			})
			var messages []pipeline.Message
			for m := range shape.documents / 100 {
				var signals []doc.Signal
				for i := range 100 {
					signals = append(signals, doc.Signal{ID: doc.ID(fmt.Sprintf("big/%d", m*100+i)), Version: 10})
				}
				packed, err := pipeline.Pack(signals, 0)
				if err != nil {
					t.Fatal(err)
				}
				messages = append(messages, pipeline.Message{ID: fmt.Sprint(m), Body: packed[0].Body})
			}
			report, failed := x.Index(context.Background(), messages)
			checkReport(t, report)
			if report.Applied != shape.documents || len(failed) > 0 {
				t.Fatalf("%+v, not acknowledged: %v", report, failed)
			}
			t.Logf("%d writes, the largest of %d KB; at most %d MB of live heap", index.writes, index.largest>>10, index.live>>20)
			if index.live > most {
				t.Errorf("%d MB of live heap", index.live>>20)
			}
			if index.writes < shape.documents*size/(10<<20) {
				t.Errorf("%d writes only", index.writes)
			}
		})
	}
}

// Documents whose index cannot be found out are not kept either.
func TestMemoryIsBoundedWithoutARegistry(t *testing.T) {
	const documents, size, most = 300, 390 << 10, 40 << 20
	w := newWorld()
	w.broken["generations"] = true
	var live uint64
	source := &bigTable{world: w, size: size, data: func(i int) map[string]any {
		return map[string]any{"n": fmt.Sprint(i), "text": strings.Repeat("holdfast ", size/9)}
	}}
	source.between = func() { live = max(live, liveHeap()) }
	x := pipeline.NewIndexer(pipeline.IndexerOptions{
		Table: source, Index: w, Ledger: w, Queue: w, Generations: pipeline.NewGenerations(w, w, nil),
	})
	var signals []doc.Signal
	for i := range documents {
		signals = append(signals, doc.Signal{ID: doc.ID(fmt.Sprintf("big/%d", i)), Version: 10})
	}
	packed, err := pipeline.Pack(signals, 0)
	if err != nil {
		t.Fatal(err)
	}
	var messages []pipeline.Message
	for i, p := range packed {
		messages = append(messages, pipeline.Message{ID: fmt.Sprint(i), Body: p.Body})
	}
	report, _ := x.Index(context.Background(), messages)
	if report.Requeued != documents || live == 0 || live > most {
		t.Errorf("%+v with %d MB of live heap", report, live>>20)
	}
}

// bigTable makes large documents as they are read.
type bigTable struct {
	*world
	data    func(i int) map[string]any
	size    int
	between func() // slices; may be nil
}

func (b *bigTable) Revisions(_ context.Context, ids []doc.ID, maxBytes int, visit func([]doc.Document, []doc.ID) error) error {
	var found []doc.Document
	for i, id := range ids {
		found = append(found, doc.Document{ID: id, Version: 10, Data: b.data(i)})
		if len(found)*b.size > maxBytes-b.size || i == len(ids)-1 {
			if err := visit(found, nil); err != nil {
				return err
			}
			found = nil
			if b.between != nil {
				b.between()
			}
		}
	}
	return nil
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// weighingIndex takes everything and weighs the heap.
type weighingIndex struct {
	*world
	writes, largest int
	live            uint64
}

func (x *weighingIndex) Write(_ context.Context, ops []search.Operation) ([]search.Outcome, error) {
	x.writes++
	outcomes := make([]search.Outcome, len(ops))
	sum := 0
	for i, op := range ops {
		sum += len(op.Source)
		outcomes[i] = search.Outcome{Kind: search.Applied, Status: 201}
	}
	x.largest = max(x.largest, sum)
	x.live = max(x.live, liveHeap())
	return outcomes, nil
}

// An index that never answers costs one write of bounded time, also where the
// invocation has no end.
func TestAnIndexThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.table["users/1"] = doc.Document{ID: "users/1", Version: 10, Data: map[string]any{}}
		x := pipeline.NewIndexer(pipeline.IndexerOptions{
			Table: w, Index: silentIndex{w}, Ledger: w, Queue: w, Generations: pipeline.NewGenerations(w, w, nil),
		})
		packed, err := pipeline.Pack([]doc.Signal{{ID: "users/1", Version: 10}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		report, failed := x.Index(t.Context(), []pipeline.Message{{ID: "m", Body: packed[0].Body}})
		if report.Requeued != 1 || len(failed) > 0 || time.Since(began) > time.Minute {
			t.Errorf("%+v after %s", report, time.Since(began))
		}
	})
}

// silentIndex does not answer before the context's end.
type silentIndex struct{ *world }

func (silentIndex) Write(ctx context.Context, ops []search.Operation) ([]search.Outcome, error) {
	<-ctx.Done()
	outcomes := make([]search.Outcome, len(ops))
	for i := range outcomes {
		outcomes[i] = search.Outcome{Kind: search.Environment, Reason: "opensearch could not be reached"}
	}
	return outcomes, nil
}

// A document on which the projection itself fails is quarantined; its neighbours
// are indexed.
func TestAFailingProjectionCostsNoNeighbour(t *testing.T) {
	w := newWorld()
	w.table["users/1"] = doc.Document{ID: "users/1", Version: 10, Data: map[string]any{"a": make(chan int)}} // no value of any document
	w.table["users/2"] = doc.Document{ID: "users/2", Version: 11, Data: map[string]any{"a": "x"}}
	packed, err := pipeline.Pack([]doc.Signal{{ID: "users/1", Version: 10}, {ID: "users/2", Version: 11}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	report, failed := w.indexer(0).Index(t.Context(), []pipeline.Message{{ID: "m", Body: packed[0].Body}})
	checkReport(t, report)
	if report.Quarantined != 1 || report.Applied != 1 || len(failed) > 0 || w.quarantined["users/1"].Reason == "" {
		t.Errorf("%+v, %v, %+v", report, failed, w.quarantined)
	}
}
