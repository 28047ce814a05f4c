package client

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// scripted answers with one handler after the other, the last one for good.
func scripted(t *testing.T, handlers ...http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	calls := &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		w.Header().Set(requestIDHeader, "r1")
		handlers[min(n, int64(len(handlers)))-1](w, r)
	}))
	t.Cleanup(s.Close)
	return s, calls
}

func refuse(status int, slug string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"type":"/problems/`+slug+`","title":"T","status":1,"detail":"D"}`)
	}
}

func answerOK(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"id":"a/1","version":7}`)
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// recorded is a client that does not really sleep.
func recorded(t *testing.T, o Options) (*Client, *[]time.Duration) {
	var slept []time.Duration
	now := time.Now()
	o.Now = func() time.Time { return now }
	o.Sleep = func(_ context.Context, d time.Duration) error {
		slept = append(slept, d)
		now = now.Add(d)
		return nil
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, &slept
}

func TestWhatIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name       string
		failing    http.HandlerFunc
		repeatable bool
		persistent bool
		again      bool
	}{
		{"throttled", refuse(429, "throttled"), false, false, true},
		{"unavailable", refuse(503, "unavailable"), false, false, true},
		{"unknown, not repeatable", refuse(503, "outcome-unknown"), false, true, false},
		{"unknown, repeatable", refuse(503, "outcome-unknown"), true, false, true},
		{"a gateway's 503, not repeatable", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, false, true, false},
		{"a gateway's 504", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(504) }, true, true, true},
		{"a gateway's 504, impatient", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(504) }, true, false, false},
		{"wait-timeout", refuse(504, "wait-timeout"), true, true, false},
		{"broken connection", hangUp, true, true, true},
		{"broken connection, not repeatable", hangUp, false, true, false},
		{"broken connection, impatient", hangUp, true, false, false},
		{"refused", refuse(400, "invalid-json"), true, true, false},
		{"conflict", refuse(412, "version-conflict"), true, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, calls := scripted(t, c.failing, answerOK)
			api, _ := recorded(t, Options{Endpoint: s.URL, Patience: time.Minute, Persistent: c.persistent})
			_, err := api.Do(t.Context(), Request{Method: "PUT", Path: "/docs", Repeatable: c.repeatable})
			if (err == nil) != c.again || (calls.Load() > 1) != c.again {
				t.Errorf("%d calls, %v", calls.Load(), err)
			}
		})
	}
}

func TestRetryAfterIsHonouredAndPatienceEnds(t *testing.T) {
	s, calls := scripted(t, refuse(429, "throttled", "Retry-After", "7"))
	api, slept := recorded(t, Options{Endpoint: s.URL, Patience: 20 * time.Second})
	_, err := api.Do(t.Context(), Request{Method: "GET", Path: "/docs", Repeatable: true})
	if !IsSlug(err, "throttled") || calls.Load() != 3 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
	for _, d := range *slept {
		if d < 7*time.Second {
			t.Errorf("waited only %s", d)
		}
	}
}

func TestARepeatedWriteSaysSo(t *testing.T) {
	s, _ := scripted(t, hangUp, refuse(412, "version-conflict"))
	api, _ := recorded(t, Options{Endpoint: s.URL, Patience: time.Minute, Persistent: true})
	_, err := api.Put(t.Context(), "a/1", []byte(`{}`), Condition{Absent: true}, true)
	var p *Problem
	if !errors.As(err, &p) || !p.Repeated {
		t.Errorf("%v does not say that an earlier attempt may have happened", err)
	}
	s, _ = scripted(t, refuse(429, "throttled"), refuse(412, "version-conflict"))
	api, _ = recorded(t, Options{Endpoint: s.URL, Patience: time.Minute, Persistent: true})
	_, err = api.Put(t.Context(), "a/1", []byte(`{}`), Condition{Absent: true}, true)
	if !errors.As(err, &p) || p.Repeated {
		t.Errorf("%v: a throttled request did not happen", err)
	}
}

func TestNobodyThere(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	api, slept := recorded(t, Options{Endpoint: s.URL, Patience: time.Minute})
	_, err := api.Do(t.Context(), Request{Method: "POST", Path: "/docs", Body: []byte("{}")})
	var u *Unreachable
	if !errors.As(err, &u) || u.Sent || len(*slept) != 0 {
		t.Errorf("%v after %d waits", err, len(*slept))
	}
	api, slept = recorded(t, Options{Endpoint: s.URL, Patience: time.Minute, Persistent: true})
	if _, err := api.Do(t.Context(), Request{Method: "POST", Path: "/docs"}); !errors.As(err, &u) || len(*slept) < 5 {
		t.Errorf("%v after %d waits: a request that was not sent may be sent again", err, len(*slept))
	}
}

