package search

import (
	"context"
	"errors"
)

// errCrowdTooLarge says that a crowd has more documents than may still be looked
// at.
var errCrowdTooLarge = errors.New("a crowd has too many documents")

// gather takes the crowd that begins with a hit out of the stream and puts those
// of its documents that belong on the page among the strays. It gives the hit
// after the crowd, and how many documents it looked at, at most as many as
// there is room for.
func (s *search) gather(ctx context.Context, hits *stream, h *hit, at position, into *strays, room int, result *Result) (*hit, position, int, error) {
	i, _ := at.crowded()
	looked := 0
	for first := at; h != nil && at.sameCrowd(first, i); {
		if looked == room {
			return nil, nil, looked, errCrowdTooLarge
		}
		looked++
		d, matches, _, err := s.decide(ctx, h, result)
		if err == nil && d.Data == nil {
			d, err = h.document()
		}
		if err != nil {
			return nil, nil, looked, err
		}
		if matches {
			if err := into.take(s, s.wholePosition(at, &d), h); err != nil {
				return nil, nil, looked, err
			}
		}
		if h, at, err = hits.next(ctx, mostChunk); err != nil {
			return nil, nil, looked, err
		}
	}
	return h, at, looked, nil
}
