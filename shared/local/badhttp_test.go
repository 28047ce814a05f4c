package local

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// What no handler can be given is refused as a problem all the same.
func TestWhatIsNoHTTPIsRefusedAsAProblem(t *testing.T) {
	reached := 0
	address := behind(t, func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		reached++
		return echo(ctx, e)
	})
	for name, c := range map[string]struct {
		request string
		status  int
		slug    string
		detail  string
	}{
		"a percent sign alone":  {"GET /docs/users/100% HTTP/1.1\r\nHost: h\r\n\r\n", 400, "invalid-request", "two hexadecimal digits"},
		"no escape":             {"GET /docs/users/%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400, "invalid-request", "malformed"},
		"half an escape":        {"GET /docs/users/%4?id=a HTTP/1.1\r\nHost: h\r\n\r\n", 400, "invalid-request", "malformed"},
		"two lengths":           {"PUT /docs/users/1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, "invalid-request", "length"},
		"a length of text":      {"PUT /docs/users/1 HTTP/1.1\r\nHost: h\r\nContent-Length: two\r\n\r\n{}", 400, "invalid-request", "length"},
		"a negative length":     {"PUT /docs/users/1 HTTP/1.1\r\nHost: h\r\nContent-Length: -2\r\n\r\n{}", 400, "invalid-request", "length"},
		"a method of no token":  {"G@T /docs/users/1 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "invalid-request", "method"},
		"no method":             {" /docs/users/1 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "invalid-request", "method"},
		"a space in the path":   {"GET /docs/users/a b HTTP/1.1\r\nHost: h\r\n\r\n", 400, "invalid-request", ""},
		"no HTTP at all":        {"hello\r\n\r\n", 400, "invalid-request", ""},
		"no host":               {"GET /docs/users/1 HTTP/1.1\r\n\r\n", 400, "invalid-request", "Host"},
		"two hosts":             {"GET /docs/users/1 HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n", 400, "invalid-request", "header"},
		"a header of no token":  {"GET /docs/users/1 HTTP/1.1\r\nHost: h\r\nA B: c\r\n\r\n", 400, "invalid-request", "header"},
		"a header without name": {"GET /docs/users/1 HTTP/1.1\r\nHost: h\r\n: c\r\n\r\n", 400, "invalid-request", "header"},
		"a control character":   {"GET /docs/users/1 HTTP/1.1\r\nHost: h\r\nA: \x01\r\n\r\n", 400, "invalid-request", "header"},
		"another coding":        {"PUT /docs/users/1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "invalid-request", ""},
		"another protocol":      {"GET /docs/users/1 HTTP/3.0\r\nHost: h\r\n\r\n", 505, "invalid-request", "protocol"},
		"headers without end":   {"GET /docs/users/1 HTTP/1.1\r\nHost: h\r\nA: " + strings.Repeat("a", 2<<20) + "\r\n\r\n", 431, "request-too-large", "10240"},
	} {
		res := raw(t, address, c.request)
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var p struct {
			Type, Title, Detail string
			Status              int
		}
		if err := json.Unmarshal(text, &p); err != nil || res.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %v, %s", name, res.StatusCode, res.Header, text)
			continue
		}
		if res.StatusCode != c.status || p.Status != c.status || p.Type != "/problems/"+c.slug || p.Title == "" || !strings.Contains(p.Detail, c.detail) {
			t.Errorf("%s: %d %s", name, res.StatusCode, text)
		}
		if id := res.Header.Get(gatewayID); id == "" || res.Header.Get("Holdfast-Request-Id") != id || !res.Close {
			t.Errorf("%s: %v", name, res.Header)
		}
	}
	if reached > 0 {
		t.Errorf("%d of them reached the function", reached)
	}
}

// An answer of a function is never taken for a refusal, whatever is in it.
func TestAnswersOfFunctionsAreLeftAlone(t *testing.T) {
	const text = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
	address := behind(t, func(_ context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: 400, Headers: map[string]string{"Content-Type": "text/plain; charset=utf-8"}, Body: text}, nil
	})
	res := raw(t, address, "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	got, err := io.ReadAll(res.Body)
	if err != nil || string(got) != text || res.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%v %s, %v", res.Header, got, err)
	}
	// A part of a compressed answer may have any bytes.
	for _, part := range []string{"\x1f\x8b" + text, text + "\r\n0\r\n\r\n", text + "\x00"} {
		if serverRefusal([]byte(part)) != nil {
			t.Errorf("%q is taken for a refusal", part)
		}
	}
	if serverRefusal([]byte(text)) == nil {
		t.Error("a refusal is not known")
	}
}

// What a request about the server itself asks for is the gateway's to tell.
func TestOptionsOfTheServer(t *testing.T) {
	address := behind(t, echo)
	if res := raw(t, address, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"); res.Header.Get(gatewayID) == "" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
}
