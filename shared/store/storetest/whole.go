package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast/shared/doc"
	"holdfast/shared/store"
	"holdfast/shared/value"
)

// Whole is a store that can be gone through as a whole.
type Whole interface {
	Store
	Sweep(ctx context.Context, from doc.Version, visit func([]doc.Change) error) error
	Scan(ctx context.Context, q store.ScanQuery) (store.ScanPage, error)
	Standings(ctx context.Context, ids []doc.ID) (map[doc.ID]store.Standing, error)
	PutCanary(ctx context.Context, n int) (doc.Written, error)
	FeedHas(ctx context.Context, w doc.Written) (bool, error)
}

// RunWhole runs the suite of what goes through the whole store. The stores that
// open gives are a Whole.
func RunWhole(t *testing.T, open Open) {
	for _, part := range []struct {
		name string
		run  func(*testing.T, *bench, Whole)
	}{
		{"Sweep", sweep},
		{"SweepAmongWriters", sweepAmongWriters},
		{"Scan", scan},
		{"Standings", standings},
		{"Canaries", canaries},
	} {
		t.Run(part.name, func(t *testing.T) {
			b := &bench{ctx: t.Context()}
			b.Subject = open(t, b.now)
			whole, ok := b.Store.(Whole)
			if !ok {
				t.Fatalf("a %T cannot be gone through", b.Store)
			}
			part.run(t, b, whole)
		})
	}
}

// mostSwept is how many entries are visited at a time.
const mostSwept = 1000

