package store_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// TestChangesOfACollection follows one collection among many changes of others,
// long after they happened: pages are cut by the limit as everywhere, and once
// all is told the position moves past the others' changes.
func TestChangesOfACollection(t *testing.T) {
	tb := newTables(t)
	writer := tb.open(nil)
	var last doc.Version
	for i := range 60 {
		id := doc.ID(fmt.Sprintf("others/%d", i))
		if i%4 == 0 {
			id = doc.ID(fmt.Sprintf("mine/%d", i))
		}
		w, err := writer.Put(t.Context(), id, data("x"), doc.Condition{})
		if err != nil {
			t.Fatal(err)
		}
		last = w.Version
	}
	// A reader an hour later: nobody tells it that its clock is wrong.
	later := tb.open(dated{date: func() string { return "" }}, withClock(func() time.Time { return time.Now().Add(time.Hour) }))
	for _, limit := range []int{1, 4, 14, 15, 16} {
		var got []doc.Change
		q := store.ChangesQuery{Collection: "mine", Limit: limit}
		for range 40 {
			page, err := later.Changes(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, page.Changes...)
			if len(page.Changes) == 0 {
				break
			}
			q.After = page.Next
		}
		if len(got) != 15 {
			t.Errorf("by %d: %d changes of 15", limit, len(got))
		}
		f := &faults{}
		page, err := tb.open(f, withClock(time.Now)).Changes(t.Context(), store.ChangesQuery{After: q.After})
		if err != nil || len(page.Changes) != 0 {
			t.Errorf("by %d: the position did not move past the others' changes until %d: %d follow, %v", limit, last, len(page.Changes), err)
		}
	}
}

// TestChangesWithTies has many changes of one version, as another tool may write
// them: none is left out, whatever the pages.
func TestChangesWithTies(t *testing.T) {
	tb := newTables(t)
	st := tb.open(nil)
	if _, err := st.Put(t.Context(), "first/1", data("x"), doc.Condition{}); err != nil {
		t.Fatal(err)
	}
	const ties = 70
	for i := range ties {
		tb.put(t, doc.ID(fmt.Sprintf("tie/%d", i)), item{"version": number("5000"), "bucket": number(fmt.Sprint(i % 2)), "data": object(item{})})
	}
	for _, limit := range []int{1, 3, 8, 64, 200} {
		seen := map[doc.ID]bool{}
		q := store.ChangesQuery{Limit: limit}
		for range 2 * ties {
			page, err := st.Changes(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range page.Changes {
				if seen[c.ID] || i > 0 && page.Changes[i-1].Version == c.Version && page.Changes[i-1].ID >= c.ID {
					t.Fatalf("by %d: %v", limit, page.Changes)
				}
				seen[c.ID] = true
			}
			if len(page.Changes) == 0 {
				break
			}
			q.After = page.Next
		}
		if len(seen) != ties+1 {
			t.Errorf("by %d: %d of %d changes", limit, len(seen), ties+1)
		}
	}
}
