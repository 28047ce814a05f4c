package store_test

import (
	"encoding/json"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/doc"
	"holdfast/shared/store"
	"holdfast/shared/value"
)

type item = map[string]types.AttributeValue

func text(v string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: v} }
func number(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
func object(v item) types.AttributeValue   { return &types.AttributeValueMemberM{Value: v} }

// put writes an item as another tool would.
func (tb tables) put(t *testing.T, id doc.ID, attrs item) {
	t.Helper()
	all := maps.Clone(attrs)
	all["pk"], all["sk"] = text(id.Root()), text(id.Rest())
	if _, err := tb.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tb.documents, Item: all}); err != nil {
		t.Fatalf("put as another tool: %v", err)
	}
}

// get reads an item as it is.
func (tb tables) get(t *testing.T, id doc.ID) item {
	t.Helper()
	out, err := tb.client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &tb.documents, ConsistentRead: aws.Bool(true), Key: item{"pk": text(id.Root()), "sk": text(id.Rest())},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

func (tb tables) remove(t *testing.T, id doc.ID) {
	t.Helper()
	if _, err := tb.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &tb.documents, Key: item{"pk": text(id.Root()), "sk": text(id.Rest())}}); err != nil {
		t.Fatal(err)
	}
}

// seen is what an image of the item shows.
func seen(it item) store.Seen {
	var out store.Seen
	if v, ok := it["version"].(*types.AttributeValueMemberN); ok {
		i, _ := strconv.ParseInt(v.Value, 10, 64)
		out.Version = doc.Version(i)
	}
	if v, ok := it["nonce"].(*types.AttributeValueMemberS); ok {
		out.Nonce = v.Value
	}
	return out
}

