// Package sqsqueue is the pipeline's queues in Amazon SQS. It is apart from the
// pipeline so that functions without queues do not carry the client of SQS, which
// takes time at every start.
package sqsqueue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/shared/pipeline"
)

const (
	sqsBatchEntries = 10        // SendMessageBatch takes ten messages
	sqsBatchBytes   = 256 << 10 // of together so many bytes
)

// Client is the part of the SQS client that the queue uses.
type Client interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// Queue is a pipeline.Queue in Amazon SQS.
type Queue struct {
	client Client
	url    string
}

// New makes the queue at a queue URL. The client may retry: a message sent
// twice does no harm.
func New(client Client, url string) *Queue {
	return &Queue{client: client, url: url}
}

// Send sends the messages in calls of at most ten entries and 256 KiB. A call
// that fails as a whole fails each of its messages.
func (q *Queue) Send(ctx context.Context, out []pipeline.Outgoing) []error {
	failed := make([]error, len(out))
	any := false
	for start := 0; start < len(out); {
		end, size := start, 0
		for end < len(out) && end-start < sqsBatchEntries {
			if end > start && size+len(out[end].Body) > sqsBatchBytes {
				break
			}
			size += len(out[end].Body)
			end++
		}
		if q.sendBatch(ctx, out[start:end], failed[start:end]) {
			any = true
		}
		start = end
	}
	if !any {
		return nil
	}
	return failed
}

// sendBatch makes one call and reports whether any of its messages failed.
func (q *Queue) sendBatch(ctx context.Context, out []pipeline.Outgoing, failed []error) bool {
	entries := make([]types.SendMessageBatchRequestEntry, len(out))
	for i, m := range out {
		entries[i] = types.SendMessageBatchRequestEntry{
			Id:           aws.String(strconv.Itoa(i)),
			MessageBody:  aws.String(m.Body),
			DelaySeconds: delaySeconds(m.Delay),
		}
	}
	answer, err := q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(q.url), Entries: entries})
	if err != nil {
		err = fmt.Errorf("send messages: %w", err)
		for i := range failed {
			failed[i] = err
		}
		return true
	}
	// An entry is sent only if the answer says so: one that it does not name is
	// as uncertain as one that it names as failed.
	sent := make([]bool, len(out))
	for _, e := range answer.Successful {
		if i, ok := entryIndex(e.Id, len(out)); ok {
			sent[i] = true
		}
	}
	for _, e := range answer.Failed {
		if i, ok := entryIndex(e.Id, len(out)); ok {
			sent[i] = false
			failed[i] = fmt.Errorf("send a message: %s: %s", aws.ToString(e.Code), aws.ToString(e.Message))
		}
	}
	any := false
	for i, ok := range sent {
		if ok {
			continue
		}
		any = true
		if failed[i] == nil {
			failed[i] = errors.New("send a message: the answer does not mention it")
		}
	}
	return any
}

func entryIndex(id *string, n int) (int, bool) {
	i, err := strconv.Atoi(aws.ToString(id))
	return i, err == nil && i >= 0 && i < n
}

// delaySeconds rounds up, so that a short delay does not become none.
func delaySeconds(d time.Duration) int32 {
	d = min(max(d, 0), pipeline.MaxDelay)
	return int32((d + time.Second - 1) / time.Second)
}

// Depth is the queue's own approximate count of visible, taken and delayed
// messages.
func (q *Queue) Depth(ctx context.Context) (int, error) { return queueDepth(ctx, q.client, q.url) }

// attributesClient is the part of the SQS client that tells of a queue.
type attributesClient interface {
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

func queueDepth(ctx context.Context, client attributesClient, url string) (int, error) {
	names := []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	}
	answer, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: aws.String(url), AttributeNames: names})
	if err != nil {
		return 0, fmt.Errorf("read the queue's depth: %w", err)
	}
	sum := 0
	for _, name := range names {
		n, err := strconv.Atoi(answer.Attributes[string(name)])
		if err != nil {
			return 0, fmt.Errorf("read the queue's depth: %s is %q", name, answer.Attributes[string(name)])
		}
		sum += n
	}
	return sum, nil
}
