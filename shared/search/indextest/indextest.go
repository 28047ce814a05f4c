// Package indextest states what whoever writes documents to an index may rely
// on, as tests that run against any implementation.
package indextest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// Index is the port under test.
//
// Write gives one outcome per operation in their order. Of all versions of a
// document that were written, in whatever order, the index keeps the newest;
// markers of deleted documents are versions like others. Versions tells what
// was written at once and so does Held; searches, Walk and Counts tell it after
// Refresh. Erase takes out what is not newer.
type Index interface {
	Ensure(ctx context.Context, g collection.Generation) error
	Inspect(ctx context.Context, g collection.Generation) (search.Inspection, error)
	UUID(ctx context.Context, g collection.Generation) (string, error)
	Swap(ctx context.Context, to collection.Generation, from []collection.Generation) error
	Remove(ctx context.Context, g collection.Generation) error
	Write(ctx context.Context, ops []search.Operation) ([]search.Outcome, error)
	Versions(ctx context.Context, wanted []search.VersionOf) (map[doc.ID]doc.Version, error)
	Held(ctx context.Context, g collection.Generation, ids []doc.ID) (map[doc.ID]search.Held, error)
	Walk(ctx context.Context, g collection.Generation, q search.WalkQuery) ([]search.Standing, error)
	Counts(ctx context.Context, g collection.Generation) (map[doc.Collection]int, error)
	Erase(ctx context.Context, g collection.Generation, signals []doc.Signal) ([]search.Outcome, error)
	Refresh(ctx context.Context, generations []collection.Generation) error
	MappedFields(ctx context.Context, g collection.Generation) (search.Fields, error)
	Search(ctx context.Context, r search.Request) (search.Result, error)
}

// Run runs the suite. Each index that open gives is empty; the suite asks for
// one, because making indexes takes time, and keeps its cases apart by
// collection.
func Run(t *testing.T, open func(t *testing.T) Index) {
	s := &suite{index: open(t), generation: collection.First(collection.Definition{}, search.Projector)}
	t.Run("a missing index is the environment's fault", s.missingIndex)
	if err := s.index.Ensure(t.Context(), s.generation); err != nil {
		t.Fatal(err)
	}
	t.Run("ensuring again changes nothing", s.ensureAgain)
	t.Run("the newest version stays", s.newestStays)
	t.Run("an equal version is written again", s.equalAgain)
	t.Run("a marker is not undone by an older version", s.markerStays)
	t.Run("a newer version replaces a marker", s.markerReplaced)
	t.Run("outcomes come in the order of the operations", s.outcomesInOrder)
	t.Run("versions are there before a refresh", s.versionsAtOnce)
	t.Run("versions of more ids than one request takes", s.manyVersions)
	t.Run("reduced forms are found like whole ones", s.reductions)
	t.Run("an expired document is not found", s.expired)
	t.Run("collections are kept apart", s.collectionsApart)
	t.Run("pages give every document once", s.pages)
	t.Run("what is held is told before a refresh", s.held)
	t.Run("a walk meets every entry once", s.walks)
	t.Run("erasing spares what is newer", s.erases)
	t.Run("an index is inspected", s.inspects)
	t.Run("the alias moves from where it is thought to be", s.swaps)
	t.Run("of two who move the alias one succeeds", s.contend)
	t.Run("a search tells which index is missing", s.gone)
	t.Run("a collection is read in one index", s.readInOne)
}

type suite struct {
	index      Index
	generation collection.Generation
	written    bool // since the last refresh
}

// start is the moment of the suite's first versions.
var start = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

// made is a document of version 1, 2, … after the start.
func made(id string, version int, data map[string]any) doc.Document {
	v := doc.VersionAt(start) + doc.Version(version)
	return doc.Document{ID: doc.ID(id), Version: v, CreatedAt: start, UpdatedAt: v.Time(), Data: data}
}

func deleted(id string, version int) doc.Document {
	d := made(id, version, nil)
	d.Deleted = true
	return d
}

func (s *suite) write(t *testing.T, docs ...doc.Document) []search.OutcomeKind {
	t.Helper()
	ops := make([]search.Operation, len(docs))
	for i, d := range docs {
		ops[i] = search.Operation{ID: d.ID, Version: d.Version, Generation: s.generation, Source: search.Project(d, s.generation).Source}
	}
	return s.operate(t, ops...)
}

func (s *suite) operate(t *testing.T, ops ...search.Operation) []search.OutcomeKind {
	t.Helper()
	s.written = true
	outcomes, err := s.index.Write(t.Context(), ops)
	if err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != len(ops) {
		t.Fatalf("%d outcomes of %d operations", len(outcomes), len(ops))
	}
	kinds := make([]search.OutcomeKind, len(outcomes))
	for i, o := range outcomes {
		kinds[i] = o.Kind
	}
	return kinds
}

