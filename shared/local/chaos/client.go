package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// api speaks to the stack, at the address that it has at the moment.
type api struct {
	at     atomic.Pointer[string]
	client *http.Client
}

// answerTime is more than the gateway lets a request take.
const answerTime = 40 * time.Second

func newAPI() *api {
	a := &api{client: &http.Client{Timeout: answerTime, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
	a.moved("")
	return a
}

func (a *api) moved(url string) { a.at.Store(&url) }
func (a *api) base() string     { return *a.at.Load() }

// unsent is the error of a request that reached nobody.
type unsent struct{ error }

// send makes a request, once.
func (a *api) send(ctx context.Context, method, path string, header http.Header, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, a.base()+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if header != nil {
		req.Header = header
	}
	if len(body) > 0 && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := a.client.Do(req)
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return 0, nil, unsent{err}
	}
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	if err != nil {
		return 0, nil, err
	}
	return res.StatusCode, answer, nil
}

// problem is the kind of a refusal; "" when the text is none of Holdfast's.
func problem(text []byte) string {
	var p struct{ Type string }
	if json.Unmarshal(text, &p) != nil {
		return ""
	}
	return strings.TrimPrefix(p.Type, "/problems/")
}

// readTime is how long a read is tried again when everything is to serve.
const readTime = 3 * time.Minute

// read makes a request that changes nothing, or nothing that matters, until it is
// answered with a success or one of the other statuses.
func (a *api) read(ctx context.Context, method, path string, body, into any, others ...int) (status int, err error) {
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return 0, err
		}
	}
	for begun := time.Now(); ; {
		status, answer, err := a.send(ctx, method, path, nil, text)
		switch {
		case err == nil && status >= 200 && status < 300:
			d := json.NewDecoder(bytes.NewReader(answer))
			if err := d.Decode(into); err != nil {
				return status, fmt.Errorf("%s %s: %w", method, path, err)
			}
			return status, nil
		case err == nil:
			for _, o := range others {
				if status == o {
					return status, nil
				}
			}
			err = fmt.Errorf("answered with %d: %.300s", status, answer)
		}
		if time.Since(begun) > readTime || !sleep(ctx, 500*time.Millisecond) {
			return status, errors.Join(fmt.Errorf("%s %s: %w", method, path, err), ctx.Err())
		}
	}
}
