package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/freshness"
	"holdfast/shared/obs"
	"holdfast/shared/search"
)

// Searcher finds documents in the index. Errors that a client is told about are
// of type *doc.Error.
type Searcher interface {
	Search(ctx context.Context, r search.Request) (search.Result, error)
}

// Waiter waits until queries see what was written.
type Waiter interface {
	Wait(ctx context.Context, signals []doc.Signal, timeout time.Duration) (freshness.Waited, error)
}

// Reporter tells how current the answers about collections are. It never fails:
// what it cannot find out it tells as unknown.
type Reporter interface {
	Staleness(ctx context.Context, collections []doc.Collection, waited freshness.Waited) freshness.Staleness
}

// Definitions tells in which index a collection's documents are.
type Definitions interface {
	Definition(ctx context.Context, c doc.Collection) (collection.Definition, error)
}

// QueryOptions are what the query handler needs.
type QueryOptions struct {
	Search      Searcher
	Waiter      Waiter
	Reporter    Reporter
	Definitions Definitions
	Log         *slog.Logger     // nil: discarded
	Metrics     *obs.Metrics     // nil: none
	Now         func() time.Time // nil: time.Now; what counts as expired
}

// queries answers POST /query.
type queries struct {
	o     QueryOptions
	query *route
}

// Query makes the handler for /query. It answers every other path with
// no-such-route.
func Query(o QueryOptions) Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	q := &queries{o: o}
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
	asked, err := parseQueryRequest(c.Body)
	if err != nil {
		return nil, err
	}
	from := make([]search.Source, len(asked.from))
	for i, name := range asked.from {
		definition, err := q.o.Definitions.Definition(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("finding the index of a collection: %w", err)
		}
		from[i] = search.Source{Collection: name, Family: definition.Family()}
	}
	var waited freshness.Waited
	if asked.wait != nil {
		if waited, err = q.o.Waiter.Wait(ctx, asked.wait.signals, asked.wait.timeout); err != nil {
			return nil, err
		}
		if problem := waited.Problem(); problem != nil && !asked.wait.acceptLate {
			return nil, problem
		}
	}
	request := search.Request{
		From: from, Filter: asked.filter, Sort: asked.sort, Limit: asked.limit, After: asked.after,
		Count: asked.count, MaxBytes: pageBytes, Now: q.o.Now(),
	}
	for {
		result, err := q.o.Search.Search(ctx, request)
		if err != nil {
			return nil, atCursor(err)
		}
		staleness, err := json.Marshal(q.o.Reporter.Staleness(ctx, asked.from, waited))
		if err != nil {
			return nil, fmt.Errorf("writing the staleness: %w", err)
		}
		body, fit := appendResult(result, asked.count, staleness)
		if fit == len(result.Documents) {
			return reply(http.StatusOK, typeJSON, body), nil
		}
		// The search cannot know how long its documents are inside a function's
		// answer. It alone can say where a page begins, so it is asked for as many
		// as fit.
		request.Limit = max(fit, 1)
	}
}

// atCursor names the place of a cursor that was refused.
func atCursor(err error) error {
	switch doc.KindOf(err) {
	case doc.InvalidCursor, doc.CursorMismatch:
		return at(err, "/after")
	}
	return err
}

// appendResult writes the answer to a query and says how many of its documents
// fit. Where that is not all of them the text is of no use.
func appendResult(r search.Result, counted bool, staleness []byte) (body []byte, fit int) {
	left := newBudget(len(r.Next) + len(staleness) + 256)
	body = append(body, `{"documents":[`...)
	for i, found := range r.Documents {
		begin := len(body)
		if i > 0 {
			body = append(body, ',')
		}
		body = appendEnvelope(body, found)
		if !left.take(body[begin:]) {
			return nil, i
		}
	}
	body = append(body, ']')
	if counted {
		body = append(body, `,"count":{"value":`...)
		body = strconv.AppendInt(body, int64(r.Count), 10)
		body = append(body, `,"exact":`...)
		body = strconv.AppendBool(body, r.CountExact)
		body = append(body, '}')
	}
	if r.Examined > 0 {
		body = append(body, `,"examined":`...)
		body = strconv.AppendInt(body, int64(r.Examined), 10)
	}
	if r.Next != "" {
		body = append(body, `,"next":`...)
		body = appendText(body, r.Next)
	}
	body = append(body, `,"staleness":`...)
	body = append(body, staleness...)
	return append(body, '}'), len(r.Documents)
}
