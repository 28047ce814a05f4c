package freshness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/store"
)

// feed is a change feed in which writes appear at moments after the beginning.
type feed struct {
	w        *world
	signals  []doc.Signal
	at       []time.Duration
	err      error
	downTill time.Duration
	asked    []store.CaptureQuery
	askedAt  []time.Duration
}

func (f *feed) Capture(_ context.Context, q store.CaptureQuery) ([]doc.Signal, error) {
	f.asked = append(f.asked, q)
	f.askedAt = append(f.askedAt, time.Since(f.w.began))
	if time.Since(f.w.began) < f.downTill {
		return nil, doc.Errorf(doc.Unavailable, "not now")
	}
	if f.err != nil {
		return nil, f.err
	}
	var found []doc.Signal
	for i, s := range f.signals {
		if time.Since(f.w.began) >= f.at[i] && slices.Contains(q.Collections, s.ID.Collection()) && s.Version >= q.From {
			found = append(found, s)
		}
	}
	return found, nil
}

// written is a write that the feed shows, and that the index has, at some time.
func (f *feed) written(id doc.ID, v doc.Version, shown, indexed time.Duration) {
	f.signals, f.at = append(f.signals, doc.Signal{ID: id, Version: v}), append(f.at, shown)
	f.w.table[id] = true
	if indexed >= 0 {
		f.w.index(id, v, indexed)
	}
}

// proofs is what was proven, of indexes that stand or, from some look on, do not.
type proofs struct {
	proof freshness.Proof
	ok    bool
	err   error

	gone  int   // the look from which on the index is another one; 0: never
	blind error // why no look succeeds
	looks []time.Duration
	read  []map[doc.Collection]collection.Generation
}

func (p *proofs) Proof(_ context.Context, _ []doc.Collection, read map[doc.Collection]collection.Generation) (freshness.Proof, bool, error) {
	p.read = append(p.read, read)
	return p.proof, p.ok, p.err
}

func (p *proofs) Stands(_ context.Context, _ freshness.Proof, age time.Duration) (bool, error) {
	p.looks = append(p.looks, age)
	return (p.gone == 0 || len(p.looks) < p.gone) && p.blind == nil, p.blind
}

const never = time.Duration(-1)

func asOfNow(t *testing.T, f *feed, p freshness.Proofs, timeout time.Duration, tokens ...doc.Signal) (freshness.Waited, error) {
	t.Helper()
	w := f.w
	waiter := freshness.NewWaiter(freshness.WaiterOptions{Index: w, Registry: w, Quarantine: w, Table: w, Feed: f, Proofs: p})
	return waiter.AsOfNow(t.Context(), []doc.Collection{"users", "orders"}, tokens, freshness.Patience{Timeout: timeout})
}