// TestForeignItems reads and overwrites what other tools wrote.
func TestForeignItems(t *testing.T) {
	tb := newTables(t)
	st := tb.open(nil)
	odd := item{"data": object(item{
		"ss": &types.AttributeValueMemberSS{Value: []string{"b", "a"}},
		"ns": &types.AttributeValueMemberNS{Value: []string{"10", "9", "1.5"}},
		"bs": &types.AttributeValueMemberBS{Value: [][]byte{{2}, {1}}},
		"b":  &types.AttributeValueMemberB{Value: []byte("hi")},
		"n":  number("100E1"), "l": &types.AttributeValueMemberL{Value: []types.AttributeValue{number("1"), text("x")}},
	})}
	for name, attrs := range map[string]item{
		"no system attributes": odd,
		"no data":              {},
		"data is text":         {"data": text("text")},
		"odd attributes":       {"data": object(item{}), "nonce": number("5"), "createdAt": text("yesterday"), "updatedAt": text(""), "deleted": text("no"), "expiresAt": text("never"), "ttl": text("x"), "collection": number("1")},
		"version zero":         {"data": object(item{}), "version": number("0"), "bucket": number("1")},
		"version negative":     {"data": object(item{}), "version": number("-5"), "bucket": number("1")},
		"version a fraction":   {"data": object(item{}), "version": number("1.5"), "bucket": number("1")},
		"version huge":         {"data": object(item{}), "version": number("1e60"), "bucket": number("-1")},
		"version small":        {"data": object(item{}), "version": number("17"), "bucket": number("999")},
	} {
		t.Run(name, func(t *testing.T) {
			const id doc.ID = "foreign/1/part/2"
			tb.put(t, id, attrs)
			d, err := st.Load(t.Context(), id)
			if err != nil || d.Version <= 0 || d.Data == nil {
				t.Fatalf("load: %+v, %v", d, err)
			}
			if name == "no system attributes" {
				want := map[string]any{
					"ss": []any{"a", "b"}, "bs": []any{"AQ==", "Ag=="}, "b": "aGk=", "n": json.Number("1000"),
					"ns": []any{json.Number("1.5"), json.Number("9"), json.Number("10")}, "l": []any{json.Number("1"), "x"},
				}
				if !value.Equal(d.Data, want) {
					t.Errorf("got %s", value.Append(nil, d.Data))
				}
			}
			page, err := st.Prefix(t.Context(), store.PrefixQuery{Prefix: doc.Prefix{Root: "foreign/1"}})
			if err != nil || len(page.Documents) != 1 {
				t.Errorf("prefix: %+v, %v", page, err)
			}
			if _, err := st.Changes(t.Context(), store.ChangesQuery{}); err != nil {
				t.Errorf("changes: %v", err)
			}
			_, err = st.Put(t.Context(), id, data("x"), doc.Condition{Absent: true})
			if doc.KindOf(err) != doc.VersionConflict {
				t.Errorf("create-only put: %v", err)
			}
			w, err := st.Put(t.Context(), id, data("mine"), doc.Condition{Exists: true, AnyOf: []doc.Version{d.Version}})
			if err != nil || w.Created || w.Version <= d.Version {
				t.Errorf("put over its version %d: %+v, %v", d.Version, w, err)
			}
			tb.put(t, id, attrs)
			if w, err := st.Put(t.Context(), id, data("mine"), doc.Condition{}); err != nil || w.Created != (len(attrs) == 0) || w.Version <= d.Version {
				t.Errorf("blind put: %+v, %v", w, err)
			}
			tb.put(t, id, attrs)
			if w, err := st.Delete(t.Context(), id, doc.Condition{}); err != nil || w.Version <= d.Version {
				t.Errorf("delete: %+v, %v", w, err)
			}
		})
	}
	// Keys that are no ids are passed over.
	tb.put(t, "mixed/1", odd)
	for _, key := range []item{{"pk": text("mixed/1"), "sk": text("no slash")}, {"pk": text("mixed/1"), "sk": text("//")}, {"pk": text("mixed/1"), "sk": text("/a/")}, {"pk": text("mixed"), "sk": text("/1")}} {
		key["version"], key["bucket"] = number("5"), number("0")
		if _, err := tb.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tb.documents, Item: key}); err != nil {
			t.Fatal(err)
		}
	}
	if page, err := st.Prefix(t.Context(), store.PrefixQuery{Prefix: doc.Prefix{Root: "mixed/1"}}); err != nil || len(page.Documents) != 1 {
		t.Errorf("prefix among odd keys: %+v, %v", page, err)
	}
	if _, err := st.Changes(t.Context(), store.ChangesQuery{}); err != nil {
		t.Errorf("changes among odd keys: %v", err)
	}
}

