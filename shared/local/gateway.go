package local

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/doc"
	"holdfast/shared/local/engines"
)

// The limits of an HTTP API.
//
// Source: Amazon API Gateway Developer Guide, "Quotas for configuring and
// running an HTTP API",
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html
const (
	maxBody           = 10 << 20 // bytes of a request's body
	maxHeaders        = 10240    // bytes of the request line with the headers, and of an answer's headers
	integrationLimit  = 30 * time.Second
	headerReadTimeout = 30 * time.Second
)

// HTTPHandler is a function behind the gateway.
type HTTPHandler func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

// Route sends the requests for one path to a function, whatever their method.
// The path is compared with the decoded path of the request, whole.
type Route struct {
	Path     string
	Below    bool // and all paths below it, as a route {proxy+} beside it does
	Function Function
	Handler  HTTPHandler
}

func (t Route) takes(r *http.Request) bool {
	return t.Path == r.URL.Path || t.Below && strings.HasPrefix(r.URL.Path, t.Path+"/")
}

// Gateway behaves like an API Gateway HTTP API with payload format 2.0 in
// front of functions: the same events, the same limits. Where the gateway
// itself has to answer, it does so with a problem of RFC 9457.
//
// Nothing cleans or redirects paths: an id with "..", "//" or an encoded slash
// reaches the function as the client wrote it, decoded once.
type Gateway struct {
	Routes  []Route
	Default Route // gets what no other route takes; its Method and Path do not matter
	Log     *slog.Logger
}

// ServeHTTP answers one request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := newRequestID()
	event, refused := g.event(w, r, id)
	if refused != nil {
		refused.write(w, id)
		return
	}
	route := g.route(r)
	f := route.Function
	f.Timeout = min(f.Timeout, integrationLimit)
	answer, err := invoke(r.Context(), f, id, g.Log, route.Handler, event)
	switch {
	case errors.Is(err, errTimedOut):
		g.Log.Error("a function did not answer in time", "function", f.Name, "requestId", id)
		timedOut.write(w, id)
	case err != nil:
		g.Log.Error("a function failed", "function", f.Name, "requestId", id, "error", err)
		functionFailed.write(w, id)
	default:
		g.answer(w, r, answer, f, id)
	}
}

func (g *Gateway) route(r *http.Request) Route {
	for _, route := range g.Routes {
		if route.takes(r) {
			return route
		}
	}
	return g.Default
}

// event makes the function's event of a request.
func (g *Gateway) event(w http.ResponseWriter, r *http.Request, id string) (events.APIGatewayV2HTTPRequest, *refusal) {
	var event events.APIGatewayV2HTTPRequest
	if n := headerBytes(r); n > maxHeaders {
		return event, headersTooLarge(n)
	}
	body, refused := readBody(w, r)
	if refused != nil {
		return event, refused
	}
	now := time.Now().UTC()
	source, _, _ := net.SplitHostPort(r.RemoteAddr)
	event = events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "$default",
		RawPath: r.URL.Path, RawQueryString: r.URL.RawQuery,
		Headers: make(map[string]string, len(r.Header)+4),
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey: "$default", AccountID: engines.Account, Stage: "$default", RequestID: id, APIID: "local",
			DomainName: r.Host, Time: now.Format("02/Jan/2006:15:04:05 -0700"), TimeEpoch: now.UnixMilli(),
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
				Method: r.Method, Path: r.URL.Path, Protocol: r.Proto, SourceIP: source, UserAgent: r.UserAgent(),
			},
		},
	}
	for name, values := range r.Header {
		if name == "Cookie" {
			event.Cookies = cookies(values)
			continue
		}
		event.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	event.Headers["host"] = r.Host
	event.Headers["x-forwarded-for"] = source
	event.Headers["x-forwarded-proto"] = "http"
	if query := r.URL.Query(); len(query) > 0 {
		event.QueryStringParameters = make(map[string]string, len(query))
		for name, values := range query {
			event.QueryStringParameters[name] = strings.Join(values, ",")
		}
	}
	if isText(r.Header.Get("Content-Type"), body) {
		event.Body = string(body)
	} else {
		event.Body, event.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	if n := payloadBytes(event); n > maxPayload {
		return event, payloadTooLarge(n)
	}
	return event, nil
}

// headerBytes is the size of the request line with the headers, as they were
// sent.
func headerBytes(r *http.Request) int {
	n := len(r.Method) + len(r.RequestURI) + len(r.Proto) + len("  \r\n") + len("Host: \r\n") + len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}

// drainLimit is how much of a body that is too large is still read, so that a
// client that sends all before it listens gets the answer.
const drainLimit = 64 << 20

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	if r.ContentLength > maxBody && r.Header.Get("Expect") != "" {
		return nil, bodyTooLarge() // the client waits for leave to send
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		_, _ = io.CopyN(io.Discard, r.Body, drainLimit)
		return nil, bodyTooLarge()
	case err != nil:
		return nil, brokenBody
	}
	return body, nil
}

// cookies are the parts of Cookie headers, which an event lists one by one.
func cookies(values []string) []string {
	var all []string
	for _, v := range values {
		for part := range strings.SplitSeq(v, ";") {
			if part = strings.TrimSpace(part); part != "" {
				all = append(all, part)
			}
		}
	}
	return all
}

