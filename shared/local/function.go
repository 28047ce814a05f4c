package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/uuid"

	"holdfast/shared/local/engines"
)

// maxPayload is the largest event and the largest answer of a function called
// synchronously, in bytes of JSON.
//
// Source: AWS Lambda Developer Guide, "Lambda quotas",
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const maxPayload = 6 << 20

// Function is what the stack knows of a function beside its handler.
type Function struct {
	Name    string
	Timeout time.Duration
}

func (f Function) arn() string {
	return "arn:aws:lambda:" + engines.Region + ":" + engines.Account + ":function:" + f.Name
}

// errTimedOut is the outcome of an invocation that did not end in its time.
var errTimedOut = errors.New("the function timed out")

// invoke calls a handler as Lambda does: with a deadline and a request id of
// its own, apart from whoever asked, so that a client that goes away cancels
// nothing. A panic is an error. A handler that overruns its deadline is left to
// itself, and its late outcome is dropped.
func invoke[E, R any](ctx context.Context, f Function, requestID string, log *slog.Logger,
	handler func(context.Context, E) (R, error), event E) (R, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.Timeout)
	ctx = lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: requestID, InvokedFunctionArn: f.arn()})
	type outcome struct {
		answer R
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		defer cancel()
		defer func() {
			if p := recover(); p != nil {
				log.Error("a function panicked", "function", f.Name, "requestId", requestID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				done <- outcome{err: fmt.Errorf("function %s panicked: %v", f.Name, p)}
			}
		}()
		answer, err := handler(ctx, event)
		done <- outcome{answer, err}
	}()
	timeout := time.NewTimer(f.Timeout)
	defer timeout.Stop()
	select {
	case o := <-done:
		return o.answer, o.err
	case <-timeout.C:
		var none R
		return none, fmt.Errorf("function %s: %w after %s", f.Name, errTimedOut, f.Timeout)
	}
}

func newRequestID() string { return uuid.NewString() }

// sleep waits, or less when ctx ends; it reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// backoff gives pauses that double from first to last.
type backoff struct {
	first, last time.Duration
	next        time.Duration
}

func (b *backoff) pause() time.Duration {
	d := max(b.next, b.first)
	b.next = min(2*d, b.last)
	return d
}

func (b *backoff) reset() { b.next = 0 }
