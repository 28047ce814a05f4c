package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/freshness"
)

func newDocuments() (Handler, *fakeStore) {
	s := newFakeStore()
	return Documents(DocumentsOptions{Store: s, Token: freshness.Tokens}), s
}

// addressing is the two ways to name a document.
var addressing = map[string]func(id string) string{
	"by path":  func(id string) string { return "/docs/" + id },
	"by query": func(id string) string { return "/docs?id=" + strings.ReplaceAll(id, "+", "%2B") },
}

func TestTheLifeOfADocument(t *testing.T) {
	for name, at := range addressing {
		t.Run(name, func(t *testing.T) {
			h, _ := newDocuments()
			url := at("users/1")
			send(t, h, "GET", url, "").expect(t, 404, "not-found")

			created := send(t, h, "PUT", url, `{"name":"Ada","n":1.0}`)
			etag := created.Header.Get("ETag")
			if created.Status != 201 || string(created.Body) != fmt.Sprintf(`{"id":"users/1","version":%d}`, firstVersion) || etag != fmt.Sprintf(`"%d"`, firstVersion) {
				t.Fatalf("%s %v", created, created.Header)
			}
			if signals, err := freshness.ParseToken(created.Header.Get(headerToken)); err != nil || len(signals) != 1 || signals[0] != (doc.Signal{ID: "users/1", Version: firstVersion}) {
				t.Errorf("token of %v, %v", signals, err)
			}

			got := send(t, h, "GET", url, "")
			if got.Status != 200 || string(got.Body) != `{"n":1,"name":"Ada"}` || got.Header.Get("ETag") != etag ||
				got.Header.Get("Last-Modified") != firstVersion.Time().Format(http.TimeFormat) || got.Header.Get("Cache-Control") != "no-cache" {
				t.Errorf("%s %v", got, got.Header)
			}
			head := send(t, h, "HEAD", url, "")
			if head.Status != 200 || head.Header.Get("ETag") != etag || head.Header.Get("Content-Length") != fmt.Sprint(len(got.Body)) || head.Header.Get("Content-Type") != typeJSON {
				t.Errorf("%s %v", head, head.Header)
			}
			separator := "?"
			if strings.Contains(url, "?") {
				separator = "&"
			}
			fields := send(t, h, "GET", url+separator+"fields=name,none", "")
			if string(fields.Body) != `{"name":"Ada"}` || fields.Header.Get("ETag") != etag {
				t.Errorf("%s %v", fields, fields.Header)
			}

			replaced := send(t, h, "PUT", url, `{}`, "If-Match", etag)
			if replaced.Status != 200 || replaced.Header.Get("ETag") == etag {
				t.Errorf("%s", replaced)
			}
			gone := send(t, h, "DELETE", url, "", "If-Match", replaced.Header.Get("ETag"))
			if gone.Status != 204 || gone.Header.Get(headerToken) == "" || len(gone.Body) != 0 || gone.Header.Get("Content-Type") != "" {
				t.Errorf("%s %v", gone, gone.Header)
			}
			again := send(t, h, "DELETE", url, "")
			if again.Status != 204 || len(again.Header.Values(headerToken)) != 0 {
				t.Errorf("deleting nothing writes nothing: %s %v", again, again.Header)
			}
		})
	}
}

func TestServerAssignedIDs(t *testing.T) {
	h, _ := newDocuments()
	a := send(t, h, "POST", "/docs/users/", `{"a":1}`)
	if a.Status != 201 || a.Header.Get("Location") != "/docs/users/1" || a.json["id"] != "users/1" || a.Header.Get("ETag") == "" || a.Header.Get(headerToken) == "" {
		t.Errorf("%s %v", a, a.Header)
	}
	a = serve(t, h, &Request{Method: "POST", Path: "/docs/a b/%+é?/x/", Header: http.Header{}, Body: []byte(`{}`), ID: "r", Base: "/prod"})
	if a.Status != 201 || a.Header.Get("Location") != "/prod/docs/a%20b/%25+%C3%A9%3F/x/2" {
		t.Errorf("%s %v", a, a.Header)
	}
	a = send(t, h, "POST", "/docs?id=users/1/account/", `{}`)
	if a.Status != 201 || a.json["id"] != "users/1/account/3" {
		t.Errorf("%s", a)
	}
}

