package store_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// TestTheFeedsEnd follows a collection among changes of another, page by
// page: all before the feed's safe moment is told with the last page and not
// earlier.
func TestTheFeedsEnd(t *testing.T) {
	tb := newTables(t)
	writer := tb.open(nil)
	for i := range 40 {
		id := doc.ID(fmt.Sprintf("others/%d", i))
		if i%4 == 3 {
			id = doc.ID(fmt.Sprintf("mine/%d", i))
		}
		if _, err := writer.Put(t.Context(), id, data("x"), doc.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	later := tb.open(dated{date: func() string { return "" }}, withClock(func() time.Time { return time.Now().Add(time.Hour) }))
	for _, limit := range []int{1, 3, 1000} {
		told := 0
		q := store.ChangesQuery{Collection: "mine", Limit: limit}
		for pages := 0; ; pages++ {
			page, err := later.Changes(t.Context(), q)
			if err != nil || pages > 20 {
				t.Fatalf("by %d, page %d: %v", limit, pages, err)
			}
			told += len(page.Changes)
			if page.End {
				break
			}
			q.After = page.Next
		}
		if told != 10 {
			t.Errorf("by %d: it ends after %d changes of 10", limit, told)
		}
	}
	// What was written just now is not complete, and what is before it is.
	if page, err := tb.open(nil).Changes(t.Context(), store.ChangesQuery{Collection: "mine"}); err != nil || len(page.Changes) != 10 || !page.End {
		t.Errorf("unsettled changes: %d, end %v, %v", len(page.Changes), page.End, err)
	}
	if page, err := tb.open(nil).Changes(t.Context(), store.ChangesQuery{Collection: "none"}); err != nil || len(page.Changes) != 0 || !page.End {
		t.Errorf("of nothing: %v, %v", page.End, err)
	}
	// Of all collections only the cursor itself tells.
	page, err := later.Changes(t.Context(), store.ChangesQuery{})
	if err != nil || len(page.Changes) != 40 || page.End {
		t.Errorf("of all: %d, end %v, %v", len(page.Changes), page.End, err)
	}
	end, err := later.Changes(t.Context(), store.ChangesQuery{After: page.Next})
	if err != nil || end.Next != page.Next || !end.End {
		t.Errorf("the end of all moves, or is none: %v", err)
	}
}
