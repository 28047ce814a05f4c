package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/shared/local/engines"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/obs"
)

// fakeQueue hands every message out once; messages that are not deleted stay
// hidden, as for a long visibility timeout.
type fakeQueue struct {
	mu       sync.Mutex
	waiting  []types.Message
	deleted  []string
	released []string
	largest  int32 // that was asked for in one call
}

func (f *fakeQueue) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	f.mu.Lock()
	f.largest = max(f.largest, in.MaxNumberOfMessages)
	n := min(len(f.waiting), int(in.MaxNumberOfMessages))
	out := &sqs.ReceiveMessageOutput{Messages: f.waiting[:n]}
	f.waiting = f.waiting[n:]
	f.mu.Unlock()
	if n == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	return out, nil
}

func (f *fakeQueue) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range in.Entries {
		f.deleted = append(f.deleted, *e.ReceiptHandle)
	}
	return &sqs.DeleteMessageBatchOutput{}, nil
}

func (f *fakeQueue) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range in.Entries {
		if e.VisibilityTimeout == 0 {
			f.released = append(f.released, *e.ReceiptHandle)
		}
	}
	return &sqs.ChangeMessageVisibilityBatchOutput{}, nil
}

func (f *fakeQueue) deletedSorted() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(slices.Values(f.deleted))
}

func messages(n int) *fakeQueue {
	f := &fakeQueue{}
	for i := range n {
		name := fmt.Sprintf("m%03d", i)
		f.waiting = append(f.waiting, types.Message{MessageId: &name, ReceiptHandle: &name, Body: aws.String("body " + name),
			Attributes: map[string]string{"ApproximateReceiveCount": "1"}})
	}
	return f
}

func pollQueue(t *testing.T, queue queueAPI, url string, flying *inFlight, m QueueMapping) (stop func()) {
	t.Helper()
	m.Function = Function{Name: "f", Timeout: 5 * time.Second}
	p := &queuePoller{mapping: m, queue: queue, url: url, arn: queueARN("q"), inFlight: flying, log: obs.Discard()}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { p.run(ctx); close(ended) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// Only what the function handled is deleted; the rest comes back by itself.
func TestWhichMessagesAreDeleted(t *testing.T) {
	all := []string{"m000", "m001", "m002"}
	failed := func(ids ...string) (r events.SQSEventResponse) {
		for _, id := range ids {
			r.BatchItemFailures = append(r.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
		}
		return r
	}
	cases := []struct {
		name    string
		partial bool
		handler QueueHandler
		want    []string
	}{
		{"all well", true, func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) { return failed(), nil }, all},
		{"one failed", true, func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) { return failed("m001"), nil }, []string{"m000", "m002"}},
		{"all failed", true, func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) { return failed(all...), nil }, nil},
		{"an error", true, func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
			return failed(), errors.New("no")
		}, nil},
		{"a panic", true, func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) { panic("no") }, nil},
		{"a message that was not given", true, func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) { return failed("m999"), nil }, nil},
		{"failures that nobody asked for", false, func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) { return failed("m001"), nil }, all},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			queue := messages(3)
			var calls atomic.Int32
			stop := pollQueue(t, queue, "q", nil, QueueMapping{Partial: c.partial, Handler: func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
				defer calls.Add(1)
				return c.handler(ctx, e)
			}})
			eventually(t, "an invocation", func() bool { return calls.Load() > 0 })
			stop()
			if got := queue.deletedSorted(); !slices.Equal(got, c.want) {
				t.Errorf("deleted %v, want %v", got, c.want)
			}
		})
	}
}

func TestInvocationsAreBoundedAndBatchesGathered(t *testing.T) {
	queue := messages(200)
	var running, most, largest atomic.Int32
	raise := func(to *atomic.Int32, n int32) {
		for m := to.Load(); n > m && !to.CompareAndSwap(m, n); m = to.Load() {
		}
	}
	pollQueue(t, queue, "q", nil, QueueMapping{
		BatchSize: 25, Window: 300 * time.Millisecond, Concurrency: 3, Partial: true,
		Handler: func(_ context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
			raise(&most, running.Add(1))
			defer running.Add(-1)
			raise(&largest, int32(len(e.Records)))
			time.Sleep(20 * time.Millisecond)
			return events.SQSEventResponse{}, nil
		},
	})
	eventually(t, "all messages", func() bool { return len(queue.deletedSorted()) == 200 })
	if most.Load() != 3 {
		t.Errorf("%d invocations at a time, want 3", most.Load())
	}
	if largest.Load() != 25 {
		t.Errorf("the largest batch has %d messages, want 25", largest.Load())
	}
	if queue.largest > 10 {
		t.Errorf("%d messages were asked for in one call", queue.largest)
	}
}

