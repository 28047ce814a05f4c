// Package queuetest says what a queue between relay and indexer has to do, as
// tests that every implementation of the port runs.
package queuetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/shared/pipeline"
)

// Transport is a queue under test: the port, its other end, and what it
// promises.
type Transport struct {
	Queue pipeline.Queue
	// Receive takes messages, waiting a short time when there are none. Taken
	// messages stay hidden until they are acknowledged.
	Receive func(ctx context.Context) ([]Taken, error)
	// Ack acknowledges a message.
	Ack func(ctx context.Context, receipt string) error

	DelayStep   time.Duration // delays are rounded up to a multiple of this; 0: there are no delays
	ExactDepth  bool          // Depth is exact at once and not only roughly and after a while
	RefusesBody string        // a body that a call refuses for itself alone; "": there is none
}

// Taken is a message taken from the queue.
type Taken struct{ Body, Receipt string }

const patience = 20 * time.Second

// Run runs the suite. begin makes an empty queue for each test.
func Run(t *testing.T, begin func(t *testing.T) Transport) {
	t.Run("every message arrives", func(t *testing.T) {
		q := begin(t)
		out := make([]pipeline.Outgoing, 37) // several calls of ten, and a rest
		for i := range out {
			out[i].Body = fmt.Sprintf("message %d", i)
		}
		if errs := q.Queue.Send(t.Context(), out); errs != nil {
			t.Fatal(errs)
		}
		got := q.take(t, len(out))
		for _, m := range out {
			if got[m.Body] == 0 {
				t.Errorf("%q did not arrive", m.Body)
			}
		}
	})
	t.Run("nothing to send", func(t *testing.T) {
		q := begin(t)
		if errs := q.Queue.Send(t.Context(), nil); errs != nil {
			t.Fatal(errs)
		}
	})
	t.Run("large messages", func(t *testing.T) {
		q := begin(t)
		out := make([]pipeline.Outgoing, 5) // together more than one call takes
		for i := range out {
			out[i].Body = fmt.Sprintf("%d%s", i, strings.Repeat("x", pipeline.MaxMessageBytes-1))
		}
		if errs := q.Queue.Send(t.Context(), out); errs != nil {
			t.Fatal(errs)
		}
		got := q.take(t, len(out))
		for _, m := range out {
			if got[m.Body] == 0 {
				t.Errorf("message %s… did not arrive", m.Body[:1])
			}
		}
	})
	t.Run("any text of an id", func(t *testing.T) {
		q := begin(t)
		body := "\"quotes\" \\ <&> \t é 漢 \U0001F600 \u2028"
		if errs := q.Queue.Send(t.Context(), []pipeline.Outgoing{{Body: body}}); errs != nil {
			t.Fatal(errs)
		}
		if got := q.take(t, 1); got[body] == 0 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("a message fails alone", func(t *testing.T) {
		q := begin(t)
		if q.RefusesBody == "" {
			t.Skip("this queue refuses no body")
		}
		out := make([]pipeline.Outgoing, 12)
		for i := range out {
			out[i].Body = fmt.Sprintf("message %d", i)
		}
		out[11].Body = q.RefusesBody
		errs := q.Queue.Send(t.Context(), out)
		if len(errs) != len(out) || errs[11] == nil {
			t.Fatalf("the refused message is not among the errors %v", errs)
		}
		got := q.take(t, 10)
		for i := range out {
			if arrived := got[out[i].Body] > 0; arrived && errs[i] != nil || !arrived && errs[i] == nil && i < 10 {
				t.Errorf("message %d: arrived %v, error %v", i, arrived, errs[i])
			}
		}
	})
	t.Run("a call without an answer fails each of its messages", func(t *testing.T) {
		q := begin(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		errs := q.Queue.Send(ctx, []pipeline.Outgoing{{Body: "a"}, {Body: "b"}})
		if len(errs) != 2 || errs[0] == nil || errs[1] == nil {
			t.Errorf("got %v", errs)
		}
		if _, err := q.Queue.Depth(ctx); err == nil {
			t.Error("the depth is known without an answer")
		}
	})
	t.Run("delays", func(t *testing.T) {
		q := begin(t)
		if q.DelayStep == 0 {
			t.Skip("this queue has no delays")
		}
		began := time.Now()
		delay := q.DelayStep + q.DelayStep/10 // becomes two steps
		out := []pipeline.Outgoing{{Body: "late", Delay: delay}, {Body: "soon"}}
		if errs := q.Queue.Send(t.Context(), out); errs != nil {
			t.Fatal(errs)
		}
		q.depth(t, 2) // a delayed message is part of it
		if got := q.take(t, 1); got["soon"] == 0 {
			t.Errorf("the first to arrive is %v", got)
		}
		if got := q.take(t, 1); got["late"] == 0 {
			t.Errorf("then arrives %v", got)
		}
		if took := time.Since(began); took < delay {
			t.Errorf("a message delayed by %s was there after %s", delay, took)
		}
	})
	t.Run("depth", func(t *testing.T) {
		q := begin(t)
		q.depth(t, 0)
		if errs := q.Queue.Send(t.Context(), []pipeline.Outgoing{{Body: "a"}, {Body: "b"}, {Body: "c"}}); errs != nil {
			t.Fatal(errs)
		}
		q.depth(t, 3)
		taken, err := q.Receive(t.Context())
		if err != nil || len(taken) == 0 {
			t.Fatalf("got %v, %v", taken, err)
		}
		q.depth(t, 3) // what is taken is not done
		if err := q.Ack(t.Context(), taken[0].Receipt); err != nil {
			t.Fatal(err)
		}
		q.depth(t, 2)
	})
}

// take receives and acknowledges until n messages are there.
func (q Transport) take(t *testing.T, n int) map[string]int {
	t.Helper()
	got := map[string]int{}
	for end := time.Now().Add(patience); len(got) < n; {
		if time.Now().After(end) {
			t.Fatalf("%d of %d messages arrived", len(got), n)
		}
		taken, err := q.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range taken {
			got[m.Body]++
			if err := q.Ack(t.Context(), m.Receipt); err != nil {
				t.Fatal(err)
			}
		}
	}
	return got
}

func (q Transport) depth(t *testing.T, want int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		n, err := q.Queue.Depth(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == want {
			return
		}
		if q.ExactDepth || time.Now().After(end) {
			t.Fatalf("the depth is %d, not %d", n, want)
		}
	}
}
