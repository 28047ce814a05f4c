package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// follow reads the feed from a position to its end, checking the order.
func (b *bench) follow(t failer, q store.ChangesQuery) (changes []doc.Change, next string) {
	t.Helper()
	for {
		page, err := b.Store.Changes(b.ctx, q)
		if err != nil {
			t.Fatalf("changes: %v", err)
		}
		if page.Next == "" {
			t.Fatalf("a page without next")
		}
		if q.Limit > 0 && len(page.Changes) > q.Limit {
			t.Fatalf("%d changes, limit %d", len(page.Changes), q.Limit)
		}
		if age := b.now().Sub(page.SafeThrough); age <= 0 || age > time.Minute {
			t.Fatalf("safe through %s", page.SafeThrough)
		}
		changes = append(changes, page.Changes...)
		if page.Next == q.After || len(page.Changes) == 0 && q.Collection == "" {
			if !slices.IsSortedFunc(changes, compareChanges) {
				t.Errorf("not in order: %v", changes)
			}
			return changes, page.Next
		}
		if len(page.Changes) == 0 {
			// Nothing of the collection on this page; at the end the position
			// follows the clock, so two such pages are enough.
			again, err := b.Store.Changes(b.ctx, store.ChangesQuery{Collection: q.Collection, After: page.Next, Limit: q.Limit})
			if err != nil {
				t.Fatalf("changes: %v", err)
			}
			if len(again.Changes) == 0 {
				return changes, page.Next
			}
		}
		q.After = page.Next
	}
}

func compareChanges(a, b doc.Change) int {
	return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.ID, b.ID))
}

func changesOrder(t *testing.T, b *bench) {
	empty, err := b.Store.Changes(b.ctx, store.ChangesQuery{})
	if err != nil || len(empty.Changes) != 0 || empty.Next == "" {
		t.Fatalf("of nothing: %+v, %v", empty, err)
	}
	newest := map[doc.ID]doc.Change{}
	write := func(id doc.ID, remove bool) {
		t.Helper()
		w := doc.Written{}
		if remove {
			w = b.delete(t, id)
		} else {
			w = b.put(t, id, counter(1))
		}
		newest[id] = doc.Change{ID: id, Version: w.Version, Collection: id.Collection(), Deleted: remove}
	}
	for i := range 60 {
		write(doc.ID(fmt.Sprintf("a/%d", i)), false)
		if i%3 == 0 {
			write(doc.ID(fmt.Sprintf("a/%d/b/%d", i, i)), false)
		}
		if i%5 == 0 {
			write(doc.ID(fmt.Sprintf("a/%d", i)), true)
		}
		if i%7 == 0 {
			write(doc.ID(fmt.Sprintf("a/%d", i/2)), false)
		}
	}
	want := func(c doc.Collection) []doc.Change {
		var all []doc.Change
		for _, change := range newest {
			if c == "" || change.Collection == c {
				all = append(all, change)
			}
		}
		slices.SortFunc(all, compareChanges)
		return all
	}
	for _, c := range []doc.Collection{"", "a", "a/b", "none"} {
		for _, limit := range []int{1, 7, 1000} {
			b.eventually(t, func() error {
				got, _ := b.follow(t, store.ChangesQuery{Collection: c, Limit: limit})
				if !slices.Equal(got, want(c)) {
					return fmt.Errorf("of %q by %d: %v, want %v", c, limit, got, want(c))
				}
				return nil
			})
		}
	}
	// From the end on, only what is new.
	_, next := b.follow(t, store.ChangesQuery{})
	write("a/1", true)
	write("a/new", false)
	b.eventually(t, func() error {
		got, _ := b.follow(t, store.ChangesQuery{After: next})
		if !slices.Equal(got, []doc.Change{newest["a/1"], newest["a/new"]}) {
			return fmt.Errorf("after the end: %v", got)
		}
		return nil
	})
	for _, after := range []string{"garbage", "?", next[1:], next + "AAAA"} {
		if _, err := b.Store.Changes(b.ctx, store.ChangesQuery{After: after}); doc.KindOf(err) != doc.InvalidCursor {
			t.Errorf("after %q: %v", after, err)
		}
	}
}

// changesWhileWriting follows the feed while documents go on changing: in the
// end everything was told at its last version.
func changesWhileWriting(t *testing.T, b *bench) {
	var mu sync.Mutex
	last := map[doc.ID]doc.Version{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		together(4, func(n int) {
			for i := range 40 {
				id := doc.ID(fmt.Sprintf("busy/%d/of/%d", n, i%9))
				w, err := b.Store.Put(b.ctx, id, counter(i), doc.Condition{})
				if err != nil {
					t.Errorf("put: %v", err)
					return
				}
				mu.Lock()
				last[id] = max(last[id], w.Version)
				mu.Unlock()
			}
		})
	}()
	told := map[doc.ID]doc.Version{}
	after := ""
	read := func() {
		// Writers pass each other within the margin, so who follows closely
		// goes on from what is safe, not from the last page.
		page, err := b.Store.Changes(b.ctx, store.ChangesQuery{After: after, Limit: 10})
		if err != nil {
			t.Fatalf("changes: %v", err)
		}
		for i, c := range page.Changes {
			if i > 0 && compareChanges(page.Changes[i-1], c) >= 0 {
				t.Errorf("not in order: %v", page.Changes)
			}
			told[c.ID] = max(told[c.ID], c.Version)
		}
		if n := len(page.Changes); n > 0 && page.Changes[n-1].Version.Time().Before(page.SafeThrough) {
			after = page.Next
		}
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			read()
		}
	}
	b.eventually(t, func() error {
		changes, _ := b.follow(t, store.ChangesQuery{After: after, Limit: 10})
		for _, c := range changes {
			told[c.ID] = max(told[c.ID], c.Version)
		}
		for id, v := range last {
			if told[id] != v {
				return fmt.Errorf("%s was told at %d, stands at %d", id, told[id], v)
			}
		}
		return nil
	})
}
