package lambdahost

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"holdfast/shared/httpapi"
	"holdfast/shared/pipeline"
)

// echo keeps the request and answers with a fixed response.
type echo struct {
	got *httpapi.Request
	res *httpapi.Response
}

func (e *echo) Serve(_ context.Context, r *httpapi.Request) *httpapi.Response {
	e.got = r
	if e.res != nil {
		return e.res
	}
	return &httpapi.Response{Status: 204, Header: http.Header{}}
}

func v2(method, path, query string) events.APIGatewayV2HTTPRequest {
	var e events.APIGatewayV2HTTPRequest
	e.Version = "2.0"
	e.RawPath, e.RawQueryString = path, query
	e.RequestContext.HTTP.Method = method
	e.RequestContext.Stage = "$default"
	e.RequestContext.RequestID = "JKJaXmPLvHcESHA="
	return e
}

func TestRequestOfAnHTTPAPI(t *testing.T) {
	e := v2("PUT", "/docs/a b/%41+ü", "id=a%2Fb&x=1+2")
	e.Headers = map[string]string{"content-type": "application/json", "if-match": `"1","2"`, "holdfast-x": "y"}
	e.Body = `{"a":"ü"}`
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: "arn:aws:iam::1:user/ada"},
	}
	r, err := RequestV2(e)
	if err != nil {
		t.Fatal(err)
	}
	if r.Method != "PUT" || r.Path != "/docs/a b/%41+ü" || r.RawQuery != "id=a%2Fb&x=1+2" || string(r.Body) != `{"a":"ü"}` ||
		r.ID != "JKJaXmPLvHcESHA=" || r.Principal != "iam:arn:aws:iam::1:user/ada" || r.Base != "" ||
		r.Header.Get("Content-Type") != "application/json" || r.Header.Get("If-Match") != `"1","2"` {
		t.Errorf("%+v", r)
	}

	e.Body, e.IsBase64Encoded = "eyJhIjoxfQ==", true
	if r, err = RequestV2(e); err != nil || string(r.Body) != `{"a":1}` {
		t.Errorf("%s, %v", r.Body, err)
	}
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "https://issuer", "sub": "ada"}},
	}
	if r, _ = RequestV2(e); r.Principal != "jwt:https://issuer#ada" {
		t.Errorf("%q", r.Principal)
	}
	e.RequestContext.Authorizer = nil
	if r, _ = RequestV2(e); r.Principal != "" {
		t.Errorf("%q", r.Principal)
	}
}

func TestStageOfAnHTTPAPI(t *testing.T) {
	for _, c := range []struct{ stage, raw, path, base string }{
		{"$default", "/prod/docs/a/b", "/prod/docs/a/b", ""},
		{"", "/docs/a/b", "/docs/a/b", ""},
		{"prod", "/prod/docs/a/b", "/docs/a/b", "/prod"},
		{"prod", "/prod", "", "/prod"},
		{"prod", "/production/docs/a/b", "/production/docs/a/b", ""},
		{"prod", "/docs/prod/b", "/docs/prod/b", ""},
	} {
		e := v2("GET", c.raw, "")
		e.RequestContext.Stage = c.stage
		r, err := RequestV2(e)
		if err != nil || r.Path != c.path || r.Base != c.base {
			t.Errorf("%+v: path %q, base %q, %v", c, r.Path, r.Base, err)
		}
	}
}

func TestResponses(t *testing.T) {
	res := &httpapi.Response{Status: 412, Header: http.Header{"Etag": {`"1"`}, "Allow": {"GET", "PUT"}}, Body: []byte(`{"ü":1}`)}
	h := &echo{res: res}
	v2res, err := HTTP(h)(t.Context(), v2("GET", "/x", ""))
	if err != nil || v2res.StatusCode != 412 || v2res.Body != `{"ü":1}` || v2res.IsBase64Encoded || v2res.Headers["Etag"] != `"1"` || v2res.Headers["Allow"] != "GET, PUT" {
		t.Errorf("%+v, %v", v2res, err)
	}
	v1res, err := REST(h)(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/x"})
	if err != nil || v1res.StatusCode != 412 || v1res.Body != `{"ü":1}` || v1res.IsBase64Encoded || v1res.Headers["Allow"] != "GET, PUT" {
		t.Errorf("%+v, %v", v1res, err)
	}
}

func TestABodyThatIsNoBase64IsAnAnswer(t *testing.T) {
	e := v2("PUT", "/docs/a/b", "")
	e.Body, e.IsBase64Encoded = "!", true
	h := &echo{}
	res, err := HTTP(h)(t.Context(), e)
	if err != nil || res.StatusCode != 400 || res.Headers["Holdfast-Request-Id"] != "JKJaXmPLvHcESHA=" || h.got != nil {
		t.Errorf("%+v, %v", res, err)
	}
	v1, err := REST(h)(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "PUT", Path: "/docs/a/b", Body: "!", IsBase64Encoded: true})
	if err != nil || v1.StatusCode != 400 || h.got != nil {
		t.Errorf("%+v, %v", v1, err)
	}
}

