package pipeline

import (
	"context"
	"time"
)

// Message is a message taken from the queue.
type Message struct {
	ID       string
	Body     string
	Sent     time.Time // zero when unknown
	Receives int       // how often it was taken from the queue, this time included
}

// Outgoing is a message to be sent.
type Outgoing struct {
	Body  string
	Delay time.Duration // hidden for so long, in whole seconds, at most MaxDelay
}

// MaxDelay is the longest delay of a message in Amazon SQS.
const MaxDelay = 15 * time.Minute

// Sender puts messages on the queue.
type Sender interface {
	// Send sends every message it can. The answer is nil when all were sent,
	// else it has one entry per message, nil for those that were sent. A message
	// whose sending is uncertain counts as failed; it may arrive twice.
	Send(ctx context.Context, out []Outgoing) []error
}

// Queue is what carries signals from the relay to the indexer.
type Queue interface {
	Sender
	// Depth is about how many messages are in the queue: waiting, taken and not
	// yet acknowledged, and delayed.
	Depth(ctx context.Context) (int, error)
}
