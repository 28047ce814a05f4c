package search

import (
	"context"
	"errors"
	"reflect"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
)

// Explanation is what becomes of a search. All of its bodies are JSON, written
// by what writes them for OpenSearch.
type Explanation struct {
	Indexes   []ReadIndex // of each of Request.From, in that order
	DecidedBy Decider
	Undecided []Undecided // what the index cannot decide; none where it decides alone

	Search    *Asked // for the page; nil where nothing is asked
	Count     *Asked // likewise
	Aggregate *Asked // likewise; a body for each aggregation, or none where the index is certain of no document
	// Nothing says in one sentence why nothing is asked at all; "" where something is.
	Nothing string

	Budget      int           // documents that may be looked at
	Time        time.Duration // that all requests together may take
	Clauses     int           // that the filter takes of a request
	MostClauses int           // that a filter may take
}

// ReadIndex is where a collection is read.
type ReadIndex struct {
	Collection doc.Collection
	Generation *collection.Generation // nil: there is no index yet
	Index      string                 // its name; "" likewise
}

// Decider says who tells whether a document matches.
type Decider string

// The deciders. Where documents decide, those that the index may find are looked
// at: all of them, or only those about which it is not sure.
const (
	ByIndex             Decider = "index"
	ByIndexAndDocuments Decider = "index and documents"
	ByDocuments         Decider = "documents"
)

// Undecided is a condition that the index cannot decide about every document.
type Undecided struct {
	Path string // as it is written in a filter; "": all of the filter
	Why  string // one sentence
}

// Asked is the first request that OpenSearch gets for a purpose. What it gets
// afterwards, such as for the rest of a page, depends on the answers.
type Asked struct {
	Indexes []string
	Bodies  [][]byte
	Beside  []Beside // asked in the same request
}

// Beside is a search that tells how to go on.
type Beside struct {
	Why  string // one sentence
	Body []byte
}

// ErrTooLong says that the bodies have more than MaxBytes together.
var ErrTooLong = errors.New("what is asked of the index is too long to be told")

// Explain tells what Search would ask, and asks nothing. MaxBytes is the most
// that all bodies may have together.
//
// Errors are those of Search that do not come from the index, and ErrTooLong.
func (c *Client) Explain(ctx context.Context, r Request) (Explanation, error) {
	s := newSearch(c, r)
	after, err := s.begin(ctx, false)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{
		Indexes: make([]ReadIndex, len(r.From)), Budget: c.budget, Time: MaxSearchTime,
		Clauses: s.reading.clauses(), MostClauses: maxQueryClauses,
	}
	for i, from := range r.From {
		e.Indexes[i] = ReadIndex{Collection: from.Collection, Generation: from.Generation}
		if from.Generation != nil {
			e.Indexes[i].Index = c.IndexName(*from.Generation)
		}
	}
	e.DecidedBy, e.Undecided = decider(s.reading), s.undecided()
	switch {
	case len(s.reach.indexes) == 0:
		e.Nothing = "Nothing is asked of OpenSearch: none of the collections has an index yet."
		return e, nil
	case s.reading.may.constant == never:
		e.Nothing = "Nothing is asked of OpenSearch: no document can match the filter."
		return e, nil
	case !r.Count && len(r.Aggregate) == 0 && r.Limit == 0:
		e.Nothing = "Nothing is asked of OpenSearch: neither documents nor a count nor groups are wanted."
	}
	if err := s.affordable(); err != nil {
		return Explanation{}, err
	}
	w := &explaining{indexes: s.reach.indexes, most: s.request.MaxBytes}
	if r.Count {
		e.Count = w.asked(s.counting())
	}
	if len(r.Aggregate) > 0 {
		bodies := s.grouping(s.divide())
		e.Aggregate = w.asked(bodies[2:]...)
		w.beside(e.Aggregate, "How many documents the index cannot group; these are looked at.", bodies[0])
		w.beside(e.Aggregate, "How many documents there are in all; they are looked at where a figure cannot be had from two parts.", bodies[1])
	}
	if r.Limit > 0 {
		e.Search = w.asked(s.first(after).request())
		if lost := misplaced(s.order); lost.constant != never {
			w.beside(e.Search, "How many documents the index may put at a wrong place in the order; these are looked at.", s.numberOf(lost))
		}
	}
	return e, w.err
}

// explaining writes bodies until they are too long together.
type explaining struct {
	indexes     []string
	most, bytes int
	err         error // the first
}

func (w *explaining) asked(bodies ...object) *Asked {
	a := &Asked{Indexes: w.indexes}
	for _, body := range bodies {
		a.Bodies = append(a.Bodies, w.write(body))
	}
	return a
}

func (w *explaining) beside(a *Asked, why string, body object) {
	a.Beside = append(a.Beside, Beside{Why: why, Body: w.write(body)})
}

func (w *explaining) write(body object) []byte {
	if w.err != nil {
		return nil
	}
	var text []byte
	if text, w.err = appendDSL(nil, body); w.err != nil {
		return nil
	}
	if w.bytes += len(text); w.bytes > w.most {
		w.err = ErrTooLong
		return nil
	}
	return text
}

// decider tells who decides a filter that is read so.
func decider(r reading) Decider {
	switch {
	case r.exact():
		return ByIndex
	case r.sure.constant == never:
		return ByDocuments
	}
	return ByIndexAndDocuments
}

// exact reports whether both queries are one.
func (r reading) exact() bool {
	return r.may.constant == r.sure.constant && reflect.DeepEqual(r.may.body, r.sure.body)
}

// undecided are the conditions of the search's filter that the index cannot
// decide, each once.
func (s *search) undecided() []Undecided {
	if s.reading.exact() {
		return nil
	}
	g := groundOf(declaredBy(s.request.From))
	if g.translate(s.request.Filter).clauses() > maxQueryClauses {
		return []Undecided{{Why: "The filter has more conditions than the index takes at once, so every document that it may find is looked at."}}
	}
	var all []Undecided
	seen := map[Undecided]bool{}
	g.eachUndecided(s.request.Filter, func(e filter.Expr) {
		u := Undecided{Path: fieldOf(e).String(), Why: g.why(e)}
		if !seen[u] {
			seen[u] = true
			all = append(all, u)
		}
	})
	return all
}
