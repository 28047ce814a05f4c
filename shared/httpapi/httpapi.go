// Package httpapi is Holdfast's HTTP contract: routes, parameters, bodies,
// answers and problems. It knows neither Lambda nor a network: a host gives it
// a Request and sends its Response. openapi.yaml beside this file describes the
// same contract for clients.
package httpapi

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/obs"
)

// Request is a request as a host hands it over.
type Request struct {
	Method    string
	Path      string      // percent-decoded exactly once, without the stage
	RawQuery  string      // what followed the ?, still percent-encoded
	Header    http.Header // canonical names
	Body      []byte
	Principal string // who asks, as the gateway authenticated it; may be ""
	ID        string // the gateway's id of the request; "" has one made
	Base      string // what precedes Path in the client's URL, such as "/prod"; for Location
}

// Response is the answer for a host to send. Its body must not be changed.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Handler answers requests. It never fails and never panics: whatever goes
// wrong is a Response. It is safe for concurrent use.
type Handler interface {
	Serve(ctx context.Context, r *Request) *Response
}

// answerReserve is kept before the host's deadline so that an operation that
// ran out of time is still answered as such.
const answerReserve = 500 * time.Millisecond

// Names of Holdfast's own headers.
const (
	headerRequestID = "Holdfast-Request-Id"
	headerToken     = "Holdfast-Token"
)

// operation answers one method of one route. The error it returns is made a
// problem.
type operation func(ctx context.Context, c *call) (*Response, error)

// call is a request on its way through an operation.
type call struct {
	*Request
	id    string // subject of the request: a document id or a collection path, unchecked
	query query
}

// route is a resource: what may be done with it, by method.
type route struct {
	name    string // for logs and metrics; says nothing of the request
	methods map[string]operation
	// conditional says that the operations look at the condition headers
	// themselves. Elsewhere these are refused.
	conditional bool
}

// router finds the route of a request and fills in the call. A nil route is an
// unknown one.
type router func(c *call) (*route, error)

// handler is what all handlers have in common: the request id, the protocol's
// refusals, problems, the answer to HEAD, logs and metrics.
type handler struct {
	route   router
	log     *slog.Logger
	metrics *obs.Metrics
}

func newHandler(r router, log *slog.Logger, metrics *obs.Metrics) *handler {
	if log == nil {
		log = obs.Discard()
	}
	return &handler{route: r, log: log, metrics: metrics}
}

// Serve implements Handler.
func (h *handler) Serve(ctx context.Context, r *Request) *Response {
	begun := time.Now()
	if r.ID == "" {
		withID := *r
		withID.ID = rand.Text()
		r = &withID
	}
	ctx = obs.WithRequestID(ctx, r.ID)
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-answerReserve))
		defer cancel()
	}
	name := "none"
	res, err := h.answer(ctx, r, &name)
	if err != nil {
		res = h.refuse(ctx, r, name, err)
	}
	res.Header.Set(headerRequestID, r.ID)
	if r.Method == http.MethodHead {
		// The length is that of the answer to GET; the answer itself stays here.
		if res.Status != http.StatusNoContent && res.Status != http.StatusNotModified {
			res.Header.Set("Content-Length", strconv.Itoa(len(res.Body)))
		}
		res.Body = nil
	}
	took := time.Since(begun)
	h.log.InfoContext(ctx, "served", "route", name, "method", knownMethod(r.Method), "status", res.Status, "ms", took.Milliseconds())
	h.measure(name, res.Status, took)
	return res
}

// answer runs the operation; a panic in it becomes an error.
func (h *handler) answer(ctx context.Context, r *Request, name *string) (res *Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	c := &call{Request: r}
	at, err := h.route(c)
	if err != nil {
		return nil, err
	}
	if at == nil {
		return nil, doc.Errorf(doc.NoSuchRoute, "there is nothing at this path")
	}
	*name = at.name
	op, ok := at.methods[r.Method]
	if !ok {
		return nil, methodNotAllowed(at)
	}
	if len(r.Header.Values("Idempotency-Key")) > 0 {
		return nil, doc.Errorf(doc.IdempotencyUnsup, "this route does not take an Idempotency-Key; nothing was done").
			With("parameter", "Idempotency-Key")
	}
	if !at.conditional {
		if err := refuseConditions(r.Method, r.Header); err != nil {
			return nil, err
		}
	}
	if err := checkBody(r); err != nil {
		return nil, err
	}
	return op(ctx, c)
}

// refuse makes the problem of an error and logs what the client is not told.
func (h *handler) refuse(ctx context.Context, r *Request, route string, err error) *Response {
	p := problemOf(err, r.ID)
	switch {
	case p.status == http.StatusInternalServerError:
		h.log.ErrorContext(ctx, "request failed", "route", route, "error", err)
	case p.status >= 500:
		h.log.WarnContext(ctx, "request not served", "route", route, "kind", string(p.kind))
		h.log.DebugContext(ctx, "request not served", "route", route, "error", err)
	}
	return p.response()
}

func (h *handler) measure(route string, status int, took time.Duration) {
	var refused, failed float64
	switch {
	case status >= 500:
		failed = 1
	case status >= 400:
		refused = 1
	}
	h.metrics.Record([]obs.Metric{
		{Name: "Requests", Unit: obs.Count, Value: 1},
		{Name: "Refused", Unit: obs.Count, Value: refused},
		{Name: "Failed", Unit: obs.Count, Value: failed},
		{Name: "Latency", Unit: obs.Milliseconds, Value: float64(took.Microseconds()) / 1000},
	}, obs.Dimension{Name: "Route", Value: route})
}

// knownMethod keeps a client's inventions out of the logs.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodPatch, http.MethodOptions:
		return method
	}
	return "other"
}

// Refuse is the answer to a request that a host could not hand over, such as
// one whose path is not decodable. It carries the request id like any other.
func Refuse(r *Request, err error) *Response {
	res := problemOf(err, r.ID).response()
	if r.ID != "" {
		res.Header.Set(headerRequestID, r.ID)
	}
	if r.Method == http.MethodHead {
		res.Header.Set("Content-Length", strconv.Itoa(len(res.Body)))
		res.Body = nil
	}
	return res
}

const (
	typeJSON    = "application/json"
	typeNDJSON  = "application/x-ndjson"
	typeProblem = "application/problem+json"
)

// reply makes an answer with a body. Answers are never stored by caches without
// asking again: a Load by id tells the truth at every moment.
func reply(status int, mediaType string, body []byte) *Response {
	h := http.Header{}
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", "no-cache")
	return &Response{Status: status, Header: h, Body: body}
}

// replyEmpty makes an answer without a body.
func replyEmpty(status int) *Response {
	return &Response{Status: status, Header: http.Header{}}
}
