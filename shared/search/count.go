package search

import (
	"context"
	"fmt"
)

// counting asks for the number of documents that may match, and of those among
// them about which the index is sure.
func (s *search) counting() object {
	body := object{"query": s.may().dsl(), "size": 0, "track_total_hits": true}
	if s.reading.sure.constant == undecided {
		body["aggs"] = object{sureName: object{"filter": s.reading.sure.dsl()}}
	}
	return body
}

// count counts the documents that match. Where the index is not sure about all
// that may match, the others are looked at, as long as they are within the
// budget; with a further condition all of them are.
func (s *search) count(ctx context.Context, result *Result) error {
	answers, err := s.searches(ctx, s.counting())
	if err != nil {
		return err
	}
	total, sure := answers[0].Hits.Total.Value, 0
	switch s.reading.sure.constant {
	case always:
		sure = total
	case undecided:
		part, err := answers[0].Aggregations.part(sureName)
		if err != nil {
			return unavailable(fmt.Errorf("read a count of opensearch: %w", err))
		}
		sure = part.DocCount
	}
	doubtful := total - sure
	candidates := allOf(s.may(), not(s.reading.sure))
	if s.request.Where != nil {
		sure, doubtful, candidates = 0, total, s.may()
	}
	if doubtful > s.client.budget {
		return s.tooCostly("the count", doubtful)
	}
	result.Count, result.CountExact = sure, true
	if doubtful == 0 {
		return nil
	}
	hits := s.stream(candidates, orderOf(nil), nil, firstChunk)
	for looked := 0; ; looked++ {
		h, _, err := hits.next(ctx, mostChunk)
		if err != nil {
			return err
		}
		if h == nil {
			return nil
		}
		if looked == s.client.budget {
			return s.tooCostly("the count", looked+1)
		}
		_, matches, _, err := s.decide(ctx, h, result)
		if err != nil {
			return err
		}
		result.Examined++
		if matches {
			result.Count++
		}
	}
}
