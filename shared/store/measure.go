package store

import (
	"encoding/json"

	"holdfast/shared/doc"
)

// envelopeBytes is what a document takes in an answer besides its data and id:
// member names, version and moments, generously.
const envelopeBytes = 256

// answerBytes is at least the length of the document's JSON text in an answer;
// memory is roughly what it takes until then.
func answerBytes(d doc.Document) (text, memory int) {
	text, memory = measure(d.Data)
	// The id stands in the envelope and may be a member name besides.
	return text + 2*textBytes(string(d.ID)) + envelopeBytes, memory
}

// Sizes of Go values on a 64-bit machine, to the nearest that matters.
const (
	memString = 32 // header in its interface's box, and rounding of the allocation
	memSlot   = 16 // an interface
	memMember = 64 // name, value and their share of the map's table
	memHeader = 64 // an empty map or slice
)

// measure gives the length of v's JSON text and roughly what v takes in memory.
// The two differ by an order of magnitude for arrays of small numbers, so who
// bounds memory must not count text.
func measure(v any) (text, memory int) {
	switch v := v.(type) {
	case nil:
		return 4, memSlot
	case bool:
		return 5, memSlot
	case json.Number:
		return len(v), memSlot + memString + len(v)
	case string:
		return textBytes(v), memSlot + memString + len(v)
	case []any:
		text, memory = 2+len(v), memHeader
		for _, element := range v {
			t, m := measure(element)
			text, memory = text+t, memory+m
		}
	case map[string]any:
		text, memory = 2+2*len(v), memHeader
		for name, member := range v {
			t, m := measure(member)
			text, memory = text+t+textBytes(name), memory+m+memMember+len(name)
		}
	}
	return text, memory
}

// textBytes is the length of s as a JSON string, where control characters take
// six bytes, quotes and backslashes two.
func textBytes(s string) int {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			n++
		case c < 0x20:
			n += 5
		}
	}
	return n
}
