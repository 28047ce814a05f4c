package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// inFlight remembers in a file the messages that are with a function. When the
// whole stack is killed nobody works on them any more, but the queue hides them
// for the rest of their visibility timeout: the next start shows them again at
// once. AWS has no such thing and needs none, because its pollers do not die
// with somebody's terminal.
type inFlight struct {
	file string
	log  *slog.Logger

	mu       sync.Mutex
	receipts []string
}

// openInFlight reads what an earlier process left.
func openInFlight(file string, log *slog.Logger) (*inFlight, error) {
	f := &inFlight{file: file, log: log}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("messages in flight: %w", err)
	}
	if err := json.Unmarshal(text, &f.receipts); err != nil {
		return nil, fmt.Errorf("messages in flight, in %s: %w", file, err)
	}
	return f, nil
}

func (f *inFlight) add(messages []types.Message) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range messages {
		f.receipts = append(f.receipts, aws.ToString(m.ReceiptHandle))
	}
	f.save()
}

func (f *inFlight) remove(messages []types.Message) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.receipts = slices.DeleteFunc(f.receipts, func(r string) bool {
		return slices.ContainsFunc(messages, func(m types.Message) bool { return aws.ToString(m.ReceiptHandle) == r })
	})
	f.save()
}

// save writes the file. Without it a crash costs a wait, nothing more.
func (f *inFlight) save() {
	text, err := json.Marshal(f.receipts)
	if err == nil {
		err = writeFile(f.file, text)
	}
	if err != nil {
		f.log.Warn("the list of messages in flight cannot be written", "error", err)
	}
}

// take is what an earlier process left; it is forgotten.
func (f *inFlight) take() []string {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	left := f.receipts
	f.receipts = nil
	return left
}

// releaseLeftOver makes messages visible that a killed process was working on.
func (p *queuePoller) releaseLeftOver(ctx context.Context) {
	for part := range slices.Chunk(p.inFlight.take(), perCall) {
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(part))
		for i, receipt := range part {
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), ReceiptHandle: aws.String(receipt)}
		}
		// Receipts that are no longer good are refused one by one, and that is fine.
		if _, err := p.queue.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &p.url, Entries: entries}); err != nil {
			p.log.Warn("messages left in flight come back after their visibility timeout only", "error", err)
			return
		}
	}
}
