package local

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"holdfast/shared/obs"
)

func TestAScheduleRunsAgainAndAgainButNeverTwiceAtATime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var runs, running atomic.Int32
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Schedule{Name: "s", Every: 10 * time.Millisecond, Limit: time.Second, Run: func(ctx context.Context) error {
			if running.Add(1) > 1 {
				t.Error("two runs at a time")
			}
			defer running.Add(-1)
			if _, ok := ctx.Deadline(); !ok {
				t.Error("a run without a deadline")
			}
			time.Sleep(15 * time.Millisecond) // longer than the rate
			if runs.Add(1) == 2 {
				return errors.New("one that fails does not end the schedule")
			}
			return nil
		}}.run(ctx, obs.Discard())
	}()
	eventually(t, "some runs", func() bool { return runs.Load() >= 4 })
	cancel()
	<-ended
}

func TestAScheduledCall(t *testing.T) {
	f := Function{Name: "f", Timeout: time.Minute}
	ctx, cancel := context.WithCancel(t.Context())
	got, err := callScheduled(ctx, f, obs.Discard(), func(ctx context.Context, event string) (string, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("a call without a deadline")
		}
		if l, ok := lambdacontext.FromContext(ctx); !ok || l.AwsRequestID == "" {
			t.Error("a call without a request id")
		}
		cancel() // the stack ends
		<-ctx.Done()
		return event, ctx.Err()
	}, "prove")
	if got != "prove" || !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v", got, err)
	}
	_, err = callScheduled(t.Context(), f, obs.Discard(), func(context.Context, string) (string, error) { panic("no") }, "")
	if err == nil {
		t.Error("a panic is no failure")
	}
}
