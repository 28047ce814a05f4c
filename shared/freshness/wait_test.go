package freshness_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/search"
)

// world is everything around a waiter. Things happen in it at moments after its
// beginning.
type world struct {
	only        int   // the one generation that holds anything; 0: the second, and no other may be asked
	numbers     []int // of the generations that were asked
	began       time.Time
	indexedAt   map[doc.ID]time.Duration // when the index gets a document …
	indexed     map[doc.ID]doc.Version   // … in which version
	quarantined map[doc.ID]doc.Quarantined
	table       map[doc.ID]bool // the table has something under it
	generations []collection.Generation
	downUntil   time.Duration // the index does not answer before
	downFrom    time.Duration // … and again from then on; 0: never
	hangs       bool          // the index keeps everybody waiting
	noRefresh   bool

	asked, refreshed, tableAsked, largest int
}

func newWorld() *world {
	return &world{
		began: time.Now(), indexedAt: map[doc.ID]time.Duration{}, indexed: map[doc.ID]doc.Version{},
		quarantined: map[doc.ID]doc.Quarantined{}, table: map[doc.ID]bool{},
		generations: []collection.Generation{
			{Family: "$shared", Number: 1, State: collection.Retired},
			{Family: "$shared", Number: 2, State: collection.Active},
			{Family: "$shared", Number: 3, State: collection.Building},
		},
	}
}

func (w *world) waiter() *freshness.Waiter {
	return freshness.NewWaiter(freshness.WaiterOptions{Index: w, Registry: w, Quarantine: w, Table: w})
}

// What is awaited counts in the generation that is going to be searched: that
// another one holds it says nothing about the answer.
func TestWaitsInTheGenerationThatIsSearched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.only = 2
		w.index("users/1", 10, 0)
		w.table["users/1"] = true
		next := map[doc.Collection]collection.Generation{"users": {Family: "$shared", Number: 4, State: collection.Active}}
		signals := []doc.Signal{{ID: "users/1", Version: 10}}
		got, err := w.waiter().Wait(t.Context(), signals, freshness.Patience{Timeout: time.Second, Read: next})
		if err != nil || got.MissingCount != 1 || slices.Contains(w.numbers, 2) {
			t.Errorf("%+v %v, asked in %v", got, err, w.numbers)
		}
		w.only = 4
		if got, err = w.waiter().Wait(t.Context(), signals, freshness.Patience{Timeout: time.Second, Read: next}); err != nil || got.TimedOut() {
			t.Errorf("%+v %v", got, err)
		}
	})
}

var errDown = errors.New("does not answer")

func (w *world) down() bool {
	since := time.Since(w.began)
	return since < w.downUntil || w.downFrom > 0 && since >= w.downFrom
}

func (w *world) Versions(ctx context.Context, wanted []search.VersionOf) (map[doc.ID]doc.Version, error) {
	w.asked++
	if w.hangs {
		<-ctx.Done()
		return nil, doc.Errorf(doc.IndexUnavailable, "hangs").Because(ctx.Err())
	}
	if w.down() {
		return nil, doc.Errorf(doc.IndexUnavailable, "is down").Because(errDown)
	}
	found := map[doc.ID]doc.Version{}
	for _, of := range wanted {
		if w.numbers = append(w.numbers, of.Generation.Number); w.only > 0 {
			if of.Generation.Number != w.only {
				continue
			}
		} else if of.Generation.Number != 2 {
			return nil, fmt.Errorf("generation %d is asked, which no query reads", of.Generation.Number)
		}
		w.largest = max(w.largest, len(of.IDs))
		for _, id := range of.IDs {
			if at, ok := w.indexedAt[id]; ok && time.Since(w.began) >= at {
				found[id] = w.indexed[id]
			}
		}
	}
	return found, nil
}

func (w *world) Refresh(_ context.Context, generations []collection.Generation) error {
	w.refreshed++
	if w.down() {
		return doc.Errorf(doc.IndexUnavailable, "is down").Because(errDown)
	}
	if w.noRefresh || len(generations) != 1 || generations[0].Number != max(w.only, 2) {
		return errDown
	}
	return nil
}

func (w *world) Definition(_ context.Context, c doc.Collection) (collection.Definition, error) {
	return collection.Definition{Name: c}, nil
}

func (w *world) Generations(context.Context, collection.Family) ([]collection.Generation, error) {
	return w.generations, nil
}

func (w *world) CountQuarantined(context.Context, []doc.Collection) (int, error) {
	return len(w.quarantined), nil
}

func (w *world) Quarantine(_ context.Context, ids []doc.ID) (map[doc.ID]doc.Quarantined, error) {
	found := maps.Clone(w.quarantined)
	maps.DeleteFunc(found, func(id doc.ID, _ doc.Quarantined) bool { return !slices.Contains(ids, id) })
	return found, nil
}

