package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/store"
)

func TestCollectionsAreKnownBeforeTheirDocuments(t *testing.T) {
	tb := newTables(t)
	f := &faults{}
	st := tb.open(f)
	f.plan = func(operation string, n int) fault {
		if operation == "UpdateItem" && n == 0 {
			if all, err := tb.open(nil).State().Collections(t.Context()); err != nil || len(all) != 0 {
				t.Errorf("registered before anything was asked: %v, %v", all, err)
			}
		}
		return fine
	}
	if _, err := st.Put(t.Context(), "users/1/account/2", data("x"), doc.Condition{}); err != nil {
		t.Fatal(err)
	}
	requests := f.count("UpdateItem") + f.count("GetItem")
	if _, err := st.Put(t.Context(), "users/7/account", data("x"), doc.Condition{}); err != nil {
		t.Fatal(err)
	}
	if more := f.count("UpdateItem") + f.count("GetItem") - requests; more != 1 {
		t.Errorf("a further document of a known collection took %d requests", more)
	}
	if _, err := tb.open(nil).Create(t.Context(), "users", data("x")); err != nil {
		t.Fatal(err)
	}
	want := []doc.Collection{"users", "users/account"}
	if all, err := st.State().Collections(t.Context()); err != nil || !slices.Equal(all, want) {
		t.Errorf("%v, %v", all, err)
	}
	// Where the registration fails, nothing is written.
	f = &faults{plan: func(string, int) fault { return dialRefused }}
	st = tb.open(f)
	ctx, cancel := contextFor(t, 200*time.Millisecond)
	defer cancel()
	_, err := st.Put(ctx, "other/1", data("x"), doc.Condition{})
	checkEngineError(t, "put", err, doc.Unavailable)
	if _, err := tb.open(nil).Load(t.Context(), "other/1"); doc.KindOf(err) != doc.NotFound {
		t.Errorf("written without registration: %v", err)
	}
}

func TestBucketsOnlyGrow(t *testing.T) {
	tb := newTables(t)
	ctx := t.Context()
	with := func(n int) *store.Store { return tb.open(nil, func(o *store.Options) { o.Buckets = n }) }
	few, many := with(2), with(16)
	var want []doc.ID
	write := func(s *store.Store, name string) {
		t.Helper()
		for i := range 40 {
			id := doc.ID(fmt.Sprintf("%s/%d", name, i))
			if _, err := s.Put(ctx, id, data("x"), doc.Condition{}); err != nil {
				t.Fatal(err)
			}
			want = append(want, id)
		}
	}
	write(few, "few")
	write(many, "many")
	write(few, "again")     // a process that goes on with the lower number
	write(with(1), "later") // a new one that was told a lower number
	slices.Sort(want)
	for name, s := range map[string]*store.Store{"few": few, "many": many, "one": with(1)} {
		var got []doc.ID
		after := ""
		for {
			page, err := s.Changes(ctx, store.ChangesQuery{After: after, Limit: 50})
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Changes) == 0 {
				break
			}
			for _, c := range page.Changes {
				got = append(got, c.ID)
			}
			after = page.Next
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d changes, want %d", name, len(got), len(want))
		}
	}
}

