package sqsqueue_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/shared/doc"
	"holdfast/shared/local/enginetest"
	"holdfast/shared/pipeline"
	"holdfast/shared/pipeline/queuetest"
	"holdfast/shared/pipeline/sqsqueue"
)

func sqsClient(t *testing.T) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(enginetest.SQS(t)),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

func TestSQSKeepsWhatAQueuePromises(t *testing.T) {
	client := sqsClient(t)
	queuetest.Run(t, func(t *testing.T) queuetest.Transport {
		url := newQueue(t, client)
		return queuetest.Transport{
			Queue: sqsqueue.New(client, url),
			Receive: func(ctx context.Context) ([]queuetest.Taken, error) {
				got, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
					QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, VisibilityTimeout: 60,
				})
				if err != nil {
					return nil, err
				}
				var taken []queuetest.Taken
				for _, m := range got.Messages {
					taken = append(taken, queuetest.Taken{Body: *m.Body, Receipt: *m.ReceiptHandle})
				}
				return taken, nil
			},
			Ack: func(ctx context.Context, receipt string) error {
				_, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: &receipt})
				return err
			},
			DelayStep:   time.Second,
			RefusesBody: "\x01", // a control character
		}
	})
}

func newQueue(t *testing.T, client *sqs.Client) string {
	t.Helper()
	made, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("signals-" + strings.ToLower(rand.Text()[:12]))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: made.QueueUrl}); err != nil {
			t.Error(err)
		}
	})
	return *made.QueueUrl
}

// Every id that is allowed arrives, also the two characters that SQS refuses.
func TestAnyIDTravels(t *testing.T) {
	client := sqsClient(t)
	url := newQueue(t, client)
	signals := []doc.Signal{
		{ID: "a/\uFFFE", Version: 1}, {ID: "a/\uFFFF", Version: 2}, {ID: `a/"\`, Version: 3}, {ID: "a/<&>\u2028", Version: 4},
		{ID: doc.ID("a/" + strings.Repeat("\uFFFF", 170)), Version: 5}, {ID: "a/\U0001F600", Version: 6},
	}
	packed, err := pipeline.Pack(signals, 0)
	if err != nil {
		t.Fatal(err)
	}
	if errs := sqsqueue.New(client, url).Send(t.Context(), []pipeline.Outgoing{{Body: packed[0].Body}}); errs != nil {
		t.Fatal(errs)
	}
	got, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 10})
	if err != nil || len(got.Messages) != 1 {
		t.Fatalf("%v %v", got, err)
	}
	back, _, err := pipeline.Unpack(*got.Messages[0].Body)
	if err != nil || fmt.Sprint(back) != fmt.Sprint(signals) {
		t.Errorf("got %v, %v", back, err)
	}
}

// scriptedSQS answers as it is told.
type scriptedSQS struct {
	answer func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error)
	calls  []*sqs.SendMessageBatchInput
}

func (s *scriptedSQS) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	s.calls = append(s.calls, in)
	return s.answer(in)
}

func (*scriptedSQS) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"ApproximateNumberOfMessages": "many"}}, nil
}

func TestSQSMapsEachEntry(t *testing.T) {
	out := make([]pipeline.Outgoing, 25)
	for i := range out {
		out[i] = pipeline.Outgoing{Body: fmt.Sprint(i), Delay: time.Duration(i) * 300 * time.Millisecond}
	}
	// The first call fails as a whole; of the second, one entry fails, one is not
	// mentioned; the third is good but answers about entries nobody sent, too.
	client := &scriptedSQS{}
	client.answer = func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
		a := &sqs.SendMessageBatchOutput{}
		switch len(client.calls) {
		case 1:
			return nil, errors.New("no answer")
		case 2:
			for _, e := range in.Entries[:8] {
				a.Successful = append(a.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
			}
			a.Failed = []types.BatchResultErrorEntry{{Id: in.Entries[8].Id, Code: aws.String("Throttled")}}
		case 3:
			for _, e := range in.Entries {
				a.Successful = append(a.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
			}
			a.Failed = []types.BatchResultErrorEntry{{Id: aws.String("77")}, {Id: aws.String("x")}, {}}
		}
		return a, nil
	}
	errs := sqsqueue.New(client, "q").Send(t.Context(), out)
	if len(client.calls) != 3 || len(errs) != 25 {
		t.Fatalf("%d calls, %d errors", len(client.calls), len(errs))
	}
	for i, err := range errs {
		if want := i < 10 || i == 18 || i == 19; want != (err != nil) {
			t.Errorf("message %d: %v", i, err)
		}
	}
	for i, e := range client.calls[0].Entries {
		if want := int32([]int{0, 1, 1, 1, 2, 2, 2, 3, 3, 3}[i]); e.DelaySeconds != want {
			t.Errorf("message %d is delayed by %d s, not %d", i, e.DelaySeconds, want)
		}
	}
	if _, err := sqsqueue.New(client, "q").Depth(t.Context()); err == nil {
		t.Error("a depth of many messages is a number")
	}
}

func TestSQSCutsCallsByBytes(t *testing.T) {
	client := &scriptedSQS{}
	client.answer = func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
		a := &sqs.SendMessageBatchOutput{}
		sum := 0
		for _, e := range in.Entries {
			sum += len(*e.MessageBody)
			a.Successful = append(a.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
		}
		if sum > 256<<10 || len(in.Entries) > 10 {
			t.Errorf("a call with %d messages and %d bytes", len(in.Entries), sum)
		}
		return a, nil
	}
	out := make([]pipeline.Outgoing, 30)
	for i := range out {
		out[i].Body = strings.Repeat("x", i*7000%pipeline.MaxMessageBytes+1)
	}
	if errs := sqsqueue.New(client, "q").Send(t.Context(), out); errs != nil {
		t.Fatal(errs)
	}
}