func (w *world) Revisions(_ context.Context, ids []doc.ID, _ int, visit func([]doc.Document, []doc.ID) error) error {
	w.tableAsked += len(ids)
	var found []doc.Document
	var absent []doc.ID
	for _, id := range ids {
		if w.table[id] {
			found = append(found, doc.Document{ID: id})
		} else {
			absent = append(absent, id)
		}
	}
	return visit(found, absent)
}

func (w *world) index(id doc.ID, v doc.Version, at time.Duration) {
	w.table[id], w.indexed[id], w.indexedAt[id] = true, v, at
}

// wait waits in a bubble in which time passes at once.
func wait(t *testing.T, w *world, timeout time.Duration, signals ...doc.Signal) freshness.Waited {
	t.Helper()
	got, err := w.waiter().Wait(t.Context(), signals, freshness.Patience{Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestWaits(t *testing.T) {
	one := doc.Signal{ID: "users/1", Version: 10}
	two := doc.Signal{ID: "users/2", Version: 20}
	for _, c := range []struct {
		name        string
		signals     []doc.Signal
		world       func(w *world)
		missing     []doc.ID
		quarantined []doc.ID
		unavailable bool
		absent      int
		least, most time.Duration
	}{
		{name: "for nothing", most: 0},
		{
			name: "not at all for what is there", signals: []doc.Signal{one},
			world: func(w *world) { w.index("users/1", 10, 0) }, most: 0,
		},
		{
			name: "until it is there", signals: []doc.Signal{one, two},
			world: func(w *world) {
				w.index("users/1", 10, 300*time.Millisecond)
				w.index("users/2", 20, 900*time.Millisecond)
			},
			least: 900 * time.Millisecond, most: 1200 * time.Millisecond,
		},
		{
			name: "also for something newer", signals: []doc.Signal{one},
			world: func(w *world) { w.index("users/1", 11, 0) }, most: 0,
		},
		{
			name: "for the newest of several versions", signals: []doc.Signal{one, {ID: "users/1", Version: 12}},
			world:   func(w *world) { w.index("users/1", 11, 0) },
			missing: []doc.ID{"users/1"}, least: 5 * time.Second, most: 5 * time.Second,
		},
		{
			name: "in vain for what does not come", signals: []doc.Signal{one, two},
			world: func(w *world) {
				w.index("users/1", 10, 0)
				w.index("users/2", 19, 0)
			},
			missing: []doc.ID{"users/2"}, least: 5 * time.Second, most: 5 * time.Second,
		},
		{
			name: "not for what is in quarantine", signals: []doc.Signal{one, two},
			world: func(w *world) {
				w.index("users/1", 10, 0)
				w.table["users/2"] = true
				w.quarantined["users/2"] = doc.Quarantined{ID: "users/2", Version: 20}
			},
			quarantined: []doc.ID{"users/2"}, most: 400 * time.Millisecond,
		},
		{
			name: "beyond an older or partial entry", signals: []doc.Signal{one, two},
			world: func(w *world) {
				w.table["users/1"], w.table["users/2"] = true, true
				w.quarantined["users/1"] = doc.Quarantined{ID: "users/1", Version: 9}
				w.quarantined["users/2"] = doc.Quarantined{ID: "users/2", Version: 20, Partial: true}
			},
			missing: []doc.ID{"users/1", "users/2"}, least: 5 * time.Second, most: 5 * time.Second,
		},
		{
			name: "not for what is nowhere", signals: []doc.Signal{one}, absent: 1, least: time.Second, most: 1500 * time.Millisecond,
		},
		{
			name: "until the first index is there", signals: []doc.Signal{one},
			world: func(w *world) {
				all := w.generations
				w.generations = nil
				time.AfterFunc(700*time.Millisecond, func() { w.generations = all })
				w.index("users/1", 10, 0)
			},
			least: 700 * time.Millisecond, most: time.Second,
		},
		{
			name: "through an outage", signals: []doc.Signal{one},
			world: func(w *world) { w.downUntil = 3 * time.Second; w.index("users/1", 10, 0) },
			least: 3 * time.Second, most: 3500 * time.Millisecond,
		},
		{
			name: "in vain through a long one, even for what is nowhere", signals: []doc.Signal{one},
			world:   func(w *world) { w.downUntil = time.Hour },
			missing: []doc.ID{"users/1"}, unavailable: true, least: 5 * time.Second, most: 5 * time.Second,
		},
		{
			name: "in vain if the index keeps it waiting", signals: []doc.Signal{one},
			world:   func(w *world) { w.hangs = true },
			missing: []doc.ID{"users/1"}, unavailable: true, least: 5 * time.Second, most: 5100 * time.Millisecond,
		},
		{
			name: "in vain if the index goes away", signals: []doc.Signal{one, two},
			world: func(w *world) {
				w.downFrom = 2 * time.Second
				w.index("users/1", 10, 0)
				w.index("users/2", 20, 3*time.Second)
			},
			missing: []doc.ID{"users/1", "users/2"}, unavailable: true, least: 5 * time.Second, most: 5500 * time.Millisecond,
		},
		{
			name: "in vain though the index came back", signals: []doc.Signal{one},
			world:   func(w *world) { w.downUntil = 4 * time.Second; w.index("users/1", 9, 0) },
			missing: []doc.ID{"users/1"}, least: 5 * time.Second, most: 5 * time.Second,
		},
		{
			name: "in vain if searches cannot be made to see it", signals: []doc.Signal{one, two},
			world: func(w *world) {
				w.noRefresh = true
				w.index("users/1", 10, 0)
				w.index("users/2", 20, 0)
			},
			missing: []doc.ID{"users/1", "users/2"}, least: 5 * time.Second, most: 5500 * time.Millisecond,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				if c.world != nil {
					c.world(w)
				}
				got := wait(t, w, 5*time.Second, c.signals...)
				if !slices.Equal(got.Missing, c.missing) || got.MissingCount != len(c.missing) || !slices.Equal(got.Quarantined, c.quarantined) || got.AbsentCount != c.absent {
					t.Errorf("%+v", got)
				}
				if took := time.Since(w.began); took < c.least || took > c.most || got.Took > took {
					t.Errorf("took %s, says %s", took, got.Took)
				}
				kind := doc.WaitTimeout
				if c.unavailable {
					kind = doc.IndexUnavailable
				}
				if problem := got.Problem(); (problem != nil) != (len(c.missing) > 0) || problem != nil && problem.Kind != kind {
					t.Errorf("the problem is %v", problem)
				}
				if len(c.missing) == 0 && len(w.indexed) > 0 && w.refreshed == 0 {
					t.Error("searches were not made to see it")
				}
			})
		})
	}
}

