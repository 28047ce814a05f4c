package freshness_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/store"
)

// gauges are what a reporter reads.
type gauges struct {
	mu                sync.Mutex
	depth, quarantine int
	lag               store.LagMeasure
	measured          bool
	err               error
	hang              bool
	asked             int
	from              []doc.Collection
}

func (g *gauges) ask(ctx context.Context) error {
	if g.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	return g.err
}

func (g *gauges) Depth(ctx context.Context) (int, error) { return g.depth, g.ask(ctx) }

func (g *gauges) Lag(ctx context.Context) (store.LagMeasure, bool, error) {
	return g.lag, g.measured, g.ask(ctx)
}

func (g *gauges) CountQuarantined(ctx context.Context, c []doc.Collection) (int, error) {
	g.from = c
	return g.quarantine, g.ask(ctx)
}

func TestStalenessSaysWhatIsKnown(t *testing.T) {
	for _, c := range []struct {
		name   string
		gauges *gauges
		waited freshness.Waited
		want   string
	}{
		{
			"nothing is known", &gauges{err: errors.New("no")}, freshness.Waited{},
			`{"stale":true,"provenThrough":null,"lagSeconds":null,"pending":null,"quarantined":null,"dropped":0,"waitedMs":0,"timedOut":false,` +
				`"notice":"How current these results are has not been proven yet."}`,
		},
		{
			"nothing is going on", &gauges{}, freshness.Waited{},
			`{"stale":true,"provenThrough":null,"lagSeconds":null,"pending":0,"quarantined":0,"dropped":0,"waitedMs":0,"timedOut":false,` +
				`"notice":"How current these results are has not been proven yet."}`,
		},
		{
			"indexing goes on", &gauges{measured: true, lag: store.LagMeasure{Lag: 312 * time.Millisecond}, depth: 3, quarantine: 1}, freshness.Waited{},
			`{"stale":true,"provenThrough":null,"lagSeconds":0.312,"pending":3,"quarantined":1,"dropped":0,"waitedMs":0,"timedOut":false,` +
				`"notice":"How current these results are has not been proven yet; indexing last took 0.4 s, and about 3 messages are still queued. 1 document is not indexed in full."}`,
		},
		{
			"an old measure says nothing", &gauges{measured: true, lag: store.LagMeasure{At: time.Unix(1, 0), Lag: time.Second}, depth: 1}, freshness.Waited{},
			`{"stale":true,"provenThrough":null,"lagSeconds":null,"pending":1,"quarantined":0,"dropped":0,"waitedMs":0,"timedOut":false,` +
				`"notice":"How current these results are has not been proven yet; about 1 message is still queued."}`,
		},
		{
			"one write was waited for", &gauges{measured: true, lag: store.LagMeasure{Lag: 75 * time.Second}}, freshness.Waited{Documents: 1, Took: 120 * time.Millisecond},
			`{"stale":true,"provenThrough":null,"lagSeconds":75,"pending":0,"quarantined":0,"dropped":0,"waitedMs":120,"timedOut":false,` +
				`"notice":"The write you waited for is included. How current everything else is has not been proven yet; indexing last took 75 s."}`,
		},
		{
			"the wait was too short", &gauges{}, freshness.Waited{Documents: 7, MissingCount: 2, Missing: []doc.ID{"users/1", "users/2"}, Took: 5 * time.Second},
			`{"stale":true,"provenThrough":null,"lagSeconds":null,"pending":0,"quarantined":0,"dropped":0,"waitedMs":5000,"timedOut":true,` +
				`"notice":"The wait ended before 2 of the 7 awaited writes were in the index: they may be missing here. How current everything else is has not been proven yet."}`,
		},
		{
			"nobody knows the only one", &gauges{}, freshness.Waited{Documents: 1, AbsentCount: 1},
			`{"stale":true,"provenThrough":null,"lagSeconds":null,"pending":0,"quarantined":0,"dropped":0,"waitedMs":0,"timedOut":false,` +
				`"notice":"Neither the table nor the index has a trace of 1 awaited write. How current everything else is has not been proven yet."}`,
		},
		{
			"nobody knows some", &gauges{quarantine: 1}, freshness.Waited{Documents: 5, AbsentCount: 2, QuarantinedCount: 1, Quarantined: []doc.ID{"users/7"}},
			`{"stale":true,"provenThrough":null,"lagSeconds":null,"pending":0,"quarantined":1,"dropped":0,"waitedMs":0,"timedOut":false,` +
				`"notice":"The index could not take users/7. Neither the table nor the index has a trace of 2 awaited writes. The other writes you waited for are included. How current everything else is has not been proven yet. 1 document is not indexed in full."}`,
		},
		{
			"the index could not take one", &gauges{quarantine: 2}, freshness.Waited{Documents: 3, QuarantinedCount: 1, Quarantined: []doc.ID{"users/7"}},
			`{"stale":true,"provenThrough":null,"lagSeconds":null,"pending":0,"quarantined":2,"dropped":0,"waitedMs":0,"timedOut":false,` +
				`"notice":"The index could not take users/7. The other writes you waited for are included. How current everything else is has not been proven yet. 2 documents are not indexed in full."}`,
		},
		{
			"the index could take none", &gauges{}, freshness.Waited{Documents: 5, QuarantinedCount: 5, Quarantined: []doc.ID{"a/1", "a/2", "a/3", "a/4", "a/5"}},
			`{"stale":true,"provenThrough":null,"lagSeconds":null,"pending":0,"quarantined":0,"dropped":0,"waitedMs":0,"timedOut":false,` +
				`"notice":"The index could not take a/1, a/2, a/3 and 2 more. How current everything else is has not been proven yet."}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := c.gauges
			now := time.Unix(1_800_000_000, 0)
			if g.lag.At.IsZero() {
				g.lag.At = now.Add(-10 * time.Second)
			}
			r := freshness.NewReporter(freshness.ReporterOptions{Queue: g, Measures: g, Now: func() time.Time { return now }})
			got, err := json.Marshal(r.Staleness(t.Context(), []doc.Collection{"users"}, c.waited))
			if err != nil || string(got) != c.want {
				t.Errorf("%v\ngot  %s\nwant %s", err, got, c.want)
			}
		})
	}
}

// The numbers are looked up every two seconds, however many queries there are.
func TestStalenessIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gauges{}
		r := freshness.NewReporter(freshness.ReporterOptions{Queue: g, Measures: g})
		for range 50 {
			r.Staleness(t.Context(), []doc.Collection{"users", "orders"}, freshness.Waited{})
			r.Staleness(t.Context(), []doc.Collection{"orders", "users", "users"}, freshness.Waited{})
		}
		if g.asked != 3 || len(g.from) != 2 {
			t.Errorf("%d look-ups, of %v", g.asked, g.from)
		}
		time.Sleep(2 * time.Second)
		r.Staleness(t.Context(), []doc.Collection{"users", "orders"}, freshness.Waited{})
		if g.asked != 6 {
			t.Errorf("%d look-ups", g.asked)
		}
	})
}

// A number that does not come costs one query a second, not each of them.
func TestStalenessDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gauges{hang: true}
		r := freshness.NewReporter(freshness.ReporterOptions{Queue: g, Measures: g})
		began := time.Now()
		for range 10 {
			s := r.Staleness(t.Context(), []doc.Collection{"users"}, freshness.Waited{})
			if s.Pending != nil || s.LagSeconds != nil || s.Quarantined != nil || !s.Stale {
				t.Errorf("%+v", s)
			}
		}
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("took %s", took)
		}
	})
}

// Whoever asks about thousands of combinations of collections fills no memory
// and gets right answers.
func TestManyCombinations(t *testing.T) {
	g := &gauges{quarantine: 4}
	r := freshness.NewReporter(freshness.ReporterOptions{Queue: g, Measures: g})
	for i := range 3000 {
		s := r.Staleness(t.Context(), []doc.Collection{doc.Collection(strings.Repeat("x", i%50+1)), doc.Collection(strings.Repeat("y", i/50+1))}, freshness.Waited{})
		if s.Quarantined == nil || *s.Quarantined != 4 {
			t.Fatalf("%+v", s)
		}
	}
}