// refresh makes what was written searchable.
func (s *suite) refresh(t *testing.T) {
	t.Helper()
	if !s.written {
		return
	}
	s.written = false
	if err := s.index.Refresh(t.Context(), []collection.Generation{s.generation}); err != nil {
		t.Fatal(err)
	}
}

// find searches one collection of the suite's family, all that was written included.
func (s *suite) find(t *testing.T, r search.Request, name doc.Collection) search.Result {
	t.Helper()
	s.refresh(t)
	r.From = []search.Source{{Collection: name, Generation: &s.generation}}
	if r.Limit == 0 {
		r.Limit = 100
	}
	result, err := s.index.Search(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (s *suite) versions(t *testing.T, ids ...doc.ID) map[doc.ID]doc.Version {
	t.Helper()
	found, err := s.index.Versions(t.Context(), []search.VersionOf{{Generation: s.generation, IDs: ids}})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func same(t *testing.T, got []search.OutcomeKind, want ...search.OutcomeKind) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("outcomes %v, want %v", got, want)
	}
}

func (s *suite) missingIndex(t *testing.T) {
	d := made("missing/1", 1, map[string]any{})
	outcomes, err := s.index.Write(t.Context(), []search.Operation{
		{ID: d.ID, Version: d.Version, Generation: s.generation, Source: search.Project(d, s.generation).Source},
	})
	if err != nil {
		t.Fatal(err)
	}
	if outcomes[0].Kind != search.Environment || !outcomes[0].IndexMissing {
		t.Fatalf("outcome %+v", outcomes[0])
	}
	if found := s.versions(t, d.ID); len(found) != 0 {
		t.Fatalf("versions %v", found)
	}
	if result := s.find(t, search.Request{Count: true}, "missing"); len(result.Documents) != 0 || result.Count != 0 {
		t.Fatalf("found %+v", result)
	}
	s.emptyWhereMissing(t, s.generation)
}

func (s *suite) ensureAgain(t *testing.T) {
	done := make(chan error)
	for range 3 {
		go func() { done <- s.index.Ensure(t.Context(), s.generation) }()
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	changed := s.generation
	changed.Revision++
	if err := s.index.Ensure(t.Context(), changed); err == nil {
		t.Error("an index made for another definition was taken for this one's")
	}
}

func (s *suite) newestStays(t *testing.T) {
	const id = "newest/1"
	same(t, s.write(t, made(id, 2, map[string]any{"n": "two"})), search.Applied)
	same(t, s.write(t, made(id, 1, map[string]any{"n": "one"})), search.Stale)
	same(t, s.write(t, made(id, 4, map[string]any{"n": "four"}), made(id, 3, map[string]any{"n": "three"})), search.Applied, search.Stale)
	r := s.find(t, search.Request{}, "newest")
	if len(r.Documents) != 1 || r.Documents[0].Data["n"] != "four" || r.Documents[0].Version != doc.VersionAt(start)+4 {
		t.Fatalf("found %+v", r.Documents)
	}
	if !r.Documents[0].CreatedAt.Equal(start) || !r.Documents[0].UpdatedAt.Equal(r.Documents[0].Version.Time()) {
		t.Fatalf("the envelope came back as %+v", r.Documents[0])
	}
}

func (s *suite) equalAgain(t *testing.T) {
	const id = "equal/1"
	same(t, s.write(t, made(id, 1, map[string]any{"n": "first"})), search.Applied)
	same(t, s.write(t, made(id, 1, map[string]any{"n": "again"})), search.Applied)
	if r := s.find(t, search.Request{}, "equal"); len(r.Documents) != 1 || r.Documents[0].Data["n"] != "again" {
		t.Fatalf("found %+v", r.Documents)
	}
}

func (s *suite) markerStays(t *testing.T) {
	const id = "deleted/1"
	same(t, s.write(t, made(id, 1, map[string]any{"n": "one"})), search.Applied)
	same(t, s.write(t, deleted(id, 3)), search.Applied)
	same(t, s.write(t, made(id, 2, map[string]any{"n": "two"})), search.Stale)
	if r := s.find(t, search.Request{Count: true}, "deleted"); len(r.Documents) != 0 || r.Count != 0 {
		t.Fatalf("found %+v", r)
	}
	if v := s.versions(t, id)[id]; v != doc.VersionAt(start)+3 {
		t.Fatalf("version %v", v)
	}
}

func (s *suite) markerReplaced(t *testing.T) {
	const id = "again/1"
	same(t, s.write(t, deleted(id, 1)), search.Applied)
	same(t, s.write(t, made(id, 2, map[string]any{"n": "two"})), search.Applied)
	if r := s.find(t, search.Request{}, "again"); len(r.Documents) != 1 {
		t.Fatalf("found %+v", r.Documents)
	}
}

func (s *suite) outcomesInOrder(t *testing.T) {
	same(t, s.write(t, made("order/2", 5, map[string]any{})), search.Applied)
	ok := made("order/1", 1, map[string]any{"n": "ok"})
	older := made("order/2", 1, map[string]any{"n": "older"})
	bad := made("order/3", 1, map[string]any{})
	gone := s.generation
	gone.Number = 77
	same(t, s.operate(t,
		search.Operation{ID: ok.ID, Version: ok.Version, Generation: s.generation, Source: search.Project(ok, s.generation).Source},
		search.Operation{ID: older.ID, Version: older.Version, Generation: s.generation, Source: search.Project(older, s.generation).Source},
		search.Operation{ID: bad.ID, Version: bad.Version, Generation: s.generation, Source: []byte(`{"$version":"no number"}`)},
		search.Operation{ID: ok.ID, Version: ok.Version, Generation: gone, Source: search.Project(ok, gone).Source},
		search.Operation{ID: "order/4", Version: ok.Version, Generation: s.generation, Source: []byte(`{"unknown":1}`)},
	), search.Applied, search.Stale, search.Refused, search.Environment, search.Refused)
}

func (s *suite) versionsAtOnce(t *testing.T) {
	ids := []doc.ID{"atonce/1", `atonce/%2F "\ ?#&é`, "atonce/absent"}
	same(t, s.write(t, made(string(ids[0]), 1, map[string]any{}), made(string(ids[1]), 2, map[string]any{})), search.Applied, search.Applied)
	found := s.versions(t, ids...)
	if len(found) != 2 || found[ids[0]] != doc.VersionAt(start)+1 || found[ids[1]] != doc.VersionAt(start)+2 {
		t.Fatalf("versions %v", found)
	}
}

func (s *suite) manyVersions(t *testing.T) {
	var docs []doc.Document
	var ids []doc.ID
	for i := range 2100 {
		docs = append(docs, made(fmt.Sprintf("many/%d", i), i, map[string]any{}))
		ids = append(ids, docs[i].ID)
	}
	for _, kind := range s.write(t, docs...) {
		if kind != search.Applied {
			t.Fatal(kind)
		}
	}
	found := s.versions(t, ids...)
	for i, id := range ids {
		if found[id] != docs[i].Version {
			t.Fatalf("%s has version %v", id, found[id])
		}
	}
	if r := s.find(t, search.Request{Count: true}, "many"); r.Count != len(docs) || !r.CountExact {
		t.Fatalf("counted %d", r.Count)
	}
}

func (s *suite) expired(t *testing.T) {
	d := made("expiring/1", 1, map[string]any{})
	d.ExpiresAt = start.Add(time.Hour)
	same(t, s.write(t, d), search.Applied)
	before := s.find(t, search.Request{Now: d.ExpiresAt.Add(-time.Microsecond)}, "expiring")
	if len(before.Documents) != 1 || !before.Documents[0].ExpiresAt.Equal(d.ExpiresAt) {
		t.Fatalf("found %+v", before.Documents)
	}
	if r := s.find(t, search.Request{Now: d.ExpiresAt, Count: true}, "expiring"); len(r.Documents) != 0 || r.Count != 0 {
		t.Fatalf("found %+v", r.Documents)
	}
}

func (s *suite) collectionsApart(t *testing.T) {
	same(t, s.write(t, made("left/1", 1, map[string]any{}), made("right/1", 1, map[string]any{}), made("left/1/right/1", 1, map[string]any{})),
		search.Applied, search.Applied, search.Applied)
	for _, name := range []doc.Collection{"left", "right", "left/right"} {
		if r := s.find(t, search.Request{}, name); len(r.Documents) != 1 || r.Documents[0].ID.Collection() != name {
			t.Fatalf("%s: found %+v", name, r.Documents)
		}
	}
	s.refresh(t)
	r, err := s.index.Search(t.Context(), search.Request{Limit: 10, From: []search.Source{
		{Collection: "right", Generation: &s.generation}, {Collection: "left", Generation: &s.generation}, {Collection: "absent"},
	}})
	if err != nil || len(r.Documents) != 2 {
		t.Fatalf("found %+v, %v", r.Documents, err)
	}
}

func (s *suite) pages(t *testing.T) {
	var docs []doc.Document
	const many = 23
	for i := range many {
		docs = append(docs, made(fmt.Sprintf("pages/%02d", i), 1, map[string]any{"parity": []any{"even", "odd"}[i%2]}))
	}
	s.write(t, docs...)
	key, err := value.ParsePath("parity")
	if err != nil {
		t.Fatal(err)
	}
	r := search.Request{Limit: 5, Sort: []search.SortKey{{Path: key, Desc: true}}}
	var ids []doc.ID
	for {
		page := s.find(t, r, "pages")
		for _, d := range page.Documents {
			ids = append(ids, d.ID)
		}
		if page.Next == "" {
			break
		}
		r.After = page.Next
	}
	if len(ids) != many || ids[0] != "pages/01" || ids[many-1] != "pages/22" || !slices.IsSorted(ids[:11]) || !slices.IsSorted(ids[11:]) {
		t.Fatalf("pages gave %v", ids)
	}
}