// Who would take a late answer is not kept waiting for an index that gives none.
func TestAWaitIsGivenUpWhereTheIndexIsSilent(t *testing.T) {
	const silence = time.Second
	one, two := doc.Signal{ID: "users/1", Version: 10}, doc.Signal{ID: "users/2", Version: 20}
	for name, c := range map[string]struct {
		world       func(w *world)
		missing     int
		unavailable bool
		least, most time.Duration
	}{
		"from the beginning": {func(w *world) { w.downUntil = time.Hour }, 2, true, silence, silence + 500*time.Millisecond},
		"without an end":     {func(w *world) { w.hangs = true }, 2, true, silence, silence},
		"later": {
			func(w *world) { w.downFrom = 2 * time.Second; w.index("users/1", 10, 0); w.table["users/2"] = true },
			2, true, 2*time.Second + 2*silence, 3*time.Second + 2*silence, // in a look and a refresh
		},
		"for a moment": {
			func(w *world) {
				w.downUntil = silence / 2
				w.index("users/1", 10, 0)
				w.index("users/2", 20, 3*time.Second)
			},
			0, false, 3 * time.Second, 3500 * time.Millisecond,
		},
		"never": {func(w *world) { w.table["users/1"], w.table["users/2"] = true, true }, 2, false, 9 * time.Second, 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				c.world(w)
				got, err := w.waiter().Wait(t.Context(), []doc.Signal{one, two}, freshness.Patience{Timeout: 9 * time.Second, Silence: silence})
				if err != nil || got.MissingCount != c.missing || got.Unavailable != c.unavailable || got.Took < c.least || got.Took > c.most {
					t.Errorf("%+v %v", got, err)
				}
			})
		})
	}
}

func TestWaitsForThousands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var signals []doc.Signal
		for i := range 5000 {
			id := doc.ID(fmt.Sprintf("flights/%d", i))
			signals = append(signals, doc.Signal{ID: id, Version: 10})
			w.index(id, 10, time.Duration(i%2)*time.Second)
		}
		w.index("flights/77", 9, 0)
		w.index("flights/78", 9, 0)
		got := wait(t, w, 3*time.Second, signals...)
		if got.Documents != 5000 || got.MissingCount != 2 || w.largest > 1000 {
			t.Errorf("%+v, %d ids in one question", got, w.largest)
		}
		if w.tableAsked > 200 {
			t.Errorf("the table was asked for %d documents", w.tableAsked)
		}
		delete(w.indexedAt, "flights/77")
		for i := range 30 {
			w.index(doc.ID(fmt.Sprintf("flights/%d", i)), 9, 0)
		}
		if got = wait(t, w, time.Second, signals...); got.MissingCount != 32 || len(got.Missing) != freshness.MaxNamed {
			t.Errorf("%d missing, %d named", got.MissingCount, len(got.Missing))
		}
	})
}

func TestTheCallerGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.table["users/1"] = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.waiter().Wait(ctx, []doc.Signal{{ID: "users/1", Version: 10}}, freshness.Patience{Timeout: time.Minute})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(w.began) > 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(w.began))
		}
	})
}
