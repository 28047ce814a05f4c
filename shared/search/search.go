package search

import (
	"context"
	"slices"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
)

// MaxExamined is how many documents one search looks at, because the index
// cannot decide about them, before its page ends early; and how many a count
// looks at before it is refused.
const MaxExamined = 10000

// MaxSearchTime is how long one search may take, all its requests to OpenSearch
// together: below the 30 s that a gateway waits.
const MaxSearchTime = 25 * time.Second

// DefaultMaxBytes ends a page unless the request says otherwise: 5 MB, since a
// function's answer may have 6.
const DefaultMaxBytes = 5_000_000

// envelopeBytes is about what an answer adds to a document's text and twice its
// id.
const envelopeBytes = 160

// Request is a search.
type Request struct {
	From     []Source
	Filter   filter.Expr // nil: everything
	Sort     []SortKey   // ended by the id; empty: by id
	Limit    int         // most documents of the page; 0 is allowed
	After    string      // the Next of the page before, or ""
	Count    bool        // count all documents that match, whatever the page
	MaxBytes int         // of the page's documents as JSON; 0: DefaultMaxBytes. One document always fits
	// Where is a further condition, asked about every document that the filter
	// leaves, as many as the budget allows; nil: none. A document for which it
	// gives an error does not match. It returns ctx's error when ctx ends.
	Where func(ctx context.Context, data map[string]any) (bool, error)
	// TextOnly says that the documents' data are wanted as text only: Data may
	// then be nil.
	TextOnly bool
	// Variant is whatever else a cursor belongs to: it is good for queries with
	// the same text here only.
	Variant   string
	Aggregate []Aggregation // over all documents that match, whatever the page; not together with Where
	Now       time.Time     // documents that have expired by now are not there; zero: the local clock's
}

// Result is a page of the answer.
type Result struct {
	Documents  []doc.Document
	Texts      []string // of each document its data as canonical JSON
	Next       string   // the cursor of the next page; "" on the last one
	Count      int      // with Request.Count
	CountExact bool     // the count is of the documents, not an estimate; always so with Request.Count
	Examined   int      // documents looked at because the index could not decide
	// WhereErrors is how many of the examined documents Where gave an error for.
	WhereErrors int
	Aggregates  []Aggregate // one for each of Request.Aggregate
	// Missing are generations of the sources whose index is not there: nothing of
	// them is in the answer.
	Missing []collection.Generation
	// CursorAfter is the cursor of the page that would begin after the i-th
	// document; not nil where there are documents.
	CursorAfter func(i int) (string, error)
}

// Search finds the documents that match, in order. What it answers is what
// filter.Match says about the documents in the index, also where the index
// holds them in part only.
//
// Pages follow each other by sort values and id, not by number. So whatever is
// written between them, a document that is there all the while and whose sort
// values do not change is on exactly one page.
//
// Errors are of kind IndexUnavailable (with retryAfter, in seconds),
// InvalidCursor, CursorMismatch and QueryTooCostly (with limit).
func (c *Client) Search(ctx context.Context, r Request) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, MaxSearchTime)
	defer cancel()
	s := newSearch(c, r)
	after, err := s.begin(ctx, r.Limit > 0)
	if err != nil {
		return Result{}, err
	}
	if len(s.reach.indexes) == 0 || s.reading.may.constant == never {
		return Result{CountExact: r.Count, Aggregates: noGroups(r.Aggregate)}, nil
	}
	if err := s.affordable(); err != nil {
		return Result{}, err
	}
	var result Result
	if r.Count {
		if err := s.count(ctx, &result); err != nil {
			return Result{}, err
		}
	}
	if len(r.Aggregate) > 0 {
		if err := s.aggregate(ctx, &result); err != nil {
			return Result{}, err
		}
	}
	if r.Limit > 0 {
		// The count and the aggregations have looked at all that a page can look
		// at, and no document is told twice.
		all := Result{Examined: result.Examined, WhereErrors: result.WhereErrors}
		result.Examined, result.WhereErrors = 0, 0
		if err := s.page(ctx, after, &result); err != nil {
			return Result{}, err
		}
		result.Examined = max(result.Examined, all.Examined)
		result.WhereErrors = max(result.WhereErrors, all.WhereErrors)
	}
	result.Missing = s.reach.gone
	return result, nil
}

