package sim

import (
	"cmp"
	"maps"
	"slices"
)

// sortedKeys are the keys of a map in their order: a run must not depend on the
// order in which maps are gone through.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
