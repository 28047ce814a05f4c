package pipeline

import (
	"time"

	"holdfast/shared/doc"
)

// DeadLetter is a message that was given up.
type DeadLetter struct {
	Queue      string // SignalLetters or RelayLetters
	ID         string
	Sent       time.Time    // when it was first sent; zero when unknown
	Receives   int          // how often it was taken, from the queue before too; looking at it counts
	Signals    []doc.Signal // what is in it
	Unreadable string       // why there are no signals in it; "": there are
}

// The queues of dead letters.
const (
	SignalLetters = "signals" // what the indexer failed at again and again
	RelayLetters  = "relay"   // where in the table's stream changes were given up
)

// DeadCounts is about how many messages the queues of dead letters hold.
type DeadCounts struct{ Signals, Relay int }

// Sum is the number of all of them.
func (c DeadCounts) Sum() int { return c.Signals + c.Relay }

// Redriven says what became of dead letters.
type Redriven struct {
	Moved     int // their signals are on the queue again
	Discarded int // removed, since nothing in them can be read
	Remaining int // about so many are left
}