func TestAWindowKeepsThePayloadLimit(t *testing.T) {
	queue := messages(40)
	for i := range queue.waiting {
		queue.waiting[i].Body = aws.String(strings.Repeat("x", 500_000))
	}
	pollQueue(t, queue, "q", nil, QueueMapping{
		BatchSize: 100, Window: 300 * time.Millisecond, Partial: true,
		Handler: func(_ context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
			if n := jsonBytes(e); n > maxPayload {
				t.Errorf("an event of %d bytes", n)
			}
			return events.SQSEventResponse{}, nil
		},
	})
	eventually(t, "all messages", func() bool { return len(queue.deletedSorted()) == 40 })
}

// Messages that were with a function when the process was killed are shown
// again by the next one.
func TestMessagesLeftInFlightAreReleased(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flying")
	queue := messages(5)
	killed, err := openInFlight(file, obs.Discard())
	if err != nil {
		t.Fatal(err)
	}
	killed.add(queue.waiting[:3])
	killed.remove(queue.waiting[:1])
	queue.waiting = nil
	next, err := openInFlight(file, obs.Discard())
	if err != nil {
		t.Fatal(err)
	}
	stop := pollQueue(t, queue, "q", next, QueueMapping{Handler: func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
		return events.SQSEventResponse{}, nil
	}})
	stop()
	if !slices.Equal(queue.released, []string{"m001", "m002"}) {
		t.Errorf("released %v", queue.released)
	}
}

func TestWhatAQueueFunctionIsGiven(t *testing.T) {
	queue := messages(1)
	given := make(chan events.SQSMessage, 1)
	pollQueue(t, queue, "q", nil, QueueMapping{Handler: func(_ context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		given <- e.Records[0]
		return events.SQSEventResponse{}, nil
	}})
	m := <-given
	if m.MessageId != "m000" || m.Body != "body m000" || m.ReceiptHandle != "m000" || m.Attributes["ApproximateReceiveCount"] != "1" ||
		m.EventSource != "aws:sqs" || m.EventSourceARN != "arn:aws:sqs:us-east-1:000000000000:q" || m.AWSRegion != "us-east-1" {
		t.Errorf("given %+v", m)
	}
}

// On the real engine: a message that fails comes back after its visibility
// timeout, others do not wait for it, and what fails too often is moved away.
func TestQueuesOfTheStack(t *testing.T) {
	client := sqs.New(sqs.Options{Region: engines.Region, BaseEndpoint: aws.String(enginetest.SQS(t)), Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
	ctx := t.Context()
	name := fmt.Sprintf("stack-%d", time.Now().UnixNano())
	if err := ensureQueue(ctx, client, name+"-dead", 30*time.Second, ""); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds it there and changes its settings
		if err := ensureQueue(ctx, client, name, time.Second, name+"-dead"); err != nil {
			t.Fatal(err)
		}
	}
	url, dead := queueURL(enginetest.SQS(t), name), queueURL(enginetest.SQS(t), name+"-dead")
	if told, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name}); err != nil || *told.QueueUrl != url {
		t.Errorf("the engine tells another URL than %s: %+v, %v", url, told, err)
	}
	t.Cleanup(func() {
		for _, u := range []string{url, dead} {
			_, _ = client.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: &u})
		}
	})
	for _, body := range []string{"good", "bad"} {
		if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
	}
	var good, bad atomic.Int32
	stop := pollQueue(t, client, url, nil, QueueMapping{Partial: true, Handler: func(_ context.Context, e events.SQSEvent) (r events.SQSEventResponse, _ error) {
		for _, m := range e.Records {
			if m.Body == "good" {
				good.Add(1)
				continue
			}
			bad.Add(1)
			r.BatchItemFailures = append(r.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
		return r, nil
	}})
	eventually(t, "the bad message to come back", func() bool { return bad.Load() >= 2 })
	stop()
	if good.Load() != 1 {
		t.Errorf("the good message came %d times", good.Load())
	}
	for range 3 * maxReceives { // the poller had it a few times; the rest without waiting
		if _, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, VisibilityTimeout: 0, WaitTimeSeconds: 1}); err != nil {
			t.Fatal(err)
		}
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &dead})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 1 && *out.Messages[0].Body == "bad" {
			return
		}
	}
	t.Error("the bad message did not reach the dead letters")
}
