package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// State is one process's view of the system's own records.
type State struct {
	w   *World
	p   *Process
	clk *doc.Clock // of its store

	remembered map[doc.Collection]rememberedDefinition
	registered map[doc.Collection]bool
}

type rememberedDefinition struct {
	definition collection.Definition
	at         time.Time
}

func newState(w *World, p *Process, clk *doc.Clock) *State {
	return &State{w: w, p: p, clk: clk, remembered: map[doc.Collection]rememberedDefinition{}, registered: map[doc.Collection]bool{}}
}

var errEngine = errors.New("the engine does not answer")

// problem is the error of a call to one of the tables.
func problem(doing string, v verdict) error {
	switch v {
	case told:
		return nil
	case throttled:
		return doc.Errorf(doc.Throttled, "the store takes no more requests at the moment").Because(fmt.Errorf("%s: %w", doing, errEngine))
	}
	return doc.Errorf(doc.Unavailable, "the store cannot be reached at the moment").Because(fmt.Errorf("%s: %w", doing, errEngine))
}

func (s *State) call(ctx context.Context, kind string, mutates bool, apply func()) error {
	return problem(kind, s.w.dated(ctx, s.p, s.clk, StateEngine, kind, mutates, apply))
}

// Definition is what is declared of a collection, as old as the store lets it be.
func (s *State) Definition(ctx context.Context, c doc.Collection) (collection.Definition, error) {
	now := s.clk.Now()
	if r, ok := s.remembered[c]; ok && now.Sub(r.at) >= 0 && now.Sub(r.at) < store.DefinitionLife {
		return r.definition, nil
	}
	return s.CurrentDefinition(ctx, c)
}

// CurrentDefinition is never from memory.
func (s *State) CurrentDefinition(ctx context.Context, c doc.Collection) (d collection.Definition, err error) {
	at := s.clk.Now()
	err = s.call(ctx, "definition", false, func() { d = s.w.State.definition(c) })
	if err == nil {
		s.remembered[c] = rememberedDefinition{d, at}
	}
	return d, err
}

// Definitions are all of them.
func (s *State) Definitions(ctx context.Context) (all []collection.Definition, err error) {
	err = s.call(ctx, "definitions", false, func() {
		all = nil
		for _, c := range sortedKeys(s.w.State.definitions) {
			all = append(all, s.w.State.definitions[c])
		}
	})
	return all, err
}

// PutDefinition replaces a definition of an expected revision.
func (s *State) PutDefinition(ctx context.Context, d collection.Definition, expected int64) (put collection.Definition, err error) {
	ok := false
	err = s.call(ctx, "put definition", true, func() { put, ok = s.w.State.putDefinition(d, expected) })
	if err == nil && !ok {
		err = doc.Errorf(doc.VersionConflict, "the definition has another revision")
	}
	if err == nil {
		s.remembered[d.Name] = rememberedDefinition{put, s.clk.Now()}
	}
	return put, err
}

// Generations are those of a family.
func (s *State) Generations(ctx context.Context, f collection.Family) (all []collection.Generation, err error) {
	err = s.call(ctx, "generations", false, func() { all = s.w.State.family(f) })
	return all, err
}

// PutGeneration writes one if what stands there is expected. A lost answer to
// one's own write is known.
func (s *State) PutGeneration(ctx context.Context, g collection.Generation, expected *collection.Generation) error {
	ok := false
	err := s.call(ctx, "put generation", true, func() { ok = s.w.State.putGeneration(g, expected) })
	if err == nil && !ok {
		return doc.Errorf(doc.VersionConflict, "the generation was changed meanwhile")
	}
	return err
}

// DropGeneration removes the record of one that stands as given.
func (s *State) DropGeneration(ctx context.Context, g collection.Generation) error {
	ok := false
	err := s.call(ctx, "drop generation", true, func() { ok = s.w.State.dropGeneration(g) })
	if err == nil && !ok {
		return doc.Errorf(doc.VersionConflict, "the generation was changed meanwhile")
	}
	return err
}

// RecordQuarantine notes that a version could not be indexed in full.
func (s *State) RecordQuarantine(ctx context.Context, q doc.Quarantined) error {
	return s.call(ctx, "quarantine", true, func() { s.w.State.recordQuarantine(q) })
}

// ClearQuarantine removes the note about a document up to a version.
func (s *State) ClearQuarantine(ctx context.Context, _ doc.Collection, id doc.ID, upTo doc.Version) error {
	return s.call(ctx, "clear quarantine", true, func() { s.w.State.clearQuarantine(id, upTo) })
}

// Quarantine gives the notes about those of the ids that have one.
func (s *State) Quarantine(ctx context.Context, ids []doc.ID) (map[doc.ID]doc.Quarantined, error) {
	found := map[doc.ID]doc.Quarantined{}
	err := s.call(ctx, "read quarantine", false, func() {
		for _, id := range ids {
			if q, ok := s.w.State.quarantine[id]; ok {
				found[id] = q
			}
		}
	})
	return found, err
}

// CountQuarantined is how many documents of the collections have a note.
func (s *State) CountQuarantined(ctx context.Context, collections []doc.Collection) (n int, err error) {
	err = s.call(ctx, "count quarantine", false, func() { n = s.w.State.countQuarantined(collections) })
	return n, err
}

// RecordLag keeps a measure unless a later one is there.
func (s *State) RecordLag(ctx context.Context, m store.LagMeasure) error {
	return s.call(ctx, "lag", true, func() {
		if s.w.State.lag == nil || !s.w.State.lag.At.After(m.At) {
			s.w.State.lag = &m
		}
	})
}

// Register records that a collection has documents.
func (s *State) Register(ctx context.Context, c doc.Collection) error {
	if s.registered[c] || strings.HasPrefix(string(c), string(doc.SystemMark)) {
		return nil
	}
	err := s.call(ctx, "register", true, func() { s.w.State.collections[c] = true })
	if err == nil {
		s.registered[c] = true
	}
	return err
}

// Collections are all that have or had documents.
func (s *State) Collections(ctx context.Context) (all []doc.Collection, err error) {
	err = s.call(ctx, "collections", false, func() { all = slices.Clone(sortedKeys(s.w.State.collections)) })
	return all, err
}

// clock is the process's time.
func (p *Process) clock(w *World) time.Time {
	if p == nil {
		return w.now()
	}
	return p.Now()
}
