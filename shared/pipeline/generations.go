package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
)

// Registry is where definitions and generations are kept.
type Registry interface {
	Definition(ctx context.Context, c doc.Collection) (collection.Definition, error)
	Generations(ctx context.Context, f collection.Family) ([]collection.Generation, error)
	// PutGeneration stores a generation under the condition that the stored one
	// is expected; nil: that there is none with its number.
	PutGeneration(ctx context.Context, g collection.Generation, expected *collection.Generation) error
}

// Ensurer creates indexes.
type Ensurer interface {
	// Ensure creates the generation's index and alias where they are missing.
	Ensure(ctx context.Context, g collection.Generation) error
}

// GenerationsLife is how long a lookup of generations is believed. A new
// generation is filled only after everyone knows of it, so this life is part of
// how long a change of a definition takes.
const GenerationsLife = 5 * time.Second

// Generations finds the generations that a collection's documents are written
// to. It is safe for concurrent use.
type Generations struct {
	registry Registry
	index    Ensurer
	now      func() time.Time

	mu    sync.Mutex
	known map[collection.Family]lookup
}

type lookup struct {
	generations []collection.Generation
	at          time.Time
}

// NewGenerations makes a finder. now may be nil for time.Now.
func NewGenerations(registry Registry, index Ensurer, now func() time.Time) *Generations {
	if now == nil {
		now = time.Now
	}
	return &Generations{registry: registry, index: index, now: now, known: map[collection.Family]lookup{}}
}

// Of is every generation that the collection's documents are written to, in one
// family or, while they move to another, in two; from memory where that is fresh
// enough. A family without any gets its first one, index included.
func (g *Generations) Of(ctx context.Context, c doc.Collection) ([]collection.Generation, error) {
	d, err := g.registry.Definition(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("find the definition of a collection: %w", err)
	}
	var all []collection.Generation
	for _, family := range d.Writes() {
		generations, err := g.in(ctx, d, family)
		if err != nil {
			return nil, err
		}
		all = append(all, generations...)
	}
	return all, nil
}

// in is the written generations of one family.
func (g *Generations) in(ctx context.Context, d collection.Definition, family collection.Family) ([]collection.Generation, error) {
	g.mu.Lock()
	found, ok := g.known[family]
	g.mu.Unlock()
	// An age below zero is that of a clock that was set back.
	if age := g.now().Sub(found.at); ok && age >= 0 && age < GenerationsLife {
		return found.generations, nil
	}
	at := g.now()
	generations, err := g.find(ctx, d, family)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	g.known[family] = lookup{generations, at}
	g.mu.Unlock()
	return generations, nil
}

// Renew forgets what is remembered of a collection's families and creates again
// what their generations need, for who met a missing index.
func (g *Generations) Renew(ctx context.Context, c doc.Collection) error {
	d, err := g.registry.Definition(ctx, c)
	if err != nil {
		return fmt.Errorf("find the definition of a collection: %w", err)
	}
	g.mu.Lock()
	for _, family := range d.Writes() {
		delete(g.known, family)
	}
	g.mu.Unlock()
	generations, err := g.Of(ctx, c)
	if err != nil {
		return err
	}
	for _, generation := range generations {
		if !known(generation) {
			continue
		}
		if err := g.index.Ensure(ctx, generation); err != nil {
			return fmt.Errorf("create an index again: %w", err)
		}
	}
	return nil
}

// find reads the registry, and begins the family where nobody has.
func (g *Generations) find(ctx context.Context, d collection.Definition, family collection.Family) ([]collection.Generation, error) {
	current, all, err := g.written(ctx, family)
	if err != nil {
		return nil, err
	}
	if len(current) > 0 {
		return current, nil
	}
	// Of several who begin at once the table lets one through; all of them
	// then work with what it holds. The record comes before the index, so
	// that only the generation that was agreed on is ever created.
	putErr := g.registry.PutGeneration(ctx, collection.Next(d, family, all, search.Projector, g.now().UTC().Truncate(time.Microsecond)), nil)
	if current, _, err = g.written(ctx, family); err != nil {
		return nil, err
	}
	if len(current) == 0 {
		return nil, fmt.Errorf("begin the generations of index family %q: %w", family, putErr)
	}
	for _, generation := range current {
		if !known(generation) {
			continue
		}
		if err := g.index.Ensure(ctx, generation); err != nil {
			return nil, fmt.Errorf("create an index: %w", err)
		}
	}
	return current, nil
}

// written are the family's generations that documents are written to, and all.
func (g *Generations) written(ctx context.Context, family collection.Family) (written, all []collection.Generation, err error) {
	if all, err = g.registry.Generations(ctx, family); err != nil {
		return nil, nil, fmt.Errorf("find the generations of an index: %w", err)
	}
	for _, generation := range all {
		if generation.Written() {
			written = append(written, generation)
		}
	}
	return written, all, nil
}

// known reports whether this program has the projection that fills the
// generation.
func known(g collection.Generation) bool { return g.Projector == search.Projector }
