package search_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"holdfast/shared/search"
)

// Every request is signed over exactly the bytes that are sent.
func TestRequestsAreSigned(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sum := sha256.Sum256(body)
		if got := r.Header.Get("X-Amz-Content-Sha256"); got != hex.EncodeToString(sum[:]) {
			t.Errorf("signed for a body of hash %s, sent %x", got, sum)
		}
		if got := r.Header.Get("Authorization"); !strings.Contains(got, "/eu-west-3/es/aws4_request") || !strings.HasPrefix(got, "AWS4-HMAC-SHA256 Credential=key/") {
			t.Errorf("authorization %q", got)
		}
		if r.ContentLength != int64(len(body)) || len(body) == 0 {
			t.Errorf("a body of %d bytes declared as %d", len(body), r.ContentLength)
		}
		_, _ = fmt.Fprint(w, `{"items":[`+applied+`]}`)
	}))
	defer server.Close()
	c, err := search.NewClient(search.Options{
		URL: server.URL, Prefix: "p", Region: "eu-west-3",
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range mustWrite(t, c, operations(1, 100_000)) {
		if o.Kind != search.Applied {
			t.Error(o)
		}
	}
	if requests != 1 {
		t.Errorf("%d requests", requests)
	}
}

func TestNewClientRefusesHalfAnAddress(t *testing.T) {
	for _, o := range []search.Options{{Prefix: "p"}, {URL: "localhost", Prefix: "p"}, {URL: "//localhost:9200", Prefix: "p"}, {URL: "ftp://localhost", Prefix: "p"}, {URL: "http://localhost:9200"}} {
		if _, err := search.NewClient(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// What an address has beside the host is used, and nothing of it is doubled or lost.
func TestAddressesWithMoreThanAHost(t *testing.T) {
	var path, user, password string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.EscapedPath()
		user, password, _ = r.BasicAuth()
		_, _ = fmt.Fprint(w, `{"items":[`+applied+`]}`)
	}))
	defer server.Close()
	for address, want := range map[string]string{
		server.URL:           "/_bulk",
		server.URL + "/":     "/_bulk",
		server.URL + "/a/b/": "/a/b/_bulk",
		strings.Replace(server.URL, "://", "://ada:se%40cret@", 1) + "/proxy": "/proxy/_bulk",
	} {
		c, err := search.NewClient(search.Options{URL: address, Prefix: "p"})
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, c, operations(1, 10))
		named := strings.Contains(address, "ada")
		if path != want || named != (user == "ada" && password == "se@cret") {
			t.Errorf("%s: asked %s as %q with %q", address, path, user, password)
		}
	}
}
