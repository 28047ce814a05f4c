package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

func captured(t *testing.T, s *store.Store, q store.CaptureQuery) map[doc.ID]doc.Version {
	t.Helper()
	signals, err := s.Capture(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	got := map[doc.ID]doc.Version{}
	for _, g := range signals {
		if got[g.ID] != 0 {
			t.Errorf("%s is there twice", g.ID)
		}
		got[g.ID] = g.Version
	}
	return got
}

// TestCapture sees the newest version of everything, deletes included, from a
// version on, and nothing of other collections.
func TestCapture(t *testing.T) {
	tb := newTables(t)
	s := tb.open(nil)
	if got := captured(t, s, store.CaptureQuery{Collections: []doc.Collection{"a"}}); len(got) != 0 {
		t.Errorf("before anything was written: %v", got)
	}
	want := map[doc.ID]doc.Version{}
	var middle doc.Version
	put := func(id doc.ID) doc.Version {
		t.Helper()
		w, err := s.Put(t.Context(), id, data("x"), doc.Condition{})
		if err != nil {
			t.Fatal(err)
		}
		return w.Version
	}
	for i := range 12 {
		want[doc.ID(fmt.Sprintf("a/%d", i))] = put(doc.ID(fmt.Sprintf("a/%d", i)))
		want[doc.ID(fmt.Sprintf("b/%d/c", i))] = put(doc.ID(fmt.Sprintf("b/%d/c", i)))
		put(doc.ID(fmt.Sprintf("other/%d", i)))
		if i == 6 {
			middle = want["a/6"]
		}
	}
	want["a/3"] = put("a/3")
	gone, err := s.Delete(t.Context(), "a/4", doc.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	want["a/4"] = gone.Version
	both := store.CaptureQuery{Collections: []doc.Collection{"a", "b/c", "none"}}
	if got := captured(t, s, both); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	both.From = middle
	maps.DeleteFunc(want, func(_ doc.ID, v doc.Version) bool { return v < middle })
	if got := captured(t, s, both); !maps.Equal(got, want) {
		t.Errorf("from %d: got %v, want %v", middle, got, want)
	}
	both.From = 0
	for _, c := range []struct{ entries, read, limit int }{{23, 0, 23}, {0, 20, 20}, {24, 200, 0}} {
		both.MaxEntries, both.MaxRead = c.entries, c.read
		_, err := s.Capture(t.Context(), both)
		var e *doc.Error
		if c.limit == 0 && err != nil || c.limit != 0 && (!errors.As(err, &e) || e.Kind != doc.QueryTooCostly || e.Members["limit"] != c.limit) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestCaptureAmongWriters has documents change all the time: each of them is in
// every capture, in a version at least as new as the last acknowledged before.
func TestCaptureAmongWriters(t *testing.T) {
	tb := newTables(t)
	const documents = 6
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var mu sync.Mutex
	acknowledged := map[doc.ID]doc.Version{}
	for i := range documents {
		writers.Go(func() {
			s := tb.open(nil)
			for ctx.Err() == nil {
				w, err := s.Put(ctx, doc.ID(fmt.Sprintf("hot/%d", i)), data("x"), doc.Condition{})
				if err != nil {
					return
				}
				mu.Lock()
				acknowledged[w.ID] = w.Version
				mu.Unlock()
			}
		})
	}
	defer writers.Wait()
	defer stop()
	s := tb.open(nil)
	for deadline := time.Now().Add(20 * time.Second); ; {
		mu.Lock()
		ready := len(acknowledged) == documents
		mu.Unlock()
		if ready {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the writers do not write")
		}
		time.Sleep(10 * time.Millisecond)
	}
	for range 8 {
		mu.Lock()
		before := maps.Clone(acknowledged)
		mu.Unlock()
		got := captured(t, s, store.CaptureQuery{Collections: []doc.Collection{"hot"}})
		for id, v := range before {
			if got[id] < v {
				t.Errorf("%s: %d was acknowledged, %d captured", id, v, got[id])
			}
		}
	}
}
