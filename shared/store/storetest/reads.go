package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// fill writes documents, many at a time.
func (b *bench) fill(t failer, ids []doc.ID) {
	t.Helper()
	work, ctx := errgroup.WithContext(b.ctx)
	work.SetLimit(8)
	for i, id := range ids {
		work.Go(func() error {
			_, err := b.Store.Put(ctx, id, counter(i), doc.Condition{})
			return err
		})
	}
	if err := work.Wait(); err != nil {
		t.Fatalf("fill: %v", err)
	}
}

func loadMany(t *testing.T, b *bench) {
	var all []doc.ID
	for i := range 230 {
		all = append(all, doc.ID(fmt.Sprintf("many/%d", i)))
	}
	b.fill(t, all)
	b.delete(t, all[7])
	asked := append(slices.Clone(all), all[0], "many/none", all[0], "many/none", all[7])
	got, err := b.Store.LoadMany(b.ctx, asked, 0)
	if err != nil || len(got.Remaining) != 0 || len(got.Documents) != len(all)-1 {
		t.Fatalf("%d documents, %d remaining, %v", len(got.Documents), len(got.Remaining), err)
	}
	for i, id := range all {
		d, ok := got.Documents[id]
		if ok != (i != 7) || ok && (d.ID != id || d.Data["n"] != counter(i)["n"]) {
			t.Errorf("%s: %+v", id, d)
		}
	}
	if got, err := b.Store.LoadMany(b.ctx, nil, 0); err != nil || len(got.Documents)+len(got.Remaining) != 0 {
		t.Errorf("of nothing: %+v, %v", got, err)
	}

	// Within a bound, and asked for again until all are there.
	large := map[string]any{"text": strings.Repeat("\x01", 10_000)} // six bytes each in JSON
	var ids []doc.ID
	for i := range 12 {
		id := doc.ID(fmt.Sprintf("large/%d", i))
		b.put(t, id, large)
		ids = append(ids, id, doc.ID(fmt.Sprintf("large/none%d", i)))
	}
	seen := map[doc.ID]bool{}
	rounds := 0
	for rest := ids; len(rest) > 0; rounds++ {
		got, err := b.Store.LoadMany(b.ctx, rest, 200_000)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Documents) == 0 || len(got.Documents) > 3 {
			t.Fatalf("%d documents of 60 KB in 200 KB", len(got.Documents))
		}
		for id := range got.Documents {
			if seen[id] || slices.Contains(got.Remaining, id) {
				t.Errorf("%s again", id)
			}
			seen[id] = true
		}
		if len(got.Remaining) > 0 && !slices.Equal(got.Remaining, rest[len(rest)-len(got.Remaining):]) {
			t.Fatalf("remaining %v is not the end of %v", got.Remaining, rest)
		}
		rest = got.Remaining
	}
	if len(seen) != 12 || rounds != 4 {
		t.Errorf("%d documents in %d rounds", len(seen), rounds)
	}
	// One that is larger than the bound comes alone.
	if got, err := b.Store.LoadMany(b.ctx, ids[:1], 10); err != nil || len(got.Documents) != 1 {
		t.Errorf("larger than the bound: %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, err := b.Store.LoadMany(ctx, ids, 0); err == nil {
		t.Error("no error under an ended context")
	}
}

func revisions(t *testing.T, b *bench) {
	var all []doc.ID
	for i := range 120 {
		all = append(all, doc.ID(fmt.Sprintf("revisions/%d", i)))
	}
	b.fill(t, all)
	deleted := b.delete(t, all[3])
	asked := append(slices.Clone(all), all[0], "revisions/none")
	for _, bound := range []int{0, 1, 2000, 1 << 20} {
		found := map[doc.ID]doc.Document{}
		var missing []doc.ID
		calls := 0
		err := b.Store.Revisions(b.ctx, asked, bound, func(docs []doc.Document, absent []doc.ID) error {
			calls++
			if bound == 1 && len(docs) > 1 {
				t.Errorf("%d documents in one byte", len(docs))
			}
			for _, d := range docs {
				if _, again := found[d.ID]; again {
					t.Errorf("%s again", d.ID)
				}
				found[d.ID] = d
			}
			missing = append(missing, absent...)
			return nil
		})
		if err != nil || len(found) != len(all) || !slices.Equal(missing, []doc.ID{"revisions/none"}) {
			t.Errorf("bound %d: %d found, absent %v, %v", bound, len(found), missing, err)
		}
		if d := found[all[3]]; !d.Deleted || d.Version != deleted.Version || d.Data != nil {
			t.Errorf("tombstone: %+v", d)
		}
		if d := found[all[5]]; d.Deleted || d.Data["n"] != counter(5)["n"] {
			t.Errorf("live: %+v", d)
		}
	}
	stop := errors.New("stop")
	if err := b.Store.Revisions(b.ctx, all, 1, func([]doc.Document, []doc.ID) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the visitor's error: %v", err)
	}
}

