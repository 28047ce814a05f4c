package store_test

import (
	"fmt"
	"slices"
	"testing"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// TestQuarantinedByPages lists the quarantine of one and of all collections.
func TestQuarantinedByPages(t *testing.T) {
	tb := newTables(t)
	ctx := t.Context()
	st := tb.open(nil).State()
	list := func(q store.QuarantineQuery) (ids []doc.ID, pages int) {
		t.Helper()
		for {
			notes, next, err := st.Quarantined(ctx, q)
			if err != nil || len(notes) > q.Limit && q.Limit > 0 {
				t.Fatalf("%+v: %d notes, %v", q, len(notes), err)
			}
			for _, n := range notes {
				if n.Version == 0 || n.Reason != "because" || n.Collection != n.ID.Collection() || n.Since.IsZero() || n.Attempts != 1 {
					t.Errorf("%+v", n)
				}
				ids = append(ids, n.ID)
			}
			pages++
			if next == "" {
				return ids, pages
			}
			q.After = next
		}
	}
	if got, _ := list(store.QuarantineQuery{}); len(got) != 0 {
		t.Errorf("before any: %v", got)
	}
	want := map[doc.Collection][]doc.ID{}
	note := func(id doc.ID) {
		t.Helper()
		c := id.Collection()
		want[c] = append(want[c], id)
		if err := st.RecordQuarantine(ctx, doc.Quarantined{ID: id, Collection: c, Version: 5, Reason: "because"}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 7 {
		note(doc.ID(fmt.Sprintf("b/%d", i)))
		note(doc.ID(fmt.Sprintf("b/1/c/%d", i)))
	}
	note("d/1")
	var all []doc.ID
	for _, c := range []doc.Collection{"a", "b", "b/c", "c", "d"} { // two have nothing
		if err := st.Register(ctx, c); err != nil {
			t.Fatal(err)
		}
		all = append(all, want[c]...)
		for _, limit := range []int{0, 1, 3, 7, 8} {
			if got, _ := list(store.QuarantineQuery{Collection: c, Limit: limit}); !slices.Equal(got, want[c]) {
				t.Errorf("of %s by %d: %v, want %v", c, limit, got, want[c])
			}
		}
	}
	for _, limit := range []int{0, 1, 2, 5, 7, 14, 15, 16, 5000} {
		if got, pages := list(store.QuarantineQuery{Limit: limit}); !slices.Equal(got, all) || limit == 0 && pages != 1 {
			t.Errorf("by %d: %v on %d pages, want %v", limit, got, pages, all)
		}
	}
	// A note that is cleared and one that comes between two pages move nothing.
	first, next, err := st.Quarantined(ctx, store.QuarantineQuery{Limit: 4})
	if err != nil || len(first) != 4 {
		t.Fatalf("%v, %v", first, err)
	}
	if err := st.ClearQuarantine(ctx, "b", first[3].ID, 5); err != nil {
		t.Fatal(err)
	}
	note("b/0/c/0")
	rest, last, err := st.Quarantined(ctx, store.QuarantineQuery{After: next, Limit: 100})
	if err != nil || last != "" || len(rest) != len(all)-4+1 || rest[0].ID != all[4] {
		t.Errorf("%v, %q, %v", rest, last, err)
	}
	for _, q := range []store.QuarantineQuery{{After: "x"}, {After: next, Collection: "b"}, {After: next[:len(next)-2]}} {
		if _, _, err := st.Quarantined(ctx, q); doc.KindOf(err) != doc.InvalidCursor {
			t.Errorf("%+v: %v", q, err)
		}
	}
	// Where very many collections have nothing, a page is short of the limit.
	for i := range 130 {
		if err := st.Register(ctx, doc.Collection(fmt.Sprintf("bb/%03d", i))); err != nil {
			t.Fatal(err)
		}
	}
	if got, pages := list(store.QuarantineQuery{}); len(got) != len(all) || pages < 2 {
		t.Errorf("%d notes on %d pages", len(got), pages)
	}
}