func TestConditions(t *testing.T) {
	const v = `"1796029203123456"`
	type expected struct {
		status   int
		kind     string
		expected any
	}
	ok, conflict := expected{status: 200}, func(e any) expected { return expected{412, "version-conflict", e} }
	malformed := expected{400, "invalid-request", nil}
	for _, c := range []struct {
		header, value  string
		there, missing expected // what PUT answers over a document at version v, and over none
	}{
		{"If-Match", v, ok, conflict(1796029203123456.0)},
		{"If-Match", `"5"`, conflict(5.0), conflict(5.0)},
		{"If-Match", `"5", "6"`, conflict([]any{5.0, 6.0}), conflict([]any{5.0, 6.0})},
		{"If-Match", `"5",, ` + v + ` ,`, ok, conflict([]any{5.0, 1796029203123456.0})},
		{"If-Match", `*`, ok, conflict("*")},
		{"If-Match", ` * `, ok, conflict("*")},
		{"If-Match", `W/` + v, conflict(`W/` + v), conflict(`W/` + v)},
		{"If-Match", `"01796029203123456"`, conflict(`"01796029203123456"`), conflict(`"01796029203123456"`)},
		{"If-Match", `"abc,d"`, conflict(`"abc,d"`), conflict(`"abc,d"`)},
		{"If-Match", `"abc", ` + v, ok, conflict(`"abc", ` + v)},
		{"If-Match", `""`, conflict(`""`), conflict(`""`)},
		{"If-Match", `1796029203123456`, malformed, malformed},
		{"If-Match", `"1796029203123456`, malformed, malformed},
		{"If-Match", v + v, malformed, malformed},
		{"If-Match", v + `, *`, malformed, malformed},
		{"If-Match", `*, ` + v, malformed, malformed},
		{"If-Match", `w/` + v, malformed, malformed},
		{"If-Match", `"a b"`, malformed, malformed},
		{"If-Match", `,`, malformed, malformed},
		{"If-Match", ` `, malformed, malformed},
		{"If-None-Match", `*`, conflict(nil), expected{status: 201}},
		{"If-None-Match", v, malformed, malformed},
		{"If-None-Match", `x`, malformed, malformed},
		{"If-Unmodified-Since", `Mon, 30 Nov 2026 08:00:00 GMT`, malformed, malformed},
		{"Content-Range", `bytes 0-1/2`, malformed, malformed},
	} {
		for _, there := range []bool{true, false} {
			h, s := newDocuments()
			want := c.missing
			if there {
				want = c.there
				s.docs["users/1"] = fakeDocument("users/1", map[string]any{})
			}
			a := send(t, h, "PUT", "/docs/users/1", `{}`, c.header, c.value)
			if a.Status != want.status || a.kind != want.kind {
				t.Errorf("%s: %s, there %v: got %s, want %v", c.header, c.value, there, a, want)
				continue
			}
			switch want.kind {
			case "version-conflict":
				if fmt.Sprint(a.json["expected"]) != fmt.Sprint(want.expected) {
					t.Errorf("%s: %s: expected is %v, want %v", c.header, c.value, a.json["expected"], want.expected)
				}
				if actual := a.json["actual"]; there && actual != 1796029203123456.0 || !there && actual != nil {
					t.Errorf("%s: %s, there %v: actual is %v", c.header, c.value, there, actual)
				}
			case "invalid-request":
				if a.json["parameter"] != c.header {
					t.Errorf("%s: %s: the header is not named: %s", c.header, c.value, a)
				}
			}
		}
	}
}

