package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"go.yaml.in/yaml/v4"

	"holdfast/shared/freshness"
)

var update = flag.Bool("update", false, "write openapi.json anew from openapi.yaml")

// contract is openapi.yaml, and seen is which of its answers the tests had:
// "operation status" and "operation status problem".
var (
	contract *openapi3.T
	seen     = map[string]bool{}
)

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if contract, err = openapi3.NewLoader().LoadFromFile("openapi.yaml"); err == nil {
		err = contract.Validate(context.Background(), openapi3.EnableExamplesValidation())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapi.yaml:", err)
		os.Exit(1)
	}
	text := func(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
		b, err := io.ReadAll(body)
		return string(b), err
	}
	openapi3filter.RegisterBodyDecoder(typeNDJSON, text)
	code := m.Run()
	// Only the whole of the tests shows every answer.
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" {
		if missing := unseen(); len(missing) > 0 {
			fmt.Fprintf(os.Stderr, "openapi.yaml has answers that no test had:\n%s\n", strings.Join(missing, "\n"))
			code = 1
		}
	}
	os.Exit(code)
}

// unseen lists the described answers that did not occur.
func unseen() []string {
	var missing []string
	for _, item := range contract.Paths.Map() {
		for _, op := range item.Operations() {
			for status, response := range op.Responses.Map() {
				keys := []string{op.OperationID + " " + status}
				if media := response.Value.Content.Get(typeProblem); media != nil {
					for _, kind := range kindsOf(media.Schema) {
						keys = append(keys, op.OperationID+" "+status+" "+kind)
					}
				}
				for _, key := range keys {
					if !seen[key] {
						missing = append(missing, key)
					}
				}
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// kindsOf are the problem types that a schema admits.
func kindsOf(s *openapi3.SchemaRef) []string {
	if len(s.Value.OneOf) == 0 {
		return []string{fmt.Sprint(s.Value.Properties["type"].Value.Const)}
	}
	var kinds []string
	for _, one := range s.Value.OneOf {
		kinds = append(kinds, kindsOf(one)...)
	}
	return kinds
}

// answer is a response with its body decoded where it is JSON.
type answer struct {
	*Response
	json map[string]any
	kind string // of the problem, without /problems/
}

func (a answer) String() string { return fmt.Sprintf("%d %.400s", a.Status, a.Body) }

// send serves a request and checks the answer, and the request too if it was
// accepted, against the contract. Headers are pairs of name and value.
func send(t *testing.T, h Handler, method, target, body string, headers ...string) answer {
	t.Helper()
	path, query, _ := strings.Cut(target, "?")
	r := &Request{Method: method, Path: path, RawQuery: query, Header: http.Header{}, Body: []byte(body), ID: "req-1"}
	if body != "" {
		r.Header.Set("Content-Type", typeJSON)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return serve(t, h, r)
}

func serve(t *testing.T, h Handler, r *Request) answer {
	t.Helper()
	a := answer{Response: h.Serve(t.Context(), r)}
	if a.Header.Get(headerRequestID) == "" {
		t.Errorf("%s %s: no %s", r.Method, r.Path, headerRequestID)
	}
	switch media := a.Header.Get("Content-Type"); {
	case r.Method == http.MethodHead && len(a.Body) > 0:
		t.Errorf("HEAD %s has a body", r.Path)
	case r.Method == http.MethodHead:
	case media == typeJSON || media == typeProblem:
		if err := json.Unmarshal(a.Body, &a.json); err != nil {
			t.Fatalf("%s %s: %v in %s", r.Method, r.Path, err, a)
		}
		if media == typeProblem {
			a.kind = strings.TrimPrefix(a.json["type"].(string), "/problems/")
		}
	}
	checkTraffic(t, r, a)
	return a
}

// operationOf finds the operation in the contract.
func operationOf(r *Request) (*routers.Route, map[string]string) {
	path, params := r.Path, map[string]string{}
	if id, ok := strings.CutPrefix(path, "/docs/"); ok {
		path = "/docs/{id}"
		params["id"] = id
		if parent, slash := strings.CutSuffix(id, "/"); slash && r.Method == http.MethodPost {
			path = "/docs/{parent}/"
			params["parent"] = parent
		}
	}
	if name, ok := strings.CutPrefix(path, "/collections/"); ok {
		path = "/collections/{name}"
		params["name"] = name
	}
	if name, ok := strings.CutPrefix(path, "/jobs/"); ok {
		path = "/jobs/{name}"
		params["name"] = name
	}
	item := contract.Paths.Value(path)
	if item == nil || item.GetOperation(r.Method) == nil {
		return nil, nil
	}
	return &routers.Route{Spec: contract, Path: path, PathItem: item, Method: r.Method, Operation: item.GetOperation(r.Method)}, params
}

func checkTraffic(t *testing.T, r *Request, a answer) {
	t.Helper()
	route, params := operationOf(r)
	if route == nil || a.kind == "method-not-allowed" || a.kind == "no-such-route" {
		// Answers beside the described operations: the kinds have schemas all the same.
		if r.Method == http.MethodHead {
			return
		}
		if a.Status != http.StatusNotFound && a.Status != http.StatusMethodNotAllowed && a.Status != http.StatusBadRequest {
			t.Errorf("%s %s is not in openapi.yaml and answers %s", r.Method, r.Path, a)
			return
		}
		schema := contract.Components.Schemas[a.kind]
		if schema == nil {
			t.Errorf("openapi.yaml has no schema %q", a.kind)
			return
		}
		if err := schema.Value.VisitJSON(anyJSON(t, a.Body), openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s %s: %v", r.Method, r.Path, err)
		}
		return
	}
	target := "http://holdfast" + r.Path
	if r.RawQuery != "" {
		target = "http://holdfast/?" + r.RawQuery
	}
	req, err := http.NewRequestWithContext(t.Context(), r.Method, "http://holdfast/", bytes.NewReader(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	req.URL.RawQuery = r.RawQuery
	req.Header = r.Header.Clone()
	if len(r.Body) > 0 && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", typeJSON)
	}
	in := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: &openapi3filter.Options{SkipSettingDefaults: true}}
	if a.Status < 400 {
		if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil {
			t.Errorf("%s %s was accepted, but openapi.yaml says: %v", r.Method, target, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: a.Status, Header: a.Header,
		Body: io.NopCloser(bytes.NewReader(a.Body)),
		// Bodies of megabytes are of the same making as the small ones.
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: len(a.Body) > 1_000_000},
	}
	if err := openapi3filter.ValidateResponse(t.Context(), out); err != nil {
		t.Errorf("%s %s: answer %s: %v", r.Method, target, a, err)
	}
	key := fmt.Sprintf("%s %d", route.Operation.OperationID, a.Status)
	seen[key] = true
	if a.kind != "" {
		seen[key+" /problems/"+a.kind] = true
	}
}

func anyJSON(t *testing.T, b []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return v
}

// expect checks status and kind of a problem and returns it.
func (a answer) expect(t *testing.T, status int, kind string) answer {
	t.Helper()
	if a.Status != status || a.kind != kind {
		t.Errorf("want %d %s, got %s", status, kind, a)
	}
	return a
}

// The description is served as JSON that nobody has to convert in a function.
func TestOpenAPIAsJSON(t *testing.T) {
	source, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var fromYAML any
	if err := yaml.Unmarshal(source, &fromYAML); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(fromYAML); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("openapi.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		openapiJSON = want.Bytes()
	}
	if !reflect.DeepEqual(anyJSON(t, openapiJSON), anyJSON(t, want.Bytes())) {
		t.Error("openapi.json is not openapi.yaml: run go test ./shared/httpapi -run OpenAPIAsJSON -update")
	}
	h := Documents(DocumentsOptions{Store: newFakeStore(), Token: freshness.Tokens})
	a := send(t, h, "GET", "/openapi.json", "")
	if a.Status != 200 || a.json["openapi"] != "3.1.0" {
		t.Errorf("%s", a)
	}
	head := send(t, h, "HEAD", "/openapi.json", "")
	if head.Status != 200 || head.Header.Get("Content-Length") != fmt.Sprint(len(a.Body)) {
		t.Errorf("%s %v", head, head.Header)
	}
	for _, method := range []string{"GET", "HEAD"} {
		send(t, h, method, "/openapi.json?x=1", "")
		send(t, h, method, "/openapi.json", "", "Idempotency-Key", "k")
	}
}
