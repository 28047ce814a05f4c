package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// partial answers BatchGetItem with a few of the items only and names the other
// keys as unprocessed, as a busy or full engine does.
type partial struct {
	items    int // that are answered at once
	mu       sync.Mutex
	requests int
	answered int // the largest answer, in bytes
	stuck    int // from which request on nothing is answered any more; 0: never
}

func (p *partial) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".BatchGetItem") {
		return http.DefaultTransport.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var in struct {
		RequestItems map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.requests++
	stuck := p.stuck > 0 && p.requests >= p.stuck
	p.mu.Unlock()
	unprocessed := map[string]any{}
	for table, what := range in.RequestItems {
		var keys []json.RawMessage
		if err := json.Unmarshal(what["Keys"], &keys); err != nil {
			return nil, err
		}
		now := min(p.items, len(keys))
		if stuck {
			return answer(req, 200, fmt.Sprintf(`{"Responses":{},"UnprocessedKeys":%s}`, mustJSON(in.RequestItems))), nil
		}
		if len(keys) > now {
			unprocessed[table] = map[string]any{"Keys": keys[now:], "ConsistentRead": true}
		}
		what["Keys"] = json.RawMessage(mustJSON(keys[:now]))
	}
	text := mustJSON(in)
	onward := req.Clone(req.Context())
	onward.Body, onward.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	resp, err := http.DefaultTransport.RoundTrip(onward)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.answered = max(p.answered, len(got))
	p.mu.Unlock()
	if len(unprocessed) > 0 {
		got = bytes.Replace(got, []byte(`"UnprocessedKeys":{}`), []byte(`"UnprocessedKeys":`+mustJSON(unprocessed)), 1)
		if !bytes.Contains(got, []byte(`"Keys"`)) {
			return nil, fmt.Errorf("the engine's own answer was not complete: %.200s", got)
		}
	}
	return answer(req, 200, string(got)), nil
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestManyLarge reads far more than one answer of the engine holds.
func TestManyLarge(t *testing.T) {
	tb := newTables(t)
	writer := tb.open(nil)
	large := strings.Repeat("x", 390<<10)
	var ids []doc.ID
	work, ctx := errgroup.WithContext(t.Context())
	work.SetLimit(4)
	for i := range 60 {
		id := doc.ID(fmt.Sprintf("large/%d", i))
		ids = append(ids, id)
		work.Go(func() error {
			_, err := writer.Put(ctx, id, map[string]any{"text": large, "n": json.Number(fmt.Sprint(i))}, doc.Condition{})
			return err
		})
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
	for name, transport := range map[string]http.RoundTripper{"engine": nil, "three at a time": &partial{items: 3}} {
		s := tb.open(transport)
		got, err := s.LoadMany(t.Context(), ids, 0)
		if err != nil || len(got.Documents) != 60 || len(got.Remaining) != 0 {
			t.Fatalf("%s: %d documents, %d remaining, %v", name, len(got.Documents), len(got.Remaining), err)
		}
		for i, id := range ids {
			if got.Documents[id].Data["n"] != json.Number(fmt.Sprint(i)) || len(got.Documents[id].Data["text"].(string)) != len(large) {
				t.Errorf("%s: %s is not what was put", name, id)
			}
		}
		// In slices of bounded memory, nothing twice, nothing left out.
		const bound = 8 << 20
		seen := map[doc.ID]bool{}
		err = s.Revisions(t.Context(), append([]doc.ID{"large/none"}, ids...), bound, func(found []doc.Document, absent []doc.ID) error {
			size := 0
			for _, d := range found {
				size += len(d.Data["text"].(string))
				seen[d.ID] = true
			}
			if size > bound {
				t.Errorf("%s: a slice of %d bytes", name, size)
			}
			for _, id := range absent {
				if id != "large/none" {
					t.Errorf("%s: %s is called absent", name, id)
				}
			}
			return nil
		})
		if err != nil || len(seen) != 60 {
			t.Errorf("%s: %d revisions, %v", name, len(seen), err)
		}
	}
	// An answer of 5 MB holds 13; the rest is to be asked for again, and little
	// more than that is read.
	p := &partial{items: 100}
	got, err := tb.open(p).LoadMany(t.Context(), ids, 5<<20)
	if err != nil || len(got.Documents) != 13 || len(got.Remaining) != 47 {
		t.Errorf("in 5 MB: %d documents, %d remaining, %v", len(got.Documents), len(got.Remaining), err)
	}
	if p.answered > 9<<20 {
		t.Errorf("an answer of %d bytes was read for 5 MB", p.answered)
	}
}

// TestNeverAbsent has the engine stop answering in the middle: what was not read
// is not called absent.
func TestNeverAbsent(t *testing.T) {
	tb := newTables(t)
	writer := tb.open(nil)
	var ids []doc.ID
	for i := range 30 {
		id := doc.ID(fmt.Sprintf("some/%d", i))
		ids = append(ids, id)
		if _, err := writer.Put(t.Context(), id, data("x"), doc.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	got, err := tb.open(&partial{items: 7, stuck: 3}).LoadMany(ctx, ids, 0)
	if err != nil || len(got.Documents) != 14 || len(got.Remaining) != 16 {
		t.Errorf("%d documents, %d remaining, %v", len(got.Documents), len(got.Remaining), err)
	}
	for _, id := range got.Remaining {
		if _, ok := got.Documents[id]; ok {
			t.Errorf("%s is in both parts", id)
		}
	}
	for stuck, want := range map[int]int{1: 0, 3: 14} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		s := tb.open(&partial{items: 7, stuck: stuck})
		visited := 0
		err := s.Revisions(ctx, ids, 0, func(found []doc.Document, absent []doc.ID) error {
			visited += len(found)
			if len(absent) > 0 {
				t.Errorf("%v are called absent", absent)
			}
			return nil
		})
		cancel()
		checkEngineError(t, "revisions", err, doc.Throttled)
		if visited != want {
			t.Errorf("%d visited, want %d", visited, want)
		}
	}
	ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = tb.open(&partial{items: 7, stuck: 1}).LoadMany(ctx, ids, 0)
	checkEngineError(t, "load many", err, doc.Throttled)
}

// TestQuarantineUnprocessed reads the system's records to the end as well.
func TestQuarantineUnprocessed(t *testing.T) {
	tb := newTables(t)
	st := store.NewState(newClient(tb.url, &partial{items: 4}), tb.state, nil)
	var ids []doc.ID
	for i := range 130 {
		id := doc.ID(fmt.Sprintf("q/%d", i))
		ids = append(ids, id)
		if i%10 == 0 {
			if err := st.RecordQuarantine(t.Context(), doc.Quarantined{ID: id, Collection: "q", Version: 5, Reason: "odd"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := st.Quarantine(t.Context(), ids)
	if err != nil || len(got) != 13 {
		t.Errorf("%d notes, %v", len(got), err)
	}
}