func TestConditionsOfOtherMethods(t *testing.T) {
	h, s := newDocuments()
	s.docs["users/1"] = fakeDocument("users/1", map[string]any{"n": number(1)})
	const v = `"1796029203123456"`
	send(t, h, "PUT", "/docs/users/1", `{}`, "If-Match", v, "If-None-Match", "*").expect(t, 400, "invalid-request")
	send(t, h, "DELETE", "/docs/users/1", "", "If-None-Match", "*").expect(t, 400, "invalid-request")
	for name, at := range addressing {
		send(t, h, "DELETE", at("users/1"), "", "If-Match", `"7"`).expect(t, 412, "version-conflict")
		send(t, h, "DELETE", at("users/2"), "", "If-Match", "*").expect(t, 412, "version-conflict")
		send(t, h, "PUT", at("users/1"), "{}", "If-Match", `"7"`).expect(t, 412, "version-conflict")
		for _, header := range []string{"If-Match", "If-None-Match"} {
			parent := "/docs/users/"
			if name == "by query" {
				parent = "/docs?id=users/"
			}
			a := send(t, h, "POST", parent, `{}`, header, "*").expect(t, 400, "invalid-request")
			if a.json["parameter"] != header {
				t.Errorf("%s", a)
			}
		}
		for _, method := range []string{"GET", "HEAD"} {
			for value, status := range map[string]int{v: 304, `"7"`: 200, "*": 304, `"7", ` + v: 304, "W/" + v: 200, "x": 400} {
				a := send(t, h, method, at("users/1"), "", "If-None-Match", value)
				if a.Status != status {
					t.Errorf("%s with If-None-Match: %s: %s", method, value, a)
				}
				if status == 304 && (a.Header.Get("ETag") != v || a.Header.Get("Last-Modified") == "" || len(a.Body) > 0 || a.Header.Get("Content-Length") != "") {
					t.Errorf("304: %s %v", a, a.Header)
				}
			}
			for value, status := range map[string]int{v: 200, `"7"`: 412, "*": 200, "W/" + v: 412, "x": 400} {
				if a := send(t, h, method, at("users/1"), "", "If-Match", value); a.Status != status {
					t.Errorf("%s with If-Match: %s: %s", method, value, a)
				}
			}
			for value, want := range map[string]string{`"5"`: "5", `"5", "6"`: "[5 6]", `W/"5"`: `W/"5"`, `"x", "5"`: `"x", "5"`} {
				if a := send(t, h, "GET", at("users/1"), "", "If-Match", value); fmt.Sprint(a.json["expected"]) != want {
					t.Errorf("%s is told as %v: %s", value, a.json["expected"], a)
				}
			}
			if a := send(t, h, method, at("users/2"), "", "If-Match", "*"); a.Status != 404 {
				t.Errorf("there is nothing a condition could be about: %s", a)
			}
		}
	}
}

