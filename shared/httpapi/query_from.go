package httpapi

import (
	"context"
	"fmt"
	"slices"

	"holdfast/shared/doc"
	"holdfast/shared/search"
	"holdfast/shared/value"
)

// sources finds in which index each collection is, and what is declared of it.
func (q *queries) sources(ctx context.Context, from []doc.Collection) ([]search.Source, error) {
	sources := make([]search.Source, len(from))
	for i, name := range from {
		definition, err := q.o.Definitions.Definition(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("finding the index of a collection: %w", err)
		}
		sources[i] = search.Source{
			Collection: name, Family: definition.Family(), Nested: definition.Nested, Text: definition.Text,
		}
	}
	return sources, nil
}

// textPaths are the paths with full-text search in all of the collections.
func textPaths(sources []search.Source) []string {
	var common []string
	for i, source := range sources {
		var paths []string
		for _, text := range source.Text {
			if p, err := value.ParsePath(text); err == nil && (i == 0 || slices.Contains(common, p.String())) {
				paths = append(paths, p.String())
			}
		}
		common = paths
	}
	return common
}
