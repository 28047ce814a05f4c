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
const GenerationsLife = 30 * time.Second

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

// Of is every generation of the collection's family that documents are written
// to, building or active, from memory where that is fresh enough. A family
// without any gets its first one, index included.
func (g *Generations) Of(ctx context.Context, c doc.Collection) (collection.Family, []collection.Generation, error) {
	d, err := g.registry.Definition(ctx, c)
	if err != nil {
		return "", nil, fmt.Errorf("find the definition of a collection: %w", err)
	}
	family := d.Family()
	g.mu.Lock()
	found, ok := g.known[family]
	g.mu.Unlock()
	if ok && g.now().Sub(found.at) < GenerationsLife {
		return family, found.generations, nil
	}
	at := g.now()
	generations, err := g.find(ctx, d)
	if err != nil {
		return family, nil, err
	}
	g.mu.Lock()
	g.known[family] = lookup{generations, at}
	g.mu.Unlock()
	return family, generations, nil
}

// Renew forgets what is remembered of a family and creates again what its
// generations need, for who met a missing index.
func (g *Generations) Renew(ctx context.Context, c doc.Collection) error {
	d, err := g.registry.Definition(ctx, c)
	if err != nil {
		return fmt.Errorf("find the definition of a collection: %w", err)
	}
	g.mu.Lock()
	delete(g.known, d.Family())
	g.mu.Unlock()
	_, generations, err := g.Of(ctx, c)
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
func (g *Generations) find(ctx context.Context, d collection.Definition) ([]collection.Generation, error) {
	all, err := g.registry.Generations(ctx, d.Family())
	if err != nil {
		return nil, fmt.Errorf("find the generations of an index: %w", err)
	}
	if len(all) == 0 {
		// Of several who begin at once the table lets one through; all of them
		// then work with what it holds. The record comes before the index, so
		// that only the generation that was agreed on is ever created.
		putErr := g.registry.PutGeneration(ctx, collection.First(d, search.Projector), nil)
		if all, err = g.registry.Generations(ctx, d.Family()); err != nil {
			return nil, fmt.Errorf("find the generations of an index: %w", err)
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("begin the generations of an index: %w", putErr)
		}
		for _, generation := range all {
			if !known(generation) || !written(generation) {
				continue
			}
			if err := g.index.Ensure(ctx, generation); err != nil {
				return nil, fmt.Errorf("create an index: %w", err)
			}
		}
	}
	var current []collection.Generation
	for _, generation := range all {
		if written(generation) {
			current = append(current, generation)
		}
	}
	if len(current) == 0 {
		return nil, fmt.Errorf("index family %q has no generation that is written to", d.Family())
	}
	return current, nil
}

// written reports whether documents are written to the generation.
func written(g collection.Generation) bool {
	return g.State == collection.Building || g.State == collection.Active
}

// known reports whether this program has the projection that fills the
// generation.
func known(g collection.Generation) bool { return g.Projector == search.Projector }
