package httpapi

import "bytes"

const (
	// answerBytes is where answers stop: pages end early, loads name what
	// remains.
	answerBytes = 5_000_000
	// payloadBytes is where they stop as text inside the payload that a function
	// returns, with room for its headers: AWS Lambda takes 6 MB (6,291,456 bytes;
	// AWS Lambda Developer Guide, "Lambda quotas"), and a body full of quotes is
	// nearly twice as long in there as outside.
	payloadBytes = 6_000_000
)

// budget is what is left of an answer's size.
type budget struct{ answer, payload int }

// newBudget is the budget of one answer less what its frame takes.
func newBudget(frame int) *budget {
	return &budget{answer: answerBytes - frame, payload: payloadBytes - 2*frame}
}

// take takes a piece of the answer out of the budget, if it is in there.
func (b *budget) take(piece []byte) bool {
	payload := payloadSize(piece)
	if len(piece) > b.answer || payload > b.payload {
		return false
	}
	b.answer -= len(piece)
	b.payload -= payload
	return true
}

// payloadSize is the length of JSON text as a JSON string inside a payload.
func payloadSize(text []byte) int {
	n := len(text) + bytes.Count(text, []byte{'"'}) + bytes.Count(text, []byte{'\\'}) + bytes.Count(text, []byte{'\n'})
	// Two separators of Unicode, three bytes as they are, six escaped.
	return n + 3*(bytes.Count(text, []byte("\u2028"))+bytes.Count(text, []byte("\u2029")))
}
