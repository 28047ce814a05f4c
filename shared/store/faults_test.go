package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
)

// A fault is what happens to one request.
type fault int

const (
	fine        fault = iota
	dialRefused       // no connection: surely not applied
	lostBefore        // the connection breaks before the request arrives: not applied, but the client cannot know
	lostAfter         // applied, then the connection breaks
	failedAfter       // applied, then 500
	failedPlain       // 500 by the engine, not applied
	cutAfter          // applied, then the answer ends in the middle
	throttled         // 400 with a throttling code, not applied
	hang              // no answer until the client gives up, not applied
)

// faults is a transport that makes requests fail by a plan. The plan sees the
// operation and how many requests of it there were before.
type faults struct {
	mu    sync.Mutex
	seen  map[string]int
	bases map[string]int
	body  string // of the last request
	plan  func(operation string, n int) fault
	after func(operation string, n int) // called after a request was applied or lost
}

func (f *faults) count(operation string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[operation]
}

// rebase starts counting anew for base.
func (f *faults) rebase() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bases = maps.Clone(f.seen)
}

// base is how many requests of the operation there were at the last rebase.
func (f *faults) base(operation string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bases[operation]
}

func (f *faults) RoundTrip(req *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body.Close()
	f.mu.Lock()
	if f.seen == nil {
		f.seen = map[string]int{}
	}
	n := f.seen[operation]
	f.seen[operation]++
	f.body = string(body)
	f.mu.Unlock()
	what := fine
	if f.plan != nil {
		what = f.plan(operation, n)
	}
	if f.after != nil {
		defer f.after(operation, n)
	}
	lost := errors.New("connection reset by peer")
	switch what {
	case dialRefused:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	case lostBefore:
		return nil, lost
	case failedPlain:
		return answer(req, 500, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"internal"}`), nil
	case throttled:
		return answer(req, 400, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}`), nil
	case hang:
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	onward := req.Clone(req.Context())
	onward.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := http.DefaultTransport.RoundTrip(onward)
	if err != nil {
		return nil, fmt.Errorf("the engine behind the faults: %w", err)
	}
	if what == fine {
		return resp, nil
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	switch what {
	case lostAfter:
		return nil, lost
	case failedAfter:
		return answer(req, 500, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"internal"}`), nil
	}
	cut := answer(req, resp.StatusCode, "")
	cut.Body = io.NopCloser(io.MultiReader(strings.NewReader(string(text)[:len(text)/2]), failingReader{}))
	return cut, nil
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func answer(req *http.Request, status int, body string) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Request: req,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1,
	}
}