func prefix(t failer, s string) doc.Prefix {
	t.Helper()
	p, err := doc.ParsePrefix(s)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return p
}

// walk reads all pages of a prefix and checks what holds for each of them.
func (b *bench) walk(t failer, q store.PrefixQuery) (found []string, pages int) {
	t.Helper()
	for {
		page, err := b.Store.Prefix(b.ctx, q)
		if err != nil {
			t.Fatalf("page %d: %v", pages, err)
		}
		pages++
		if q.Limit > 0 && len(page.Documents) > q.Limit {
			t.Fatalf("%d documents, limit %d", len(page.Documents), q.Limit)
		}
		for _, d := range page.Documents {
			found = append(found, string(d.ID))
		}
		if page.Next == "" {
			return found, pages
		}
		if page.Next == q.After {
			t.Fatalf("page %d does not go on", pages)
		}
		q.After = page.Next
	}
}

func prefixMeaning(t *testing.T, b *bench) {
	ids := []doc.ID{
		"users/1", "users/10", "users/1/account", "users/1/account/1", "users/1/account/10", "users/1/account/2", "users/1/accounts/1",
		"users/1/b/日本", "users/1/b/z", "users/1/gone", "users/2", "Users/1", "users/1/日/x",
	}
	b.fill(t, ids)
	b.delete(t, "users/1/gone")
	for _, c := range []struct {
		prefix string
		keep   func(string) bool
		want   string
	}{
		{"users/1", nil, "users/1 users/1/account users/1/account/1 users/1/account/10 users/1/account/2 users/1/accounts/1 users/1/b/z users/1/b/日本 users/1/日/x"},
		{"users/1/", nil, "users/1/account users/1/account/1 users/1/account/10 users/1/account/2 users/1/accounts/1 users/1/b/z users/1/b/日本 users/1/日/x"},
		{"users/1/account", nil, "users/1/account users/1/account/1 users/1/account/10 users/1/account/2 users/1/accounts/1"},
		{"users/1/account/", nil, "users/1/account/1 users/1/account/10 users/1/account/2"},
		{"users/1/account/1", nil, "users/1/account/1 users/1/account/10"},
		{"users/1/日", nil, "users/1/日/x"},
		{"users/1/gone", nil, ""},
		{"users/3", nil, ""},
		{"users/1/account/", func(rest string) bool { return rest == "10" }, "users/1/account/10"},
		{"users/1", func(rest string) bool { return rest == "" }, "users/1"},
		{"users/1/acc", func(rest string) bool { return strings.HasPrefix(rest, "ount/") }, "users/1/account/1 users/1/account/10 users/1/account/2"},
		{"users/1", func(rest string) bool { return false }, ""},
	} {
		for _, limit := range []int{1, 2, 3, 100} {
			found, _ := b.walk(t, store.PrefixQuery{Prefix: prefix(t, c.prefix), Limit: limit, Keep: c.keep})
			if got := strings.Join(found, " "); got != c.want {
				t.Errorf("%s by %d: %s, want %s", c.prefix, limit, got, c.want)
			}
		}
	}
	first, err := b.Store.Prefix(b.ctx, store.PrefixQuery{Prefix: prefix(t, "users/1"), Limit: 2})
	if err != nil || first.Next == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	for _, q := range []store.PrefixQuery{
		{Prefix: prefix(t, "users/1/"), After: first.Next},
		{Prefix: prefix(t, "users/2"), After: first.Next},
		{Prefix: prefix(t, "users/1"), After: first.Next + "A"},
		{Prefix: prefix(t, "users/1"), After: "x" + first.Next[1:]},
		{Prefix: prefix(t, "users/1"), After: first.Next[:len(first.Next)-4]},
		{Prefix: prefix(t, "users/1"), After: "garbage"},
		{Prefix: prefix(t, "users/1"), After: "?"},
	} {
		if _, err := b.Store.Prefix(b.ctx, q); doc.KindOf(err) != doc.InvalidCursor {
			t.Errorf("%s after %s: %v", q.Prefix, q.After, err)
		}
	}
	if w, err := b.Store.Prefix(b.ctx, store.PrefixQuery{Prefix: prefix(t, "users/1"), Limit: 1, After: first.Next}); err != nil || len(w.Documents) != 1 {
		t.Errorf("another limit for the next page: %+v, %v", w, err)
	}
}

