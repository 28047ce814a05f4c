package httpapi

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// Definitions tells in which index a collection's documents are.
type Definitions interface {
	// Definition may be from memory, CurrentDefinition never is.
	Definition(ctx context.Context, c doc.Collection) (collection.Definition, error)
	CurrentDefinition(ctx context.Context, c doc.Collection) (collection.Definition, error)
	Generations(ctx context.Context, f collection.Family) ([]collection.Generation, error)
}

// indexLife is how long it is believed which generation of a family is read. A
// generation that another one has taken the place of is kept far longer.
const indexLife = 2 * time.Second

// maxIndexes bounds how many families are remembered.
const maxIndexes = 1000

// indexes finds the generations that queries read. It is safe for concurrent
// use.
type indexes struct {
	definitions Definitions
	now         func() time.Time

	mu    sync.Mutex
	known map[collection.Family]readIndex
}

// readIndex is what was read of one family.
type readIndex struct {
	generation *collection.Generation // nil: none yet
	at         time.Time
}

func newIndexes(d Definitions, now func() time.Time) *indexes {
	return &indexes{definitions: d, now: now, known: map[collection.Family]readIndex{}}
}

// reading is where the documents of a query's collections are read.
type reading struct {
	sources []search.Source
	text    []string // the paths with full-text search in all of the collections
}

// of finds in which index each collection is read; anew, not from memory.
func (x *indexes) of(ctx context.Context, from []doc.Collection, anew bool) (reading, error) {
	found := reading{sources: make([]search.Source, len(from))}
	define := x.definitions.Definition
	if anew {
		define = x.definitions.CurrentDefinition
	}
	asked := map[collection.Family]*collection.Generation{}
	for i, name := range from {
		definition, err := define(ctx, name)
		if err != nil {
			return reading{}, fmt.Errorf("finding the index of a collection: %w", err)
		}
		family := definition.Reads()
		generation, known := asked[family]
		if !known {
			if generation, err = x.read(ctx, family, anew); err != nil {
				return reading{}, err
			}
			asked[family] = generation
		}
		found.sources[i] = search.Source{Collection: name, Generation: generation}
		text := definition.FormIn(family).Text // what the index will have that the first document makes
		if generation != nil {
			text = generation.Text
		}
		found.text = commonPaths(found.text, text, i == 0)
	}
	return found, nil
}

// read is the generation of the family that queries read; nil: none yet. That
// is not remembered: the first document is on its way.
func (x *indexes) read(ctx context.Context, family collection.Family, anew bool) (*collection.Generation, error) {
	at := x.now()
	x.mu.Lock()
	known, ok := x.known[family]
	x.mu.Unlock()
	// An age below zero is that of a clock that was set back.
	if age := at.Sub(known.at); ok && !anew && age >= 0 && age < indexLife {
		return known.generation, nil
	}
	all, err := x.definitions.Generations(ctx, family)
	if err != nil {
		return nil, fmt.Errorf("finding the generations of an index: %w", err)
	}
	generation, there := collection.Read(all)
	if !there {
		return nil, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.known) >= maxIndexes {
		clear(x.known)
	}
	x.known[family] = readIndex{&generation, at}
	return &generation, nil
}

// commonPaths are those of the paths that are among the ones before; all of
// them at the beginning. They are told in one notation.
func commonPaths(before, texts []string, first bool) []string {
	var common []string
	for _, text := range texts {
		if p, err := value.ParsePath(text); err == nil && (first || slices.Contains(before, p.String())) {
			common = append(common, p.String())
		}
	}
	return common
}

// search searches. Where an index turns out to be gone, the collections are
// looked up again and, if they are read in another one by now, searched there,
// once. An index that should be there and is not has no documents to show: either
// none has arrived yet, or they are on their way into it again.
func (q *queries) search(ctx context.Context, asked *queryRequest, r search.Request) (search.Result, error) {
	r.From = asked.reads.sources
	result, err := q.o.Search.Search(ctx, r)
	if err != nil || len(result.Missing) == 0 {
		return result, err
	}
	current, err := q.indexes.of(ctx, asked.from, true)
	if err != nil {
		return search.Result{}, err
	}
	if sameSources(asked.reads.sources, current.sources) {
		return result, nil
	}
	asked.reads = current
	r.From = current.sources
	return q.o.Search.Search(ctx, r)
}

// sameSources reports whether the same collections are read in the same indexes.
func sameSources(a, b []search.Source) bool {
	return slices.EqualFunc(a, b, func(a, b search.Source) bool {
		if a.Generation == nil || b.Generation == nil {
			return a.Generation == b.Generation
		}
		return a.Generation.Family == b.Generation.Family && a.Generation.Number == b.Generation.Number
	})
}