func TestProblemsAreReadable(t *testing.T) {
	for body, want := range map[string]string{
		`{"type":"/problems/document-too-large","title":"Document too large","detail":"it is large","limit":409600,"actual":500000}`: "Document too large: it is large (limit 409600, actual 500000)",
		`{"type":"/problems/invalid-json","title":"Invalid JSON","detail":"twice","pointer":"/a/b"}`:                                 "Invalid JSON: twice (at /a/b)",
		`{"type":"/problems/not-an-object","title":"Not an object","detail":"d","pointer":""}`:                                       "Not an object: d (at the top)",
		`{"type":"/problems/version-conflict","title":"Version conflict","detail":"d","expected":[5],"actual":null}`:                 "Version conflict: d (actual none, expected [5])",
		`{"type":"x","title":"T\u001b[31m","detail":"d"}`:                                                                            "T\ufffd[31m: d",
	} {
		if got := ParseProblem([]byte(body)).Error(); got != want {
			t.Errorf("%s\n got %s\nwant %s", body, got, want)
		}
	}
	s, _ := scripted(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Del(requestIDHeader)
		w.Header().Set("Apigw-Requestid", "R1=")
		w.WriteHeader(403)
		_, _ = io.WriteString(w, `{"message":"Forbidden by policy"}`)
	})
	api, _ := recorded(t, Options{Endpoint: s.URL})
	_, err := api.Do(t.Context(), Request{Method: "GET", Path: "/docs"})
	if err == nil || err.Error() != "403 Forbidden: Forbidden by policy (request R1=)" {
		t.Errorf("a gateway's refusal reads %v", err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	s, calls := scripted(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) })
	api, _ := recorded(t, Options{Endpoint: s.URL})
	_, err := api.Do(t.Context(), Request{Method: "GET", Path: "/docs"})
	if err == nil || !strings.Contains(err.Error(), "/elsewhere") || calls.Load() != 1 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
}

