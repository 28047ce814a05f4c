// Package faultproxy stands between a program and an HTTP server and makes what
// goes wrong between them: refusals, lost answers, lost requests, slowness.
// Tests use it to show that the program gets over it.
package faultproxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
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

// DelayUpTo is Delay with a while that is left to chance, up to a most.
func DelayUpTo(most time.Duration) Fault {
	return Fault{"delay up to " + most.String(), func(p *Proxy, w http.ResponseWriter, r *http.Request, body []byte) {
		Delay(p.upTo(most)).do(p, w, r, body)
	}}
}

// Late closes the connection at once and passes the request on after a while
// that is left to chance, up to a most: the server carries out what its client
// has given up, perhaps after what the client did next.
func Late(most time.Duration) Fault {
	return Fault{"late by up to " + most.String(), func(p *Proxy, _ http.ResponseWriter, r *http.Request, body []byte) {
		after, late := p.upTo(most), r.Clone(context.WithoutCancel(r.Context()))
		p.late.Go(func() {
			time.Sleep(after)
			_, _ = p.forward(late, body) // nobody waits for it
		})
		panic(http.ErrAbortHandler)
	}}
}

// Rule says which requests meet a fault.
type Rule struct {
	Path  string  // part of the request's path; "": any
	Times int     // how many requests meet it; 0: all
	Rate  float64 // the share of the requests that meet it, by chance; 0: all
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
	server *http.Server
	url    string
	late   sync.WaitGroup // requests that are passed on when their clients are gone

	mu     sync.Mutex
	chance *rand.Rand
	rules  []Rule
	seen   []Seen
}

// Start makes a proxy to the server at a URL and listens on a free port of
// 127.0.0.1. Close ends it. It panics when there is no free port.
func Start(target string) *Proxy { return StartSeeded(target, rand.Uint64()) }

// StartSeeded is Start with a seed for everything that is left to chance.
func StartSeeded(target string, seed uint64) *Proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("faultproxy: %v", err))
	}
	p := &Proxy{
		target: strings.TrimSuffix(target, "/"), url: "http://" + l.Addr().String(),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
		chance: rand.New(rand.NewPCG(seed, 0)),
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(l) }() // until Close
	return p
}

// URL is where the proxy listens.
func (p *Proxy) URL() string { return p.url }

// Close ends the proxy, after what is passed on late.
func (p *Proxy) Close() {
	p.Set()
	_ = p.server.Close() // of what is open, nothing is of interest any more
	p.late.Wait()
	p.client.CloseIdleConnections()
}

// Settle returns when nothing is on its way any more that is passed on late.
// There must be no rule that makes such requests.
func (p *Proxy) Settle() { p.late.Wait() }

// upTo is a time up to a most, by chance.
func (p *Proxy) upTo(most time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.chance.Float64() * float64(most))
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
		if !strings.Contains(r.URL.Path, rule.Path) || rule.Rate > 0 && p.chance.Float64() >= rule.Rate {
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
