package search

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"

	"holdfast/shared/doc"
)

// mark is where a page ends and the next one begins.
type mark struct {
	// at are the sort values. In a crowd they end with the key that is crowded,
	// of which there is what all of the crowd have in common.
	at position
	// within are, in a crowd, the places of that key and of all after it.
	within []edge
	// past says that the mark is behind the whole crowd, instead of within.
	past bool
}

// spot is a place that a page has passed: that of a document, or, with past, the
// end of the crowd that it is in.
type spot struct {
	at   position
	past bool
}

// inCrowd reports whether the mark is about a crowd.
func (m *mark) inCrowd() bool { return m.past || m.within != nil }

// edge is where a mark stands among the values of one key: at a value or, where
// that is too long for a cursor, at a string of which only those bytes are told
// in which strings of the crowd come apart from it.
type edge struct {
	value any
	turns []turn
	long  bool
}

// turn is what an edge's string has where another one differs from it for the
// first time.
type turn struct {
	at     int
	symbol int // a byte, or ended
}

// ended comes before all bytes.
const ended = -1

// maxTurnBytes is how much of a cursor may be turns.
const maxTurnBytes = 4 << 10

func symbolAt(s string, i int) int {
	if i < len(s) {
		return int(s[i])
	}
	return ended
}

// compare tells where a key stands to the edge in an ascending order. For a
// string that was compared with the edge's when the turns were taken this is
// exact: it differs from it first at one of them. Any other one is told from it
// by the same bytes.
func (e edge) compare(key any) int {
	if !e.long {
		return compareSortValues(key, e.value)
	}
	text, _ := key.(string)
	for _, t := range e.turns {
		if c := cmp.Compare(symbolAt(text, t.at), t.symbol); c != 0 {
			return c
		}
	}
	return 0
}

// compare tells where a document stands to the mark: 0 or less says that it was
// told before it.
func (m *mark) compare(p position, order []orderBy) int {
	if !m.inCrowd() {
		return p.compare(m.at, order)
	}
	i := len(m.at) - 1
	turned := func(c int, by orderBy) int {
		if by.desc {
			return -c
		}
		return c
	}
	if c := p[:i].compare(m.at[:i], order[:i]); c != 0 {
		return c
	}
	beginning, _ := m.at[i].(string)
	if theirs, is := crowdOf(p[i]); !is || theirs != beginning {
		return turned(compareSortValues(p[i], lowest(beginning)), order[i])
	}
	if m.past {
		return -1
	}
	for j, e := range m.within {
		if c := turned(e.compare(p[i+j]), order[i+j]); c != 0 {
			return c
		}
	}
	return 0
}

// fits reports whether the mark can be one among so many keys.
func (m *mark) fits(keys int) bool {
	if !m.inCrowd() {
		_, crowded := m.at.crowded()
		return len(m.at) == keys && !crowded
	}
	i := len(m.at) - 1
	if i < 0 || len(m.at) >= keys || m.past && m.within != nil || !m.past && i+len(m.within) != keys {
		return false
	}
	_, crowded := m.at[:i].crowded()
	beginning, _ := m.at[i].(string)
	return !crowded && len(beginning) > crowdBytes-utf8.UTFMax+1
}

// searchAfter are the sort values after which the index has all that comes after
// the mark, and the whole of a crowd that it is within; nil for no mark.
func (m *mark) searchAfter(order []orderBy) position {
	if m == nil {
		return nil
	}
	if !m.inCrowd() {
		return m.at
	}
	i := len(m.at) - 1
	after := slices.Clone(m.at)
	beginning, _ := m.at[i].(string)
	after[i] = lowest(beginning)
	if order[i].desc != m.past {
		after[i] = highest(beginning)
	}
	for _, by := range order[i+1:] {
		after = append(after, by.bound(m.past))
	}
	return after
}

// markAfter is the mark behind a spot. Where that is a document in a crowd, all
// that matches of the crowd has to be among the members.
//
// Documents of the crowd stay on their side of the mark whatever becomes of the
// others, also of the one that the mark is behind. The error is of kind
// QueryTooCostly where too many strings differ from that one's in different
// places.
func (c *crowds) markAfter(s spot) (*mark, error) {
	p := s.at
	i, crowded := p.crowded()
	if !crowded {
		return &mark{at: p}, nil
	}
	beginning, _ := crowdOf(p[i])
	m := &mark{at: append(slices.Clone(p[:i]), beginning), past: s.past}
	if s.past {
		return m, nil
	}
	bytes := 0
	for j := i; j < len(p); j++ {
		if _, long := crowdOf(p[j]); !long {
			m.within = append(m.within, edge{value: p[j]})
			continue
		}
		e := edge{long: true, turns: c.turns(p, i, j)}
		bytes += len(appendTurns(nil, e.turns))
		m.within = append(m.within, e)
	}
	if bytes > maxTurnBytes {
		return nil, doc.Errorf(doc.QueryTooCostly, "the sort has too many strings that are the same in their first %d bytes for a page to end among them", crowdBytes).
			With("limit", maxTurnBytes)
	}
	return m, nil
}

// turns are those of the j-th key of p, which is in a crowd by its i-th.
func (c *crowds) turns(p position, i, j int) []turn {
	text, _ := p[j].(string)
	var places []int
	look := func(other string) {
		if other != text {
			places = append(places, sameBytes(text, other))
		}
	}
	for other := range c.texts {
		// That some of them are of other documents only makes more turns.
		if j > i || beginningIs(other, text) {
			look(other)
		}
	}
	for _, member := range c.members {
		if j == i || !member.sameCrowd(p, i) {
			continue
		}
		if other, short := member[j].(string); short {
			if _, long := crowdOf(other); !long {
				look(other)
			}
		}
	}
	slices.Sort(places)
	places = slices.Compact(places)
	turns := make([]turn, len(places))
	for n, at := range places {
		turns[n] = turn{at: at, symbol: symbolAt(text, at)}
	}
	return turns
}

func beginningIs(a, b string) bool {
	x, _ := crowdOf(a)
	y, _ := crowdOf(b)
	return x == y
}

// sameBytes is how many bytes a and b begin with alike.
func sameBytes(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// appendTurns writes turns for a cursor: the distance to the one before, doubled,
// one more where the string has ended, else followed by the byte.
func appendTurns(dst []byte, turns []turn) []byte {
	last := 0
	for _, t := range turns {
		distance := uint64(t.at-last) << 1
		last = t.at
		if t.symbol == ended {
			dst = binary.AppendUvarint(dst, distance|1)
			continue
		}
		dst = append(binary.AppendUvarint(dst, distance), byte(t.symbol))
	}
	return dst
}

func readTurns(b []byte) ([]turn, bool) {
	var turns []turn
	at := 0
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		if n <= 0 || v>>1 > math.MaxInt32 {
			return nil, false
		}
		b = b[n:]
		t := turn{at: at + int(v>>1), symbol: ended}
		if v&1 == 0 {
			if len(b) == 0 {
				return nil, false
			}
			t.symbol, b = int(b[0]), b[1:]
		}
		at = t.at
		turns = append(turns, t)
	}
	return turns, true
}