// oddIDs are ids with which a gateway, a URL or a signature could go wrong.
var oddIDs = []string{"users/a b", "users/a+b", "users/50%", "users/%2F", "users/a?b#c&d=e", "users/é😀", `users/"q"\`, "users/a=b;c", "users/*~'()!", "users/a/b c/d/e+f"}

func TestOddIDsArriveAsTheyAre(t *testing.T) {
	var got string
	s, _ := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RawQuery, "+") {
			t.Errorf("a plus means different things: %s", r.URL.RawQuery)
		}
		got = r.URL.Query().Get("id")
		answerOK(w, r)
	})
	api, _ := recorded(t, Options{Endpoint: s.URL})
	for _, id := range oddIDs {
		if _, err := api.Put(t.Context(), id, []byte("{}"), Condition{}, false); err != nil || got != id {
			t.Errorf("%q arrives as %q, %v", id, got, err)
		}
	}
}

func TestConditionsTravelAsHeaders(t *testing.T) {
	for cond, want := range map[Condition][2]string{
		{}: {}, {Version: "5"}: {`"5"`, ""}, {Version: "*"}: {"*", ""}, {Absent: true}: {"", "*"},
	} {
		h := http.Header{}
		cond.header(h)
		if got := [2]string{h.Get("If-Match"), h.Get("If-None-Match")}; got != want {
			t.Errorf("%+v gives %v", cond, got)
		}
	}
}

// The server checks the signature as AWS describes it, computed here from what
// arrived, without the signer under test.
func TestRequestsAreSigned(t *testing.T) {
	const region, key, secret = "eu-central-1", "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	checked := 0
	s, _ := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		checked++
		body, _ := io.ReadAll(r.Body)
		got := r.Header.Get("Authorization")
		if want := expectedSignature(t, r, body, region, key, secret); got != want {
			t.Errorf("%s?%s\n got %s\nwant %s", r.URL.Path, r.URL.RawQuery, got, want)
		}
		if r.Header.Get("X-Amz-Security-Token") != "session" {
			t.Error("the session token is missing")
		}
		answerOK(w, r)
	})
	auth := &Signing{
		Credentials: credentials.NewStaticCredentialsProvider(key, secret, "session"), Region: region, Now: time.Now, signer: v4.NewSigner(),
	}
	api, _ := recorded(t, Options{Endpoint: s.URL + "/prod", Auth: auth})
	for _, id := range oddIDs {
		if _, err := api.Put(t.Context(), id, []byte(`{"a":1}`), Condition{Version: "5"}, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := api.Get(t.Context(), "a/1", []string{"a b", "c"}); err != nil || checked != len(oddIDs)+1 {
		t.Errorf("%d requests checked, %v", checked, err)
	}
}

// expectedSignature computes Signature Version 4 (AWS General Reference,
// "Create a signed AWS API request") of a request as it arrived.
func expectedSignature(t *testing.T, r *http.Request, body []byte, region, key, secret string) string {
	t.Helper()
	_, signed, ok := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	signed, _, _ = strings.Cut(signed, ",")
	if !ok || !strings.Contains(";"+signed+";", ";host;") || !strings.Contains(";"+signed+";", ";x-amz-date;") {
		t.Fatalf("the headers %q are signed", signed)
	}
	var parameters []string
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if pair == "" {
			continue
		}
		name, v, _ := strings.Cut(pair, "=")
		parameters = append(parameters, strictly(t, name)+"="+strictly(t, v))
	}
	slices.Sort(parameters)
	var headers strings.Builder
	for name := range strings.SplitSeq(signed, ";") {
		v := r.Header.Get(name)
		switch name {
		case "host":
			v = r.Host
		case "content-length":
			v = r.Header.Get("Content-Length")
		}
		headers.WriteString(name + ":" + strings.TrimSpace(v) + "\n")
	}
	hash := func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
	canonical := strings.Join([]string{r.Method, r.URL.EscapedPath(), strings.Join(parameters, "&"), headers.String(), signed, hash(body)}, "\n")
	at := r.Header.Get("X-Amz-Date")
	scope := at[:8] + "/" + region + "/execute-api/aws4_request"
	mac := func(k []byte, s string) []byte { h := hmac.New(sha256.New, k); h.Write([]byte(s)); return h.Sum(nil) }
	k := mac(mac(mac(mac([]byte("AWS4"+secret), at[:8]), region), "execute-api"), "aws4_request")
	signature := hex.EncodeToString(mac(k, "AWS4-HMAC-SHA256\n"+at+"\n"+scope+"\n"+hash([]byte(canonical))))
	return "AWS4-HMAC-SHA256 Credential=" + key + "/" + scope + ", SignedHeaders=" + signed + ", Signature=" + signature
}

// strictly encodes again as signatures demand: all but unreserved characters.
func strictly(t *testing.T, s string) string {
	plain, err := url.QueryUnescape(s)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(url.QueryEscape(plain), "+", "%20")
}

func TestCredentialsNeedTLS(t *testing.T) {
	token, err := NewBearer("abc")
	if err != nil {
		t.Fatal(err)
	}
	for endpoint, allowed := range map[string]bool{
		"http://127.0.0.1:1": true, "http://localhost": true, "http://[::1]:1": true, "https://example.com": true,
		"http://example.com": false, "http://10.0.0.1": false, "http://127.0.0.1.example.com": false,
	} {
		if _, err := New(Options{Endpoint: endpoint, Auth: token}); (err == nil) != allowed {
			t.Errorf("%s: %v", endpoint, err)
		}
		if _, err := New(Options{Endpoint: endpoint}); err != nil {
			t.Errorf("%s without credentials: %v", endpoint, err)
		}
	}
}

func TestEndpoints(t *testing.T) {
	for _, bad := range []string{"", "example.com", "ftp://example.com", "https://", "https://u:p@example.com", "https://example.com?x=1", "https://example.com#x", "http://a b"} {
		if _, err := ParseEndpoint(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if u, err := ParseEndpoint("https://example.com/prod/"); err != nil || u.String() != "https://example.com/prod" {
		t.Errorf("%v, %v", u, err)
	}
}

func TestTokens(t *testing.T) {
	var got string
	s, _ := scripted(t, func(w http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization"); answerOK(w, r) })
	file := filepath.Join(t.TempDir(), "token")
	use := func(text string) error { return os.WriteFile(file, []byte(text), 0o600) }
	if err := use("one\n"); err != nil {
		t.Fatal(err)
	}
	token, err := NewBearerFile(file)
	if err != nil {
		t.Fatal(err)
	}
	api, _ := recorded(t, Options{Endpoint: s.URL, Auth: token})
	for _, text := range []string{"one", "two"} { // it is renewed while the program runs
		if err := use(text + "\n"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := api.Get(t.Context(), "a/1", nil); err != nil || got != "Bearer "+text {
			t.Errorf("%q, %v", got, err)
		}
	}
	for _, bad := range []string{"", " \n", "a b", "a\nb", "é"} {
		if _, err := NewBearer(bad); err == nil {
			t.Errorf("the token %q is taken", bad)
		}
	}
}

func TestSigningFindsRegionAndCredentials(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"config":      "[profile prod]\nregion = ap-south-1\n",
		"credentials": "[prod]\naws_access_key_id = A\naws_secret_access_key = B\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	for _, c := range []struct{ endpoint, region, want string }{
		{"https://x.example.com", "", "ap-south-1"},
		{"https://abc.execute-api.eu-west-1.amazonaws.com/prod", "", "eu-west-1"},
		{"https://abc.execute-api.eu-west-1.amazonaws.com", "us-east-2", "us-east-2"},
	} {
		s, err := NewSigning(t.Context(), c.endpoint, "prod", c.region, false)
		if err != nil || s.Region != c.want {
			t.Errorf("%+v: %+v, %v", c, s, err)
			continue
		}
		if k, err := s.Credentials.Retrieve(t.Context()); err != nil || k.AccessKeyID != "A" {
			t.Errorf("%v, %v", k.AccessKeyID, err)
		}
	}
	if _, err := NewSigning(t.Context(), "https://x.example.com", "nobody", "eu-west-1", false); err == nil {
		t.Error("a profile that does not exist is taken")
	}
	if _, err := NewSigning(t.Context(), "https://x.example.com", "", "eu-west-1", false); err == nil || !strings.Contains(err.Error(), "--profile") {
		t.Errorf("without credentials: %v", err)
	}
}

func TestBulkAnswersMustFit(t *testing.T) {
	answers := ""
	s, _ := scripted(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answers) })
	api, _ := recorded(t, Options{Endpoint: s.URL})
	lines := [][]byte{[]byte("1"), []byte("2")}
	answers = `{"line":1,"id":"a/1","version":1}` + "\n" + `{"line":2,"id":null,"error":{"title":"T"}}` + "\n" + `{"token":"x"}` + "\n"
	outcomes, token, err := api.Bulk(t.Context(), lines)
	if err != nil || token != "x" || len(outcomes) != 2 || outcomes[0].Error != nil || outcomes[1].Error == nil {
		t.Errorf("%+v %q %v", outcomes, token, err)
	}
	for _, answers = range []string{
		"", `{"token":""}`, `{"line":1,"version":1}` + "\n" + `{"token":""}`, `{"line":2,"version":1}`, `{"line":1,"version":1}` + "\n" + `{"line":2,"version":1}`,
	} {
		if _, _, err := api.Bulk(t.Context(), lines); err == nil {
			t.Errorf("the answer %q is taken", answers)
		}
	}
}

func TestLoadAsksForWhatRemains(t *testing.T) {
	s, calls := scripted(t,
		func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"documents":{"a/1":{"id":"a/1"}},"remaining":["a/2"]}`)
		},
		func(w http.ResponseWriter, r *http.Request) {
			if b, _ := io.ReadAll(r.Body); string(b) != `{"ids":["a/2"]}` {
				t.Errorf("asked again for %s", b)
			}
			_, _ = io.WriteString(w, `{"documents":{"a/2":null}}`)
		})
	api, _ := recorded(t, Options{Endpoint: s.URL})
	all, err := api.Load(t.Context(), []string{"a/1", "a/2"})
	if err != nil || calls.Load() != 2 || all["a/1"] == nil || all["a/2"] != nil || len(all) != 2 {
		t.Errorf("%v, %v, %d calls", all, err, calls.Load())
	}
	s, _ = scripted(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"documents":{},"remaining":["a/1"]}`)
	})
	api, _ = recorded(t, Options{Endpoint: s.URL})
	if _, err := api.Load(t.Context(), []string{"a/1"}); err == nil {
		t.Error("a load that never goes forward does not end")
	}
}
