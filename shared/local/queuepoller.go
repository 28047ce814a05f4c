package local

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/shared/local/engines"
)

// QueueHandler is a function on a queue.
type QueueHandler func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

// QueueMapping is an event source mapping from a queue to a function, with the
// settings that AWS has for one.
type QueueMapping struct {
	Function    Function
	Handler     QueueHandler
	BatchSize   int           // messages of one invocation at most; 0: 10
	Window      time.Duration // how long to gather for a batch; 0: what one receive brings goes, at most 10
	Concurrency int           // invocations at a time at most (MaximumConcurrency); 0: 2, the least AWS allows
	Partial     bool          // the function reports the messages that failed (ReportBatchItemFailures)
}

// queueAPI is what a poller needs of SQS.
type queueAPI interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
}

// SQS's limits of one call.
const (
	perCall     = 10
	longestPoll = 20 * time.Second
)

// queuePoller receives messages and calls the function, as the service behind
// an event source mapping does. Messages of an invocation that failed are not
// touched: they come back when their visibility timeout is over, until the
// queue's redrive policy moves them away.
type queuePoller struct {
	mapping  QueueMapping
	queue    queueAPI
	url      string
	arn      string
	inFlight *inFlight // nil: not kept
	log      *slog.Logger
}

// run polls until ctx ends; then invocations that are under way end first.
func (p *queuePoller) run(ctx context.Context) {
	p.releaseLeftOver(ctx)
	var workers sync.WaitGroup
	for range max(1, p.concurrency()) {
		workers.Go(func() { p.work(ctx) })
	}
	workers.Wait()
}

func (p *queuePoller) concurrency() int {
	if p.mapping.Concurrency == 0 {
		return 2
	}
	return p.mapping.Concurrency
}

func (p *queuePoller) work(ctx context.Context) {
	retry := backoff{first: retryFirst, last: retryLast}
	for ctx.Err() == nil {
		batch, err := p.gather(ctx)
		if len(batch) > 0 {
			p.deliver(ctx, batch)
		}
		if err == nil {
			retry.reset()
			continue
		}
		p.log.Warn("a queue cannot be read", "function", p.mapping.Function.Name, "error", err)
		sleep(ctx, retry.pause())
	}
}

// gather receives a batch. With an error it may have received some.
func (p *queuePoller) gather(ctx context.Context) ([]types.Message, error) {
	most := p.mapping.BatchSize
	if most <= 0 {
		most = perCall
	}
	batch, err := p.receive(ctx, min(most, perCall), longestPoll)
	if err != nil || len(batch) == 0 || p.mapping.Window <= 0 {
		return batch, err
	}
	bytes := 0
	for _, m := range batch {
		bytes += messageBytes(m)
	}
	for end := time.Now().Add(p.mapping.Window); len(batch) < most && ctx.Err() == nil; {
		// A message has a MiB at most: the next call must not burst the payload.
		room := (maxPayload - bytes) / (1 << 20)
		left := time.Until(end)
		if room < 1 || left <= 0 {
			break
		}
		more, err := p.receive(ctx, min(most-len(batch), perCall, room), left)
		if err != nil {
			return batch, err
		}
		for _, m := range more {
			bytes += messageBytes(m)
		}
		batch = append(batch, more...)
	}
	return batch, nil
}

// receive makes one call. It does not end with ctx while it may bring
// messages: those would be invisible to all until their timeout. So polls are
// short slices, between which ctx is looked at.
func (p *queuePoller) receive(ctx context.Context, most int, wait time.Duration) ([]types.Message, error) {
	const slice = time.Second
	for end := time.Now().Add(wait); ; {
		out, err := p.queue.ReceiveMessage(context.WithoutCancel(ctx), &sqs.ReceiveMessageInput{
			QueueUrl: &p.url, MaxNumberOfMessages: int32(most), WaitTimeSeconds: int32(min(slice, max(0, time.Until(end).Round(time.Second))) / time.Second),
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
			MessageAttributeNames:       []string{"All"},
		})
		if err != nil {
			return nil, err
		}
		if len(out.Messages) > 0 || ctx.Err() != nil || time.Until(end) < slice/2 {
			return out.Messages, nil
		}
	}
}

