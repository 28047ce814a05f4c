package search

import (
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"slices"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/value"
)

// comparePseudo is the reading of a comparison with a part of the envelope. The
// index holds all of them exactly, so there is no doubt.
func comparePseudo(c filter.Compare) reading {
	switch c.Field.Pseudo {
	case filter.ID:
		return pseudoText(fieldID, c)
	case filter.Root:
		return pseudoText(fieldRoot, c)
	case filter.Version:
		operand, ok := c.Value.(json.Number)
		if !ok {
			return exactly(nothing)
		}
		floor, same := wholeNumber(operand)
		return pseudoWhole(fieldVersion, c.Op, floor, same)
	case filter.CreatedAt:
		return pseudoInstant(fieldCreatedAt, c)
	case filter.UpdatedAt:
		return pseudoInstant(fieldUpdatedAt, c)
	}
	return undecidable
}

func pseudoText(field string, c filter.Compare) reading {
	operand, ok := c.Value.(string)
	switch {
	case !ok:
		return exactly(nothing)
	case c.Op == filter.Eq:
		if _, whole := keep(operand); !whole {
			return exactly(nothing)
		}
		return exactly(term(field, operand))
	}
	// No id is as long as what is cut off here, so none lies between the operand
	// and its beginning or is equal to either.
	return exactly(rangeOf(field, rangeOps[c.Op], beginningOf(operand, doc.MaxIDBytes+1)))
}

func pseudoInstant(field string, c filter.Compare) reading {
	if !c.IsInstant {
		return exactly(nothing)
	}
	same := c.Instant.Nanosecond()%int(time.Microsecond) == 0
	return pseudoWhole(field, c.Op, c.Instant.UnixMicro(), same)
}

// pseudoWhole compares whole numbers with an operand that is floor itself or
// lies between it and the next.
func pseudoWhole(field string, op filter.Op, floor int64, same bool) reading {
	switch {
	case op == filter.Eq && same:
		return exactly(term(field, floor))
	case op == filter.Eq:
		return exactly(nothing)
	case same:
		return exactly(rangeOf(field, rangeOps[op], floor))
	case op == filter.Gt || op == filter.Gte:
		return exactly(rangeOf(field, "gt", floor))
	}
	return exactly(rangeOf(field, "lte", floor))
}

func inPseudo(in filter.In) reading {
	parts := make([]query, 0, len(in.Values))
	var texts []string
	for _, v := range in.Values {
		c := filter.Compare{Field: in.Field, Op: filter.Eq, Value: v}
		if text, ok := v.(string); ok {
			switch in.Field.Pseudo {
			case filter.ID, filter.Root:
				texts = append(texts, text)
				continue
			case filter.CreatedAt, filter.UpdatedAt:
				c.Instant, c.IsInstant = value.ParseInstant(text)
			}
		}
		parts = append(parts, comparePseudo(c).may)
	}
	texts = slices.DeleteFunc(texts, func(s string) bool { _, whole := keep(s); return !whole })
	parts = append(parts, terms(in.Field.Pseudo, texts))
	return exactly(anyOf(parts...))
}

func prefixPseudo(e filter.Prefix) reading {
	field := fieldID
	switch e.Field.Pseudo {
	case filter.ID:
	case filter.Root:
		field = fieldRoot
	default:
		return exactly(nothing)
	}
	if e.Text == "" {
		return exactly(everything)
	}
	if len(e.Text) > doc.MaxIDBytes {
		return exactly(nothing)
	}
	return exactly(prefix(field, e.Text))
}

// floorOf rounds a number within the range of int64 down.
func floorOf(v json.Number) (floor int64, same bool) {
	r, ok := new(big.Rat).SetString(string(v))
	if !ok {
		return 0, false
	}
	whole := new(big.Int).Div(r.Num(), r.Denom()) // Euclidean: down, for a positive denominator
	return whole.Int64(), r.IsInt()
}

func sortedNames(object map[string]any) []string {
	return slices.Sorted(maps.Keys(object))
}

// wholeNumber is the largest whole number that is not above v, within the
// range of versions, and whether it is v itself.
func wholeNumber(v json.Number) (floor int64, same bool) {
	double, _ := nearestDouble(v)
	switch {
	case double >= math.MaxInt64:
		return math.MaxInt64, false
	case double <= math.MinInt64:
		return math.MinInt64, false
	}
	return floorOf(v)
}
