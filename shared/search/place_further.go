package search

import (
	"holdfast/shared/filter"
)

// kindShapes are the shapes of the kinds of values.
var kindShapes = map[filter.Kind]shapes{
	filter.Null: shapeNull, filter.Bool: shapeBool, filter.Number: shapeNumber,
	filter.String: shapeString, filter.Object: shapeObject, filter.Array: shapeArray,
}

func (pl place) ofKind(kinds []filter.Kind) reading {
	is := func(path string) query {
		of := make([]string, len(kinds))
		for i, k := range kinds {
			of[i] = shapeTerm(kindShapes[k], pl.local(path))
		}
		return terms(pl.shape, of)
	}
	return pl.holds(is, is)
}

func (pl place) ofLength(length int) reading {
	is := func(path string) query { return term(pl.shape, lengthTerm(length, pl.local(path))) }
	return pl.holds(is, is)
}

func (pl place) beginsWith(text string) reading {
	if text == "" {
		is := func(path string) query { return term(pl.shape, shapeTerm(shapeString, pl.local(path))) }
		return pl.holds(is, is)
	}
	beginning := beginningOf(text, rangeBytes)
	begins := func(path string) query { return prefix(leafField(path, leafString), beginning) }
	if beginning != text {
		return pl.holds(begins, nowhere)
	}
	return pl.holds(begins, begins)
}

// hasWords is the reading of "all the words are there". Words are those of all
// texts that the path leads to, as in the index.
func (pl place) hasWords(words []string) reading {
	has := func(path string) query {
		parts := make([]query, len(words))
		for i, w := range words {
			parts[i] = term(leafField(path, leafText), w)
		}
		return allOf(parts...)
	}
	return pl.holds(has, has)
}
