package search

import (
	"holdfast/shared/doc"
	"holdfast/shared/filter"
)

// AggregateInMemory is what the aggregations say of the documents that match,
// without an index.
func AggregateInMemory(r Request, docs []doc.Document) ([]Aggregate, error) {
	s := &search{request: r}
	answers := make([]Aggregate, len(r.Aggregate))
	for i, a := range r.Aggregate {
		t := newTally(a, s.nestedFor(a))
		for _, d := range docs {
			if filter.Match(r.Filter, &d) {
				if err := t.add(&d); err != nil {
					return nil, err
				}
			}
		}
		var err error
		if answers[i], err = t.answer(nil); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// What the tests look at from outside.
var ScalarOf = scalarOf

// Start is the beginning of a stretch of time.
func (g GroupBy) Start(instant string) (any, bool) {
	part, ok := g.part(instant)
	return part.told, ok
}
