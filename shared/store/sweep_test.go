package store_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// onTheMove hides the entry of a root document from the first page of the change
// feed on which it would be, as while it moves and is nowhere.
type onTheMove struct {
	mu     sync.Mutex
	root   string
	hidden bool
}

func (m *onTheMove) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || req.Header.Get("X-Amz-Target") != "DynamoDB_20120810.Query" {
		return resp, err
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	var page map[string]any
	if err := json.Unmarshal(text, &page); err != nil {
		return nil, err
	}
	var left []any
	items, _ := page["Items"].([]any)
	m.mu.Lock()
	for _, it := range items {
		if pk := it.(map[string]any)["pk"].(map[string]any)["S"]; pk == m.root && !m.hidden {
			m.hidden = true
			continue
		}
		left = append(left, it)
	}
	m.mu.Unlock()
	page["Items"] = left
	if text, err = json.Marshal(page); err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	resp.Header.Del("Content-Length")
	resp.Header.Del("X-Amz-Crc32")
	return resp, nil
}

// TestEndsAreReadAgain has an entry be nowhere when its partition is read.
func TestEndsAreReadAgain(t *testing.T) {
	tb := newTables(t)
	plain := tb.open(nil)
	for i := range 6 {
		if _, err := plain.Put(t.Context(), doc.ID(fmt.Sprintf("moving/%d", i)), data("x"), doc.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, read := range map[string]func(*store.Store) map[doc.ID]doc.Version{
		"sweep": func(s *store.Store) map[doc.ID]doc.Version { return sweptVersions(t, s, nil) },
		"capture": func(s *store.Store) map[doc.ID]doc.Version {
			return captured(t, s, store.CaptureQuery{Collections: []doc.Collection{"moving"}})
		},
	} {
		m := &onTheMove{root: "moving/3"}
		if got := read(tb.open(m)); len(got) != 6 || !m.hidden {
			t.Errorf("%s: hidden %t, %d of 6 documents", name, m.hidden, len(got))
		}
	}
}

// sweptVersions is what a sweep visits, and does something at each page.
func sweptVersions(t *testing.T, s *store.Store, atPage func(n int)) map[doc.ID]doc.Version {
	t.Helper()
	got := map[doc.ID]doc.Version{}
	pages := 0
	err := s.Sweep(t.Context(), 0, func(changes []doc.Change) error {
		for _, c := range changes {
			got[c.ID] = max(got[c.ID], c.Version)
		}
		if atPage != nil {
			atPage(pages)
		}
		pages++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestSweepWhilePartitionsChange has the number of partitions raised in the
// middle of a sweep, and documents go back and forth between old and new ones:
// another process goes on with the old number.
func TestSweepWhilePartitionsChange(t *testing.T) {
	for page := range 3 {
		tb := newTables(t)
		with := func(n int) *store.Store { return tb.open(nil, func(o *store.Options) { o.Buckets = n }) }
		few := with(3)
		write := func(s *store.Store) map[doc.ID]doc.Version {
			versions := map[doc.ID]doc.Version{}
			for i := range 18 {
				w, err := s.Put(t.Context(), doc.ID(fmt.Sprintf("a/%d", i)), data("x"), doc.Condition{})
				if err != nil {
					t.Fatal(err)
				}
				versions[w.ID] = w.Version
			}
			return versions
		}
		before := write(few)
		check := func(what string, got map[doc.ID]doc.Version) {
			t.Helper()
			for id, v := range before {
				if got[id] < v {
					t.Errorf("%s at page %d: %s stood at %d, swept at %d", what, page, id, v, got[id])
				}
			}
		}
		many := with(17)
		check("raised", sweptVersions(t, few, func(n int) {
			if n == page {
				write(many)
			}
		}))
		before = write(many)
		check("back", sweptVersions(t, few, func(n int) {
			if n == page {
				write(few)
			}
		}))
		before = write(few)
		check("forth", sweptVersions(t, few, func(n int) {
			if n == page {
				write(many)
			}
		}))
	}
}
