package sqsqueue

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/shared/doc"
	"holdfast/shared/pipeline"
)

// DeadLettersClient is the part of the SQS client that DeadLetters uses.
type DeadLettersClient interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// DeadLetters are the queues of messages that were given up. It is safe for
// concurrent use, but who looks at a message hides it from others for a moment.
type DeadLetters struct {
	client DeadLettersClient
	urls   [2]string // by letterQueues
	to     pipeline.Sender
}

// letterQueues are the names of the queues, in the order in which they are gone
// through.
var letterQueues = [2]string{pipeline.SignalLetters, pipeline.RelayLetters}

// NewDeadLetters reads the queues at two URLs; to is the queue that signals go
// back to.
func NewDeadLetters(client DeadLettersClient, signals, relay string, to pipeline.Sender) *DeadLetters {
	return &DeadLetters{client: client, urls: [2]string{signals, relay}, to: to}
}

const (
	// hidden is how long a message that is looked at stays hidden when nobody
	// shows it again: longer than a call of Look or Redrive takes.
	hidden = 60 * time.Second
	// lookWait lets a call ask all of the queue's servers, which a call that
	// does not wait leaves to chance.
	lookWait = time.Second
	// letterReserve is kept of the time for showing the last messages again.
	letterReserve = 5 * time.Second
)

// Counts asks both queues.
func (d *DeadLetters) Counts(ctx context.Context) (pipeline.DeadCounts, error) {
	var counts [2]int
	for i, url := range d.urls {
		n, err := queueDepth(ctx, d.client, url)
		if err != nil {
			return pipeline.DeadCounts{}, err
		}
		counts[i] = n
	}
	return pipeline.DeadCounts{Signals: counts[0], Relay: counts[1]}, nil
}

// Look shows up to limit messages and leaves them where they are. More may be
// there than it shows: queues show no message twice at the same time, and a part
// of them only.
func (d *DeadLetters) Look(ctx context.Context, limit int) ([]pipeline.DeadLetter, error) {
	var letters []pipeline.DeadLetter
	for i, url := range d.urls {
		seen := map[string]bool{}
		_, err := d.visit(ctx, url, limit-len(letters), func(batch []types.Message) (done []types.Message, err error) {
			for _, m := range batch {
				if id := aws.ToString(m.MessageId); !seen[id] {
					seen[id] = true
					letters = append(letters, readLetter(letterQueues[i], m))
				}
			}
			return nil, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return letters, nil
}

// Redrive sends the signals of up to limit dead letters again, each before its
// letter is removed: what fails in between is sent twice, which does no harm.
// What cannot be read stays, or is removed with discard: it holds no document,
// and whatever it was about is found by comparing the index with the table.
func (d *DeadLetters) Redrive(ctx context.Context, limit int, discard bool) (pipeline.Redriven, error) {
	before, err := d.Counts(ctx)
	if err != nil {
		return pipeline.Redriven{}, err
	}
	var r pipeline.Redriven
	kept, all := 0, true
	for i, url := range d.urls {
		drained, err := d.visit(ctx, url, limit-r.Moved-r.Discarded, func(batch []types.Message) (done []types.Message, err error) {
			var readable []types.Message
			var signals [][]doc.Signal
			for _, m := range batch {
				letter := readLetter(letterQueues[i], m)
				switch {
				case letter.Unreadable == "":
					readable, signals = append(readable, m), append(signals, letter.Signals)
				case discard:
					done = append(done, m)
					r.Discarded++
				default:
					kept++
				}
			}
			sent, err := d.send(ctx, readable, signals)
			r.Moved += len(sent)
			return append(done, sent...), err
		})
		if err != nil {
			return r, err
		}
		all = all && drained
	}
	// The queues' own counts need a minute to tell of what was just removed.
	r.Remaining = kept
	if !all {
		r.Remaining = max(kept, before.Sum()-r.Moved-r.Discarded)
	}
	return r, nil
}

// send sends what is in messages again, from the beginning of all tries, and
// gives those whose signals were all sent.
func (d *DeadLetters) send(ctx context.Context, messages []types.Message, signals [][]doc.Signal) (sent []types.Message, err error) {
	var out []pipeline.Outgoing
	var of []int
	for i := range messages {
		packed, err := pipeline.Pack(signals[i], 0)
		if err != nil {
			return nil, err
		}
		for _, p := range packed {
			out, of = append(out, pipeline.Outgoing{Body: p.Body}), append(of, i)
		}
	}
	failed := map[int]error{}
	for n, err := range d.to.Send(ctx, out) {
		if err != nil {
			failed[of[n]] = err
		}
	}
	for i, m := range messages {
		if failed[i] == nil {
			sent = append(sent, m)
		} else {
			err = failed[i]
		}
	}
	return sent, err
}

// visit takes up to limit messages from a queue, one call after the other, and
// removes those that use is done with. All others are shown again in the end.
// The queue is drained when the last call brought none.
func (d *DeadLetters) visit(
	ctx context.Context, url string, limit int, use func([]types.Message) (done []types.Message, err error),
) (drained bool, err error) {
	var held []types.Message
	defer func() {
		if showErr := d.show(ctx, url, held); err == nil {
			err = showErr
		}
	}()
	for left := limit; left > 0; {
		if end, ok := ctx.Deadline(); ok && time.Until(end) < letterReserve {
			return false, nil
		}
		answer, err := d.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: int32(min(left, sqsBatchEntries)),
			VisibilityTimeout: int32(hidden / time.Second), WaitTimeSeconds: int32(lookWait / time.Second),
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{
				types.MessageSystemAttributeNameSentTimestamp, types.MessageSystemAttributeNameApproximateReceiveCount,
			},
		})
		if err != nil {
			return false, fmt.Errorf("take dead letters: %w", err)
		}
		if len(answer.Messages) == 0 {
			return true, nil
		}
		left -= len(answer.Messages)
		done, err := use(answer.Messages)
		held = append(held, without(answer.Messages, done)...)
		if removeErr := d.remove(ctx, url, done); err == nil {
			err = removeErr
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// without are the messages that are not done.
func without(all, done []types.Message) []types.Message {
	is := map[string]bool{}
	for _, m := range done {
		is[aws.ToString(m.ReceiptHandle)] = true
	}
	var left []types.Message
	for _, m := range all {
		if !is[aws.ToString(m.ReceiptHandle)] {
			left = append(left, m)
		}
	}
	return left
}

func (d *DeadLetters) remove(ctx context.Context, url string, messages []types.Message) error {
	if len(messages) == 0 {
		return nil
	}
	entries := make([]types.DeleteMessageBatchRequestEntry, len(messages))
	for i, m := range messages {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle}
	}
	answer, err := d.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries})
	if err != nil {
		return fmt.Errorf("remove dead letters: %w", err)
	}
	for _, f := range answer.Failed {
		return fmt.Errorf("remove dead letters: %s: %s", aws.ToString(f.Code), aws.ToString(f.Message))
	}
	return nil
}

// show ends the hiding of messages, also when the time of the call is over. What
// cannot be shown shows itself later.
func (d *DeadLetters) show(ctx context.Context, url string, messages []types.Message) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), letterReserve)
	defer cancel()
	for begin := 0; begin < len(messages); begin += sqsBatchEntries {
		part := messages[begin:min(begin+sqsBatchEntries, len(messages))]
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(part))
		for i, m := range part {
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle}
		}
		if _, err := d.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: entries}); err != nil {
			return fmt.Errorf("show dead letters again: %w", err)
		}
	}
	return nil
}

