package search_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// oddIDs are different ids of whatever ids may have in them, in their order.
func oddIDs(n int) []doc.ID {
	rng := rand.New(rand.NewPCG(3, 9))
	pieces := []string{
		"a", "A", "Z", "0", "10", "𝔘", "\U0010FFFF", "\uFFFD", "\uFF5E", "é", "e\u0301", "ß", "日本", "👩‍👩‍👧", "\u200b", " ", "\"", "'", "\\", "%2F",
		"?", "#", "&", "+", "*", "{", "[", ",", ":", "~", "$", "<", "\t", "\u007f", "\u0085", strings.Repeat("x", 60),
	}
	known := map[doc.ID]bool{}
	for len(known) < n {
		segments := []string{"walk"}
		for range 1 + 2*rng.IntN(3) {
			var s strings.Builder
			for range 1 + rng.IntN(4) {
				s.WriteString(pieces[rng.IntN(len(pieces))])
			}
			segments = append(segments, s.String())
		}
		if id, err := doc.ParseID(strings.Join(segments, "/")); err == nil {
			known[id] = true
		}
	}
	ids := make([]doc.ID, 0, n)
	for id := range known {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// oddEntries are so many entries, of which one in four is a marker.
func oddEntries(n int) (docs []doc.Document, want []search.Standing) {
	for i, id := range oddIDs(n) {
		d := doc.Document{ID: id, Version: doc.VersionAt(at) + doc.Version(i), CreatedAt: at, UpdatedAt: at, Data: map[string]any{"i": json.Number(fmt.Sprint(i))}}
		if i%4 == 0 {
			d.Deleted, d.Data = true, nil
		}
		docs = append(docs, d)
		want = append(want, search.Standing{ID: id, Collection: id.Collection(), Version: d.Version, Deleted: d.Deleted})
	}
	return docs, want
}

// TestAWalkMeetsOddIDsOnce also sees that nothing is held or walked that should
// not be: the index shows searches nothing by itself here.
func TestAWalkMeetsOddIDsOnce(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	engine(t, http.MethodPut, "/"+c.IndexName(g)+"/_settings", `{"index.refresh_interval":"-1"}`)
	docs, want := oddEntries(3000)
	ops := make([]search.Operation, len(docs))
	for i, d := range docs {
		ops[i] = search.Operation{ID: d.ID, Version: d.Version, Generation: g, Source: search.Project(d, g).Source}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	for i, o := range mustWrite(t, c, ops) {
		if o.Kind != search.Applied {
			t.Fatalf("%q: %+v", ops[i].ID, o)
		}
	}

	if step, err := c.Walk(t.Context(), g, search.WalkQuery{}); err != nil || len(step) != 0 {
		t.Fatalf("before the refresh the walk meets %d entries, %v", len(step), err)
	}
	checkHeld(t, c, g, docs[:200])
	if err := c.Refresh(t.Context(), []collection.Generation{g}); err != nil {
		t.Fatal(err)
	}
	checkHeld(t, c, g, docs)
	walk := func(q search.WalkQuery) (all []search.Standing) {
		t.Helper()
		for {
			step, err := c.Walk(t.Context(), g, q)
			if err != nil {
				t.Fatal(err)
			}
			if all = append(all, step...); len(step) < q.Limit {
				return all
			}
			q.After = step[len(step)-1].ID
		}
	}
	if got := walk(search.WalkQuery{Limit: 701}); !slices.Equal(got, want) {
		t.Errorf("the walk met %d entries, not the %d in order", len(got), len(want))
	}
	old := slices.DeleteFunc(slices.Clone(want), func(s search.Standing) bool { return !s.Deleted || s.Version >= want[1500].Version })
	if got := walk(search.WalkQuery{Limit: 100, Markers: true, Before: want[1500].Version}); !slices.Equal(got, old) {
		t.Errorf("the walk for old markers met %d entries, not the %d in order", len(got), len(old))
	}

	// An entry that was put there by hand and has no id in it does not stop a walk.
	engine(t, http.MethodPut, "/"+c.IndexName(g)+"/_doc/by-hand?refresh=true", `{"$collection":"walk"}`)
	if got := walk(search.WalkQuery{Limit: 1000}); !slices.Equal(got, want) {
		t.Errorf("the walk met %d entries, not the %d in order", len(got), len(want))
	}
}

// checkHeld checks that the index has these documents, whole.
func checkHeld(t *testing.T, c *search.Client, g collection.Generation, docs []doc.Document) {
	t.Helper()
	want := map[doc.ID]search.Held{}
	for _, d := range docs {
		h := search.Held{Version: d.Version, Deleted: d.Deleted}
		if !d.Deleted {
			h.Sum = value.Sum(d.Data)
		}
		want[d.ID] = h
	}
	held, err := c.Held(t.Context(), g, slices.Collect(maps.Keys(want)))
	if err != nil || len(held) != len(want) {
		t.Fatalf("%d of %d are held, %v", len(held), len(want), err)
	}
	for id, h := range held {
		if h != want[id] {
			t.Errorf("of %q is held %+v, not %+v", id, h, want[id])
		}
	}
}

// What was written since a refresh is held, whatever searches see: a newer
// version, the same one in another form, and nothing of what was erased.
func TestWhatIsHeldIsNeverOld(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	engine(t, http.MethodPut, "/"+c.IndexName(g)+"/_settings", `{"index.refresh_interval":"-1"}`)
	var docs []doc.Document
	var ops []search.Operation
	for i := range 20 {
		d := document(t, fmt.Sprintf("held/%02d", i), fmt.Sprintf(`{"n":%d}`, i))
		docs = append(docs, d)
		ops = append(ops, search.Operation{ID: d.ID, Version: d.Version, Generation: g, Source: search.Reduce(d, g, search.EnvelopeOnly, nil).Source})
	}
	mustWrite(t, c, ops)
	if err := c.Refresh(t.Context(), []collection.Generation{g}); err != nil {
		t.Fatal(err)
	}
	held, err := c.Held(t.Context(), g, []doc.ID{docs[0].ID, docs[19].ID})
	if err != nil || !held[docs[0].ID].Partial || !held[docs[19].ID].Partial {
		t.Fatalf("%+v, %v", held, err)
	}
	ops = nil
	for i := range docs {
		d := &docs[i]
		switch i % 4 {
		case 0:
			d.Version++
			d.Data = map[string]any{"now": true}
		case 1:
			d.Version++
			d.Deleted, d.Data = true, nil
		}
		ops = append(ops, search.Operation{ID: d.ID, Version: d.Version, Generation: g, Source: search.Project(*d, g).Source})
	}
	mustWrite(t, c, ops)
	checkHeld(t, c, g, docs)
	if o, err := c.Erase(t.Context(), g, []doc.Signal{{ID: docs[0].ID, Version: docs[0].Version}}); err != nil || o[0].Kind != search.Applied {
		t.Fatalf("%+v, %v", o, err)
	}
	if held, err = c.Held(t.Context(), g, []doc.ID{docs[0].ID}); err != nil || len(held) != 0 {
		t.Errorf("held are %+v, %v", held, err)
	}
}

// TestErasingAgainstWrites takes markers out while newer versions of some of
// them are written: these stay, whichever comes first.
func TestErasingAgainstWrites(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	const many, rounds = 60, 5
	var markers []doc.Document
	for i := range many * rounds {
		d := document(t, fmt.Sprintf("purged/%03d", i), `{}`)
		d.Deleted, d.Data = true, nil
		markers = append(markers, d)
	}
	index(t, c, g, markers...)
	var writing sync.WaitGroup
	for round := range rounds {
		of := markers[round*many : (round+1)*many]
		var ops []search.Operation
		var signals []doc.Signal
		for i, d := range of {
			signals = append(signals, doc.Signal{ID: d.ID, Version: d.Version})
			if i%2 == 0 {
				d.Version, d.Deleted, d.Data = d.Version+1, false, map[string]any{"again": true}
				ops = append(ops, search.Operation{ID: d.ID, Version: d.Version, Generation: g, Source: search.Project(d, g).Source})
			}
		}
		slices.Reverse(ops) // so that the two meet in the middle
		writing.Go(func() {
			outcomes, err := c.Write(t.Context(), ops)
			if err != nil || slices.ContainsFunc(outcomes, func(o search.Outcome) bool { return o.Kind != search.Applied }) {
				t.Errorf("%+v, %v", outcomes, err)
			}
		})
		writing.Go(func() {
			outcomes, err := c.Erase(t.Context(), g, signals)
			for i, o := range outcomes {
				if o.Kind != search.Applied && (i%2 != 0 || o.Kind != search.Stale) {
					t.Errorf("%s: %+v", signals[i].ID, o)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	if err := c.Refresh(t.Context(), []collection.Generation{g}); err != nil {
		t.Fatal(err)
	}
	left, err := c.Walk(t.Context(), g, search.WalkQuery{})
	if err != nil || len(left) != many*rounds/2 {
		t.Fatalf("%d entries are left, %v", len(left), err)
	}
	for _, e := range left {
		if e.Deleted || e.Version != doc.VersionAt(at)+1 {
			t.Errorf("%+v is left", e)
		}
	}
	if counts, err := c.Counts(t.Context(), g); err != nil || len(counts) != 1 || counts["purged"] != len(left) {
		t.Errorf("counts %v, %v", counts, err)
	}
}

// Collections are counted whatever their number.
func TestCountsOfManyCollections(t *testing.T) {
	c := newIndex(t)
	g := sharedGeneration()
	if err := c.Ensure(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	var docs []doc.Document
	for i := range 2100 {
		docs = append(docs, document(t, fmt.Sprintf("c%d/1", i), `{}`))
	}
	docs = append(docs, document(t, "c7/2", `{}`))
	index(t, c, g, docs...)
	counts, err := c.Counts(t.Context(), g)
	if err != nil || len(counts) != 2100 || counts["c7"] != 2 || counts["c2099"] != 1 {
		t.Errorf("%d collections, %d of c7, %v", len(counts), counts["c7"], err)
	}
}

// Outcomes of erasing are told one by one, as those of writing.
func TestOutcomesOfErasing(t *testing.T) {
	answers := map[string]struct {
		item string
		want search.Outcome
	}{
		"c/1": {`{"delete":{"status":200}}`, search.Outcome{Kind: search.Applied, Status: 200}},
		"c/2": {`{"delete":{"status":404}}`, search.Outcome{Kind: search.Applied, Status: 404}},
		"c/3": {`{"delete":{"status":409,"error":{"type":"version_conflict_engine_exception"}}}`, search.Outcome{Kind: search.Stale, Status: 409}},
		"c/4": {`{"delete":{"status":404,"error":{"type":"index_not_found_exception"}}}`, search.Outcome{Kind: search.Environment, Status: 404, Reason: "the index is missing", IndexMissing: true}},
		"c/5": {`{"delete":{"status":429,"error":{"type":"rejected_execution_exception"}}}`, search.Outcome{Kind: search.Environment, Status: 429, Reason: "opensearch could not write: rejected_execution_exception"}},
		"c/6": {`{}`, search.Outcome{Kind: search.Environment, Reason: "the answer of opensearch did not tell"}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var items []string
		for d := json.NewDecoder(r.Body); d.More(); {
			var line struct {
				Delete struct {
					ID          string `json:"_id"`
					Version     int64  `json:"version"`
					VersionType string `json:"version_type"`
				} `json:"delete"`
			}
			if err := d.Decode(&line); err != nil || line.Delete.Version != 7 || line.Delete.VersionType != "external_gte" {
				t.Errorf("%+v, %v", line, err)
			}
			items = append(items, answers[line.Delete.ID].item)
		}
		_, _ = io.WriteString(w, `{"items":[`+strings.Join(items, ",")+`]}`)
	}))
	t.Cleanup(server.Close)
	c, err := search.NewClient(search.Options{URL: server.URL, Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	var signals []doc.Signal
	for i := range answers {
		signals = append(signals, doc.Signal{ID: doc.ID(i), Version: 7})
	}
	outcomes, err := c.Erase(t.Context(), sharedGeneration(), signals)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range outcomes {
		if want := answers[string(signals[i].ID)].want; o != want {
			t.Errorf("%s\n got %+v\nwant %+v", signals[i].ID, o, want)
		}
	}
}
