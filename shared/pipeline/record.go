package pipeline

import (
	"strings"
	"time"

	"holdfast/shared/doc"
)

// Event says what a stream record is about.
type Event string

// The events of a DynamoDB stream.
const (
	Insert Event = "INSERT"
	Modify Event = "MODIFY"
	Remove Event = "REMOVE"
)

// Record is one change of one item of the documents table, as its stream told
// it. It never carries the document's data.
type Record struct {
	Sequence string // the stream's sequence number, a decimal of up to 40 digits
	Event    Event
	ByTTL    bool   // the removal was made by DynamoDB's time to live; for the log, the judgement is the same
	ID       doc.ID // "" when Unreadable says why there is none
	New, Old *Image
	// Unreadable says why the record cannot be understood: its keys are not
	// those of a document. It names no content.
	Unreadable string
}

// Image is the part of an item that the relay looks at.
type Image struct {
	Version    doc.Version // 0: the attribute is missing or no version
	Collection string      // "": the attribute is missing
	Nonce      string      // "": the attribute is missing
	Deleted    bool        // a tombstone
	ExpiresAt  time.Time   // zero: no logical end
}

// compareSequences orders sequence numbers by their value; they are decimals
// too long for an integer and may have leading zeros.
func compareSequences(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
