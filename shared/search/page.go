package search

import (
	"context"
	"fmt"

	"holdfast/shared/doc"
)

// page fills the page: hits in order, those that the index is not sure of
// decided by looking, until the limit, the bytes or the budget are used up.
func (s *search) page(ctx context.Context, after position, result *Result) error {
	hits, strays, err := s.open(ctx, after, result)
	if err != nil {
		return err
	}
	last, bytes, examined := after, 0, 0
	end := func(at position) error {
		next, err := encodeCursor(s.key, s.name, at)
		if err != nil {
			return fmt.Errorf("write a cursor: %w", err)
		}
		result.Next = next
		return nil
	}
	var places []position
	result.CursorAfter = func(i int) (string, error) { return encodeCursor(s.key, s.name, places[i]) }
	defer func() { result.Examined += examined }()
	wanted := func() int { return s.request.Limit - len(result.Documents) + 1 }
	h, at, err := hits.next(ctx, wanted())
	for {
		if err != nil {
			return err
		}
		var d doc.Document
		var text string
		var size int
		switch stray := strays.first(); {
		case h == nil && stray == nil:
			if strays.dropped {
				return end(last)
			}
			return nil
		case h == nil || stray != nil && stray.at.compare(at, s.order) < 0:
			if d, err = s.documentOf(&stray.hit); err != nil {
				return err
			}
			text = stray.hit.Source.Raw
			size = s.bytesOf(&stray.hit)
			if s.full(result, bytes, size) {
				return end(last)
			}
			last = stray.at
			strays.shift()
		default:
			var matches, looked bool
			if d, matches, looked, err = s.decide(ctx, h, result); err != nil {
				return err
			}
			text, size = h.Source.Raw, s.bytesOf(h)
			if matches && s.full(result, bytes, size) {
				return end(last)
			}
			last = at
			if looked {
				examined++
			}
			if looked && examined >= s.client.budget {
				if matches {
					result.Documents, result.Texts = append(result.Documents, d), append(result.Texts, text)
					places = append(places, last)
				}
				return end(last)
			}
			h, at, err = hits.next(ctx, wanted())
			if !matches {
				continue
			}
		}
		result.Documents, result.Texts = append(result.Documents, d), append(result.Texts, text)
		places = append(places, last)
		bytes += size
	}
}

// full reports whether a further document would be too much for the page.
func (s *search) full(result *Result, bytes, size int) bool {
	n := len(result.Documents)
	return n == s.request.Limit || n > 0 && bytes+size > s.request.MaxBytes
}

// bytesOf is about what the hit takes in an answer.
func (s *search) bytesOf(h *hit) int {
	return len(h.Source.Raw) + 2*len(h.Source.ID) + envelopeBytes
}

// open begins the page after a position. The first chunk comes together with
// the question whether there are documents that the index may put at a wrong
// place; only where there are any, they are taken out of the index's order and
// put into it again by their content.
func (s *search) open(ctx context.Context, after position, result *Result) (*stream, *strays, error) {
	hits := s.stream(s.may(), s.order, after, s.request.Limit+1)
	lost := misplaced(s.order)
	if lost.constant == never {
		return hits, &strays{}, nil
	}
	ask := object{"query": allOf(s.may(), lost).dsl(), "size": 0, "track_total_hits": s.client.budget + 1}
	answers, err := s.client.searches(ctx, s.aliases,
		s.body(hits.query, s.order, after, hits.size), ask)
	if err != nil {
		return nil, nil, err
	}
	many := answers[1].Hits.Total.Value
	if many == 0 {
		hits.take(answers[0].Hits.Hits)
		return hits, &strays{}, nil
	}
	if many > s.client.budget {
		return nil, nil, s.tooCostly("the sort", many)
	}
	strays, err := s.strays(ctx, allOf(s.may(), lost), after, result)
	if err != nil {
		return nil, nil, err
	}
	return s.stream(allOf(s.may(), not(lost)), s.order, after, s.request.Limit+1), strays, nil
}
