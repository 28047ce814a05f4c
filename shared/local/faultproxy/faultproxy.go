// Package faultproxy stands between a program and an HTTP server and makes what
// goes wrong between them: refusals, lost answers, lost requests, slowness.
// Tests use it to show that the program gets over it.
package faultproxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fault is what happens to a request instead of being passed on.
type Fault struct {
	what string
	do   func(p *Proxy, w http.ResponseWriter, r *http.Request, body []byte)
}

func (f Fault) String() string { return f.what }

// Answer answers with a status and a body of the proxy's own; the server does
// not see the request.
func Answer(status int, body string) Fault {
	return Fault{fmt.Sprintf("answer %d", status), func(_ *Proxy, w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}}
}

// Drop closes the connection without an answer; the server does not see the
// request.
func Drop() Fault {
	return Fault{"drop", func(*Proxy, http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) }}
}

// LoseAnswer passes the request on and closes the connection after the first
// bytes of the answer's body: the server has done what it was asked to.
func LoseAnswer(after int) Fault {
	return Fault{fmt.Sprintf("lose the answer after %d bytes", after), func(p *Proxy, w http.ResponseWriter, r *http.Request, body []byte) {
		answer, err := p.forward(r, body)
		if err == nil && after > 0 {
			copyHeader(w, answer)
			w.WriteHeader(answer.status)
			_, _ = w.Write(answer.body[:min(after, max(len(answer.body)-1, 0))])
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}}
}

// Delay passes the request on after a while, unless the client is gone by then.
func Delay(d time.Duration) Fault {
	return Fault{"delay " + d.String(), func(p *Proxy, w http.ResponseWriter, r *http.Request, body []byte) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			p.pass(w, r, body)
		case <-r.Context().Done():
		}
	}}
}

// Rule says which requests meet a fault.
type Rule struct {
	Path  string // part of the request's path; "": any
	Times int    // how many requests meet it; 0: all
	Fault Fault
}

// Seen is a request that reached the proxy.
type Seen struct {
	Method, Path string
	Bytes        int    // of the body
	Fault        string // "": it was passed on
}

// Proxy passes requests on to one server, except those that meet a rule. It is
// safe for concurrent use.
type Proxy struct {
	target string
	client *http.Client
	server *httptest.Server

	mu    sync.Mutex
	rules []Rule
	seen  []Seen
}

// Start makes a proxy to the server at a URL and listens. Close ends it.
func Start(target string) *Proxy {
	p := &Proxy{target: strings.TrimSuffix(target, "/"), client: &http.Client{Transport: &http.Transport{}}}
	p.server = httptest.NewServer(p)
	return p
}

// URL is where the proxy listens.
func (p *Proxy) URL() string { return p.server.URL }

// Close ends the proxy.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
	p.client.CloseIdleConnections()
}

// Set replaces the rules. The first that fits a request is used.
func (p *Proxy) Set(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = slices.Clone(rules)
}

// Take is what was seen since the last call.
func (p *Proxy) Take() []Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = nil
	return seen
}

// ServeHTTP is the proxy.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	fault := p.meet(r, len(body))
	if fault == nil {
		p.pass(w, r, body)
		return
	}
	fault.do(p, w, r, body)
}

// meet finds the fault for a request and notes the request.
func (p *Proxy) meet(r *http.Request, size int) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := Seen{Method: r.Method, Path: r.URL.Path, Bytes: size}
	var met *Fault
	for i, rule := range p.rules {
		if !strings.Contains(r.URL.Path, rule.Path) {
			continue
		}
		met, seen.Fault = &rule.Fault, rule.Fault.what
		if rule.Times > 0 {
			if p.rules[i].Times--; p.rules[i].Times == 0 {
				p.rules = slices.Delete(p.rules, i, i+1)
			}
		}
		break
	}
	p.seen = append(p.seen, seen)
	return met
}

func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, body []byte) {
	answer, err := p.forward(r, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	answer.write(w)
}

type reply struct {
	status int
	header http.Header
	body   []byte
}

// forward sends a request on. It is carried out whether or not the client
// stays: that is what makes an answer that comes too late.
func (p *Proxy) forward(r *http.Request, body []byte) (reply, error) {
	out, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, p.target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return reply{}, fmt.Errorf("pass a request on: %w", err)
	}
	out.Header = r.Header.Clone()
	out.Header.Del("Accept-Encoding") // so that answers can be read and rewritten
	got, err := p.client.Do(out)
	if err != nil {
		return reply{}, fmt.Errorf("pass a request on: %w", err)
	}
	defer got.Body.Close()
	answer, err := io.ReadAll(got.Body)
	if err != nil {
		return reply{}, fmt.Errorf("read the answer: %w", err)
	}
	return reply{got.StatusCode, got.Header, answer}, nil
}

func (a reply) write(w http.ResponseWriter) {
	copyHeader(w, a)
	w.Header().Del("Content-Length")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

func copyHeader(w http.ResponseWriter, a reply) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
}
