package store_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/doc"
	"holdfast/shared/store"
	"holdfast/shared/value"
)

// scanned goes through all segments.
func scanned(t *testing.T, s *store.Store, segments, maxBytes int) map[doc.ID]store.Scanned {
	t.Helper()
	all := map[doc.ID]store.Scanned{}
	for segment := range segments {
		q := store.ScanQuery{Segment: segment, Segments: segments, MaxBytes: maxBytes}
		for {
			page, err := s.Scan(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range page.Items {
				if _, again := all[it.Document.ID]; again {
					t.Errorf("%s twice", it.Document.ID)
				}
				all[it.Document.ID] = it
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
	}
	return all
}

// TestScanOfWhatOthersLeft finds items in any state and tells which no write of
// the store left so; adopting them is the end of it.
func TestScanOfWhatOthersLeft(t *testing.T) {
	tb := newTables(t)
	s := tb.open(nil)
	const own doc.ID = "own/1"
	if _, err := s.Put(t.Context(), own, data("x"), doc.Condition{}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []doc.ID{"own/2", "own/2/part", "own/3"} {
		if _, err := s.Put(t.Context(), id, data("x"), doc.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Delete(t.Context(), "own/3", doc.Condition{}); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	expired := tb.get(t, "own/2")
	expired["expiresAt"] = number(fmt.Sprint(end.UnixMicro()))
	tb.put(t, "own/2", expired)
	// A write of the store with one attribute gone or odd.
	whole := tb.get(t, own)
	delete(whole, "pk")
	delete(whole, "sk")
	lacking := func(attr string, v types.AttributeValue) item {
		it := maps.Clone(whole)
		delete(it, attr)
		if v != nil {
			it[attr] = v
		}
		return it
	}
	foreign := map[doc.ID]item{
		"foreign/data":       {"data": object(item{"a": number("1")})},
		"foreign/nothing":    {},
		"foreign/1/deep/2":   {"data": text("text")},
		"foreign/version":    lacking("version", nil),
		"foreign/version0":   lacking("version", number("0")),
		"foreign/nonce":      lacking("nonce", nil),
		"foreign/bucket":     lacking("bucket", nil),
		"foreign/no-bucket":  lacking("bucket", number("999")),
		"foreign/minus":      lacking("bucket", number("-1")),
		"foreign/half":       lacking("bucket", number("0.5")),
		"foreign/collection": lacking("collection", nil),
		"foreign/copied":     lacking("none", nil), // of another collection
		"foreign/updated":    lacking("updatedAt", nil),
		"foreign/created":    lacking("createdAt", nil),
		"foreign/deleted":    {"deleted": &types.AttributeValueMemberBOOL{Value: true}},
	}
	for id, it := range foreign {
		if id != "foreign/copied" && it["collection"] != nil {
			it["collection"] = text("foreign")
		}
		tb.put(t, id, it)
	}
	// Keys that are no ids.
	for _, key := range []item{
		{"pk": text("alone"), "sk": text("/")}, {"pk": text("own/1"), "sk": text("part")}, {"pk": text("own/1"), "sk": text("/a//b")}, {"pk": text("a/b/c"), "sk": text("/")}, {"pk": text("../x"), "sk": text("/")},
	} {
		if _, err := tb.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tb.documents, Item: key}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[doc.ID]bool{own: false, "own/2": false, "own/2/part": false, "own/3": false}
	for id := range foreign {
		want[id] = true
	}
	check := func(segments, bytes int) map[doc.ID]store.Scanned {
		t.Helper()
		all := scanned(t, s, segments, bytes)
		if len(all) != len(want) {
			t.Errorf("%d of %d items", len(all), len(want))
		}
		for id, isForeign := range want {
			got, ok := all[id]
			if !ok || got.Foreign != isForeign || got.Seen != seen(tb.get(t, id)) {
				t.Errorf("%s: there %t, foreign %t, seen %+v of %+v", id, ok, got.Foreign, got.Seen, tb.get(t, id))
			}
			d := revision(t, s, id)
			if got.Document.Version != d.Version || got.Document.Deleted != d.Deleted || !got.Document.ExpiresAt.Equal(d.ExpiresAt) || !value.Equal(got.Document.Data, d.Data) {
				t.Errorf("%s: scanned as %+v, loaded as %+v", id, got.Document, d)
			}
		}
		return all
	}
	check(1, 0)
	check(3, 1)
	all := check(4, 2000)
	if !all["own/2"].Document.ExpiresAt.Equal(end) || !all["own/3"].Document.Deleted || all["foreign/data"].Document.Version != 1 {
		t.Errorf("%+v", all)
	}
	standings, err := s.Standings(t.Context(), []doc.ID{"own/2", "own/3", "foreign/data", "foreign/deleted"})
	if err != nil || !standings["own/2"].ExpiresAt.Equal(end) || !standings["own/3"].Deleted || standings["foreign/data"] != (store.Standing{Version: 1}) || !standings["foreign/deleted"].Deleted {
		t.Errorf("%+v, %v", standings, err)
	}
	for id, it := range all {
		if !it.Foreign {
			continue
		}
		if err := s.Adopt(t.Context(), store.Foreign{ID: id, New: it.Seen}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		want[id] = false
	}
	check(2, 0)
}

// TestScanUnderFaults fails for what does not pass and sits out what does.
func TestScanUnderFaults(t *testing.T) {
	tb := newTables(t)
	f := &faults{}
	s := tb.open(f)
	for i := range 20 {
		if _, err := s.Put(t.Context(), doc.ID(fmt.Sprintf("a/%d", i)), data("x"), doc.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	f.plan = func(_ string, n int) fault {
		return []fault{fine, throttled, fine, failedPlain, fine, cutAfter, lostAfter}[n%7]
	}
	if all := scanned(t, s, 2, 0); len(all) != 20 {
		t.Errorf("%d of 20 documents", len(all))
	}
	if got := sweptVersions(t, s, nil); len(got) != 20 {
		t.Errorf("%d of 20 entries", len(got))
	}
	if got, err := s.Standings(t.Context(), []doc.ID{"a/1", "a/2", "a/x"}); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	f.plan = func(string, int) fault { return throttled }
	ctx, cancel := contextFor(t, 200*time.Millisecond)
	defer cancel()
	_, err := s.Scan(ctx, store.ScanQuery{})
	checkEngineError(t, "scan", err, doc.Throttled)
	checkEngineError(t, "sweep", s.Sweep(ctx, 0, func([]doc.Change) error { return nil }), doc.Throttled)
	_, err = s.Standings(ctx, []doc.ID{"a/1"})
	checkEngineError(t, "standings", err, doc.Throttled)
	_, err = s.FeedHas(ctx, doc.Written{ID: "a/1", Version: 1})
	checkEngineError(t, "feed", err, doc.Throttled)
	_, _, err = s.State().AcquireLease(ctx, "x", time.Minute)
	checkEngineError(t, "lease", err, doc.Throttled)
	var e *doc.Error
	if _, _, err := s.State().Quarantined(ctx, store.QuarantineQuery{}); !errors.As(err, &e) || e.Kind != doc.Throttled {
		t.Errorf("quarantine: %v", err)
	}
}
