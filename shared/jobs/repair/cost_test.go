package repair_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/pipeline"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

// stored is a table of many documents whose index has all of them and is proven
// but for the last changes. It counts what is asked of it. What repair must not
// need for a proof is not there: it would be a nil call.
type stored struct {
	repair.Table
	repair.Index
	repair.State
	pipeline.Queue

	documents, changes int
	began              time.Time
	calls, entries     int
	generations        int // how often they were read
	body               store.JobRecord
	hidden             bool // the feed does not show what is written
	put                store.Proof
}

// version is that of the n-th document, in the order of the feed.
func (s *stored) version(n int) doc.Version {
	return doc.VersionAt(s.began) + doc.Version(n) - doc.Version(s.documents)
}

func (s *stored) Sweep(_ context.Context, from doc.Version, visit func([]doc.Change) error) error {
	s.calls++
	page := make([]doc.Change, 0, 1000)
	for n := max(int(from-s.version(0)), 0); n < s.documents; n++ {
		if page = append(page, doc.Change{ID: doc.ID("users/" + strconv.Itoa(n)), Version: s.version(n), Collection: "users"}); len(page) == cap(page) {
			s.entries += len(page)
			if err := visit(page); err != nil {
				return err
			}
			page = page[:0]
		}
	}
	s.entries += len(page)
	return visit(page)
}

func (s *stored) Versions(_ context.Context, wanted []search.VersionOf) (map[doc.ID]doc.Version, error) {
	s.calls++
	held := map[doc.ID]doc.Version{}
	for _, w := range wanted {
		for _, id := range w.IDs {
			held[id] = doc.VersionAt(s.began.Add(time.Hour))
		}
	}
	return held, nil
}

func (s *stored) PutCanary(context.Context, int) (doc.Written, error) {
	s.calls++
	return doc.Written{ID: "$canary/1", Version: doc.VersionAt(s.began)}, nil
}

func (s *stored) Proofs(context.Context) ([]store.Proof, error) {
	return []store.Proof{{Family: collection.SharedFamily, Generation: 1, Index: "one", Through: s.version(s.documents - s.changes).Time(), At: s.began}}, nil
}

func (s *stored) Job(context.Context, string) (store.JobRecord, bool, error) {
	return s.body, len(s.body.Body) > 0, nil
}

func (s *stored) PutJob(_ context.Context, r store.JobRecord) (bool, error) {
	s.calls++
	if r.Name != repair.Name {
		s.body = r
	}
	return true, nil
}

func (s *stored) Register(context.Context, doc.Collection) error               { return nil }
func (s *stored) FeedHas(context.Context, doc.Written) (bool, error)           { return !s.hidden, nil }
func (s *stored) Definitions(context.Context) ([]collection.Definition, error) { return nil, nil }
func (s *stored) PutProof(_ context.Context, p store.Proof) (bool, error) {
	s.calls++
	s.put = p
	return true, nil
}
func (s *stored) JobRequests(context.Context, string) ([]store.JobRequest, error) { return nil, nil }
func (s *stored) Refresh(context.Context, []collection.Generation) error          { s.calls++; return nil }
func (s *stored) Depth(context.Context) (int, error)                              { return 0, nil }
func (s *stored) ReleaseLease(context.Context, store.Lease) error                 { return nil }
func (s *stored) Send(context.Context, []pipeline.Outgoing) []error               { return nil }
func (s *stored) Counts(context.Context, collection.Generation) (map[doc.Collection]int, error) {
	return nil, nil
}

func (s *stored) AcquireLease(_ context.Context, name string, _ time.Duration) (store.Lease, bool, error) {
	return store.Lease{Name: name, Token: 1}, true, nil
}

func (s *stored) Generations(context.Context, collection.Family) ([]collection.Generation, error) {
	s.generations++
	return []collection.Generation{collection.First(collection.Definition{}, search.Projector)}, nil
}

func (s *stored) Inspect(context.Context, collection.Generation) (search.Inspection, error) {
	return search.Inspection{Exists: true, Fits: true, Aliased: true, UUID: "one"}, nil
}

func (s *stored) UUID(context.Context, collection.Generation) (string, error) { return "one", nil }

func (s *stored) Quarantined(context.Context, store.QuarantineQuery) ([]doc.Quarantined, string, error) {
	return nil, "", nil
}

// holding is a table of so many documents, the last of which have changed since
// the proof, with a repair that has nothing else to do.
func holding(documents, changes int, change ...func(*repair.Options)) (*stored, *repair.Repair) {
	s := &stored{documents: documents, changes: changes, began: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	s.body = store.JobRecord{Body: fmt.Appendf(nil, `{"compared":%q}`, s.began.Format(time.RFC3339))}
	o := repair.Options{
		Table: s, Index: s, State: s, Queue: s, Margin: time.Second,
		Now: func() time.Time { return s.began.Add(30 * time.Second) }, Sleep: func(context.Context, time.Duration) error { return nil },
	}
	for _, c := range change {
		c(&o)
	}
	return s, repair.New(o)
}

// A proof costs what has changed, whatever there is beside.
func TestAProofCostsWhatHasChanged(t *testing.T) {
	cost := func(documents, changes int) (calls, entries, captured int) {
		s, r := holding(documents, changes)
		report, held, err := r.Run(t.Context(), repair.Prove)
		if err != nil || !held || report.Missing > 0 {
			t.Fatalf("%+v %v %v", report, held, err)
		}
		if s.generations != 1 { // of the one family
			t.Errorf("the generations were read %d times", s.generations)
		}
		return s.calls, s.entries, report.Captured
	}
	calls, entries, captured := cost(10_000, 1000)
	if captured < 1000 || captured > 1001 {
		t.Errorf("%d changes were captured", captured)
	}
	if c, e, n := cost(1_000_000, 1000); c != calls || e != entries || n != captured {
		t.Errorf("a hundred times as many documents take %d calls and %d entries, not %d and %d", c, e, calls, entries)
	}
	if c, _, _ := cost(10_000, 3000); c <= calls {
		t.Errorf("three times as many changes take %d calls, not more than %d", c, calls)
	}
}

func BenchmarkProve(b *testing.B) {
	for _, documents := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("documents=%d/changes=1000", documents), func(b *testing.B) {
			_, r := holding(documents, 1000)
			for b.Loop() {
				if _, held, err := r.Run(b.Context(), repair.Prove); !held || err != nil {
					b.Fatal(held, err)
				}
			}
		})
	}
}

// A feed that is slower than the margin allows for proves nothing, although the
// index has all that it shows; and the answer says that it is slow.
func TestASlowFeedProvesNothing(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		var now time.Time
		s, r := holding(10_000, 1000, func(o *repair.Options) {
			now = o.Now()
			o.Now = func() time.Time { return now }
			o.Sleep = func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil }
		})
		s.hidden = hidden
		before := s.version(s.documents - s.changes).Time()
		report, _, err := r.Run(t.Context(), repair.Prove)
		if err != nil || report.Missing > 0 || (report.FeedLag == nil) != hidden {
			t.Fatalf("%+v %v", report, err)
		}
		if s.put.Through.After(before) == hidden || hidden && 2*s.put.FeedLag <= s.put.Margin {
			t.Errorf("hidden %v: %+v after %s", hidden, s.put, before)
		}
	}
}
