package client

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	firstWait   = 200 * time.Millisecond
	longestWait = 10 * time.Second
)

// Backoff is how long to wait after the given number of failures before: it
// doubles, and is cut by chance so that clients do not come back all at once.
func Backoff(failures int) time.Duration {
	d := longestWait
	if failures < 6 {
		d = firstWait << failures
	}
	return d/2 + rand.N(d/2)
}

// failure says what may be done about an error.
type failure struct {
	passing    bool // it may be gone at the next attempt
	unknown    bool // the request may have been carried out
	network    bool // nobody answered, or only a gateway did
	retryAfter time.Duration
}

func judge(err error) failure {
	var u *Unreachable
	if errors.As(err, &u) {
		var certificate *tls.CertificateVerificationError
		if errors.As(err, &certificate) {
			return failure{network: true}
		}
		return failure{passing: true, unknown: u.Sent, network: true}
	}
	var p *Problem
	if !errors.As(err, &p) {
		return failure{}
	}
	f := failure{retryAfter: p.RetryAfter}
	switch p.Status {
	case http.StatusTooManyRequests:
		f.passing = true
	case http.StatusServiceUnavailable:
		f.passing = true
		// Only Holdfast itself can say that nothing happened.
		f.unknown = p.Slug == "outcome-unknown" || p.Slug == ""
	case http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusInternalServerError:
		f.passing = p.Slug != "wait-timeout"
		f.unknown, f.network = true, true
	}
	return f
}

// Unknown reports whether nobody knows whether a request that ended with this
// error was carried out.
func Unknown(err error) bool { return judge(err).unknown }

// retryAfter reads the header of that name: seconds or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return time.Duration(min(n, 3600)) * time.Second
	}
	if t, err := http.ParseTime(text); err == nil {
		return max(min(t.Sub(now), time.Hour), 0)
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
