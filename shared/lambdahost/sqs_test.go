package lambdahost_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/lambdahost"
	"holdfast/shared/pipeline"
)

const queueEvent = `{"Records":[
 {"messageId":"19dd0b57","receiptHandle":"MessageReceiptHandle","body":"{\"v\":1}",
  "attributes":{"ApproximateReceiveCount":"3","SentTimestamp":"1796029203123","SenderId":"123456789012","ApproximateFirstReceiveTimestamp":"1796029203124"},
  "messageAttributes":{},"md5OfBody":"x","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:us-east-1:123456789012:signals","awsRegion":"us-east-1"},
 {"messageId":"2","body":"","attributes":{"ApproximateReceiveCount":"many"}}
]}`

func TestMessagesOfAnEvent(t *testing.T) {
	var event events.SQSEvent
	if err := json.Unmarshal([]byte(queueEvent), &event); err != nil {
		t.Fatal(err)
	}
	got := lambdahost.Messages(event)
	want := pipeline.Message{ID: "19dd0b57", Body: `{"v":1}`, Sent: time.UnixMilli(1796029203123).UTC(), Receives: 3}
	if len(got) != 2 || got[0] != want || got[1] != (pipeline.Message{ID: "2"}) {
		t.Errorf("%+v", got)
	}
}

// taker answers as it is told.
type taker struct {
	failed []string
	err    error
}

func (h taker) Handle(context.Context, []pipeline.Message) ([]string, error) { return h.failed, h.err }

func TestQueueResponses(t *testing.T) {
	for _, c := range []struct {
		taker taker
		want  string
	}{
		{taker{}, `{"batchItemFailures":[]}`},
		{taker{failed: []string{"a", "b"}}, `{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"}]}`},
	} {
		response, err := lambdahost.Queue(c.taker)(t.Context(), events.SQSEvent{})
		if got, _ := json.Marshal(response); err != nil || string(got) != c.want {
			t.Errorf("%s, %v", got, err)
		}
	}
	if _, err := lambdahost.Queue(taker{err: errors.New("no")})(t.Context(), events.SQSEvent{}); err == nil {
		t.Error("the batch is acknowledged")
	}
}