func TestWaitsForEverythingAsOfNow(t *testing.T) {
	const margin = freshness.DefaultMargin
	for _, c := range []struct {
		name        string
		feed        func(f *feed)
		tokens      []doc.Signal
		timeout     time.Duration
		uncaptured  bool
		documents   int
		missing     []doc.ID
		quarantined []doc.ID
		least, most time.Duration
	}{
		{name: "in empty collections", least: margin, most: margin},
		{
			name: "in quiet ones", documents: 2, least: margin, most: margin,
			feed: func(f *feed) {
				f.written("users/1", 10, 0, 0)
				f.written("orders/1", 11, 0, 0)
				f.written("others/1", 12, 0, never)
			},
		},
		{
			name: "until the last of it is indexed", documents: 2, least: 4 * time.Second, most: 4500 * time.Millisecond,
			feed: func(f *feed) {
				f.written("users/1", 10, 0, 0)
				f.written("users/2", 11, time.Second, 4*time.Second)
			},
		},
		{
			name: "not for what is written later", documents: 1, least: margin, most: margin,
			feed: func(f *feed) {
				f.written("users/1", 10, 0, 0)
				f.written("users/2", 11, margin+time.Millisecond, never)
			},
		},
		{
			name: "among constant writers", documents: 1, least: margin, most: margin + 500*time.Millisecond,
			feed: func(f *feed) {
				f.written("users/1", 10, 0, never)
				f.w.index("users/1", 500, margin+300*time.Millisecond) // many versions on
			},
		},
		{
			name: "in vain while the indexer stands still", documents: 2, missing: []doc.ID{"users/2"}, least: 5 * time.Second, most: 5 * time.Second,
			feed: func(f *feed) {
				f.written("users/1", 10, 0, 0)
				f.written("users/2", 11, 0, never)
			},
		},
		{
			name: "not for what is in quarantine, which is named", documents: 2, quarantined: []doc.ID{"users/2"}, least: margin, most: margin + 500*time.Millisecond,
			feed: func(f *feed) {
				f.written("users/1", 10, 0, 0)
				f.written("users/2", 11, 0, never)
				f.w.quarantined["users/2"] = doc.Quarantined{ID: "users/2", Version: 11}
			},
		},
		{
			name: "until a new index is there", documents: 1, least: 3 * time.Second, most: 3500 * time.Millisecond,
			feed: func(f *feed) {
				all := f.w.generations
				f.w.generations = nil
				time.AfterFunc(3*time.Second, func() { f.w.generations = all })
				f.written("users/1", 10, 0, 0)
			},
		},
		{
			name: "and for tokens of other collections", documents: 2, least: 3 * time.Second, most: 3500 * time.Millisecond,
			tokens: []doc.Signal{{ID: "others/1", Version: 7}},
			feed: func(f *feed) {
				f.written("users/1", 10, 0, 0)
				f.written("others/1", 7, 0, 3*time.Second)
			},
		},
		{
			name: "through a feed that fails", documents: 1, least: 4 * time.Second, most: 4500 * time.Millisecond,
			feed: func(f *feed) { f.downTill = 4 * time.Second; f.written("users/1", 10, 0, 0) },
		},
		{
			name: "in vain where the feed cannot be read", uncaptured: true, least: 5 * time.Second, most: 5500 * time.Millisecond,
			feed: func(f *feed) { f.downTill = time.Hour },
		},
		{
			name: "in vain in less than the margin", uncaptured: true, timeout: time.Second, least: time.Second, most: time.Second,
		},
		{
			name: "in vain in less than the margin, with what is surely missing", uncaptured: true, timeout: time.Second, documents: 2, missing: []doc.ID{"users/2"},
			least: time.Second, most: 1200 * time.Millisecond,
			feed: func(f *feed) {
				f.written("users/1", 10, 0, 0)
				f.written("users/2", 11, 0, never)
				f.written("users/3", 12, 1500*time.Millisecond, never)
			},
		},
		{
			name: "in vain in less than the margin, with what is known of tokens", uncaptured: true, timeout: time.Second,
			tokens: []doc.Signal{{ID: "users/1", Version: 10}, {ID: "users/2", Version: 11}}, documents: 2, missing: []doc.ID{"users/2"},
			least: time.Second, most: 1200 * time.Millisecond,
			feed: func(f *feed) {
				f.written("users/1", 10, 0, 0)
				f.written("users/2", 11, 0, never)
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &feed{w: newWorld()}
				if c.feed != nil {
					c.feed(f)
				}
				if c.timeout == 0 {
					c.timeout = 5 * time.Second
				}
				began := time.Now()
				got, err := asOfNow(t, f, nil, c.timeout, c.tokens...)
				if err != nil {
					t.Fatal(err)
				}
				if got.AsOf == nil || !got.AsOf.At.Equal(began) || got.AsOf.Captured == c.uncaptured || got.AsOf.Margin != margin || got.AsOf.Known {
					t.Errorf("%+v", got.AsOf)
				}
				if !slices.Equal(got.Missing, c.missing) || got.MissingCount != len(c.missing) || !slices.Equal(got.Quarantined, c.quarantined) ||
					got.Documents != c.documents || got.Tokens != len(c.tokens) {
					t.Errorf("%+v", got)
				}
				if took := time.Since(began); took < c.least || took > c.most || got.Took != took {
					t.Errorf("took %s, says %s", took, got.Took)
				}
				late := c.uncaptured || len(c.missing) > 0
				if problem := got.Problem(); got.TimedOut() != late || (problem != nil) != late || late && (problem.Kind != doc.WaitTimeout || problem.Members["missing"] == nil) {
					t.Errorf("timed out %v: %v", got.TimedOut(), problem)
				}
				if !late && got.Documents > len(c.quarantined) && f.w.refreshed == 0 {
					t.Error("searches were not made to see it")
				}
				for i, q := range f.asked {
					soonest := margin
					if c.timeout <= margin {
						soonest = c.timeout - 150*time.Millisecond
					}
					if f.askedAt[i] < soonest || q.From != 0 || q.MaxEntries != freshness.MaxCaptured || q.MaxRead != freshness.MaxFeedRead {
						t.Errorf("asked %+v after %s", q, f.askedAt[i])
					}
				}
			})
		})
	}
}