func TestRefusalsOfDocuments(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33)
	for name, at := range addressing {
		h, s := newDocuments()
		for body, kind := range map[string]string{
			``: "invalid-json", ` `: "invalid-json", `{`: "invalid-json", `{"a":1,"a":2}`: "invalid-json", `[]`: "not-an-object", `null`: "not-an-object",
			`{"n":1e126}`: "number-out-of-range", deep: "document-too-deep",
		} {
			send(t, h, "PUT", at("users/1"), body).expect(t, 400, kind)
			send(t, h, "POST", at("users/"), body).expect(t, 400, kind)
		}
		s.err = doc.Errorf(doc.DocumentTooLarge, "too large").With("limit", 409600).With("actual", 409601)
		send(t, h, "PUT", at("users/1"), `{}`).expect(t, 413, "document-too-large")
		send(t, h, "POST", at("users/"), `{}`).expect(t, 413, "document-too-large")
		s.err = nil
		big := strings.Repeat(" ", MaxBody+1)
		for _, method := range []string{"PUT", "POST"} {
			a := send(t, h, method, at("users/"+map[string]string{"PUT": "1"}[method]), big).expect(t, 413, "request-too-large")
			if a.json["limit"] != float64(MaxBody) || a.json["actual"] != float64(MaxBody+1) {
				t.Errorf("%s", a)
			}
		}
		for _, id := range []string{"users", "users/", "users//1", "/users/1", "users/./1", "users/..", "$sys/1", "users/\x01", "users/\u0085", "users/" + strings.Repeat("x", 507), "users/\xff", strings.Repeat("a/", 16) + "a", ""} {
			if name == "by query" {
				id = strings.NewReplacer("\x01", "%01", "\u0085", "%C2%85", "\xff", "%FF").Replace(id)
			}
			for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
				body := ""
				if method == "PUT" {
					body = "{}"
				}
				a := send(t, h, method, at(id), body)
				if method == "HEAD" {
					if a.Status != 400 {
						t.Errorf("HEAD %q: %s", id, a)
					}
					continue
				}
				a.expect(t, 400, "invalid-id")
			}
		}
		for _, parent := range []string{"", "users/1/", "/", "a//b/", "$sys/"} {
			send(t, h, "POST", at(parent), `{}`).expect(t, 400, "invalid-id")
		}
		if len(s.docs) != 0 {
			t.Errorf("refused requests wrote %v", s.docs)
		}
	}
}

func TestMediaTypes(t *testing.T) {
	h, _ := newDocuments()
	for value, accepted := range map[string]bool{
		"application/json": true, "": true, "Application/JSON": true, "application/json; charset=utf-8": true, `application/json;charset="UTF-8"; x=y`: true,
		"application/json; charset=latin1": false, "text/json": false, "application/merge-patch+json": false, "application/vnd.x+json": false,
		"application/json, application/json": false, "application/x-www-form-urlencoded": false, "nonsense": false,
	} {
		for _, target := range []string{"/docs/users/1", "/docs?id=users/1"} {
			a := send(t, h, "PUT", target, `{}`, "Content-Type", value)
			if accepted != (a.Status < 300) {
				t.Errorf("%q: %s", value, a)
			}
			if !accepted {
				a.expect(t, 415, "unsupported-media-type")
				if a.Header.Get("Accept") != typeJSON {
					t.Errorf("the right type is not named: %v", a.Header)
				}
			}
		}
	}
	for _, target := range []string{"/docs/users/", "/docs?id=users/", "/load"} {
		send(t, h, "POST", target, `{}`, "Content-Type", "text/plain").expect(t, 415, "unsupported-media-type")
	}
	send(t, h, "PUT", "/docs/users/1", `{}`, "Content-Encoding", "gzip").expect(t, 415, "unsupported-media-type")
	send(t, h, "POST", "/bulk", `{}`).expect(t, 415, "unsupported-media-type")
}