func TestAdopt(t *testing.T) {
	tb := newTables(t)
	st := tb.open(nil)
	ctx := t.Context()
	write := func(id doc.ID) item {
		t.Helper()
		if _, err := st.Put(ctx, id, data("ours"), doc.Condition{}); err != nil {
			t.Fatal(err)
		}
		return tb.get(t, id)
	}
	adopt := func(f store.Foreign) {
		t.Helper()
		for range 2 { // the second time changes nothing
			if err := st.Adopt(ctx, f); err != nil {
				t.Fatalf("adopt %+v: %v", f, err)
			}
		}
	}
	inFeed := func(id doc.ID, v doc.Version, deleted bool) {
		t.Helper()
		after := ""
		for {
			page, err := st.Changes(ctx, store.ChangesQuery{After: after, Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range page.Changes {
				if c.ID == id && c.Version == v && c.Deleted == deleted {
					return
				}
			}
			if len(page.Changes) == 0 {
				t.Errorf("%s is not in the feed at %d, deleted %t", id, v, deleted)
				return
			}
			after = page.Next
		}
	}

	t.Run("changed in place", func(t *testing.T) {
		const id doc.ID = "adopt/changed"
		old := write(id)
		changed := maps.Clone(old)
		changed["data"] = object(item{"text": text("theirs")})
		tb.put(t, id, changed)
		adopt(store.Foreign{ID: id, Old: seen(old), New: seen(changed)})
		d, err := st.Load(ctx, id)
		if err != nil || d.Version <= seen(old).Version || d.Data["text"] != "theirs" {
			t.Errorf("%+v, %v", d, err)
		}
		if got := tb.get(t, id); got["createdAt"].(*types.AttributeValueMemberN).Value != old["createdAt"].(*types.AttributeValueMemberN).Value {
			t.Errorf("createdAt was changed")
		}
		inFeed(id, d.Version, false)
	})
	t.Run("new, without system attributes", func(t *testing.T) {
		const id doc.ID = "adopt/new/of/them"
		tb.put(t, id, item{"data": object(item{"text": text("theirs")})})
		adopt(store.Foreign{ID: id})
		d, err := st.Load(ctx, id)
		if err != nil || d.Version < doc.VersionAt(time.Now().Add(-time.Minute)) || d.CreatedAt.IsZero() {
			t.Errorf("%+v, %v", d, err)
		}
		inFeed(id, d.Version, false)
		if all, err := st.State().Collections(ctx); err != nil || len(all) == 0 {
			t.Errorf("collections: %v, %v", all, err)
		}
	})
	t.Run("version lowered", func(t *testing.T) {
		const id doc.ID = "adopt/lowered"
		old := write(id)
		tb.put(t, id, item{"data": object(item{}), "version": number("17"), "bucket": number("0")})
		adopt(store.Foreign{ID: id, Old: seen(old), New: store.Seen{Version: 17}})
		if d, err := st.Load(ctx, id); err != nil || d.Version <= seen(old).Version {
			t.Errorf("%+v, %v", d, err)
		}
	})
	t.Run("marked as deleted", func(t *testing.T) {
		const id doc.ID = "adopt/marked"
		old := write(id)
		marked := maps.Clone(old)
		marked["deleted"] = &types.AttributeValueMemberBOOL{Value: true}
		tb.put(t, id, marked)
		adopt(store.Foreign{ID: id, Old: seen(old), New: seen(marked)})
		got := tb.get(t, id)
		if got["data"] != nil || got["createdAt"] != nil || got["ttl"] == nil {
			t.Errorf("not a tombstone: %v", got)
		}
		inFeed(id, seen(got).Version, true)
	})
	t.Run("removed", func(t *testing.T) {
		const id doc.ID = "adopt/removed"
		old := write(id)
		tb.remove(t, id)
		adopt(store.Foreign{ID: id, Old: seen(old), Removed: true})
		d := revision(t, st, id)
		if !d.Deleted || d.Version <= seen(old).Version {
			t.Errorf("%+v", d)
		}
		inFeed(id, d.Version, true)
	})
	t.Run("removed, and written again since", func(t *testing.T) {
		const id doc.ID = "adopt/again"
		old := write(id)
		tb.remove(t, id)
		now := write(id)
		adopt(store.Foreign{ID: id, Old: seen(old), Removed: true})
		if got := tb.get(t, id); seen(got) != seen(now) {
			t.Errorf("changed what is newer: %v", got)
		}
	})
	t.Run("removed, and written again by a clock behind", func(t *testing.T) {
		const id doc.ID = "adopt/behind"
		old := write(id)
		tb.remove(t, id)
		behind := maps.Clone(old)
		behind["version"], behind["nonce"] = number(strconv.FormatInt(int64(seen(old).Version-5), 10)), text("late")
		tb.put(t, id, behind)
		adopt(store.Foreign{ID: id, Old: seen(old), Removed: true})
		if d, err := st.Load(ctx, id); err != nil || d.Version <= seen(old).Version {
			t.Errorf("%+v, %v", d, err)
		}
	})
	t.Run("changed, and written since", func(t *testing.T) {
		const id doc.ID = "adopt/since"
		old := write(id)
		changed := maps.Clone(old)
		changed["data"] = object(item{"text": text("theirs")})
		tb.put(t, id, changed)
		now := write(id)
		adopt(store.Foreign{ID: id, Old: seen(old), New: seen(changed)})
		if got := tb.get(t, id); seen(got) != seen(now) {
			t.Errorf("changed what is newer: %v", got)
		}
	})
	t.Run("changed and removed", func(t *testing.T) {
		const id doc.ID = "adopt/both"
		old := write(id)
		tb.remove(t, id)
		adopt(store.Foreign{ID: id, Old: seen(old), New: seen(old)})
		if got := tb.get(t, id); len(got) != 0 {
			t.Errorf("the change of what is gone wrote %v", got)
		}
	})
	t.Run("racing with writers", func(t *testing.T) {
		const id doc.ID = "adopt/race"
		old := write(id)
		changed := maps.Clone(old)
		changed["data"] = object(item{"text": text("theirs")})
		tb.put(t, id, changed)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := st.Adopt(ctx, store.Foreign{ID: id, Old: seen(old), New: seen(changed)}); err != nil {
					t.Errorf("adopt: %v", err)
				}
			})
			wg.Go(func() {
				if _, err := st.Put(ctx, id, data("newest"), doc.Condition{}); err != nil {
					t.Errorf("put: %v", err)
				}
			})
		}
		wg.Wait()
		// A writer was last in any order: nobody adopts what a writer wrote.
		if d, err := st.Load(ctx, id); err != nil || d.Data["text"] != "newest" {
			t.Errorf("%+v, %v", d, err)
		}
	})
	t.Run("overtaken between reading and writing", func(t *testing.T) {
		for name, removed := range map[string]bool{"changed": false, "removed": true} {
			id := doc.ID("adopt/overtaken/" + name + "/x")
			old := write(id)
			changed := maps.Clone(old)
			changed["data"] = object(item{"text": text("theirs")})
			tb.put(t, id, changed)
			if removed {
				tb.remove(t, id)
			}
			f := &faults{}
			through := tb.open(f)
			if _, err := through.Put(ctx, id+"/other", data(""), doc.Condition{}); err != nil {
				t.Fatal(err)
			}
			if err := through.State().Register(ctx, id.Collection()); err != nil {
				t.Fatal(err)
			}
			f.rebase()
			var newest doc.Version
			f.after = func(op string, n int) {
				if op == "GetItem" && n == f.base(op) {
					w, err := st.Put(ctx, id, data("newest"), doc.Condition{})
					if err != nil {
						t.Error(err)
					}
					newest = w.Version
				}
			}
			if err := through.Adopt(ctx, store.Foreign{ID: id, Old: seen(old), New: seen(changed), Removed: removed}); err != nil {
				t.Fatal(err)
			}
			if d, err := st.Load(ctx, id); err != nil || d.Data["text"] != "newest" || d.Version != newest {
				t.Errorf("%s: %+v, %v; the writer wrote version %d", name, d, err, newest)
			}
			if tried := f.count("UpdateItem") - f.base("UpdateItem") + f.count("PutItem") - f.base("PutItem"); tried != 1 {
				t.Errorf("%s: %d writes were tried", name, tried)
			}
		}
	})
	t.Run("answer lost", func(t *testing.T) {
		const id doc.ID = "adopt/lost"
		old := write(id)
		changed := maps.Clone(old)
		changed["data"] = object(item{"text": text("theirs")})
		tb.put(t, id, changed)
		f := &faults{}
		through := tb.open(f)
		if _, err := through.Put(ctx, "adopt/other", data(""), doc.Condition{}); err != nil {
			t.Fatal(err)
		}
		f.rebase()
		f.plan = func(op string, n int) fault {
			if op == "UpdateItem" && n == f.base(op) {
				return lostAfter
			}
			return fine
		}
		if err := through.Adopt(ctx, store.Foreign{ID: id, Old: seen(old), New: seen(changed)}); err != nil {
			t.Error(err)
		}
		if d, err := st.Load(ctx, id); err != nil || d.Version <= seen(old).Version {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// TestExpired has a document pass its logical end.
func TestExpired(t *testing.T) {
	tb := newTables(t)
	st := tb.open(nil)
	ctx := t.Context()
	const id doc.ID = "expired/1"
	expire := func(at time.Time) doc.Version {
		t.Helper()
		if _, err := st.Put(ctx, id, data("old"), doc.Condition{}); err != nil {
			t.Fatal(err)
		}
		it := tb.get(t, id)
		it["expiresAt"] = number(strconv.FormatInt(at.UnixMicro(), 10))
		it["ttl"] = number(strconv.FormatInt(at.Add(time.Hour).Unix(), 10))
		it["createdAt"] = number("1000")
		tb.put(t, id, it)
		return seen(it).Version
	}
	expire(time.Now().Add(time.Hour))
	d, err := st.Load(ctx, id)
	if err != nil || d.ExpiresAt.IsZero() {
		t.Fatalf("before its end: %+v, %v", d, err)
	}
	if w, err := st.Put(ctx, id, data("new"), doc.Condition{}); err != nil || w.Created {
		t.Errorf("put before its end: %+v, %v", w, err)
	}
	if it := tb.get(t, id); it["expiresAt"] != nil || it["ttl"] != nil {
		t.Errorf("the end was kept: %v", it)
	}
	v := expire(time.Now().Add(-time.Second))
	if _, err := st.Load(ctx, id); doc.KindOf(err) != doc.NotFound {
		t.Errorf("load: %v", err)
	}
	if got, err := st.LoadMany(ctx, []doc.ID{id}, 0); err != nil || len(got.Documents)+len(got.Remaining) != 0 {
		t.Errorf("load many: %+v, %v", got, err)
	}
	if page, err := st.Prefix(ctx, store.PrefixQuery{Prefix: doc.Prefix{Root: "expired/1"}}); err != nil || len(page.Documents) != 0 || page.Next != "" {
		t.Errorf("prefix: %+v, %v", page, err)
	}
	if d := revision(t, st, id); d.Version != v || d.Data == nil || d.Deleted {
		t.Errorf("revision: %+v", d)
	}
	if w, err := st.Delete(ctx, id, doc.Condition{}); err != nil || w.Version != 0 {
		t.Errorf("delete: %+v, %v", w, err)
	}
	for name, cond := range map[string]doc.Condition{"exists": {Exists: true}, "version": {Exists: true, AnyOf: []doc.Version{v}}} {
		if _, err := st.Put(ctx, id, data("x"), cond); doc.KindOf(err) != doc.VersionConflict {
			t.Errorf("put if %s: %v", name, err)
		}
		if _, err := st.Delete(ctx, id, cond); doc.KindOf(err) != doc.VersionConflict {
			t.Errorf("delete if %s: %v", name, err)
		}
	}
	large := make([]byte, 400<<10-300)
	for i := range large {
		large[i] = 'x'
	}
	for name, put := range map[string]func() (doc.Written, error){
		"blind":       func() (doc.Written, error) { return st.Put(ctx, id, data("new"), doc.Condition{}) },
		"create only": func() (doc.Written, error) { return st.Put(ctx, id, data("new"), doc.Condition{Absent: true}) },
		"large":       func() (doc.Written, error) { return st.Put(ctx, id, data(string(large)), doc.Condition{}) },
	} {
		v = expire(time.Now().Add(-time.Second))
		w, err := put()
		if err != nil || !w.Created || w.Version <= v {
			t.Errorf("%s: %+v, %v", name, w, err)
		}
		if d, err := st.Load(ctx, id); err != nil || d.CreatedAt != w.Version.Time() || !d.ExpiresAt.IsZero() {
			t.Errorf("%s: created %s, expires %s, %v", name, d.CreatedAt, d.ExpiresAt, err)
		}
	}
}
