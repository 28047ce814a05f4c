package sqsqueue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/shared/pipeline"
	"holdfast/shared/pipeline/sqsqueue"
)

const gaveUp = `{"requestContext":{"condition":"RecordAgeExceeded"},"DDBStreamBatchInfo":{"shardId":"shardId-7","batchSize":12,` +
	`"approximateArrivalOfFirstRecord":"2026-03-10T05:16:23Z","approximateArrivalOfLastRecord":"2026-03-10T05:17:00Z"}}`

// signalsBody is a message that went back forty times.
func signalsBody(t *testing.T, n int) string {
	t.Helper()
	return fmt.Sprintf(`{"v":1,"signals":[{"id":"users/%d","v":%d}],"tries":40}`, n, n+1)
}

func TestDeadLettersOnARealQueue(t *testing.T) {
	client := sqsClient(t)
	dead, relay, back := newQueue(t, client), newQueue(t, client), newQueue(t, client)
	letters := sqsqueue.NewDeadLetters(client, dead, relay, sqsqueue.New(client, back))
	if got, err := letters.Look(t.Context(), 10); err != nil || len(got) != 0 {
		t.Fatalf("in empty queues: %v, %v", got, err)
	}
	var out []pipeline.Outgoing
	for i := range 23 {
		out = append(out, pipeline.Outgoing{Body: signalsBody(t, i)})
	}
	out = append(out, pipeline.Outgoing{Body: "no message of ours"}, pipeline.Outgoing{Body: `{"v":99,"signals":[]}`})
	if errs := sqsqueue.New(client, dead).Send(t.Context(), out); errs != nil {
		t.Fatal(errs)
	}
	if errs := sqsqueue.New(client, relay).Send(t.Context(), []pipeline.Outgoing{{Body: gaveUp}}); errs != nil {
		t.Fatal(errs)
	}
	if n, err := letters.Counts(t.Context()); err != nil || n != (pipeline.DeadCounts{Signals: 25, Relay: 1}) || n.Sum() != 26 {
		t.Errorf("%+v, %v", n, err)
	}
	// Looked at twice, all are there both times.
	for range 2 {
		got, err := letters.Look(t.Context(), 100)
		if err != nil || len(got) != 26 {
			t.Fatalf("%d letters, %v", len(got), err)
		}
		readable := 0
		for _, l := range got[:25] {
			if l.Queue != pipeline.SignalLetters || l.ID == "" || l.Receives < 1 || time.Since(l.Sent).Abs() > time.Hour || (len(l.Signals) == 1) == (l.Unreadable != "") {
				t.Errorf("%+v", l)
			}
			readable += len(l.Signals)
		}
		if readable != 23 {
			t.Errorf("%d can be read", readable)
		}
		if last := got[25]; last.Queue != pipeline.RelayLetters || last.Signals != nil || !strings.Contains(last.Unreadable, "12 changes that came between 2026-03-10T05:16:23Z and") {
			t.Errorf("%+v", last)
		}
	}
	if got, err := letters.Look(t.Context(), 3); err != nil || len(got) != 3 {
		t.Errorf("%d letters, %v", len(got), err)
	}
	r, err := letters.Redrive(t.Context(), 5, false)
	if err != nil || r.Moved+r.Discarded > 5 || r.Remaining != 26-r.Moved {
		t.Errorf("%+v, %v", r, err)
	}
	moved := r.Moved
	if r, err = letters.Redrive(t.Context(), 1000, false); err != nil || r != (pipeline.Redriven{Moved: 23 - moved, Remaining: 3}) {
		t.Errorf("%+v after %d, %v", r, moved, err)
	}
	if r, err = letters.Redrive(t.Context(), 1000, true); err != nil || r != (pipeline.Redriven{Discarded: 3}) {
		t.Errorf("%+v, %v", r, err)
	}
	if got, err := letters.Look(t.Context(), 10); err != nil || len(got) != 0 {
		t.Errorf("in the end: %v, %v", got, err)
	}
	// What was moved is on the queue, from the beginning of all tries.
	var bodies []string
	for len(bodies) < 23 {
		got, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &back, MaxNumberOfMessages: 10, WaitTimeSeconds: 5})
		if err != nil || len(got.Messages) == 0 {
			t.Fatalf("%d of 23, %v", len(bodies), err)
		}
		for _, m := range got.Messages {
			bodies = append(bodies, *m.Body)
		}
	}
	slices.Sort(bodies)
	if bodies = slices.Compact(bodies); len(bodies) != 23 || bodies[0] != `{"v":1,"signals":[{"id":"users/0","v":1}]}` {
		t.Errorf("%d, %s", len(bodies), bodies[0])
	}
}

