// Package client speaks HTTP to a Holdfast: it knows the endpoint, proves who
// is asking, tries again what may be tried again, and makes readable errors of
// refusals.
package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// mostAnswer is more bytes than an answer of Holdfast has: a function's answer
// has at most 6 MB. Something longer comes from somebody else.
const mostAnswer = 16 << 20

// requestIDHeader is in every answer of Holdfast itself.
const requestIDHeader = "Holdfast-Request-Id"

// requestTimeout is longer than a gateway lets a request run (30 s).
const requestTimeout = 60 * time.Second

// Options of a Client. Endpoint is required.
type Options struct {
	Endpoint string     // as ParseEndpoint takes it
	Auth     Authorizer // nil: requests go without credentials
	Agent    string     // the User-Agent header; "" leaves Go's

	// Patience is how long a request that was refused for now (429, 503) is
	// tried again, counted from its first refusal. Zero: not at all.
	Patience time.Duration
	// Persistent also tries again when the endpoint cannot be reached, or when
	// the connection broke and the request may be repeated.
	Persistent bool
	// Notice is told why a request waits; nil: nobody.
	Notice func(line string)

	Transport http.RoundTripper // nil: one with enough connections
	Sleep     func(ctx context.Context, d time.Duration) error
	Now       func() time.Time
}

// Client makes requests. It is safe for concurrent use.
type Client struct {
	o    Options
	base *url.URL
	http *http.Client
}

// New makes a client. It does not call anybody.
func New(o Options) (*Client, error) {
	base, err := ParseEndpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	if o.Auth != nil && base.Scheme == "http" && !IsLoopback(base.Hostname()) {
		return nil, fmt.Errorf("credentials are not sent over plain http to %s; use an https endpoint", base.Host)
	}
	if o.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 256
		o.Transport = t
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	return &Client{o: o, base: base, http: &http.Client{
		Transport: o.Transport, Timeout: requestTimeout,
		// A redirect could carry credentials or a write elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Endpoint is where the client sends requests.
func (c *Client) Endpoint() string { return c.base.String() }

// ParseEndpoint checks an endpoint, such as https://api.example.com/prod.
func ParseEndpoint(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("the endpoint %q is no URL such as https://api.example.com or http://127.0.0.1:8787", s)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the endpoint has no user, query or fragment")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

// IsLoopback reports whether a host is this machine by its own name for itself.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Request is one request. Its body can be sent again.
type Request struct {
	Method string
	Path   string     // a route, such as /docs
	Query  url.Values // encoded so that no gateway can misread it
	Header http.Header
	Body   []byte
	// Repeatable says that doing it twice is as good as once, so that it is also
	// tried again when nobody knows whether it happened.
	Repeatable bool
}

// Response is an answer with a status below 400.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	// Repeated says that an earlier attempt of the request may have happened too.
	Repeated bool
}

// Unreachable is the error of a request that got no answer.
type Unreachable struct {
	Endpoint string
	Sent     bool // the request may have arrived
	Err      error
}

func (e *Unreachable) Error() string {
	if e.Sent {
		return fmt.Sprintf("%s gave no answer; the request may or may not have been carried out: %v", e.Endpoint, e.Err)
	}
	return fmt.Sprintf("%s cannot be reached: %v", e.Endpoint, e.Err)
}

func (e *Unreachable) Unwrap() error { return e.Err }

// Do makes a request and tries again what may be tried again. The error is a
// *Problem for an answer of status 300 or above (but 304), or *Unreachable, or
// the context's.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	var first time.Time // of the failures
	repeated := false
	for attempt := 0; ; attempt++ {
		res, err := c.once(ctx, r)
		if err == nil {
			res.Repeated = repeated
			return res, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if p := (*Problem)(nil); errors.As(err, &p) {
			p.Repeated = repeated
		}
		failure := judge(err)
		again := failure.passing && (!failure.unknown || r.Repeatable) && (!failure.network || c.o.Persistent)
		if !again {
			return nil, err
		}
		now := c.o.Now()
		if attempt == 0 {
			first = now
		}
		wait := max(Backoff(attempt), failure.retryAfter)
		if now.Add(wait).Sub(first) > c.o.Patience {
			return nil, err
		}
		repeated = repeated || failure.unknown
		if wait >= time.Second {
			c.o.Notice(fmt.Sprintf("%v; trying again in %.0f s", err, wait.Seconds()))
		}
		if err := c.o.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// Reach finds out at once whether anybody answers at the endpoint, whatever the
// answer is, so that a wrong endpoint is told before somebody waits for it.
func (c *Client) Reach(ctx context.Context) error {
	_, err := c.once(ctx, Request{Method: http.MethodGet, Path: "/openapi.json"})
	if p := (*Problem)(nil); errors.As(err, &p) {
		return nil
	}
	return err
}

// once makes a request once.
func (c *Client) once(ctx context.Context, r Request) (*Response, error) {
	u := *c.base
	u.Path += r.Path
	// A space as %20 means the same to everybody, a plus does not.
	u.RawQuery = strings.ReplaceAll(r.Query.Encode(), "+", "%20")
	req, err := http.NewRequestWithContext(ctx, r.Method, u.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	if len(r.Body) == 0 {
		req.Body, req.ContentLength = nil, 0
	}
	for name, values := range r.Header {
		req.Header[name] = values
	}
	if c.o.Agent != "" {
		req.Header.Set("User-Agent", c.o.Agent)
	}
	if c.o.Auth != nil {
		if err := c.o.Auth.Authorize(ctx, req, r.Body); err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
	}
	var sent atomic.Bool // the transport may still be writing when the answer is here
	req = req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}))
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err, sent.Load())
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, mostAnswer+1))
	if err != nil {
		return nil, c.unreachable(err, true)
	}
	if len(body) > mostAnswer {
		return nil, fmt.Errorf("%s answers with more than %d bytes; that is no Holdfast", c.Endpoint(), mostAnswer)
	}
	if res.StatusCode >= 300 && res.StatusCode != http.StatusNotModified {
		return nil, c.refused(problemOf(res, body))
	}
	if res.Header.Get(requestIDHeader) == "" {
		// Somebody else's {} would be an empty answer to every question.
		return nil, fmt.Errorf("%s answers, but it is no Holdfast", c.Endpoint())
	}
	return &Response{Status: res.StatusCode, Header: res.Header, Body: body}, nil
}

// refused adds to the refusal of a route where it was looked for: it is the
// endpoint that has a wrong path.
func (c *Client) refused(p *Problem) *Problem {
	if p.Slug == "no-such-route" {
		p.Detail += "; the endpoint is " + c.Endpoint()
	}
	return p
}

func (c *Client) unreachable(err error, sent bool) error {
	var u *url.Error
	if errors.As(err, &u) { // its text repeats the whole URL with the id
		err = u.Err
	}
	return &Unreachable{Endpoint: c.Endpoint(), Sent: sent, Err: err}
}