// Without a proof everything since the beginning has to be looked for; there is
// an end to that, and the refusal says why.
func TestTooMuchToWaitFor(t *testing.T) {
	for _, c := range []struct {
		proofs freshness.Proofs
		limit  int
		says   string
	}{
		{nil, freshness.MaxCaptured, "the index is not proven"},
		{&proofs{err: errors.New("no")}, freshness.MaxFeedRead, "those of other collections included, and the index is not proven"},
		{&proofs{ok: true, proof: freshness.Proof{Through: time.Unix(1_800_000_000, 0)}}, freshness.MaxCaptured, "since the index was last proven"},
		{&proofs{ok: true, gone: 1, proof: freshness.Proof{Through: time.Unix(1_800_000_000, 0)}}, freshness.MaxCaptured, "the index is not proven"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{w: newWorld(), err: doc.Errorf(doc.QueryTooCostly, "too much").With("limit", c.limit)}
			_, err := asOfNow(t, f, c.proofs, 5*time.Second)
			var e *doc.Error
			if !errors.As(err, &e) || e.Kind != doc.QueryTooCostly || e.Members["limit"] != c.limit || !strings.Contains(e.Detail, c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A proof is where the reading begins. Nothing is said to be current unless the
// feed was measured to be fast, just now.
func TestAProofShortensTheWait(t *testing.T) {
	for name, c := range map[string]struct {
		age, lag    time.Duration
		quarantined int
		stale       bool
	}{
		"measured just now":       {age: 10 * time.Second, lag: 300 * time.Millisecond},
		"measured long ago":       {age: 3 * time.Minute, lag: 300 * time.Millisecond, stale: true},
		"measured to be slow":     {age: 10 * time.Second, lag: 1100 * time.Millisecond, stale: true},
		"something in quarantine": {age: 10 * time.Second, lag: 300 * time.Millisecond, quarantined: 1, stale: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &feed{w: newWorld()}
				now := time.Now()
				through := now.Add(-c.age - 10*time.Second)
				p := &proofs{ok: true, proof: freshness.Proof{Through: through, At: now.Add(-c.age), FeedLag: c.lag}}
				f.written("users/1", doc.VersionAt(through)-1, 0, never) // proven, so nobody looks
				f.written("users/2", doc.VersionAt(through), 0, 0)
				waited, err := asOfNow(t, f, p, 5*time.Second)
				if err != nil || waited.TimedOut() || waited.Documents != 1 || f.asked[0].From != doc.VersionAt(through) {
					t.Fatalf("%+v %v", waited, err)
				}
				g := &gauges{quarantine: c.quarantined}
				r := freshness.NewReporter(freshness.ReporterOptions{Queue: g, Measures: g, Proofs: p})
				s := r.Staleness(t.Context(), []doc.Collection{"users"}, waited)
				if s.Stale != c.stale || s.ProvenThrough == nil || !s.ProvenThrough.Equal(through) || strings.Contains(s.Notice, "proven complete up to") != c.stale {
					t.Errorf("%+v", s)
				}
				if s := r.Staleness(t.Context(), []doc.Collection{"users"}, freshness.Waited{}); !s.Stale {
					t.Errorf("without a wait: %+v", s)
				}
			})
		})
	}
}

// A proof is about one index. When another one stands under its name, nothing is
// known of it: neither where the reading may begin, nor, should it have taken its
// place since, that the answer misses nothing.
func TestALostIndexIsNotProven(t *testing.T) {
	lost := "may have been lost or replaced"
	for name, c := range map[string]struct {
		gone       int
		blind      error
		blindAfter error
		from       bool // the reading begins where the proof ends
		stale      bool
		proven     bool
		says       string
	}{
		"it stands":                              {from: true, proven: true},
		"it is another one before the wait":      {gone: 1, stale: true, says: "Everything is included"},
		"it is another one after the search":     {gone: 2, from: true, stale: true, says: lost},
		"nobody can tell before the wait":        {blind: errDown, from: true, proven: true},
		"nobody can tell which one was searched": {blindAfter: errDown, from: true, stale: true, says: lost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &feed{w: newWorld()}
				through := time.Now().Add(-time.Minute)
				p := &proofs{ok: true, proof: freshness.Proof{Through: through, At: through.Add(10 * time.Second)}, gone: c.gone, blind: c.blind}
				f.written("users/1", doc.VersionAt(through)-1, 0, 0)
				waiter := freshness.NewWaiter(freshness.WaiterOptions{Index: f.w, Registry: f.w, Quarantine: f.w, Table: f.w, Feed: f, Proofs: p})
				read := map[doc.Collection]collection.Generation{"users": f.w.generations[1]}
				waited, err := waiter.AsOfNow(t.Context(), []doc.Collection{"users"}, nil, freshness.Patience{Timeout: 5 * time.Second, Read: read})
				if err != nil || waited.TimedOut() || (f.asked[0].From > 0) != c.from {
					t.Fatalf("%+v %v, read from %d", waited, err, f.asked[0].From)
				}
				if len(p.read) != 1 || p.read[0]["users"].Number != 2 || p.looks[0] != 0 {
					t.Errorf("asked about %v, looked %v", p.read, p.looks)
				}
				p.blind = c.blindAfter
				g := &gauges{}
				s := freshness.NewReporter(freshness.ReporterOptions{Queue: g, Measures: g, Proofs: p}).Staleness(t.Context(), []doc.Collection{"users"}, waited)
				if s.Stale != c.stale || (s.ProvenThrough != nil) != c.proven || !strings.Contains(s.Notice, c.says) || strings.Contains(s.Notice, "included") == (c.says == lost) {
					t.Errorf("%+v", s)
				}
				if c.from && p.looks[1] != 0 {
					t.Errorf("what was searched is told by a look that is %s old", p.looks[1])
				}
			})
		})
	}
}