// deliver calls the function once and deletes what it handled.
func (p *queuePoller) deliver(ctx context.Context, batch []types.Message) {
	ctx = context.WithoutCancel(ctx)
	p.inFlight.add(batch)
	defer p.inFlight.remove(batch)
	f := p.mapping.Function
	event := events.SQSEvent{Records: make([]events.SQSMessage, len(batch))}
	for i, m := range batch {
		event.Records[i] = eventMessage(m, p.arn)
	}
	answer, err := invoke(ctx, f, newRequestID(), p.log, p.mapping.Handler, event)
	if err != nil {
		p.log.Warn("a batch of messages failed and comes back after the visibility timeout", "function", f.Name, "messages", len(batch), "error", err)
		return
	}
	failed := map[string]bool{}
	if p.mapping.Partial {
		for _, b := range answer.BatchItemFailures {
			failed[b.ItemIdentifier] = true
		}
	}
	var handled []types.Message
	for _, m := range batch {
		if id := aws.ToString(m.MessageId); failed[id] {
			delete(failed, id)
		} else {
			handled = append(handled, m)
		}
	}
	if len(failed) > 0 { // an identifier that is not in the batch fails all of it, as on AWS
		p.log.Error("a function reported a message that it was not given", "function", f.Name)
		return
	}
	p.delete(ctx, handled)
}

// delete acknowledges messages. What cannot be deleted comes again, which at
// least once allows.
func (p *queuePoller) delete(ctx context.Context, messages []types.Message) {
	retry := backoff{first: retryFirst, last: retryLast}
	for try := 1; len(messages) > 0 && try <= 5; try++ {
		var left []types.Message
		for begin := 0; begin < len(messages); begin += perCall {
			part := messages[begin:min(begin+perCall, len(messages))]
			entries := make([]types.DeleteMessageBatchRequestEntry, len(part))
			for i, m := range part {
				entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), ReceiptHandle: m.ReceiptHandle}
			}
			out, err := p.queue.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &p.url, Entries: entries})
			if err != nil {
				left = append(left, part...)
				continue
			}
			for _, f := range out.Failed {
				if i := int(aws.ToString(f.Id)[0] - '0'); !f.SenderFault && i < len(part) {
					left = append(left, part[i])
				}
			}
		}
		if messages = left; len(messages) > 0 {
			time.Sleep(retry.pause())
		}
	}
	if len(messages) > 0 {
		p.log.Warn("handled messages could not be deleted and will come again", "messages", len(messages))
	}
}

func messageBytes(m types.Message) int { return len(aws.ToString(m.Body)) }

// eventMessage is a message as an event source mapping hands it to a function.
func eventMessage(m types.Message, arn string) events.SQSMessage {
	e := events.SQSMessage{
		MessageId: aws.ToString(m.MessageId), ReceiptHandle: aws.ToString(m.ReceiptHandle),
		Body: aws.ToString(m.Body), Md5OfBody: aws.ToString(m.MD5OfBody), Md5OfMessageAttributes: aws.ToString(m.MD5OfMessageAttributes),
		Attributes: m.Attributes, MessageAttributes: map[string]events.SQSMessageAttribute{},
		EventSourceARN: arn, EventSource: "aws:sqs", AWSRegion: engines.Region,
	}
	for name, a := range m.MessageAttributes {
		e.MessageAttributes[name] = events.SQSMessageAttribute{
			StringValue: a.StringValue, BinaryValue: a.BinaryValue, DataType: aws.ToString(a.DataType),
			StringListValues: a.StringListValues, BinaryListValues: a.BinaryListValues,
		}
	}
	return e
}
