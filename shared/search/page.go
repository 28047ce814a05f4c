package search

import (
	"context"
	"errors"

	"holdfast/shared/doc"
)

// page fills the page: hits in order, those that the index is not sure of
// decided by looking, until the limit, the bytes or the budget are used up.
func (s *search) page(ctx context.Context, after *mark, result *Result) error {
	hits, strays, err := s.open(ctx, after, result)
	if err != nil {
		return err
	}
	var last spot // passed on this page
	bytes, examined := 0, 0
	cursor := func(at spot) (string, error) {
		m, err := strays.crowds.markAfter(at)
		if err != nil {
			return "", err
		}
		return encodeCursor(s.key, s.name, m)
	}
	end := func() (err error) {
		result.Next, err = cursor(last)
		return err
	}
	var places []spot
	result.CursorAfter = func(i int) (string, error) { return cursor(places[i]) }
	defer func() { result.Examined += examined }()
	wanted := func() int { return s.request.Limit - len(result.Documents) + 1 }
	h, at, err := hits.next(ctx, wanted())
	for {
		if err != nil {
			return err
		}
		stray := strays.first()
		key, crowded := at.crowded()
		// A page that is full only has to know whether there is more.
		if crowded && len(result.Documents) < s.request.Limit && !stray.precedes(at, key, s.order) {
			if examined >= s.client.budget {
				return end()
			}
			crowd := at
			var looked int
			h, at, looked, err = s.gather(ctx, hits, h, at, strays, s.client.budget-examined, result)
			examined += looked
			if errors.Is(err, errCrowdTooLarge) {
				if last.at == nil {
					return s.tooCostly("the sort", looked+1)
				}
				return end() // the next page has room for it
			}
			if stray = strays.first(); stray == nil || !stray.at.sameCrowd(crowd, key) {
				last = spot{at: crowd, past: true}
			}
			continue
		}
		var d doc.Document
		var text string
		var size int
		switch {
		case h == nil && stray == nil:
			if strays.dropped {
				return end()
			}
			return nil
		case h == nil || stray != nil && stray.at.compare(at, s.order) < 0:
			if d, err = s.documentOf(&stray.hit); err != nil {
				return err
			}
			text = stray.hit.Source.Raw
			size = s.bytesOf(&stray.hit)
			if s.full(result, bytes, size) {
				return end()
			}
			last = spot{at: stray.at}
			strays.shift()
		default:
			var matches, looked bool
			if d, matches, looked, err = s.decide(ctx, h, result); err != nil {
				return err
			}
			text, size = h.Source.Raw, s.bytesOf(h)
			if matches && s.full(result, bytes, size) {
				return end()
			}
			if !crowded {
				last = spot{at: at}
			}
			if looked {
				examined++
			}
			if looked && examined >= s.client.budget {
				if matches {
					result.Documents, result.Texts = append(result.Documents, d), append(result.Texts, text)
					places = append(places, last)
				}
				return end()
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

// first is the stream of hits that the page after a mark begins with.
func (s *search) first(after *mark) *stream {
	return s.stream(s.may(), s.order, after.searchAfter(s.order), s.request.Limit+1)
}

// numberOf asks how many documents that may match the query finds, as far as
// they may be looked at.
func (s *search) numberOf(q query) object {
	return object{"query": allOf(s.may(), q).dsl(), "size": 0, "track_total_hits": s.client.budget + 1}
}

// open begins the page after a position. The first chunk comes together with
// the question whether there are documents that the index may put at a wrong
// place; only where there are any, they are taken out of the index's order and
// put into it again by their content.
func (s *search) open(ctx context.Context, after *mark, result *Result) (*stream, *strays, error) {
	hits := s.first(after)
	lost := misplaced(s.order)
	if lost.constant == never {
		return hits, &strays{after: after}, nil
	}
	answers, err := s.searches(ctx, hits.request(), s.numberOf(lost))
	if err != nil {
		return nil, nil, err
	}
	many := answers[1].Hits.Total.Value
	if many == 0 {
		hits.take(answers[0].Hits.Hits)
		return hits, &strays{after: after}, nil
	}
	if many > s.client.budget {
		return nil, nil, s.tooCostly("the sort", many)
	}
	strays, err := s.strays(ctx, allOf(s.may(), lost), after, result)
	if err != nil {
		return nil, nil, err
	}
	return s.stream(allOf(s.may(), not(lost)), s.order, after.searchAfter(s.order), s.request.Limit+1), strays, nil
}