// swept is the newest change of every id that a sweep visits.
func swept(t failer, ctx context.Context, s Whole, from doc.Version) map[doc.ID]doc.Change {
	t.Helper()
	newest := map[doc.ID]doc.Change{}
	err := s.Sweep(ctx, from, func(changes []doc.Change) error {
		if len(changes) == 0 || len(changes) > mostSwept {
			t.Errorf("%d entries at a time", len(changes))
		}
		for _, c := range changes {
			if c.Version < from {
				t.Errorf("%+v from %d on", c, from)
			}
			if c.Version > newest[c.ID].Version {
				newest[c.ID] = c
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("sweep: %v", err)
	}
	return newest
}

func sweep(t *testing.T, b *bench, s Whole) {
	if got := swept(t, b.ctx, s, 0); len(got) != 0 {
		t.Errorf("before anything was written: %v", got)
	}
	want := map[doc.ID]doc.Change{}
	note := func(w doc.Written, deleted bool) doc.Version {
		want[w.ID] = doc.Change{ID: w.ID, Version: w.Version, Collection: w.ID.Collection(), Deleted: deleted}
		return w.Version
	}
	var middle doc.Version
	for i := range 40 {
		note(b.put(t, doc.ID(fmt.Sprintf("a/%d", i)), counter(i)), false)
		note(b.put(t, doc.ID(fmt.Sprintf("a/%d/b/%d", i, i)), counter(i)), false)
		switch i {
		case 11, 12:
			note(b.put(t, "a/3", counter(i)), false)
		case 20:
			middle = note(b.delete(t, "a/7"), true)
		case 30:
			note(b.delete(t, "a/8/b/8"), true)
			w, err := s.PutCanary(b.ctx, 5)
			if err != nil {
				t.Fatal(err)
			}
			note(w, false)
		}
	}
	for _, from := range []doc.Version{0, 1, middle, middle + 1, doc.VersionAt(b.now()) + 1_000_000} {
		maps.DeleteFunc(want, func(_ doc.ID, c doc.Change) bool { return c.Version < from })
		b.eventually(t, func() error {
			if got := swept(t, b.ctx, s, from); !maps.Equal(got, want) {
				return fmt.Errorf("from %d: %v, want %v", from, got, want)
			}
			return nil
		})
	}
	broken := errors.New("visitor")
	calls := 0
	err := s.Sweep(b.ctx, 0, func([]doc.Change) error { calls++; return broken })
	if !errors.Is(err, broken) || calls != 1 {
		t.Errorf("the visitor's error became %v after %d calls", err, calls)
	}
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if err := s.Sweep(ctx, 0, func([]doc.Change) error { return nil }); err == nil {
		t.Error("no error under an ended context")
	}
}

// sweepAmongWriters has documents change and move in the feed all the time: what
// was acknowledged before a sweep is seen by it, in that version or a newer one.
func sweepAmongWriters(t *testing.T, b *bench, s Whole) {
	ctx, stop := context.WithCancel(b.ctx)
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stop()
	var mu sync.Mutex
	acknowledged := map[doc.ID]doc.Change{}
	started := make(chan struct{}, 4)
	for n := range 4 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := doc.ID(fmt.Sprintf("hot/%d", (i*i+n)%5))
				var w doc.Written
				var err error
				if i%9 == 8 {
					w, err = s.Delete(ctx, id, doc.Condition{})
				} else {
					w, err = s.Put(ctx, id, counter(i), doc.Condition{})
				}
				if ctx.Err() != nil {
					return // the end of the test
				}
				if err != nil {
					t.Errorf("writer %d: %v", n, err)
					return
				}
				mu.Lock()
				if w.Version > acknowledged[id].Version {
					acknowledged[id] = doc.Change{ID: id, Version: w.Version}
				}
				mu.Unlock()
				if i == 9 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 4 {
		select {
		case <-started:
		case <-b.ctx.Done():
			t.Fatal("the writers do not write")
		}
	}
	from := doc.Version(0)
	for range 8 {
		mu.Lock()
		before := maps.Clone(acknowledged)
		mu.Unlock()
		missing := func() error {
			got := swept(t, b.ctx, s, from)
			for id, c := range before {
				if c.Version >= from && got[id].Version < c.Version {
					return fmt.Errorf("%s: %d was acknowledged, %d swept", id, c.Version, got[id].Version)
				}
			}
			return nil
		}
		b.eventually(t, missing)
		for _, c := range before { // as a proof begins where the one before ended
			from = max(from, c.Version-1_000_000)
		}
	}
}

// everything scans all segments page by page.
func everything(t failer, ctx context.Context, s Whole, segments, maxBytes int) (all []store.Scanned, pages int) {
	t.Helper()
	for segment := range segments {
		q := store.ScanQuery{Segment: segment, Segments: segments, MaxBytes: maxBytes}
		for {
			page, err := s.Scan(ctx, q)
			if err != nil {
				t.Fatalf("scan: %v", err)
			}
			all = append(all, page.Items...)
			pages++
			if page.Next == "" {
				break
			}
			q.After = page.Next
		}
	}
	return all, pages
}

func scan(t *testing.T, b *bench, s Whole) {
	if all, _ := everything(t, b.ctx, s, 2, 0); len(all) != 0 {
		t.Errorf("before anything was written: %v", all)
	}
	var ids []doc.ID
	for i := range 60 {
		ids = append(ids, doc.ID(fmt.Sprintf("a/%d", i)))
		if i%4 == 0 {
			for k := range 5 {
				ids = append(ids, doc.ID(fmt.Sprintf("a/%d/b/%d", i, k)))
			}
		}
	}
	b.fill(t, ids)
	b.put(t, ids[3], map[string]any{"text": strings.Repeat("long ", 4000)})
	b.delete(t, ids[5])
	if _, err := s.PutCanary(b.ctx, 1); err != nil {
		t.Fatal(err)
	}
	want := map[doc.ID]doc.Document{}
	err := s.Revisions(b.ctx, ids, 0, func(found []doc.Document, _ []doc.ID) error {
		for _, d := range found {
			want[d.ID] = d
		}
		return nil
	})
	if err != nil || len(want) != len(ids) {
		t.Fatalf("%d documents, %v", len(want), err)
	}
	for _, by := range []struct{ segments, bytes int }{{1, 0}, {1, 3000}, {2, 1}, {3, 30_000}, {7, 0}, {7, 3000}} {
		all, pages := everything(t, b.ctx, s, by.segments, by.bytes)
		seen := map[doc.ID]bool{}
		canaries := 0
		for _, item := range all {
			d := item.Document
			if seen[d.ID] {
				t.Fatalf("%+v: %s twice", by, d.ID)
			}
			seen[d.ID] = true
			if item.Foreign || item.Seen.Version != d.Version || item.Seen.Nonce == "" {
				t.Errorf("%+v: %s: %+v", by, d.ID, item)
			}
			if d.ID.Collection().System() {
				canaries++
				continue
			}
			w := want[d.ID]
			same := d.Version == w.Version && d.Deleted == w.Deleted && d.CreatedAt.Equal(w.CreatedAt) && d.UpdatedAt.Equal(w.UpdatedAt) && value.Equal(d.Data, w.Data)
			if !same && (w.Deleted && d.Data != nil || !w.Deleted) {
				t.Errorf("%+v: %s: %+v, want %+v", by, d.ID, d, w)
			}
		}
		if len(seen) != len(want)+1 || canaries != 1 {
			t.Fatalf("%+v: %d of %d documents, %d canaries", by, len(seen)-canaries, len(want), canaries)
		}
		if by.bytes == 1 && pages < len(all) {
			t.Fatalf("%+v: %d items on %d pages of one byte", by, len(all), pages)
		}
	}
	first, err := s.Scan(b.ctx, store.ScanQuery{Segment: 0, Segments: 1, MaxBytes: 1})
	if err != nil || first.Next == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	for _, q := range []store.ScanQuery{
		{Segment: 0, Segments: 2, After: first.Next}, {Segment: 1, Segments: 2, After: first.Next}, {Segments: 1, After: "garbage"}, {Segments: 1, After: first.Next + "AAAA"},
	} {
		if _, err := s.Scan(b.ctx, q); doc.KindOf(err) != doc.InvalidCursor {
			t.Errorf("%+v: %v", q, err)
		}
	}
	for _, q := range []store.ScanQuery{{Segment: 2, Segments: 2}, {Segment: -1, Segments: 2}, {Segment: 1}} {
		if _, err := s.Scan(b.ctx, q); err == nil {
			t.Errorf("there is a segment %d of %d", q.Segment, q.Segments)
		}
	}
	if whole, err := s.Scan(b.ctx, store.ScanQuery{}); err != nil || len(whole.Items) == 0 {
		t.Errorf("of nothing in particular: %+v, %v", whole, err)
	}
}

func standings(t *testing.T, b *bench, s Whole) {
	var ids []doc.ID
	for i := range 230 {
		ids = append(ids, doc.ID(fmt.Sprintf("standings/%d", i)))
	}
	b.fill(t, ids)
	want := map[doc.ID]store.Standing{}
	for _, id := range ids {
		want[id] = store.Standing{Version: b.load(t, id).Version}
	}
	want[ids[3]] = store.Standing{Version: b.delete(t, ids[3]).Version, Deleted: true}
	got, err := s.Standings(b.ctx, append(slices.Clone(ids), ids[0], "standings/none", "standings/none/of/these"))
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%d standings, %v; want %d", len(got), err, len(want))
	}
	if got, err := s.Standings(b.ctx, nil); err != nil || len(got) != 0 {
		t.Errorf("of nothing: %v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, err := s.Standings(ctx, ids); err == nil {
		t.Error("no error under an ended context")
	}
}

func canaries(t *testing.T, b *bench, s Whole) {
	b.put(t, "a/1", counter(1))
	const most = 40
	written := map[doc.ID][]int{}
	var last doc.Written
	for n := range most {
		w, err := s.PutCanary(b.ctx, n)
		if err != nil || !w.ID.Collection().System() || w.Version == 0 || w.Created != (written[w.ID] == nil) {
			t.Fatalf("%+v, %v", w, err)
		}
		written[w.ID] = append(written[w.ID], n)
		last = w
	}
	// Every partition has one, in turn.
	partitions := len(written)
	for id, turns := range written {
		for i, n := range turns {
			if n != turns[0]+i*partitions {
				t.Errorf("%s has the turns %v of %d", id, turns, partitions)
			}
		}
	}
	if before, err := s.PutCanary(b.ctx, -1); err != nil || !slices.Equal(written[before.ID], written[last.ID]) && !slices.Contains(written[before.ID], partitions-1) {
		t.Errorf("%+v, %v", before, err)
	}
	b.eventually(t, func() error {
		if ok, err := s.FeedHas(b.ctx, last); err != nil || !ok {
			return fmt.Errorf("the feed has not what was written: %v", err)
		}
		return nil
	})
	older := last
	older.Version -= 1_000_000
	if ok, err := s.FeedHas(b.ctx, older); err != nil || !ok {
		t.Errorf("a newer version is not enough: %v", err)
	}
	future := last
	future.Version += 3_600_000_000
	for _, w := range []doc.Written{future, {ID: last.ID}, {ID: "a/none", Version: 1}} {
		if ok, err := s.FeedHas(b.ctx, w); err != nil || ok {
			t.Errorf("%+v: %t, %v", w, ok, err)
		}
	}
	// Clients see nothing of them.
	for _, c := range []doc.Collection{"", last.ID.Collection()} {
		b.eventually(t, func() error {
			changes, _ := b.follow(t, store.ChangesQuery{Collection: c, Limit: 3})
			for _, change := range changes {
				if change.ID != "a/1" {
					t.Fatalf("of %q: %v", c, changes)
				}
			}
			if c == "" && len(changes) != 1 {
				return fmt.Errorf("%d changes", len(changes))
			}
			return nil
		})
	}
}
