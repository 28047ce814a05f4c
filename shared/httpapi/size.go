package httpapi

// size is what a piece of an answer takes, in bytes: of the answer, and of the
// payload that a function returns it in.
type size struct{ answer, payload int }

func sizeOf(text []byte) size { return size{answer: len(text), payload: payloadSize(text)} }

func (s size) plus(other size) size {
	return size{answer: s.answer + other.answer, payload: s.payload + other.payload}
}

// has reports whether so much is left.
func (b budget) has(s size) bool { return s.answer <= b.answer && s.payload <= b.payload }

// less is what is left after so much.
func (b budget) less(s size) budget {
	return budget{answer: b.answer - s.answer, payload: b.payload - s.payload}
}
