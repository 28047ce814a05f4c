package local

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"holdfast/shared/local/engines"
	"holdfast/shared/local/enginetest"
)

// patient is a client that waits longer than a gateway lets a request run.
var patient = &http.Client{Timeout: time.Minute}

// asked is an answer of a stack.
type asked struct {
	status int
	body   []byte
	header http.Header
}

func ask(t *testing.T, s *Stack, method, target, body string) asked {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL()+target, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := patient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	return asked{status: res.StatusCode, body: text, header: res.Header}
}

// expect asks and demands a status.
func expect(t *testing.T, status int, s *Stack, method, target, body string) asked {
	t.Helper()
	a := ask(t, s, method, target, body)
	if a.status != status {
		t.Fatalf("%s %s: %d, not %d: %s", method, target, a.status, status, a.body)
	}
	return a
}

// worksByID does with documents what needs no more than the table, and answers
// with the token of a write.
func worksByID(t *testing.T, s *Stack, id string) (token string) {
	t.Helper()
	token = expect(t, 201, s, "PUT", "/docs/"+id, `{"n":1}`).header.Get("Holdfast-Token")
	if a := expect(t, 200, s, "GET", "/docs/"+id, ""); string(a.body) != `{"n":1}` {
		t.Errorf("loaded %s", a.body)
	}
	expect(t, 200, s, "HEAD", "/docs/"+id, "")
	expect(t, 200, s, "POST", "/load", fmt.Sprintf(`{"ids":[%q]}`, id))
	expect(t, 200, s, "GET", "/docs?startsWith="+id, "")
	expect(t, 200, s, "GET", "/changes", "")
	expect(t, 201, s, "PUT", "/docs/"+id+"/gone/1", `{}`)
	expect(t, 204, s, "DELETE", "/docs/"+id+"/gone/1", "")
	expect(t, 404, s, "GET", "/docs/"+id+"/gone/1", "")
	return token
}

// Documents are served by their ids whatever else is away: from the start, or in
// the middle. What was written meanwhile is found once the others are back.
func TestDocumentsByIDNeedTheTableOnly(t *testing.T) {
	set := enginetest.Private(t, engines.DynamoDB, engines.SQS, engines.OpenSearch)
	away := func(names ...engines.Name) {
		t.Helper()
		for _, n := range names {
			if err := set.Halt(n); err != nil {
				t.Fatalf("halt %s: %v", n, err)
			}
		}
	}
	back := func(names ...engines.Name) {
		t.Helper()
		for _, n := range names {
			if err := set.Resume(n); err != nil {
				t.Fatalf("resume %s: %v", n, err)
			}
			if err := set.Await(t.Context(), n); err != nil {
				t.Fatalf("%s does not serve again: %v", n, err)
			}
		}
	}
	urls := map[engines.Name]string{}
	for _, n := range []engines.Name{engines.DynamoDB, engines.SQS, engines.OpenSearch} {
		urls[n] = set.URL(n)
	}
	away(engines.SQS, engines.OpenSearch)
	s, err := Start(t.Context(), Options{Address: "127.0.0.1:0", DataDir: t.TempDir(), Engines: urls, RepairEvery: 5 * time.Second})
	if err != nil {
		t.Fatalf("the stack does not start without queue and index: %v", err)
	}
	t.Cleanup(s.Stop)
	token := worksByID(t, s, "users/1")
	if a := expect(t, 503, s, "POST", "/query", `{"from":"users"}`); !bytes.Contains(a.body, []byte("/problems/index-unavailable")) {
		t.Errorf("%s", a.body)
	}
	expect(t, 200, s, "GET", "/status", "")
	back(engines.SQS, engines.OpenSearch)
	found(t, s, token)

	away(engines.SQS, engines.OpenSearch)
	worksByID(t, s, "users/2")
	away(engines.DynamoDB)
	if a := expect(t, 503, s, "GET", "/docs/users/1", ""); !bytes.Contains(a.body, []byte("/problems/unavailable")) {
		t.Errorf("%s", a.body)
	}
	back(engines.DynamoDB)
	expect(t, 200, s, "GET", "/docs/users/1", "")
	worksByID(t, s, "users/3")
}

// found waits until a query finds what a write that gave the token left.
func found(t *testing.T, s *Stack, token string) {
	t.Helper()
	query := fmt.Sprintf(`{"from":"users","filter":{"n":1},"wait":{"tokens":[%q],"timeout":"20s"}}`, token)
	var a asked
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if a = ask(t, s, "POST", "/query", query); a.status == 200 {
			var page struct{ Documents []json.RawMessage }
			if err := json.Unmarshal(a.body, &page); err != nil || len(page.Documents) == 0 {
				t.Fatalf("nothing is found: %v, %s", err, a.body)
			}
			return
		}
	}
	t.Fatalf("not found in time: %d %s", a.status, a.body)
}
