package freshness_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

// Who takes a late answer gets one instead of the refusal. It says that it is no
// full one and why, and tokens are waited for all the same.
func TestTooMuchToWaitForButLateIsFine(t *testing.T) {
	tokens := []doc.Signal{{ID: "users/1", Version: 10}, {ID: "users/2", Version: 20}}
	for name, c := range map[string]struct {
		tokens  []doc.Signal
		world   func(w *world)
		missing int
		took    time.Duration
		says    string
	}{
		"nothing else": {took: freshness.DefaultMargin, says: "come later"},
		"tokens": {
			tokens: tokens, took: 3 * time.Second, says: "The writes named by tokens are included.",
			world: func(w *world) { w.index("users/1", 10, 0); w.index("users/2", 20, 2900*time.Millisecond) },
		},
		"tokens that do not come": {
			tokens: tokens, missing: 1, took: 5 * time.Second, says: "1 awaited write was not in the index.",
			world: func(w *world) { w.index("users/1", 10, 0); w.table["users/2"] = true },
		},
		"tokens in quarantine": {
			tokens: tokens, took: 2500 * time.Millisecond, says: "The index could not take users/2.",
			world: func(w *world) {
				w.index("users/1", 10, 0)
				w.quarantined["users/2"] = doc.Quarantined{ID: "users/2", Version: 20}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &feed{w: newWorld(), err: doc.Errorf(doc.QueryTooCostly, "too much").With("limit", freshness.MaxCaptured)}
				if c.world != nil {
					c.world(f.w)
				}
				w := f.w
				waiter := freshness.NewWaiter(freshness.WaiterOptions{Index: w, Registry: w, Quarantine: w, Table: w, Feed: f})
				got, err := waiter.AsOfNow(t.Context(), []doc.Collection{"users"}, c.tokens, freshness.Patience{Timeout: 5 * time.Second, Silence: time.Second, Partly: true})
				if err != nil || !got.TimedOut() || got.MissingCount != c.missing || got.Tokens != len(c.tokens) || got.Took > c.took+300*time.Millisecond {
					t.Fatalf("%+v %v", got, err)
				}
				if problem := got.Problem(); problem == nil || problem.Kind != doc.QueryTooCostly {
					t.Errorf("%v", problem)
				}
				g := &gauges{}
				s := freshness.NewReporter(freshness.ReporterOptions{Queue: g, Measures: g}).Staleness(t.Context(), []doc.Collection{"users"}, got)
				if !s.Stale || !s.TimedOut || !strings.HasPrefix(s.Notice, "There was too much to wait for, and more may be missing here than is known: more than 10000 documents") ||
					c.says != "come later" && !strings.Contains(s.Notice, c.says) || len(c.tokens) == 0 && strings.Contains(s.Notice, "included") {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// sluggish engines answer each question after some time, unless nobody waits any
// more.
type sluggish struct {
	*world
	*feed
	takes time.Duration
}

func (s sluggish) Versions(ctx context.Context, wanted []search.VersionOf) (map[doc.ID]doc.Version, error) {
	if err := s.think(ctx); err != nil {
		return nil, doc.Errorf(doc.IndexUnavailable, "too late").Because(err)
	}
	return s.world.Versions(ctx, wanted)
}

func (s sluggish) Refresh(ctx context.Context, generations []collection.Generation) error {
	if err := s.think(ctx); err != nil {
		return doc.Errorf(doc.IndexUnavailable, "too late").Because(err)
	}
	return s.world.Refresh(ctx, generations)
}

func (s sluggish) Capture(ctx context.Context, q store.CaptureQuery) ([]doc.Signal, error) {
	if err := s.think(ctx); err != nil {
		return nil, doc.Errorf(doc.Unavailable, "too late").Because(err)
	}
	return s.feed.Capture(ctx, q)
}

func (s sluggish) think(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.takes):
		return nil
	}
}

// However long the engines take, a wait is over soon after its end.
func TestWaitsKeepToTheirTime(t *testing.T) {
	for _, timeout := range []time.Duration{0, 10 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second, 2 * time.Second, 2100 * time.Millisecond, 5 * time.Second} {
		for _, takes := range []time.Duration{0, 5 * time.Millisecond, 40 * time.Millisecond, 90 * time.Millisecond, 400 * time.Millisecond, 4 * time.Second} {
			for _, asOf := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					f := &feed{w: newWorld()}
					f.written("users/1", 10, 0, 0)
					f.written("users/2", 11, 0, never)
					s := sluggish{f.w, f, takes}
					waiter := freshness.NewWaiter(freshness.WaiterOptions{Index: s, Registry: s.world, Quarantine: s.world, Table: s.world, Feed: s})
					began := time.Now()
					var err error
					patience := freshness.Patience{Timeout: timeout, Silence: time.Second}
					if asOf {
						_, err = waiter.AsOfNow(t.Context(), []doc.Collection{"users"}, nil, patience)
					} else {
						_, err = waiter.Wait(t.Context(), []doc.Signal{{ID: "users/1", Version: 10}, {ID: "users/2", Version: 11}}, patience)
					}
					if took := time.Since(began); err != nil || took > timeout+100*time.Millisecond {
						t.Errorf("a wait of %s, as of now %v, with engines that take %s, took %s: %v", timeout, asOf, takes, took, err)
					}
				})
			}
		}
	}
}

