package faultproxy_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/shared/local/faultproxy"
)

// begin starts a server that counts and echoes, and a proxy before it.
func begin(t *testing.T) (p *faultproxy.Proxy, reached func() int) {
	t.Helper()
	bodies := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies <- string(b)
		w.Header().Set("X-Server", r.URL.RequestURI())
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("echo " + string(b)))
	}))
	t.Cleanup(server.Close)
	p = faultproxy.Start(server.URL)
	t.Cleanup(p.Close)
	return p, func() int { return len(bodies) }
}

func post(t *testing.T, url, body string) (status int, answer string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func TestPassesOn(t *testing.T) {
	p, reached := begin(t)
	status, answer, err := post(t, p.URL()+"/a%2Fb?x=1", "hello")
	if err != nil || status != 201 || answer != "echo hello" || reached() != 1 {
		t.Errorf("%d %q %v, reached %d", status, answer, err, reached())
	}
}

func TestAnswersItself(t *testing.T) {
	p, reached := begin(t)
	p.Set(faultproxy.Rule{Path: "/_bulk", Times: 2, Fault: faultproxy.Answer(503, `{"no":1}`)})
	for i, want := range []int{503, 503, 201} {
		if status, _, err := post(t, p.URL()+"/_bulk", "x"); err != nil || status != want {
			t.Errorf("request %d: %d %v", i, status, err)
		}
	}
	if status, _, _ := post(t, p.URL()+"/other", "x"); status != 201 || reached() != 2 {
		t.Errorf("%d, reached %d", status, reached())
	}
	seen := p.Take()
	if len(seen) != 4 || seen[0].Fault == "" || seen[2].Fault != "" || seen[3].Path != "/other" || seen[3].Bytes != 1 {
		t.Errorf("seen %+v", seen)
	}
}

func TestDropsAndLoses(t *testing.T) {
	p, reached := begin(t)
	p.Set(faultproxy.Rule{Fault: faultproxy.Drop()})
	if _, _, err := post(t, p.URL(), "x"); err == nil || reached() != 0 {
		t.Errorf("dropped: %v, reached %d", err, reached())
	}
	p.Set(faultproxy.Rule{Fault: faultproxy.LoseAnswer(0)})
	if _, _, err := post(t, p.URL(), "x"); err == nil || reached() != 1 {
		t.Errorf("answer lost: %v, reached %d", err, reached())
	}
	p.Set(faultproxy.Rule{Fault: faultproxy.LoseAnswer(6)})
	status, answer, err := post(t, p.URL(), "hello")
	if !errors.Is(err, io.ErrUnexpectedEOF) || status != 201 || answer != "echo h" || reached() != 2 {
		t.Errorf("answer cut: %d %q %v, reached %d", status, answer, err, reached())
	}
}

func TestDelays(t *testing.T) {
	p, reached := begin(t)
	p.Set(faultproxy.Rule{Fault: faultproxy.Delay(time.Hour)})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Error("an answer before its time")
	}
	p.Set(faultproxy.Rule{Fault: faultproxy.Delay(time.Millisecond)})
	if status, _, err := post(t, p.URL(), "x"); status != 201 || err != nil || reached() != 1 {
		t.Errorf("%d %v, reached %d", status, err, reached())
	}
}

func TestRejectsItems(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if strings.Contains(string(b), "users/2") || strings.Count(string(b), "\n") != 4 {
			t.Errorf("the server got %q", b)
		}
		_, _ = io.WriteString(w, `{"items":[{"index":{"_id":"users/1","status":201}},{"index":{"_id":"users/3","status":409}}]}`)
	}))
	defer server.Close()
	p := faultproxy.Start(server.URL)
	defer p.Close()
	p.Set(faultproxy.Rule{Fault: faultproxy.RejectItems(429, "busy", func(id string) bool { return id == "users/2" })})
	_, answer, err := post(t, p.URL()+"/_bulk", `{"index":{"_id":"users/1"}}
{"a":1}
{"index":{"_id":"users/2"}}
{"a":2}
{"index":{"_id":"users/3"}}
{"a":3}
`)
	if err != nil {
		t.Fatal(err)
	}
	first, second, third := strings.Index(answer, "201"), strings.Index(answer, "429"), strings.Index(answer, "409")
	if first < 0 || second < first || third < second {
		t.Errorf("got %s", answer)
	}
}

func TestComesLate(t *testing.T) {
	p, reached := begin(t)
	p.Set(faultproxy.Rule{Fault: faultproxy.Late(100 * time.Millisecond)})
	if _, _, err := post(t, p.URL(), "x"); err == nil {
		t.Error("the client got an answer")
	}
	p.Set()
	p.Settle()
	if reached() != 1 {
		t.Errorf("%d requests reached the server", reached())
	}
}

func TestRatesAreKeptAndRepeat(t *testing.T) {
	faults := func(seed uint64) (met string) {
		server := httptest.NewServer(http.NotFoundHandler())
		defer server.Close()
		p := faultproxy.StartSeeded(server.URL, seed)
		defer p.Close()
		p.Set(faultproxy.Rule{Rate: 0.2, Fault: faultproxy.Answer(503, "")}, faultproxy.Rule{Rate: 0.1, Fault: faultproxy.DelayUpTo(time.Nanosecond)})
		for range 500 {
			if _, _, err := post(t, p.URL(), ""); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range p.Take() {
			met += s.Fault + ";"
		}
		return met
	}
	first := faults(7)
	if n := strings.Count(first, "503"); n < 60 || n > 140 {
		t.Errorf("%d of 500 requests met what a fifth of them should", n)
	}
	if n := strings.Count(first, "delay"); n < 15 || n > 75 {
		t.Errorf("%d of 500 requests met what 8 of 100 should", n)
	}
	if faults(7) != first {
		t.Error("the same seed gives other faults")
	}
	if faults(8) == first {
		t.Error("another seed gives the same faults")
	}
}