// search is one call of Search.
type search struct {
	client  *Client
	request Request
	name    string
	key     []byte // of cursors
	reach   reach
	scope   query // the collections, without what is deleted or has expired
	reading reading
	order   []orderBy
}

func newSearch(c *Client, r Request) *search {
	if r.Filter == nil {
		r.Filter = filter.And{}
	}
	if r.MaxBytes <= 0 {
		r.MaxBytes = DefaultMaxBytes
	}
	if r.Now.IsZero() {
		r.Now = time.Now()
	}
	return &search{
		client: c, request: r, name: queryName(r), reading: compile(r.Filter, declaredBy(r.From)), order: orderOf(r.Sort),
		reach: c.reachOf(r.From), scope: c.scopeOf(r.From, r.Now),
	}
}

// begin reads the mark that the page comes after; nil for the first page. The
// key of cursors is read where there is a cursor, or where there will be one.
func (s *search) begin(ctx context.Context, makesCursors bool) (after *mark, err error) {
	if s.request.After == "" && !makesCursors {
		return nil, nil
	}
	if s.key, err = s.client.keys.get(ctx); err != nil || s.request.After == "" {
		return nil, err
	}
	return decodeCursor(s.key, s.request.After, s.name, s.order)
}

// affordable refuses a filter that no request has room for.
func (s *search) affordable() error {
	if s.reading.may.clauses <= maxQueryClauses {
		return nil
	}
	return doc.Errorf(doc.QueryTooCostly, "the filter has more conditions than the index takes at once").
		With("limit", maxQueryClauses).With("actual", s.reading.may.clauses)
}

// sureName marks the hits about which the index is sure.
const sureName = "sure"

// body is a search for documents in an order. Hits of the sure query carry its
// name.
func (s *search) body(q query, order []orderBy, after position, size int) object {
	body := object{
		"query":            s.named(q),
		"sort":             sortDSL(order),
		"size":             size,
		"track_total_hits": false,
		"_source":          hitFields,
	}
	if after != nil {
		body["search_after"] = after
	}
	return body
}

func (s *search) named(q query) object {
	if s.reading.sure.constant != undecided {
		return object{"bool": object{"filter": []object{q.dsl()}}}
	}
	sure := object{"bool": object{"filter": []object{s.reading.sure.dsl()}, "_name": sureName}}
	return object{"bool": object{"filter": []object{q.dsl()}, "should": []object{sure}, "minimum_should_match": 0}}
}

// surely reports whether the index alone decided for the hit.
func (s *search) surely(h *hit) bool {
	switch s.reading.sure.constant {
	case always:
		return true
	case never:
		return false
	}
	return slices.Contains(h.Matched, sureName)
}

// documentOf is the hit's document, without its data where only the text is
// asked for.
func (s *search) documentOf(h *hit) (doc.Document, error) {
	if s.request.TextOnly {
		return h.envelope(), nil
	}
	return h.document()
}

// decide decodes a hit and tells whether it matches; looked says that the
// document had to be looked at.
func (s *search) decide(ctx context.Context, h *hit, result *Result) (d doc.Document, matches, looked bool, err error) {
	sure := s.surely(h)
	if sure && s.request.Where == nil {
		d, err = s.documentOf(h)
	} else {
		d, err = h.document()
	}
	if err != nil {
		return d, false, false, err
	}
	matches = sure || filter.Match(s.request.Filter, &d)
	if s.request.Where == nil {
		return d, matches, !sure, nil
	}
	if matches {
		if matches, err = s.request.Where(ctx, d.Data); err != nil {
			if ctx.Err() != nil {
				return d, false, false, ctx.Err()
			}
			result.WhereErrors++
			matches = false
		}
	}
	return d, matches, true, nil
}

// may are the documents in scope that may match.
func (s *search) may() query { return allOf(s.scope, s.reading.may) }

func (s *search) tooCostly(what string, actual int) error {
	return doc.Errorf(doc.QueryTooCostly, "%s would have to look at more documents than one query may", what).
		With("limit", s.client.budget).With("actual", actual)
}