// Of a query that waits for nothing nobody says more than is known of the index
// that stands there, either.
func TestProvenThroughIsOfTheIndexThatStands(t *testing.T) {
	through := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		p      *proofs
		proven bool
	}{
		"it stands":         {&proofs{}, true},
		"it is another one": {&proofs{gone: 1}, false},
		"nobody can tell":   {&proofs{blind: errDown}, false},
	} {
		c.p.ok, c.p.proof.Through = true, through
		g := &gauges{}
		s := freshness.NewReporter(freshness.ReporterOptions{Queue: g, Measures: g, Proofs: c.p}).Staleness(t.Context(), []doc.Collection{"users"}, freshness.Waited{})
		if (s.ProvenThrough != nil) != c.proven || strings.Contains(s.Notice, "proven complete up to") != c.proven || len(c.p.looks) != 1 {
			t.Errorf("%s: %+v after looks %v", name, s, c.p.looks)
		}
	}
}

func TestStalenessTellsTheWaitAsOfNow(t *testing.T) {
	at := time.Unix(1_800_000_000, 5000).UTC()
	as := func(captured bool) *freshness.AsOfWaited {
		return &freshness.AsOfWaited{At: at, Margin: 2 * time.Second, Captured: captured}
	}
	rest := ` How current the results are beyond that has not been proven yet.`
	for _, c := range []struct {
		waited freshness.Waited
		timed  bool
		kinds  string
		notice string
	}{
		{freshness.Waited{AsOf: as(true)}, false, "asOfNow", "Everything is included that was written before 08:00:00 UTC and that the change feed showed 2.0 s later." + rest},
		{
			freshness.Waited{AsOf: as(true), Documents: 4, Tokens: 1, Quarantined: []doc.ID{"users/7"}, QuarantinedCount: 1}, false, "tokens asOfNow",
			"The index could not take users/7. Apart from that, everything is included that was written before 08:00:00 UTC and that the change feed showed 2.0 s later." + rest,
		},
		{
			freshness.Waited{AsOf: as(true), Documents: 4, MissingCount: 3}, true, "asOfNow",
			"The wait ended before 3 of the 4 awaited writes were in the index: they may be missing here. How current everything else is has not been proven yet.",
		},
		{
			freshness.Waited{AsOf: as(false), Tokens: 2, Documents: 2, MissingCount: 1}, true, "tokens asOfNow",
			"The wait ended before the change feed was read, 2.0 s after the query's arrival: more may be missing here than is known. 1 awaited write was not in the index. How current everything else is has not been proven yet.",
		},
	} {
		g := &gauges{}
		s := freshness.NewReporter(freshness.ReporterOptions{Queue: g, Measures: g}).Staleness(t.Context(), []doc.Collection{"users"}, c.waited)
		if !s.Stale || s.TimedOut != c.timed || strings.Join(s.WaitedFor, " ") != c.kinds || s.Notice != c.notice || s.MarginMs != 2000 {
			t.Errorf("%+v\nwant %s", s, c.notice)
		}
		if text, err := json.Marshal(s); err != nil || !strings.Contains(string(text), `"asOf":"2027-01-15T08:00:00.000005Z","marginMs":2000`) {
			t.Errorf("%s %v", text, err)
		}
	}
}

