package lambdahost

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/pipeline"
)

// QueueHandler handles batches of a queue's messages.
type QueueHandler func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

// MessageHandler is what handles messages: a *pipeline.Indexer.
type MessageHandler interface {
	Handle(ctx context.Context, messages []pipeline.Message) (failed []string, err error)
}

// Queue serves an indexer to an event source mapping on an SQS queue. The
// mapping has to have ReportBatchItemFailures among its function response types.
func Queue(indexer MessageHandler) QueueHandler {
	return func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
		failed, err := indexer.Handle(ctx, Messages(event))
		if err != nil {
			return events.SQSEventResponse{}, err
		}
		response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
		for _, id := range failed {
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
		}
		return response, nil
	}
}

// Messages reads a batch of messages.
func Messages(event events.SQSEvent) []pipeline.Message {
	messages := make([]pipeline.Message, len(event.Records))
	for i, r := range event.Records {
		messages[i] = pipeline.Message{ID: r.MessageId, Body: r.Body}
		if ms, err := strconv.ParseInt(r.Attributes["SentTimestamp"], 10, 64); err == nil {
			messages[i].Sent = time.UnixMilli(ms).UTC()
		}
		if n, err := strconv.Atoi(r.Attributes["ApproximateReceiveCount"]); err == nil {
			messages[i].Receives = n
		}
	}
	return messages
}