func TestDefinitions(t *testing.T) {
	tb := newTables(t)
	ctx := t.Context()
	var offset atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	a := store.NewState(newClient(tb.url, nil), tb.state, doc.NewClock(now))
	b := store.NewState(newClient(tb.url, nil), tb.state, nil)
	if d, err := a.Definition(ctx, "users"); err != nil || d.Name != "users" || d.Revision != 0 {
		t.Fatalf("of an undeclared collection: %+v, %v", d, err)
	}
	d, err := b.PutDefinition(ctx, collection.Definition{Name: "users", Text: []string{"about"}}, 0)
	if err != nil || d.Revision != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	if d, err := a.Definition(ctx, "users"); err != nil || d.Revision != 0 {
		t.Errorf("not from the cache: %+v, %v", d, err)
	}
	offset.Store(int64(store.DefinitionLife))
	if d, err := a.Definition(ctx, "users"); err != nil || d.Revision != 1 || !slices.Equal(d.Text, []string{"about"}) {
		t.Errorf("after the cache's life: %+v, %v", d, err)
	}
	for _, expected := range []int64{0, 2, 7} {
		if _, err := a.PutDefinition(ctx, collection.Definition{Name: "users"}, expected); doc.KindOf(err) != doc.VersionConflict {
			t.Errorf("over revision %d: %v", expected, err)
		}
	}
	if d, err := a.PutDefinition(ctx, d, 1); err != nil || d.Revision != 2 {
		t.Errorf("%+v, %v", d, err)
	}
	// One wins; who lost its answer knows that it has won.
	f := &faults{plan: func(op string, n int) fault {
		if op == "PutItem" && n == 0 {
			return lostAfter
		}
		return fine
	}}
	lost := store.NewState(newClient(tb.url, f), tb.state, nil)
	if d, err := lost.PutDefinition(ctx, d, 2); err != nil || d.Revision != 3 {
		t.Errorf("after a lost answer: %+v, %v", d, err)
	}
	if _, err := a.PutDefinition(ctx, d, 2); doc.KindOf(err) != doc.VersionConflict {
		t.Errorf("the second: %v", err)
	}
}

