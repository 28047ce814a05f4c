package local

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/local/engines"
)

// queueKeeps is how long queues keep a message: as long as SQS can.
const queueKeeps = 14 * 24 * time.Hour

// maxReceives is how often a message is handed out before it goes to the dead
// letters. Messages that fail for their surroundings are sent anew and begin at
// one, so only what cannot be read gets that far.
const maxReceives = 10

func queueARN(name string) string {
	return "arn:aws:sqs:" + engines.Region + ":" + engines.Account + ":" + name
}

// queueURLs are the URLs of the stack's queues.
type queueURLs struct{ signals, dead, givenUp string }

// queueURL is the URL of a queue of an engine, as that tells it too. It is not
// asked, so that nobody waits for it.
func queueURL(engine, name string) string { return engine + "/" + engines.Account + "/" + name }

func queuesAt(engine string) queueURLs {
	return queueURLs{signals: queueURL(engine, signalsQueue), dead: queueURL(engine, deadSignals), givenUp: queueURL(engine, givenUpQueue)}
}

// lookingHides is how long the queues that people look into hide a message.
const lookingHides = 30 * time.Second

// ensureQueues makes the stack's queues; visibility is that of the signals.
func ensureQueues(ctx context.Context, client *sqs.Client, visibility time.Duration) error {
	if err := ensureQueue(ctx, client, deadSignals, lookingHides, ""); err != nil {
		return err
	}
	if err := ensureQueue(ctx, client, signalsQueue, visibility, deadSignals); err != nil {
		return err
	}
	return ensureQueue(ctx, client, givenUpQueue, lookingHides, "")
}

// ensureQueue makes a queue, or gives one that is there these settings.
// deadLetters is the name of the queue that gets what is received too often;
// "": there is none.
func ensureQueue(ctx context.Context, client *sqs.Client, name string, visibility time.Duration, deadLetters string) error {
	attributes := map[string]string{
		"VisibilityTimeout":      seconds(visibility),
		"MessageRetentionPeriod": seconds(queueKeeps),
	}
	if deadLetters != "" {
		policy, err := json.Marshal(map[string]any{"deadLetterTargetArn": queueARN(deadLetters), "maxReceiveCount": maxReceives})
		if err != nil {
			return err
		}
		attributes["RedrivePolicy"] = string(policy)
	}
	found, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil { // most likely there is none; if not, the next call says what is wrong
		if _, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes}); err != nil {
			return fmt.Errorf("create queue %s: %w", name, err)
		}
		return nil
	}
	if _, err := client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: found.QueueUrl, Attributes: attributes}); err != nil {
		return fmt.Errorf("set up queue %s: %w", name, err)
	}
	return nil
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// givingUpTo tells a queue of stream records that are given up, in the words of
// a destination on failure.
//
// Source: AWS Lambda Developer Guide, "Retain discarded records for a DynamoDB
// event source", https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
func givingUpTo(client *sqs.Client, url string) func(context.Context, GivenUp) error {
	return func(ctx context.Context, g GivenUp) error {
		body, err := json.Marshal(map[string]any{
			"requestContext": map[string]any{
				"requestId": g.RequestID, "functionArn": g.Function, "condition": g.Reason, "approximateInvokeCount": g.Invocations,
			},
			"responseContext": map[string]any{"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
			"version":         "1.0",
			"timestamp":       time.Now().UTC().Format(time.RFC3339Nano),
			"DDBStreamBatchInfo": map[string]any{
				"shardId": g.Shard, "streamArn": g.Stream, "batchSize": g.Records,
				"startSequenceNumber": g.First, "endSequenceNumber": g.Last,
				"approximateArrivalOfFirstRecord": g.Arrived.UTC().Format(time.RFC3339Nano),
				"approximateArrivalOfLastRecord":  g.LastArrived.UTC().Format(time.RFC3339Nano),
			},
		})
		if err != nil {
			return err
		}
		_, err = client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(string(body))})
		return err
	}
}