// isText reports whether a body travels as it is in an event; others travel in
// base64, which makes them a third larger.
func isText(contentType string, body []byte) bool {
	if len(body) == 0 {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil || !utf8.Valid(body) {
		return false
	}
	switch media {
	case "application/json", "application/javascript", "application/xml":
		return true
	}
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml")
}

// payloadBytes is the size of an event as JSON. It is computed in full only
// where it can matter: one byte becomes at most six, and what is not the body
// is small.
func payloadBytes(event events.APIGatewayV2HTTPRequest) int {
	if 6*(len(event.Body)+4*maxHeaders) < maxPayload {
		return 0
	}
	return jsonBytes(event)
}

func jsonBytes(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		return 0 // events and answers are plain data; there is nothing that JSON cannot say
	}
	return len(text)
}

// answer passes a function's answer on.
func (g *Gateway) answer(w http.ResponseWriter, r *http.Request, a events.APIGatewayV2HTTPResponse, f Function, id string) {
	body := []byte(a.Body)
	if a.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(a.Body); err != nil {
			g.Log.Error("a function's answer is not base64", "function", f.Name, "requestId", id)
			functionFailed.write(w, id)
			return
		}
	}
	if 6*(len(a.Body)+4*maxHeaders) > maxPayload && jsonBytes(a) > maxPayload {
		g.Log.Error("a function's answer is too large", "function", f.Name, "requestId", id, "bytes", len(a.Body))
		answerTooLarge.write(w, id)
		return
	}
	if a.StatusCode < 200 || a.StatusCode > 599 {
		g.Log.Error("a function's answer has no status", "function", f.Name, "requestId", id, "status", a.StatusCode)
		functionFailed.write(w, id)
		return
	}
	h := w.Header()
	for name, v := range a.Headers {
		h.Set(name, v)
	}
	for name, values := range a.MultiValueHeaders {
		h.Del(name)
		for _, v := range values {
			h.Add(name, v)
		}
	}
	for _, c := range a.Cookies {
		h.Add("Set-Cookie", c)
	}
	if n := answerHeaderBytes(h); n > maxHeaders {
		g.Log.Error("a function's answer has too many headers", "function", f.Name, "requestId", id, "bytes", n)
		clear(h)
		functionFailed.write(w, id)
		return
	}
	if r.Method != http.MethodHead {
		h.Del("Content-Length") // the server counts for itself
	}
	if h.Get("Content-Type") == "" && len(body) > 0 {
		h.Set("Content-Type", "text/plain; charset=utf-8")
	}
	h.Set(gatewayID, id)
	w.WriteHeader(a.StatusCode)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that went away is nobody's failure
	}
}

func answerHeaderBytes(h http.Header) (n int) {
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}

// gatewayID is the header in which API Gateway tells its request id.
const gatewayID = "Apigw-Requestid"

// refusal is an answer of the gateway itself.
type refusal struct {
	status  int
	kind    doc.Kind
	title   string
	detail  string
	members map[string]any
	close   bool // what is left of the request is not read
}

func bodyTooLarge() *refusal {
	return &refusal{status: http.StatusRequestEntityTooLarge, kind: doc.RequestTooLarge, title: "Request too large",
		detail:  fmt.Sprintf("the body of a request has at most %d bytes", maxBody),
		members: map[string]any{"limit": maxBody}, close: true}
}

func payloadTooLarge(n int) *refusal {
	return &refusal{status: http.StatusRequestEntityTooLarge, kind: doc.RequestTooLarge, title: "Request too large",
		detail: fmt.Sprintf("the request, as the function's event in JSON, has at most %d bytes; "+
			"a body that is neither text nor JSON travels in base64, a third larger", maxPayload),
		members: map[string]any{"limit": maxPayload, "actual": n}}
}

// headersTooLarge is told how many bytes there were; 0: nobody counted them.
func headersTooLarge(n int) *refusal {
	p := &refusal{status: http.StatusRequestHeaderFieldsTooLarge, kind: doc.RequestTooLarge, title: "Request too large",
		detail:  fmt.Sprintf("the request line and the headers together have at most %d bytes", maxHeaders),
		members: map[string]any{"limit": maxHeaders}, close: true}
	if n > 0 {
		p.members["actual"] = n
	}
	return p
}

var (
	brokenBody = &refusal{status: http.StatusBadRequest, kind: doc.InvalidRequest, title: "Invalid request",
		detail: "the body of the request could not be read to its end", close: true}
	timedOut = &refusal{status: http.StatusServiceUnavailable, kind: doc.Unavailable, title: "Unavailable",
		detail: "the request took too long; a write may or may not have happened"}
	functionFailed = &refusal{status: http.StatusInternalServerError, kind: doc.Internal, title: "Internal error",
		detail: "the request failed for a reason that is in the log under its request id"}
	answerTooLarge = &refusal{status: http.StatusInternalServerError, kind: doc.Internal, title: "Internal error",
		detail: fmt.Sprintf("the answer has more than the %d bytes that a function may return", maxPayload)}
)

func (p *refusal) write(w http.ResponseWriter, id string) {
	maps.Copy(w.Header(), p.header(id))
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body())
}

func (p *refusal) header(id string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/problem+json")
	h.Set(gatewayID, id)
	h.Set("Holdfast-Request-Id", id)
	if p.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	if p.close {
		h.Set("Connection", "close")
	}
	return h
}

// body is the problem object of RFC 9457.
func (p *refusal) body() []byte {
	members := map[string]any{"type": "/problems/" + string(p.kind), "title": p.title, "status": p.status, "detail": p.detail}
	maps.Copy(members, p.members)
	body, err := json.Marshal(members)
	if err != nil {
		return nil // a problem is made of text and numbers
	}
	return body
}
