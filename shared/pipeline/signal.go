package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"

	"holdfast/shared/doc"
)

const (
	// MaxSignals is the most signals in one message.
	MaxSignals = 100
	// MaxMessageBytes is the largest body this package writes. Amazon SQS took
	// 256 KiB for a message, and for all messages of one call, for most of its
	// life; staying below leaves room for attributes.
	MaxMessageBytes = 200 << 10
	// messageVersion is the number of the message format.
	messageVersion = 1
)

// envelope is the body of a message.
type envelope struct {
	Version int          `json:"v"`
	Signals []doc.Signal `json:"signals"`
	// Tries counts how often these signals went back because of the
	// environment. It stretches the delay of the next message and nothing else:
	// it has no end and is not an attempt at indexing a document.
	Tries int `json:"tries,omitempty"`
	// Again says that these signals are no news of a write: their age says
	// nothing about how long news takes.
	Again bool `json:"again,omitempty"`
}

// Packed is a message ready to be sent, with the signals that are in it.
type Packed struct {
	Body    string
	Signals []doc.Signal
}

// Pack writes signals into as few messages as the limits allow, in order.
func Pack(signals []doc.Signal, tries int) ([]Packed, error) {
	var end []byte
	if tries > 0 {
		end = fmt.Appendf(end, `,"tries":%d`, tries)
	}
	return pack(signals, end)
}

// PackAgain is Pack for signals about documents that were signalled before, or
// may have been, such as those that repair finds missing in the index.
func PackAgain(signals []doc.Signal) ([]Packed, error) {
	return pack(signals, []byte(`,"again":true`))
}

// pack writes messages that end with these members.
func pack(signals []doc.Signal, members []byte) ([]Packed, error) {
	frame := len(`{"v":1,"signals":[]}`) + 20 + len(members)
	var packed []Packed
	for start := 0; start < len(signals); {
		size, end := frame, start
		var parts [][]byte
		for end < len(signals) && end-start < MaxSignals {
			part, err := encodeSignal(signals[end])
			if err != nil {
				return nil, err
			}
			if end > start && size+len(part)+1 > MaxMessageBytes {
				break
			}
			size += len(part) + 1
			parts = append(parts, part)
			end++
		}
		body := fmt.Appendf(nil, `{"v":%d,"signals":[`, messageVersion)
		body = append(body, bytes.Join(parts, []byte(","))...)
		body = append(body, ']')
		body = append(body, members...)
		body = append(body, '}')
		packed = append(packed, Packed{Body: string(body), Signals: signals[start:end]})
		start = end
	}
	return packed, nil
}

// Amazon SQS refuses bodies with U+FFFE or U+FFFF, which an id may contain.
var (
	notFFFE = []byte("\uFFFE")
	notFFFF = []byte("\uFFFF")
)

func encodeSignal(s doc.Signal) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("encode a signal: %w", err)
	}
	part := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if bytes.Contains(part, notFFFE[:2]) {
		part = bytes.ReplaceAll(part, notFFFE, []byte(`\ufffe`))
		part = bytes.ReplaceAll(part, notFFFF, []byte(`\uffff`))
	}
	return part, nil
}

// Unpack reads a message's body. An error means that the message can never be
// understood by this program: it belongs to the dead letters.
func Unpack(body string) (signals []doc.Signal, tries int, err error) {
	e, err := unpack(body)
	return e.Signals, e.Tries, err
}

func unpack(body string) (e envelope, err error) {
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return envelope{}, fmt.Errorf("read a message: %w", err)
	}
	switch {
	case e.Version != messageVersion:
		return envelope{}, fmt.Errorf("read a message: its format is number %d, this program knows %d", e.Version, messageVersion)
	case len(e.Signals) == 0:
		return envelope{}, fmt.Errorf("read a message: it has no signals")
	case e.Tries < 0:
		return envelope{}, fmt.Errorf("read a message: its tries are negative")
	}
	for i, s := range e.Signals {
		if _, err := doc.ParseStoredID(string(s.ID)); err != nil {
			return envelope{}, fmt.Errorf("read a message: signal %d: %w", i, err)
		}
		if s.Version <= 0 {
			return envelope{}, fmt.Errorf("read a message: signal %d has version %d", i, s.Version)
		}
	}
	return e, nil
}
