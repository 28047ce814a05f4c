package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/obs"
	"holdfast/shared/search"
)

// Searcher finds documents in the index. Errors that a client is told about are
// of type *doc.Error.
type Searcher interface {
	Search(ctx context.Context, r search.Request) (search.Result, error)
	// Explain tells what Search would ask, and asks nothing. It fails with
	// search.ErrTooLong where that is longer than the request allows.
	Explain(ctx context.Context, r search.Request) (search.Explanation, error)
}

// Waiter waits until queries see what was written.
type Waiter interface {
	Wait(ctx context.Context, signals []doc.Signal, patience freshness.Patience) (freshness.Waited, error)
	// AsOfNow waits for everything of the collections that was written before,
	// and for the signals.
	AsOfNow(ctx context.Context, collections []doc.Collection, signals []doc.Signal, patience freshness.Patience) (freshness.Waited, error)
}

// Reporter tells how current the answers about collections are. It never fails:
// what it cannot find out it tells as unknown.
type Reporter interface {
	Staleness(ctx context.Context, collections []doc.Collection, waited freshness.Waited) freshness.Staleness
}

// Conditions reads the expressions of where. What it makes tells of a document's
// data whether the condition holds; an error means that this cannot be told of
// these data, or that ctx has ended. Errors about an expression are of type
// *doc.Error.
type Conditions interface {
	Predicate(expression string) (func(ctx context.Context, data map[string]any) (bool, error), error)
}

// QueryOptions are what the query handler needs.
type QueryOptions struct {
	Search      Searcher
	Waiter      Waiter
	Reporter    Reporter
	Definitions Definitions
	Loader      Loader           // of what is included and verified
	Where       Conditions       // nil: queries with where are refused
	Log         *slog.Logger     // nil: discarded
	Metrics     *obs.Metrics     // nil: none
	Now         func() time.Time // nil: time.Now; what counts as expired
}

// queries answers POST /query.
type queries struct {
	o       QueryOptions
	indexes *indexes
	query   *route
}

// Query makes the handler for /query. It answers every other path with
// no-such-route.
func Query(o QueryOptions) Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	q := &queries{o: o, indexes: newIndexes(o.Definitions, o.Now)}
	q.query = &route{name: "query", methods: map[string]operation{http.MethodPost: q.answer}}
	return newHandler(q.route, o.Log, o.Metrics)
}

func (q *queries) route(c *call) (*route, error) {
	if c.Path != "/query" {
		return nil, nil
	}
	var err error
	c.query, err = parseQuery(c.RawQuery)
	return q.query, err
}

// answer answers a query: it waits where that was asked for, searches, and says
// how current the answer is.
func (q *queries) answer(ctx context.Context, c *call) (*Response, error) {
	if err := c.query.only(); err != nil {
		return nil, err
	}
	if err := wantMediaType(c.Header, typeJSON); err != nil {
		return nil, err
	}
	asked, err := parseQueryRequest(c.Body, q.o.Where, func(from []doc.Collection) (reading, error) {
		return q.indexes.of(ctx, from, false)
	})
	if err != nil {
		return nil, err
	}
	if asked.explain {
		return q.explain(ctx, asked)
	}
	var waited freshness.Waited
	if asked.wait != nil {
		if waited, err = q.wait(ctx, asked); err != nil {
			return nil, err
		}
		if problem := waited.Problem(); problem != nil && !asked.wait.acceptLate {
			return nil, problem
		}
	}
	page, err := q.find(ctx, asked, q.request(asked))
	if err != nil {
		return nil, atMember(err)
	}
	body, err := q.write(ctx, asked, page, q.o.Reporter.Staleness(ctx, asked.from, waited))
	if err != nil {
		return nil, err
	}
	return reply(http.StatusOK, typeJSON, body), nil
}

// request is the search that a query is, but for where it looks.
func (q *queries) request(asked *queryRequest) search.Request {
	return search.Request{
		Filter: asked.filter, Sort: asked.sort, Limit: asked.limit, After: asked.after,
		Count: asked.count, Aggregate: asked.aggregations, Where: asked.where, Variant: asked.variant(),
		TextOnly: !asked.projected && asked.include == nil && !asked.verified, MaxBytes: pageBytes, Now: q.o.Now(),
	}
}

// atMember names the member that a search was refused for: a cursor, or groups
// whose keys cannot be told.
func atMember(err error) error {
	switch doc.KindOf(err) {
	case doc.InvalidCursor, doc.CursorMismatch:
		return at(err, "/after")
	case doc.InvalidQuery:
		return at(err, "/aggregate")
	}
	return err
}