// letterBox is a queue of dead letters in memory, of which calls fail on demand.
type letterBox struct {
	bodies  map[string][]string // by URL
	taken   map[string]bool
	fails   string // the call that fails
	removed []string
	shown   int
}

func (b *letterBox) ReceiveMessage(_ context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	out := &sqs.ReceiveMessageOutput{}
	if b.fails == "receive" {
		return nil, errors.New("no answer")
	}
	for _, body := range b.bodies[*in.QueueUrl] {
		if !b.taken[body] && len(out.Messages) < int(in.MaxNumberOfMessages) {
			b.taken[body] = true
			out.Messages = append(out.Messages, types.Message{MessageId: aws.String("id of " + body), ReceiptHandle: aws.String(body), Body: aws.String(body)})
		}
	}
	return out, nil
}

func (b *letterBox) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	out := &sqs.DeleteMessageBatchOutput{}
	if b.fails == "delete" {
		return nil, errors.New("no answer")
	}
	for _, e := range in.Entries {
		if b.fails == "delete one" {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("No")})
			continue
		}
		b.removed = append(b.removed, *e.ReceiptHandle)
	}
	return out, nil
}

func (b *letterBox) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	if b.fails == "show" {
		return nil, errors.New("no answer")
	}
	b.shown += len(in.Entries)
	return &sqs.ChangeMessageVisibilityBatchOutput{}, nil
}

func (b *letterBox) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if b.fails == "count" {
		return nil, errors.New("no answer")
	}
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{
		"ApproximateNumberOfMessages": fmt.Sprint(len(b.bodies[*in.QueueUrl])), "ApproximateNumberOfMessagesNotVisible": "0", "ApproximateNumberOfMessagesDelayed": "0",
	}}, nil
}

// refusing is a sender that cannot send what has a text in it.
type refusing struct {
	text string
	sent []string
}

func (r *refusing) Send(_ context.Context, out []pipeline.Outgoing) []error {
	errs := make([]error, len(out))
	for i, o := range out {
		if r.text != "" && strings.Contains(o.Body, r.text) {
			errs[i] = errors.New("not sent")
			continue
		}
		r.sent = append(r.sent, o.Body)
	}
	return errs
}

func TestWhatFailsOnTheWayOfADeadLetter(t *testing.T) {
	for _, c := range []struct {
		fails, text    string
		removed, shown int
	}{
		{"receive", "", 0, 0},
		{"count", "", 0, 0},
		{"delete", "", 0, 1},
		{"delete one", "", 0, 1},
		{"show", "", 2, 0},
		{"", "users/1", 1, 2}, // what was not sent again stays
	} {
		box := &letterBox{bodies: map[string][]string{"dead": {signalsBody(t, 1), "junk", signalsBody(t, 2)}}, taken: map[string]bool{}, fails: c.fails}
		to := &refusing{text: c.text}
		_, err := sqsqueue.NewDeadLetters(box, "dead", "relay", to).Redrive(t.Context(), 100, false)
		if err == nil || len(box.removed) != c.removed || box.shown != c.shown {
			t.Errorf("%s%s: removed %v, shown %d, %v", c.fails, c.text, box.removed, box.shown, err)
		}
		for _, removed := range box.removed {
			if id := removed[strings.Index(removed, "users/"):][:7]; !strings.Contains(strings.Join(to.sent, ""), id) {
				t.Errorf("%s was removed and not sent", removed)
			}
		}
	}
}

// A call that has no time left takes no more, and shows what it took.
func TestDeadLettersInLittleTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	box := &letterBox{bodies: map[string][]string{"dead": {signalsBody(t, 1), signalsBody(t, 2)}}, taken: map[string]bool{}}
	r, err := sqsqueue.NewDeadLetters(box, "dead", "relay", &refusing{}).Redrive(ctx, 100, false)
	if err != nil || r != (pipeline.Redriven{Remaining: 2}) || len(box.taken) != 0 {
		t.Errorf("%+v, %v, %d taken", r, err, len(box.taken))
	}
}