func TestParametersAreTakenExactly(t *testing.T) {
	h, s := newDocuments()
	s.docs["a b+c/1"] = fakeDocument("a b+c/1", map[string]any{})
	if a := send(t, h, "GET", "/docs?id=a+b%2Bc/1", ""); a.Status != 200 {
		t.Errorf("in queries + is a space and %%2B a plus: %s", a)
	}
	if a := send(t, h, "GET", "/docs/a b+c/1", ""); a.Status != 200 {
		t.Errorf("in paths + is a plus: %s", a)
	}
	for _, c := range []struct{ method, target, parameter string }{
		{"GET", "/docs/a/b?x=1", "x"},
		{"GET", "/docs/a/b?fields=a&fields=b", "fields"},
		{"GET", "/docs/a/b?fields=", "fields"},
		{"GET", "/docs/a/b?fields=a,,b", "fields"},
		{"GET", "/docs/a/b?fields=%zz", "fields"},
		{"GET", "/docs/a/b?fields=%FF", "fields"},
		{"GET", "/docs/a/b?%zz=1", "%zz"},
		{"GET", "/docs/a/b?=1", ""},
		{"GET", "/docs/a/b?id=a/b", "id"},
		{"PUT", "/docs/a/b?id=a/b", "id"},
		{"DELETE", "/docs/a/b?id=a/b", "id"},
		{"POST", "/docs/a/?id=a/", "id"},
		{"GET", "/docs?id=a/b&id=a/c", "id"},
		{"GET", "/docs?id=a/b%", "id"},
		{"GET", "/docs?id=a/b&startsWith=a/b", "startsWith"},
		{"PUT", "/docs/a/b?fields=a", "fields"},
		{"PUT", "/docs?id=a/b&upsert=true", "upsert"},
		{"DELETE", "/docs/a/b?force=1", "force"},
		{"DELETE", "/docs?id=a/b&force=1", "force"},
		{"POST", "/docs/a/?x=1", "x"},
		{"POST", "/docs?id=a/&x=1", "x"},
		{"PUT", "/docs", "id"}, {"POST", "/docs", "id"}, {"DELETE", "/docs", "id"},
		{"GET", "/docs", "startsWith"},
		{"GET", "/docs?limit=3", "startsWith"},
		{"POST", "/load?x=1", "x"}, {"POST", "/bulk?x=1", "x"}, {"GET", "/changes?x=1", "x"}, {"GET", "/ids?x=1", "x"},
	} {
		body := map[string]string{"PUT": "{}", "POST": "{}"}[c.method]
		media := typeJSON
		if strings.HasPrefix(c.target, "/bulk") {
			media = typeNDJSON
		}
		a := send(t, h, c.method, c.target, body, "Content-Type", media).expect(t, 400, "invalid-request")
		if got, _ := a.json["parameter"].(string); got != c.parameter {
			t.Errorf("%s %s: parameter %q, want %q", c.method, c.target, got, c.parameter)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		send(t, h, method, "/docs/a/b", "{}").expect(t, 400, "invalid-request")
	}
}

func TestRoutesAndMethods(t *testing.T) {
	h, _ := newDocuments()
	q, _ := newQuery()
	for _, path := range []string{"/", "", "/nowhere", "/doc", "/docsx", "/docs.json", "/load/", "/batch", "/find-and-modify", "/collections", "/status", "/query"} {
		for _, method := range []string{"GET", "POST", "PATCH"} {
			send(t, h, method, path, "").expect(t, 404, "no-such-route")
		}
	}
	send(t, q, "GET", "/docs/users/1", "").expect(t, 404, "no-such-route")
	for _, c := range []struct {
		h                     Handler
		method, target, allow string
	}{
		{h, "PATCH", "/docs/users/1", "DELETE, GET, HEAD, PUT"},
		{h, "PATCH", "/docs?id=users/1", "DELETE, GET, HEAD, PUT"},
		{h, "POST", "/docs/users/1", "DELETE, GET, HEAD, PUT"},
		{h, "POST", "/docs?id=users/1", "DELETE, GET, HEAD, PUT"},
		{h, "OPTIONS", "/docs/users/1", "DELETE, GET, HEAD, PUT"},
		{h, "PATCH", "/docs/users/", "DELETE, GET, HEAD, POST, PUT"},
		{h, "PATCH", "/docs", "DELETE, GET, HEAD, POST, PUT"},
		{h, "GET", "/load", "POST"}, {h, "PUT", "/bulk", "POST"}, {h, "POST", "/changes", "GET, HEAD"}, {h, "POST", "/ids", "GET, HEAD"}, {h, "POST", "/openapi.json", "GET, HEAD"},
		{q, "GET", "/query", "POST"}, {q, "get", "/query", "POST"},
	} {
		a := send(t, c.h, c.method, c.target, "{}").expect(t, 405, "method-not-allowed")
		if a.Header.Get("Allow") != c.allow {
			t.Errorf("%s %s: Allow: %s, want %s", c.method, c.target, a.Header.Get("Allow"), c.allow)
		}
	}
}

func TestIdempotencyKeyIsNeverIgnored(t *testing.T) {
	h, s := newDocuments()
	q, _ := newQuery()
	for _, c := range []struct {
		h              Handler
		method, target string
	}{
		{h, "PUT", "/docs/users/1"}, {h, "PUT", "/docs?id=users/1"}, {h, "DELETE", "/docs/users/1"}, {h, "DELETE", "/docs?id=users/1"},
		{h, "POST", "/docs/users/"}, {h, "POST", "/docs?id=users/"}, {h, "GET", "/docs/users/1"}, {h, "GET", "/docs?startsWith=users/1"},
		{h, "POST", "/load"}, {h, "POST", "/bulk"}, {h, "GET", "/changes"}, {h, "GET", "/ids"}, {q, "POST", "/query"},
	} {
		body := "{}"
		if c.method == "GET" || c.method == "DELETE" {
			body = ""
		}
		send(t, c.h, c.method, c.target, body, "Idempotency-Key", "k").expect(t, 400, "idempotency-unsupported")
	}
	if len(s.docs) != 0 {
		t.Errorf("wrote %v", s.docs)
	}
}

// Whatever the store fails with, the client is told what it is, and never more.
func TestFailuresOfTheStore(t *testing.T) {
	h, s := newDocuments()
	type request struct{ method, target, body string }
	reads := []request{
		{"GET", "/docs/users/1", ""}, {"HEAD", "/docs/users/1", ""}, {"GET", "/docs?id=users/1", ""}, {"HEAD", "/docs?id=users/1", ""},
		{"GET", "/docs?startsWith=users/1", ""}, {"GET", "/changes", ""}, {"HEAD", "/changes", ""}, {"POST", "/load", `{"ids":["users/1"]}`},
	}
	writes := []request{
		{"PUT", "/docs/users/1", "{}"}, {"PUT", "/docs?id=users/1", "{}"}, {"DELETE", "/docs/users/1", ""}, {"DELETE", "/docs?id=users/1", ""},
		{"POST", "/docs/users/", "{}"}, {"POST", "/docs?id=users/", "{}"},
	}
	for _, c := range []struct {
		err        error
		status     int
		kind       string
		retryAfter string
		on         []request
	}{
		{doc.Errorf(doc.Throttled, "too fast"), 429, "throttled", "1", slices.Concat(reads, writes)},
		{doc.Errorf(doc.Throttled, "too fast").With("retryAfter", 7), 429, "throttled", "7", reads},
		{doc.Errorf(doc.Unavailable, "no answer"), 503, "unavailable", "1", slices.Concat(reads, writes)},
		{doc.Errorf(doc.OutcomeUnknown, "who knows"), 503, "outcome-unknown", "1", writes},
		{errors.New("secret: table 123"), 500, "internal", "", slices.Concat(reads, writes)},
		{fmt.Errorf("reading: %w", context.DeadlineExceeded), 503, "unavailable", "1", reads},
		{fmt.Errorf("writing: %w", context.DeadlineExceeded), 503, "outcome-unknown", "1", writes},
		{doc.Errorf("a-kind-nobody-knows", "secret"), 500, "internal", "", reads},
	} {
		s.err = c.err
		for _, r := range c.on {
			a := send(t, h, r.method, r.target, r.body)
			if a.Status != c.status || a.kind != c.kind && r.method != "HEAD" || a.Header.Get("Retry-After") != c.retryAfter {
				t.Errorf("%v on %s %s: %s %v", c.err, r.method, r.target, a, a.Header)
			}
			if strings.Contains(string(a.Body), "secret") {
				t.Errorf("the cause is told: %s", a)
			}
			if c.kind == "internal" && r.method != "HEAD" && a.json["requestId"] != "req-1" {
				t.Errorf("the request id is not told: %s", a)
			}
		}
	}
}

func TestAPanicIsAnAnswer(t *testing.T) {
	h := Documents(DocumentsOptions{Store: newFakeStore(), Token: func([]doc.Written) string { panic("secret") }})
	a := send(t, h, "PUT", "/docs/users/1", `{}`).expect(t, 500, "internal")
	if strings.Contains(string(a.Body), "secret") {
		t.Errorf("%s", a)
	}
}

func TestEveryAnswerHasARequestID(t *testing.T) {
	h, _ := newDocuments()
	a := h.Serve(t.Context(), &Request{Method: "GET", Path: "/nowhere", Header: http.Header{}})
	b := h.Serve(t.Context(), &Request{Method: "GET", Path: "/nowhere", Header: http.Header{}})
	if a.Header.Get(headerRequestID) == "" || a.Header.Get(headerRequestID) == b.Header.Get(headerRequestID) {
		t.Errorf("%v, %v", a.Header, b.Header)
	}
	refused := Refuse(&Request{Method: "HEAD", ID: "x"}, doc.Errorf(doc.InvalidRequest, "no"))
	if refused.Status != 400 || refused.Header.Get(headerRequestID) != "x" || len(refused.Body) != 0 {
		t.Errorf("%v", refused)
	}
}

// An operation that runs out of time is answered before the host gives up.
func TestTimeIsKeptForTheAnswer(t *testing.T) {
	s := newFakeStore()
	var deadline time.Time
	h := Documents(DocumentsOptions{Store: deadlineStore{s, &deadline}, Token: freshness.Tokens})
	host := time.Now().Add(time.Minute)
	ctx, cancel := context.WithDeadline(t.Context(), host)
	defer cancel()
	h.Serve(ctx, &Request{Method: "GET", Path: "/docs/a/b", Header: http.Header{}})
	if left := host.Sub(deadline); left < 100*time.Millisecond {
		t.Errorf("%s are left", left)
	}
}

type deadlineStore struct {
	*fakeStore
	deadline *time.Time
}

func (s deadlineStore) Load(ctx context.Context, id doc.ID) (doc.Document, error) {
	*s.deadline, _ = ctx.Deadline()
	return s.fakeStore.Load(ctx, id)
}

// A condition is refused where it means nothing: who sends one relies on it.
// What a cache adds to a read passes.
func TestConditionsWhereTheyMeanNothing(t *testing.T) {
	documents, s := newDocuments()
	queries, _ := newQuery()
	defined, _ := newAdmin()
	for _, c := range []struct {
		handler              Handler
		method, target, body string
		mediaType            string
	}{
		{documents, "POST", "/bulk", `{"id":"a/1","data":{}}`, typeNDJSON},
		{documents, "POST", "/load", `{"ids":["a/1"]}`, typeJSON},
		{documents, "POST", "/docs/b/", `{}`, typeJSON},
		{documents, "GET", "/docs?startsWith=a/1", "", ""},
		{documents, "GET", "/changes", "", ""},
		{documents, "HEAD", "/changes", "", ""},
		{documents, "GET", "/ids", "", ""},
		{documents, "GET", "/openapi.json", "", ""},
		{queries, "POST", "/query", `{"from":"a"}`, typeJSON},
		{defined, "GET", "/collections", "", ""},
	} {
		for _, header := range []string{"If-Match", "If-None-Match", "If-Unmodified-Since", "If-Modified-Since"} {
			value := `"7"`
			if strings.HasSuffix(header, "Since") {
				value = "Mon, 30 Nov 2026 08:00:00 GMT"
			}
			written := len(s.docs)
			a := send(t, c.handler, c.method, c.target, c.body, header, value, "Content-Type", c.mediaType)
			refused := header == "If-Match" || header == "If-Unmodified-Since" || header == "If-None-Match" && c.method == "POST"
			switch {
			case refused && len(s.docs) != written, refused && a.Status != 400, !refused && a.Status >= 300:
				t.Errorf("%s %s with %s: %s", c.method, c.target, header, a)
			case refused && c.method != "HEAD" && (a.kind != "invalid-request" || a.json["parameter"] != header):
				t.Errorf("%s %s with %s: %s", c.method, c.target, header, a)
			}
		}
	}
}