// Ten thousand documents, the most there may be, take ten questions a round.
func TestManyAsOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{w: newWorld()}
		for i := range freshness.MaxCaptured {
			f.written(doc.ID(fmt.Sprintf("users/%d", i)), 10, 0, 0)
		}
		got, err := asOfNow(t, f, nil, 5*time.Second)
		if err != nil || got.TimedOut() || got.Documents != freshness.MaxCaptured || f.w.largest > 1000 || f.w.asked > 10 {
			t.Errorf("%+v %v, %d questions", got, err, f.w.asked)
		}
	})
}

// An index that is down is told as such, not as writes that are missing; and who
// would take a late answer does not wait for it after the feed was read.
func TestAsOfNowOfAnIndexThatIsDown(t *testing.T) {
	for _, c := range []struct{ timeout, silence, took time.Duration }{
		{5 * time.Second, 0, 5 * time.Second},
		{20 * time.Second, time.Second, freshness.DefaultMargin + time.Second},
		{time.Second, 0, time.Second}, // less than the margin
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{w: newWorld()}
			f.written("users/1", 10, 0, 0)
			f.w.downUntil = time.Hour
			waiter := freshness.NewWaiter(freshness.WaiterOptions{Index: f.w, Registry: f.w, Quarantine: f.w, Table: f.w, Feed: f})
			got, err := waiter.AsOfNow(t.Context(), []doc.Collection{"users"}, nil, freshness.Patience{Timeout: c.timeout, Silence: c.silence})
			if problem := got.Problem(); err != nil || problem == nil || problem.Kind != doc.IndexUnavailable || got.Took < c.took || got.Took > c.took+500*time.Millisecond {
				t.Errorf("%+v %v %v", got, problem, err)
			}
		})
	}
}

func TestTheCallerOfAsOfNowGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		waiter := freshness.NewWaiter(freshness.WaiterOptions{Index: w, Registry: w, Quarantine: w, Table: w, Feed: &feed{w: w}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := waiter.AsOfNow(ctx, []doc.Collection{"users"}, nil, freshness.Patience{Timeout: 20 * time.Second}); !errors.Is(err, context.DeadlineExceeded) || time.Since(w.began) > 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(w.began))
		}
	})
}