// TestAmendments changes what is not declared under the same revision, and only
// over what was read.
func TestAmendments(t *testing.T) {
	tb := newTables(t)
	ctx := t.Context()
	st := tb.open(nil).State()
	d, err := st.PutDefinition(ctx, collection.Definition{
		Name: "orders", Nested: []string{"lines"}, Serving: &collection.Form{Text: []string{"about"}, Exclude: []string{"log"}},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	read := func(want collection.Definition) collection.Definition {
		t.Helper()
		for name, ask := range map[string]func() (collection.Definition, error){
			"current":    func() (collection.Definition, error) { return tb.open(nil).State().CurrentDefinition(ctx, "orders") },
			"remembered": func() (collection.Definition, error) { return st.Definition(ctx, "orders") },
		} {
			if got, err := ask(); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %+v, %v; want %+v", name, got, err, want)
			}
		}
		return want
	}
	before := read(d)
	moved := before
	moved.Moved = true
	moved.Revision = 17 // not its business
	if err := st.AmendDefinition(ctx, moved, before); err != nil {
		t.Fatal(err)
	}
	moved.Revision, moved.Amended = before.Revision, 1
	read(moved)
	done := moved
	done.Serving, done.Moved = nil, false
	for _, expected := range []collection.Definition{before, {Name: "orders"}, done} {
		if err := st.AmendDefinition(ctx, done, expected); doc.KindOf(err) != doc.VersionConflict {
			t.Errorf("over %+v: %v", expected, err)
		}
	}
	if err := st.AmendDefinition(ctx, done, moved); err != nil {
		t.Fatal(err)
	}
	done.Amended = 2
	read(done)
	if _, err := st.PutDefinition(ctx, before, done.Revision); doc.KindOf(err) != doc.VersionConflict {
		t.Errorf("over what was amended meanwhile: %v", err)
	}
	if err := st.AmendDefinition(ctx, collection.Definition{Name: "none", Moved: true}, collection.Definition{Name: "none"}); doc.KindOf(err) != doc.VersionConflict {
		t.Errorf("of nothing: %v", err)
	}
	if d, err := st.PutDefinition(ctx, done, done.Revision); err != nil || d.Revision != done.Revision+1 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestGenerations(t *testing.T) {
	tb := newTables(t)
	ctx := t.Context()
	st := tb.open(nil).State()
	if all, err := st.Generations(ctx, collection.SharedFamily); err != nil || len(all) != 0 {
		t.Fatalf("%v, %v", all, err)
	}
	var won, lost atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			g := collection.First(collection.Definition{Name: "users"}, 100+i)
			switch err := tb.open(nil).State().PutGeneration(ctx, g, nil); doc.KindOf(err) {
			case "":
				won.Add(1)
			case doc.VersionConflict:
				lost.Add(1)
			default:
				t.Errorf("creator %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 7 {
		t.Errorf("%d creators won, %d lost", won.Load(), lost.Load())
	}
	all, err := st.Generations(ctx, collection.SharedFamily)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	first := all[0]
	retired := first
	retired.State = collection.Retired
	if err := st.PutGeneration(ctx, retired, &first); err != nil {
		t.Error(err)
	}
	if err := st.PutGeneration(ctx, retired, &first); doc.KindOf(err) != doc.VersionConflict {
		t.Errorf("over what is no more: %v", err)
	}
	for _, number := range []int{2, 10, 11} {
		g := first
		g.Number, g.Nested = number, []string{"lines"}
		if err := st.PutGeneration(ctx, g, nil); err != nil {
			t.Error(err)
		}
	}
	own := first
	own.Family = "orders"
	if err := st.PutGeneration(ctx, own, nil); err != nil {
		t.Error(err)
	}
	// A record that was changed stays; one that is as it was goes, once.
	all, err = st.Generations(ctx, "orders")
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	changed := all[0]
	changed.State, changed.Since = collection.Retired, time.Now()
	if err := st.DropGeneration(ctx, changed); doc.KindOf(err) != doc.VersionConflict {
		t.Errorf("of what is not so: %v", err)
	}
	if err := st.PutGeneration(ctx, changed, &all[0]); err != nil {
		t.Error(err)
	}
	all, err = st.Generations(ctx, "orders")
	if err != nil || len(all) != 1 || all[0].State != collection.Retired || !all[0].Since.Equal(changed.Since) {
		t.Fatalf("%v, %v", all, err)
	}
	for range 2 {
		if err := st.DropGeneration(ctx, all[0]); err != nil {
			t.Error(err)
		}
	}
	if left, err := st.Generations(ctx, "orders"); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	all, err = st.Generations(ctx, collection.SharedFamily)
	var numbers []int
	for _, g := range all {
		numbers = append(numbers, g.Number)
	}
	if err != nil || !slices.Equal(numbers, []int{1, 2, 10, 11}) || all[0].State != collection.Retired || !slices.Equal(all[3].Nested, []string{"lines"}) {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestQuarantine(t *testing.T) {
	tb := newTables(t)
	ctx := t.Context()
	st := tb.open(nil).State()
	note := func(id doc.ID, v doc.Version, reason string) {
		t.Helper()
		err := st.RecordQuarantine(ctx, doc.Quarantined{ID: id, Collection: id.Collection(), Version: v, Reason: reason, Partial: v > 5})
		if err != nil {
			t.Fatal(err)
		}
	}
	get := func(id doc.ID) doc.Quarantined {
		t.Helper()
		all, err := st.Quarantine(ctx, []doc.ID{id, "users/none", id})
		if err != nil {
			t.Fatal(err)
		}
		return all[id]
	}
	count := func(want int, cs ...doc.Collection) {
		t.Helper()
		if n, err := st.CountQuarantined(ctx, cs); err != nil || n != want {
			t.Errorf("%v: %d, want %d, %v", cs, n, want, err)
		}
	}
	count(0, "users")
	note("users/1", 5, "first")
	since := get("users/1").Since
	note("users/1", 5, "second")
	if q := get("users/1"); q.Attempts != 2 || q.Reason != "second" || !q.Since.Equal(since) || q.Version != 5 || q.Partial || q.Collection != "users" || q.ID != "users/1" {
		t.Errorf("the same version again: %+v", q)
	}
	note("users/1", 9, "newer")
	note("users/1", 7, "older")
	if q := get("users/1"); q.Attempts != 1 || q.Version != 9 || q.Reason != "newer" || !q.Partial || q.Since.Before(since) {
		t.Errorf("a newer version: %+v", q)
	}
	note("users/2", 1, strings.Repeat("é", 5000))
	if q := get("users/2"); len(q.Reason) > 2000 || !strings.HasPrefix(strings.Repeat("é", 5000), q.Reason) {
		t.Errorf("a reason of %d bytes", len(q.Reason))
	}
	note("users/1/account", 1, "other")
	count(2, "users")
	count(3, "users", "users/account", "users", "none")
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { note("users/3", 4, "at once") })
	}
	wg.Wait()
	if q := get("users/3"); q.Attempts != 10 {
		t.Errorf("%d of 10 attempts", q.Attempts)
	}
	for _, c := range []struct {
		upTo doc.Version
		left bool
	}{{8, true}, {9, false}, {9, false}} {
		if err := st.ClearQuarantine(ctx, "users", "users/1", c.upTo); err != nil {
			t.Error(err)
		}
		if left := get("users/1").Version != 0; left != c.left {
			t.Errorf("up to %d: left %t", c.upTo, left)
		}
	}
	count(2, "users")
}

func TestLag(t *testing.T) {
	tb := newTables(t)
	ctx := t.Context()
	st := tb.open(nil).State()
	if _, ok, err := st.Lag(ctx); ok || err != nil {
		t.Errorf("before any measure: %t, %v", ok, err)
	}
	at := time.Now().UTC().Truncate(time.Microsecond)
	if err := st.RecordLag(ctx, store.LagMeasure{At: at.Add(-2 * time.Hour), Lag: time.Second}); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := st.Lag(ctx); err != nil || ok {
		t.Errorf("hours old: %+v, %t, %v", got, ok, err)
	}
	later := store.LagMeasure{At: at, Lag: 1500 * time.Millisecond}
	for _, m := range []store.LagMeasure{{At: at.Add(-time.Second), Lag: time.Hour}, later, {At: at.Add(-2 * time.Second), Lag: time.Minute}} {
		if err := st.RecordLag(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	if got, ok, err := st.Lag(ctx); err != nil || !ok || got != later {
		t.Errorf("%+v, %t, %v", got, ok, err)
	}
}

// TestSequenceRestarts has processes come and go: no number is given twice, and
// few are left out.
func TestSequenceRestarts(t *testing.T) {
	tb := newTables(t)
	given := map[doc.ID]bool{}
	for range 6 {
		s := tb.open(nil)
		for range 3 {
			w, err := s.Create(t.Context(), "users", data("x"))
			if err != nil {
				t.Fatal(err)
			}
			if given[w.ID] {
				t.Errorf("%s was given twice", w.ID)
			}
			given[w.ID] = true
		}
	}
	if !given["users/1"] || !given["users/3"] {
		t.Errorf("not dense in one process: %v", given)
	}
	for id := range given {
		if len(id) > len("users/30") || id > "users/30" && len(id) == len("users/30") {
			t.Errorf("18 documents, and one is %s", id)
		}
	}
	// A lost answer to a reservation or to the write never gives a number twice.
	for _, op := range []int{0, 1, 2, 3} {
		f := &faults{plan: func(operation string, n int) fault {
			if operation == "UpdateItem" && n == op {
				return lostAfter
			}
			return fine
		}}
		w, err := tb.open(f).Create(t.Context(), "users", data("x"))
		if err != nil || given[w.ID] || !w.Created {
			t.Errorf("request %d lost: %+v, %v", op, w, err)
		}
		given[w.ID] = true
	}
}

// TestCursorKeyIsOneForAll lets many processes ask at once for a key that
// nobody has made yet.
func TestCursorKeyIsOneForAll(t *testing.T) {
	tb := newTables(t)
	const processes = 8
	keys := make([]string, processes)
	var all sync.WaitGroup
	for i := range processes {
		state := tb.open(nil).State()
		all.Go(func() {
			key, err := state.CursorKey(t.Context())
			if err != nil {
				t.Error(err)
			}
			keys[i] = string(key)
		})
	}
	all.Wait()
	later, err := tb.open(nil).State().CursorKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(later) != 32 || strings.Count(string(later), "\x00") == 32 {
		t.Errorf("the key is %x", later)
	}
	for i, key := range keys {
		if key != string(later) {
			t.Errorf("process %d has another key", i)
		}
	}
	if other, err := newTables(t).open(nil).State().CursorKey(t.Context()); err != nil || string(other) == string(later) {
		t.Errorf("another deployment has the same key, %v", err)
	}
}
