package local

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"holdfast/shared/obs"
)

// behind starts a gateway before one handler and answers with its address.
func behind(t *testing.T, h HTTPHandler) string {
	t.Helper()
	return serveGateway(t, &Gateway{Default: Route{Function: Function{Name: "f", Timeout: time.Second}, Handler: h}, Log: obs.Discard()})
}

func serveGateway(t *testing.T, g *Gateway) string {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config = newServer(g, g.Log)
	server.Listener = problemListener{server.Listener}
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// echo answers with the event that it was given.
func echo(_ context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	text, err := json.Marshal(e)
	return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: string(text)}, err
}

// raw sends bytes as they are, so that no client cleans the path.
func raw(t *testing.T, address, request string) *http.Response {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	method, _, _ := strings.Cut(request, " ")
	go func() { _, _ = io.WriteString(c, request) }()
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func eventOf(t *testing.T, res *http.Response) (e events.APIGatewayV2HTTPRequest) {
	t.Helper()
	if err := json.NewDecoder(res.Body).Decode(&e); err != nil {
		t.Fatalf("status %d: %v", res.StatusCode, err)
	}
	return e
}

func TestPathsReachTheFunctionDecodedOnceAndUncleaned(t *testing.T) {
	address := behind(t, echo)
	for target, want := range map[string]struct{ path, query string }{
		"/docs/users/1":                     {"/docs/users/1", ""},
		"/docs/users/a%2Fb":                 {"/docs/users/a/b", ""},
		"/docs/users/a%252Fb":               {"/docs/users/a%2Fb", ""},
		"/docs/users/a+b%2B%20c":            {"/docs/users/a+b+ c", ""},
		"/docs/users/%3F%23%26%25%22%5C":    {`/docs/users/?#&%"\`, ""},
		"/docs/users/%C3%A9%E2%82%AC":       {"/docs/users/é€", ""},
		"/docs/users/../x/./y//z/":          {"/docs/users/../x/./y//z/", ""},
		"//docs//users/1":                   {"//docs//users/1", ""},
		"/docs?id=users%2F1&id=b+c%2B&x=":   {"/docs", "id=users%2F1&id=b+c%2B&x="},
		"/docs/a?matches=%2A&exclude=a|b":   {"/docs/a", "matches=%2A&exclude=a|b"},
		"/docs/%25?a=1;b=2":                 {"/docs/%", "a=1;b=2"},
		"/docs/users/1?startsWith=a/b?c=d#": {"/docs/users/1", "startsWith=a/b?c=d#"},
	} {
		e := eventOf(t, raw(t, address, "GET "+target+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"))
		if e.RawPath != want.path || e.RequestContext.HTTP.Path != want.path || e.RawQueryString != want.query {
			t.Errorf("%s: path %q, query %q", target, e.RawPath, e.RawQueryString)
		}
	}
}

func TestWhatAFunctionBehindTheGatewayIsGiven(t *testing.T) {
	address := behind(t, func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		c, ok := lambdacontext.FromContext(ctx)
		if _, limited := ctx.Deadline(); !ok || !limited || c.AwsRequestID != e.RequestContext.RequestID {
			t.Error("the context lacks a deadline or the request id")
		}
		return echo(ctx, e)
	})
	res := raw(t, address, "PUT /x?q=1&q=2 HTTP/1.1\r\nHost: h:1\r\nAccept: a\r\nAccept: b\r\nCookie: k=v; l=w\r\nIf-Match: \"1\"\r\n"+
		"User-Agent: me\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 8\r\nConnection: close\r\n\r\n{\"é\":1}")
	e := eventOf(t, res)
	if e.Version != "2.0" || e.RequestContext.HTTP.Method != "PUT" || e.RequestContext.HTTP.UserAgent != "me" || e.RequestContext.HTTP.SourceIP != "127.0.0.1" {
		t.Errorf("context %+v", e.RequestContext)
	}
	h := e.Headers
	if h["accept"] != "a,b" || h["if-match"] != `"1"` || h["host"] != "h:1" || h["cookie"] != "" || fmt.Sprint(e.Cookies) != "[k=v l=w]" {
		t.Errorf("headers %v, cookies %v", h, e.Cookies)
	}
	if e.Body != `{"é":1}` || e.IsBase64Encoded || e.QueryStringParameters["q"] != "1,2" {
		t.Errorf("body %q, parameters %v", e.Body, e.QueryStringParameters)
	}
	if id := res.Header.Get(gatewayID); id == "" || id != e.RequestContext.RequestID {
		t.Errorf("the answer's request id is %q, the event's %q", id, e.RequestContext.RequestID)
	}
}

func TestBodiesThatAreNotTextTravelInBase64(t *testing.T) {
	address := behind(t, echo)
	for _, c := range []struct {
		media, body string
		encoded     bool
	}{
		{"application/json", "{}", false},
		{"application/merge-patch+json", "{}", false},
		{"text/plain", "x", false},
		{"application/x-ndjson", "{}", true},
		{"application/json", "\xff", true},
		{"", "{}", true},
		{"application/x-ndjson", "", false},
	} {
		req, err := http.NewRequest("POST", "http://"+address, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if c.media != "" {
			req.Header.Set("Content-Type", c.media)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		e := eventOf(t, res)
		res.Body.Close()
		body := e.Body
		if e.IsBase64Encoded {
			text, err := base64.StdEncoding.DecodeString(e.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = string(text)
		}
		if e.IsBase64Encoded != c.encoded || body != c.body {
			t.Errorf("%s %q: encoded %v, body %q", c.media, c.body, e.IsBase64Encoded, body)
		}
	}
}

func TestAnswersComeThrough(t *testing.T) {
	body := []byte{0xff, 0, 1}
	address := behind(t, func(_ context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		switch e.RawPath {
		case "/binary":
			return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: base64.StdEncoding.EncodeToString(body), IsBase64Encoded: true,
				MultiValueHeaders: map[string][]string{"A": {"1", "2"}}, Cookies: []string{"k=v"}}, nil
		case "/head":
			return events.APIGatewayV2HTTPResponse{StatusCode: 200, Headers: map[string]string{"etag": `"5"`, "content-length": "77", "content-type": "application/json"}}, nil
		case "/none":
			return events.APIGatewayV2HTTPResponse{StatusCode: 204}, nil
		}
		return events.APIGatewayV2HTTPResponse{StatusCode: 404, Headers: map[string]string{"Content-Type": "application/problem+json"}, Body: "{}"}, nil
	})
	get := func(method, path string) (*http.Response, []byte) {
		req, err := http.NewRequest(method, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, text
	}
	if res, text := get("GET", "/binary"); !bytes.Equal(text, body) || len(res.Header["A"]) != 2 || res.Header.Get("Set-Cookie") != "k=v" {
		t.Errorf("binary: %v %q", res.Header, text)
	}
	if res, _ := get("HEAD", "/head"); res.Header.Get("ETag") != `"5"` || res.ContentLength != 77 {
		t.Errorf("head: %v, length %d", res.Header, res.ContentLength)
	}
	if res, text := get("DELETE", "/none"); res.StatusCode != 204 || len(text) != 0 || res.Header.Get("Content-Type") != "" {
		t.Errorf("none: %d %v %q", res.StatusCode, res.Header, text)
	}
	if res, text := get("GET", "/x"); res.StatusCode != 404 || res.Header.Get("Content-Type") != "application/problem+json" || string(text) != "{}" {
		t.Errorf("problem: %d %v %q", res.StatusCode, res.Header, text)
	}
}

func TestRoutes(t *testing.T) {
	to := func(name string) Route {
		return Route{Function: Function{Name: name, Timeout: time.Second}, Handler: func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: name}, nil
		}}
	}
	fns := &functions{documents: to("documents").Handler, query: to("query").Handler, admin: to("admin").Handler}
	address := serveGateway(t, fns.gateway(obs.Discard()))
	for request, want := range map[string]string{
		"POST /query": "query", "POST /query?x=1": "query", "POST /%71uery": "query",
		"GET /query": "query", "POST /query/": "documents", "POST //query": "documents", "POST /bulk": "documents", "GET /": "documents", "TRACE /x": "documents",
		"GET /collections": "admin", "PUT /collections/a/b": "admin", "DELETE /collections/": "admin", "POST /collections?x=1": "admin", "GET /collections/%2e%2e": "admin", "GET /collectionsx": "documents",
	} {
		res := raw(t, address, request+" HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		text, err := io.ReadAll(res.Body)
		if err != nil || string(text) != want {
			t.Errorf("%s goes to %q (%v), want %s", request, text, err, want)
		}
	}
}

// The limits of AWS, at their edges.
func TestLimits(t *testing.T) {
	cut := make(chan struct{})
	t.Cleanup(func() { close(cut) })
	address := behind(t, func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		switch e.RawPath {
		case "/answer":
			n := 0
			_, err := fmt.Sscan(e.RawQueryString, &n)
			return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: strings.Repeat("x", n)}, err
		case "/slow":
			<-cut
		case "/panic":
			panic("at once")
		case "/error":
			return events.APIGatewayV2HTTPResponse{}, errors.New("secret")
		case "/nothing":
			return events.APIGatewayV2HTTPResponse{}, nil
		case "/headers":
			return events.APIGatewayV2HTTPResponse{StatusCode: 200, Headers: map[string]string{"x": strings.Repeat("x", maxHeaders)}}, nil
		}
		return events.APIGatewayV2HTTPResponse{StatusCode: 200}, nil
	})
	const overhead = 2000 // of an event, at most
	for _, c := range []struct {
		name, target, media string
		body, header        int
		fill                byte
		status              int
		kind                string
	}{
		{name: "text within the payload", media: "text/plain", body: maxPayload - overhead, fill: 'x', status: 200},
		{name: "text beyond the payload", media: "text/plain", body: maxPayload, fill: 'x', status: 413, kind: "request-too-large"},
		{name: "text that grows by its escapes", media: "text/plain", body: maxPayload / 2, fill: '"', status: 413, kind: "request-too-large"},
		{name: "base64 within the payload", media: "application/x-ndjson", body: (maxPayload - overhead) / 4 * 3, fill: 'x', status: 200},
		{name: "base64 beyond the payload", media: "application/x-ndjson", body: maxPayload / 4 * 3, fill: 'x', status: 413, kind: "request-too-large"},
		{name: "beyond the gateway's body", media: "text/plain", body: maxBody + 1, fill: 'x', status: 413, kind: "request-too-large"},
		{name: "far beyond the gateway's body", media: "text/plain", body: 3 * maxBody, fill: 'x', status: 413, kind: "request-too-large"},
		{name: "headers within", header: maxHeaders - 300, status: 200},
		{name: "headers beyond", header: maxHeaders, status: 431, kind: "request-too-large"},
		{name: "a long query", target: "/x?" + strings.Repeat("x", maxHeaders), status: 431, kind: "request-too-large"},
		{name: "answer within", target: fmt.Sprintf("/answer?%d", maxPayload-200), status: 200},
		{name: "answer beyond", target: fmt.Sprintf("/answer?%d", maxPayload), status: 500, kind: "internal"},
		{name: "answer's headers beyond", target: "/headers", status: 500, kind: "internal"},
		{name: "a slow function", target: "/slow", status: 503, kind: "unavailable"},
		{name: "a panic", target: "/panic", status: 500, kind: "internal"},
		{name: "an error", target: "/error", status: 500, kind: "internal"},
		{name: "no status", target: "/nothing", status: 500, kind: "internal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, err := http.NewRequest("POST", "http://"+address+c.target, bytes.NewReader(bytes.Repeat([]byte{c.fill}, c.body)))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", c.media)
			if c.header > 0 {
				req.Header.Set("X-Long", strings.Repeat("x", c.header))
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != c.status {
				t.Fatalf("status %d, want %d: %.300s", res.StatusCode, c.status, text)
			}
			if c.kind == "" {
				return
			}
			var p struct {
				Type, Title, Detail string
				Status              int
			}
			if err := json.Unmarshal(text, &p); err != nil || res.Header.Get("Content-Type") != "application/problem+json" {
				t.Fatalf("not a problem: %v %.300s", err, text)
			}
			if p.Type != "/problems/"+c.kind || p.Status != c.status || p.Title == "" || p.Detail == "" || strings.Contains(p.Detail, "secret") {
				t.Errorf("problem %+v", p)
			}
			if res.Header.Get("Holdfast-Request-Id") == "" {
				t.Error("the answer has no Holdfast-Request-Id")
			}
		})
	}
}

// A client that asks for leave is refused before it sends.
func TestABodyThatIsAnnouncedTooLargeIsNotWaitedFor(t *testing.T) {
	res := raw(t, behind(t, echo), fmt.Sprintf("POST /bulk HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", maxBody+1))
	if res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", res.StatusCode)
	}
}

// What a client does not wait for is done all the same.
func TestAClientThatGoesAwayCancelsNothing(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	address := behind(t, func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		close(begun)
		time.Sleep(100 * time.Millisecond)
		ended <- ctx.Err()
		return events.APIGatewayV2HTTPResponse{StatusCode: 200}, nil
	})
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-begun
	c.Close()
	if err := <-ended; err != nil {
		t.Errorf("the function's context ended: %v", err)
	}
}

// What the server itself has to say is not for whoever started the stack.
func TestWhatTheServerSaysGoesToTheLog(t *testing.T) {
	var log bytes.Buffer
	newServer(&Gateway{}, obs.NewLogger(&log, slog.LevelInfo)).ErrorLog.Print("no connection")
	if !strings.Contains(log.String(), "no connection") {
		t.Errorf("the log has: %s", log.String())
	}
}
