package local

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// Schedule runs something at a fixed rate, as an EventBridge rate does a
// function: again and again, never twice at a time. A run that takes longer
// than the rate delays the next.
type Schedule struct {
	Name  string
	Every time.Duration
	First time.Duration // from the start to the first run
	Limit time.Duration // how long a run may take; 0: one Every
	Run   func(context.Context) error
}

// run runs until ctx ends.
func (s Schedule) run(ctx context.Context, log *slog.Logger) {
	limit := s.Limit
	if limit <= 0 {
		limit = s.Every
	}
	for next := time.Now().Add(s.First); sleep(ctx, time.Until(next)); {
		next = next.Add(s.Every)
		if now := time.Now(); next.Before(now) {
			next = now
		}
		once, cancel := context.WithTimeout(ctx, limit)
		if err := s.Run(once); err != nil && ctx.Err() == nil {
			log.Warn("a scheduled run failed", "schedule", s.Name, "error", err)
		}
		cancel()
	}
}

// callScheduled calls a handler as a schedule calls a function: with a deadline
// and a request id of its own. Unlike others it ends with ctx, the stack's: a run
// may take minutes, and the next goes on where it was. A panic is an error.
func callScheduled[E, R any](ctx context.Context, f Function, log *slog.Logger, handler func(context.Context, E) (R, error), event E) (answer R, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	id := newRequestID()
	defer func() {
		if p := recover(); p != nil {
			log.Error("a function panicked", "function", f.Name, "requestId", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("function %s panicked: %v", f.Name, p)
		}
	}()
	return handler(lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: id, InvokedFunctionArn: f.arn()}), event)
}
