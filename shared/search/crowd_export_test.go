package search

import (
	"strings"

	"holdfast/shared/doc"
)

// Cut is how many bytes of a string the index keeps.
const Cut = keptBytes

// MaxCrowdText and MaxTurnBytes are the limits of crowds.
const (
	MaxCrowdText = maxCrowdText
	MaxTurnBytes = maxTurnBytes
)

// CrowdCursor is where a cursor stands.
type CrowdCursor struct {
	order []orderBy
	mark  *mark
	at    position
	Size  int // of the cursor in bytes
}

// CursorAmong is the cursor behind a document, or with past behind its crowd,
// on a page that has met the documents. It has been written and read.
func CursorAmong(keys []SortKey, met []doc.Document, last doc.Document, past bool) (CrowdCursor, error) {
	s := CrowdCursor{order: orderOf(keys), at: positionOf(last, orderOf(keys))}
	var c crowds
	for _, d := range met {
		if p := positionOf(d, s.order); isCrowded(p) {
			if _, err := c.add(p); err != nil {
				return s, err
			}
		}
	}
	m, err := c.markAfter(spot{at: s.at, past: past})
	if err != nil {
		return s, err
	}
	text, err := encodeCursor([]byte("key"), "query", m)
	if err != nil {
		return s, err
	}
	s.Size = len(text)
	s.mark, err = decodeCursor([]byte("key"), text, "query", s.order)
	return s, err
}

func isCrowded(p position) bool {
	_, is := p.crowded()
	return is
}

// Shares reports whether a document is in the crowd that the cursor is about.
func (s CrowdCursor) Shares(d doc.Document) bool {
	i, crowded := s.at.crowded()
	return crowded && positionOf(d, s.order).sameCrowd(s.at, i)
}

// After reports whether a document is told after the cursor.
func (s CrowdCursor) After(d doc.Document) bool {
	return s.mark.compare(positionOf(d, s.order), s.order) > 0
}

// Fetched reports whether the index is asked for the document again after the
// cursor.
func (s CrowdCursor) Fetched(d doc.Document) bool {
	p := positionOf(d, s.order)
	for i, key := range p {
		// As the index has it.
		if text, is := key.(string); is && strings.HasPrefix(text, string(stringTag)) && s.order[i].key.Pseudo == "" {
			p[i] = orderKey(text[1:])
		}
	}
	return p.compare(s.mark.searchAfter(s.order), s.order) > 0
}
