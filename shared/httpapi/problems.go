package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"holdfast/shared/doc"
)

// problemKind is what every problem of one kind has in common.
type problemKind struct {
	status     int
	title      string
	retryAfter int // seconds for Retry-After; 0: no such header
}

// problemKinds is the one place where a way to fail becomes a status. RFC 9457
// wants the title to be the same for every occurrence.
var problemKinds = map[doc.Kind]problemKind{
	doc.BatchConflict:        {status: 409, title: "Conflict in the batch"},
	doc.BatchTooLarge:        {status: 413, title: "Batch too large"},
	doc.CursorMismatch:       {status: 400, title: "Cursor of another query"},
	doc.DocumentTooDeep:      {status: 400, title: "Document nested too deeply"},
	doc.DocumentTooLarge:     {status: 413, title: "Document too large"},
	doc.DuplicateID:          {status: 400, title: "Id used twice"},
	doc.IdempotencyUnsup:     {status: 400, title: "Idempotency-Key not supported here"},
	doc.IndexUnavailable:     {status: 503, title: "Index unavailable", retryAfter: 5},
	doc.Internal:             {status: 500, title: "Internal error"},
	doc.InvalidCursor:        {status: 400, title: "Invalid cursor"},
	doc.InvalidDefinition:    {status: 422, title: "Invalid definition"},
	doc.InvalidID:            {status: 400, title: "Invalid id"},
	doc.InvalidJSON:          {status: 400, title: "Invalid JSON"},
	doc.InvalidQuery:         {status: 400, title: "Invalid query"},
	doc.InvalidRequest:       {status: 400, title: "Invalid request"},
	doc.JobRunning:           {status: 409, title: "Job running"},
	doc.MethodNotAllowed:     {status: 405, title: "Method not allowed"},
	doc.NoSuchRoute:          {status: 404, title: "No such route"},
	doc.NotAnObject:          {status: 400, title: "Not an object"},
	doc.NotFound:             {status: 404, title: "Not found"},
	doc.NumberOutOfRange:     {status: 400, title: "Number out of range"},
	doc.OutcomeUnknown:       {status: 503, title: "Outcome unknown", retryAfter: 1},
	doc.QueryTooCostly:       {status: 400, title: "Query too costly"},
	doc.ReindexRequired:      {status: 409, title: "Reindex required"},
	doc.RequestTooLarge:      {status: 413, title: "Request too large"},
	doc.Throttled:            {status: 429, title: "Throttled", retryAfter: 1},
	doc.TooMany:              {status: 400, title: "Too many"},
	doc.Unavailable:          {status: 503, title: "Unavailable", retryAfter: 1},
	doc.UnrootedPrefix:       {status: 400, title: "Prefix without a root"},
	doc.UnsupportedMediaType: {status: 415, title: "Unsupported media type"},
	doc.VersionConflict:      {status: 412, title: "Version conflict"},
	doc.WaitTimeout:          {status: 504, title: "Wait timed out"},
}

// problem is what a client is told about a failure.
type problem struct {
	problemKind
	kind    doc.Kind
	detail  string
	members map[string]any
	header  http.Header
}

// Members of a doc.Error that are told as headers.
const (
	memberRetryAfter = "retryAfter" // whole seconds
	memberAllow      = "allow"      // the methods, comma-separated
	memberAccept     = "accept"     // the media type that would have been taken
)

// problemOf makes the problem of any error. An error that is no *doc.Error is
// none of the client's business: the problem then holds the request id and
// nothing else.
func problemOf(err error, requestID string) problem {
	var e *doc.Error
	if !errors.As(err, &e) {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			e = doc.Errorf(doc.Unavailable, "the request ran out of time")
		} else {
			e = doc.Errorf(doc.Internal, "something went wrong; its request id tells the operator what")
		}
	}
	kind, known := problemKinds[e.Kind]
	if !known || e.Kind == doc.Internal {
		return problem{
			problemKind: problemKinds[doc.Internal], kind: doc.Internal,
			detail:  "something went wrong; its request id tells the operator what",
			members: map[string]any{"requestId": requestID}, header: http.Header{},
		}
	}
	p := problem{problemKind: kind, kind: e.Kind, detail: shorten(e.Detail), members: map[string]any{}, header: http.Header{}}
	for name, value := range e.Members {
		switch name {
		case memberRetryAfter:
			if seconds, ok := value.(int); ok && seconds > 0 {
				p.retryAfter = seconds
			}
		case memberAllow:
			p.header.Set("Allow", value.(string))
		case memberAccept:
			p.header.Set("Accept", value.(string))
		case "pointer":
			pointer, _ := value.(string)
			p.members[name] = enclosing(pointer)
		default:
			p.members[name] = value
		}
	}
	if p.retryAfter > 0 {
		p.header.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	return p
}

const (
	longestDetail  = 1000 // bytes
	longestPointer = 2000 // bytes
)

// shorten cuts a detail that quotes something endless.
func shorten(detail string) string {
	if len(detail) <= longestDetail {
		return detail
	}
	return strings.ToValidUTF8(detail[:longestDetail], "") + "…"
}

// enclosing is the pointer, or where names of a client make it very long, the
// pointer to the nearest place around: an answer must not grow with a request.
func enclosing(pointer string) string {
	for len(pointer) > longestPointer {
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
	return pointer
}

// append writes the problem object of RFC 9457.
func (p problem) append(dst []byte) []byte {
	dst = append(dst, `{"type":"/problems/`...)
	dst = append(dst, p.kind...)
	dst = append(dst, `","title":`...)
	dst = appendText(dst, p.title)
	dst = append(dst, `,"status":`...)
	dst = strconv.AppendInt(dst, int64(p.status), 10)
	dst = append(dst, `,"detail":`...)
	dst = appendText(dst, p.detail)
	names := make([]string, 0, len(p.members))
	for name := range p.members {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value, err := json.Marshal(p.members[name])
		if err != nil {
			continue // a member that has no JSON helps nobody; the rest does
		}
		dst = append(dst, ',')
		dst = appendText(dst, name)
		dst = append(dst, ':')
		dst = append(dst, value...)
	}
	return append(dst, '}')
}

func (p problem) response() *Response {
	res := reply(p.status, typeProblem, p.append(nil))
	for name, values := range p.header {
		res.Header[name] = values
	}
	return res
}

// methodNotAllowed refuses a method and names those that a route has.
func methodNotAllowed(at *route) error {
	methods := make([]string, 0, len(at.methods))
	for m := range at.methods {
		methods = append(methods, m)
	}
	slices.Sort(methods)
	return doc.Errorf(doc.MethodNotAllowed, "this path takes %s", strings.Join(methods, ", ")).
		With(memberAllow, strings.Join(methods, ", "))
}

// at names the place in a body that an error is about, unless the error does so
// already. Errors of other kinds pass.
func at(err error, pointer string) error { return locate(err, "pointer", pointer) }

// inParameter names the parameter or header that an error is about.
func inParameter(err error, name string) error { return locate(err, "parameter", name) }

func locate(err error, member, place string) error {
	var e *doc.Error
	if !errors.As(err, &e) {
		return err
	}
	if _, told := e.Members[member]; !told {
		e.With(member, place)
	}
	return err
}