// An index that would have shown what it holds a moment after the wait's end is
// not one that does not answer.
func TestAnEndDuringTheRefreshIsATimeout(t *testing.T) {
	for _, c := range []struct {
		timeout, shows time.Duration
		kind           doc.Kind
	}{
		{300 * time.Millisecond, 400 * time.Millisecond, doc.WaitTimeout},
		{300 * time.Millisecond, time.Hour, doc.WaitTimeout}, // too short to know
		{5 * time.Second, time.Hour, doc.IndexUnavailable},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{w: newWorld()}
			f.written("users/1", 10, 0, 0)
			slow := slowToShow{sluggish{f.w, f, 0}, c.shows}
			waiter := freshness.NewWaiter(freshness.WaiterOptions{Index: slow, Registry: f.w, Quarantine: f.w, Table: f.w, Feed: f})
			got, err := waiter.Wait(t.Context(), []doc.Signal{{ID: "users/1", Version: 10}}, freshness.Patience{Timeout: c.timeout})
			if problem := got.Problem(); err != nil || problem == nil || problem.Kind != c.kind {
				t.Errorf("a refresh that takes %s, a wait of %s: %v %v", c.shows, c.timeout, problem, err)
			}
		})
	}
}

// slowToShow is an index that tells quickly what it holds, and takes long to
// make it visible.
type slowToShow struct {
	sluggish
	shows time.Duration
}

func (s slowToShow) Refresh(ctx context.Context, generations []collection.Generation) error {
	s.takes = s.shows
	return s.sluggish.Refresh(ctx, generations)
}

// A wait that is just too short still tells what is missing where the engines
// are quick.
func TestAGlanceNamesWhatIsMissing(t *testing.T) {
	for _, timeout := range []time.Duration{100 * time.Millisecond, time.Second, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{w: newWorld()}
			f.written("users/1", 10, 0, 0)
			f.written("users/2", 11, 0, never)
			s := sluggish{f.w, f, 20 * time.Millisecond}
			waiter := freshness.NewWaiter(freshness.WaiterOptions{Index: s, Registry: s.world, Quarantine: s.world, Table: s.world, Feed: s})
			got, err := waiter.AsOfNow(t.Context(), []doc.Collection{"users"}, nil, freshness.Patience{Timeout: timeout})
			if err != nil || !slices.Equal(got.Missing, []doc.ID{"users/2"}) || got.Unavailable || got.AsOf.Captured {
				t.Errorf("%s: %+v %v", timeout, got, err)
			}
		})
	}
}