func prefixPaging(t *testing.T, b *bench) {
	ids := make([]doc.ID, b.Volume)
	want := make([]string, b.Volume)
	for i := range ids {
		ids[i] = doc.ID(fmt.Sprintf("root/1/part/%d", i))
		want[i] = string(ids[i])
	}
	b.fill(t, ids)
	slices.Sort(want)
	p := prefix(t, "root/1/")
	for _, limit := range []int{b.Volume / 7, b.Volume - 1, b.Volume, b.Volume + 1} {
		limit = min(limit, 1000)
		found, pages := b.walk(t, store.PrefixQuery{Prefix: p, Limit: limit})
		if !slices.Equal(found, want) {
			t.Errorf("limit %d: %d documents, want %d, in order", limit, len(found), len(want))
		}
		if most := (b.Volume + limit - 1) / limit; pages != most {
			t.Errorf("limit %d: %d pages, want %d", limit, pages, most)
		}
	}
	// A few kept of many: all are found, however many pages that takes.
	found, _ := b.walk(t, store.PrefixQuery{Prefix: p, Limit: 5, Keep: func(rest string) bool { return strings.HasSuffix(rest, "77") }})
	var kept []string
	for _, id := range want {
		if strings.HasSuffix(id, "77") {
			kept = append(kept, id)
		}
	}
	if !slices.Equal(found, kept) {
		t.Errorf("kept %v, want %v", found, kept)
	}
	// By bytes, and with many tombstones in between.
	for i := range 40 {
		b.put(t, doc.ID(fmt.Sprintf("root/2/part/%02d", i)), map[string]any{"text": strings.Repeat("x", 50_000)})
		if i%4 != 0 {
			b.delete(t, doc.ID(fmt.Sprintf("root/2/part/%02d", i)))
		}
	}
	q := store.PrefixQuery{Prefix: prefix(t, "root/2"), Limit: 100, MaxBytes: 120_000}
	found, pages := b.walk(t, q)
	if len(found) != 10 || pages != 5 {
		t.Errorf("two of 50 KB in 120 KB: %d documents on %d pages", len(found), pages)
	}
	q.MaxBytes = 1
	if found, pages := b.walk(t, q); len(found) != 10 || pages != 10 {
		t.Errorf("larger than the bound: %d documents on %d pages", len(found), pages)
	}
}

func sequences(t *testing.T, b *bench) {
	create := func(parent string) doc.ID {
		t.Helper()
		w, err := b.Store.Create(b.ctx, parent, counter(1))
		if err != nil {
			t.Fatalf("create in %s: %v", parent, err)
		}
		if !w.Created || b.load(t, w.ID).Version != w.Version {
			t.Errorf("%+v", w)
		}
		return w.ID
	}
	for i := 1; i <= 30; i++ {
		if id := create("users"); id != doc.ID(fmt.Sprintf("users/%d", i)) {
			t.Errorf("document %d is %s", i, id)
		}
	}
	if id := create("users/1/account"); id != "users/1/account/1" {
		t.Errorf("first child is %s", id)
	}
	// Simultaneous ones never get the same.
	got := make([]doc.ID, 40)
	together(len(got), func(i int) {
		w, err := b.Store.Create(b.ctx, "orders", counter(i))
		if err != nil {
			t.Errorf("create %d: %v", i, err)
		}
		got[i] = w.ID
	})
	slices.Sort(got)
	if len(slices.Compact(got)) != 40 {
		t.Errorf("ids were given twice: %v", got)
	}
	// Ids that clients chose are jumped over, however many.
	var taken []doc.ID
	for i := 1; i <= b.Volume; i++ {
		taken = append(taken, doc.ID(fmt.Sprintf("dense/%d", i)))
	}
	b.fill(t, taken)
	b.delete(t, taken[len(taken)-1]) // deleted ones too
	if id := create("dense"); id != doc.ID(fmt.Sprintf("dense/%d", b.Volume+1)) {
		t.Errorf("behind %d: %s", b.Volume, id)
	}
	if id := create("dense"); id != doc.ID(fmt.Sprintf("dense/%d", b.Volume+2)) {
		t.Errorf("and then: %s", id)
	}
	b.put(t, "sparse/3", counter(0))
	b.put(t, "sparse/500000", counter(0))
	for _, want := range []doc.ID{"sparse/1", "sparse/2", "sparse/4"} {
		if id := create("sparse"); id != want {
			t.Errorf("%s, want %s", id, want)
		}
	}
	long := strings.Repeat("x", doc.MaxIDBytes-1)
	if _, err := b.Store.Create(b.ctx, long, counter(1)); doc.KindOf(err) != doc.InvalidID {
		t.Errorf("an id too long: %v", err)
	}
}