// readLetter looks into a message.
func readLetter(queue string, m types.Message) pipeline.DeadLetter {
	letter := pipeline.DeadLetter{Queue: queue, ID: aws.ToString(m.MessageId)}
	if ms, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64); err == nil {
		letter.Sent = time.UnixMilli(ms).UTC()
	}
	if n, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"]); err == nil {
		letter.Receives = n
	}
	body := aws.ToString(m.Body)
	if queue == pipeline.RelayLetters {
		letter.Unreadable = givenUp(body)
		return letter
	}
	signals, _, err := pipeline.Unpack(body)
	if err != nil {
		letter.Unreadable = err.Error()
		return letter
	}
	letter.Signals = signals
	return letter
}

// givenUp says what a destination on failure tells of records of a stream.
//
// Source: AWS Lambda Developer Guide, "Retain discarded records for a DynamoDB
// event source", https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
func givenUp(body string) string {
	var told struct {
		Request struct {
			Condition string `json:"condition"`
		} `json:"requestContext"`
		Batch struct {
			Shard string    `json:"shardId"`
			Size  int       `json:"batchSize"`
			First time.Time `json:"approximateArrivalOfFirstRecord"`
			Last  time.Time `json:"approximateArrivalOfLastRecord"`
		} `json:"DDBStreamBatchInfo"`
	}
	if err := json.Unmarshal([]byte(body), &told); err != nil || told.Batch.Shard == "" {
		return "it is not what a stream tells of records that were given up"
	}
	return fmt.Sprintf("the relay gave up %d changes that came between %s and %s (%s, %s)", told.Batch.Size,
		told.Batch.First.UTC().Format(time.RFC3339), told.Batch.Last.UTC().Format(time.RFC3339), told.Request.Condition, told.Batch.Shard)
}
