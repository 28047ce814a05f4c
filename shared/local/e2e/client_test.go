package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// answer is what came back over the wire.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// JSON reads a path of member names from the body; nil when it is not there.
func (a answer) JSON(path ...string) any {
	dec := json.NewDecoder(bytes.NewReader(a.Body))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// Problem is the slug of the problem type, or "" when it is no problem.
func (a answer) Problem() string {
	if a.Header.Get("Content-Type") != "application/problem+json" {
		return ""
	}
	s, _ := a.JSON("type").(string)
	return strings.TrimPrefix(s, "/problems/")
}

func (a answer) String() string {
	body := a.Body
	if len(body) > 500 {
		body = body[:500]
	}
	return fmt.Sprintf("%d %s %s", a.Status, a.Header.Get("Content-Type"), body)
}

// send makes one request; header pairs may follow the body. The target is sent
// as it is written, so that odd escapes reach the server.
func send(t testing.TB, method, target, body string, header ...string) answer {
	t.Helper()
	a, err := trySend(method, target, body, header...)
	if err != nil {
		t.Fatalf("%s %.100s: %v", method, target, err)
	}
	if a.Header.Get("Holdfast-Request-Id") == "" {
		t.Errorf("%s %.100s: no Holdfast-Request-Id", method, target)
	}
	return a
}

func trySend(method, target, body string, header ...string) (answer, error) {
	return trySendTo(base, method, target, body, header...)
}

func trySendTo(base, method, target, body string, header ...string) (answer, error) {
	req, err := http.NewRequest(method, base+target, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	return answer{resp.StatusCode, resp.Header, b}, nil
}

// put saves and demands success.
func put(t testing.TB, id, data string) answer {
	t.Helper()
	a := send(t, "PUT", "/docs/"+id, data)
	if a.Status != 200 && a.Status != 201 {
		t.Fatalf("PUT %s: %s", id, a)
	}
	return a
}

// query demands 200.
func query(t testing.TB, body string) answer {
	t.Helper()
	a := send(t, "POST", "/query", body)
	if a.Status != 200 {
		t.Fatalf("query %s: %s", body, a)
	}
	return a
}

// ids of the documents in a query's or a prefix load's answer, in order.
func (a answer) ids() []string {
	out := []string{}
	docs, _ := a.JSON("documents").([]any)
	for _, d := range docs {
		m, _ := d.(map[string]any)
		id, _ := m["id"].(string)
		out = append(out, id)
	}
	return out
}

// expect compares status and problem slug ("" for success).
func expect(t testing.TB, a answer, status int, problem string) {
	t.Helper()
	if a.Status != status || a.Problem() != problem {
		t.Errorf("got %s, want %d %s", a, status, problem)
	}
	if problem != "" {
		for _, member := range []string{"type", "title", "status", "detail"} {
			if a.JSON(member) == nil {
				t.Errorf("problem %s has no %s: %s", problem, member, a)
			}
		}
	}
}

// unique gives each test a collection of its own.
func unique(t testing.TB) string {
	return fmt.Sprintf("t%s%d", strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, t.Name()), time.Now().UnixNano()%1e9)
}