func TestRequestOfARESTAPI(t *testing.T) {
	e := events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/docs/a%20b/%2541+%C3%BC"}
	e.MultiValueQueryStringParameters = map[string][]string{"id": {"a+b/c&d"}, "x": {"1", "2"}}
	e.MultiValueHeaders = map[string][]string{"if-match": {`"1"`, `"2"`}, "Content-Type": {"application/json"}}
	e.RequestContext.Path = "/v1" + e.Path
	e.RequestContext.RequestID = "r-1"
	e.RequestContext.Identity.UserArn = "arn:aws:iam::1:user/ada"
	r, err := RequestV1(e)
	if err != nil {
		t.Fatal(err)
	}
	if r.Path != "/docs/a b/%41+ü" || r.RawQuery != "id=a%2Bb%2Fc%26d&x=1&x=2" || r.Base != "/v1" || r.ID != "r-1" || r.Principal != "iam:arn:aws:iam::1:user/ada" ||
		strings.Join(r.Header.Values("If-Match"), ",") != `"1","2"` {
		t.Errorf("%+v", r)
	}
	e = events.APIGatewayProxyRequest{Path: "/docs/a", Headers: map[string]string{"if-match": `"1"`}, QueryStringParameters: map[string]string{"x": "a b"}}
	e.RequestContext.Authorizer = map[string]any{"claims": map[string]any{"sub": "ada", "iss": "https://issuer"}}
	if r, err = RequestV1(e); err != nil || r.RawQuery != "x=a+b" || r.Header.Get("If-Match") != `"1"` || r.Principal != "jwt:https://issuer#ada" || r.Base != "" {
		t.Errorf("%+v, %v", r, err)
	}
	for raw, want := range map[string]string{
		"/docs/a%2Fb": "/docs/a/b", "/docs/a+b": "/docs/a+b", "/docs/%E2%82%AC": "/docs/€",
		// What an encoded path cannot be was decoded before.
		"/docs/a b": "/docs/a b", "/docs/ü%41": "/docs/ü%41", "/docs/50%": "/docs/50%", `/docs/"`: `/docs/"`,
	} {
		if r, err := RequestV1(events.APIGatewayProxyRequest{Path: raw}); err != nil || r.Path != want {
			t.Errorf("%s: %q, %v", raw, r.Path, err)
		}
	}
}

func TestEventsOfNeitherKind(t *testing.T) {
	for _, broken := range []string{`[]`, `{"version":2}`, `{"version":"2.0","rawPath":1}`, `{"httpMethod":1}`} {
		if _, err := Gateway(&echo{})(t.Context(), json.RawMessage(broken)); err == nil {
			t.Errorf("%s was served", broken)
		}
	}
}

func TestWhatIsNotConfiguredIsNamed(t *testing.T) {
	if _, err := Build(Config{}, Surroundings{}); err == nil || !strings.Contains(err.Error(), "documents table") || !strings.Contains(err.Error(), "state table") {
		t.Errorf("%v", err)
	}
	app, err := Build(Config{DocumentsTable: "d", StateTable: "s"}, Surroundings{})
	if err != nil {
		t.Fatal(err)
	}
	if app.Documents() == nil {
		t.Error("documents need no index and no queue")
	}
	if _, err := app.Query(nil); err == nil || !strings.Contains(err.Error(), "search endpoint") || !strings.Contains(err.Error(), "queue") {
		t.Errorf("%v", err)
	}
	if _, err := app.Relay(); err == nil || !strings.Contains(err.Error(), "queue") {
		t.Errorf("%v", err)
	}
	if _, err := app.Indexer(); err == nil || !strings.Contains(err.Error(), "search endpoint") || !strings.Contains(err.Error(), "queue") {
		t.Errorf("%v", err)
	}
	app, err = Build(Config{DocumentsTable: "d", StateTable: "s", QueueURL: "http://localhost/q", SearchEndpoint: "http://localhost", IndexPrefix: "x"}, Surroundings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.Relay(); err == nil || !strings.Contains(err.Error(), "without queues") {
		t.Errorf("%v", err)
	}
	app, err = Build(app.config, Surroundings{Queues: func(aws.Config, string) Queues { return silentQueues{} }})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := app.Query(nil); err != nil || h == nil {
		t.Errorf("%v", err)
	}
	if r, err := app.Relay(); err != nil || r == nil {
		t.Errorf("%v", err)
	}
	if x, err := app.Indexer(); err != nil || x == nil {
		t.Errorf("%v", err)
	}
}

// silentQueues are queues that nobody asks anything.
type silentQueues struct{}

func (silentQueues) Signals(string) pipeline.Queue { return silentQueue{} }
func (silentQueues) Letters(string, string, pipeline.Sender) httpapi.DeadLetters {
	return nil
}

type silentQueue struct{ pipeline.Queue }
