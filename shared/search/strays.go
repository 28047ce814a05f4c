package search

import (
	"context"
	"slices"
)

// strays are the documents of a page whose place the index does not know, in
// the order of their content.
type strays struct {
	after   *mark // where the page begins
	crowds  crowds
	entries []stray
	bytes   int
	dropped bool // there are more, all behind the entries and beyond the page
}

type stray struct {
	at  position
	hit hit
}

func (s *strays) first() *stray {
	if len(s.entries) == 0 {
		return nil
	}
	return &s.entries[0]
}

// precedes reports whether the stray comes before a hit and the whole of the
// crowd that the hit is in by its i-th key.
func (s *stray) precedes(at position, i int, order []orderBy) bool {
	return s != nil && !s.at.sameCrowd(at, i) && s.at.compare(at, order) < 0
}

func (s *strays) shift() { s.entries = s.entries[1:] }

// strays looks at every document of the query and keeps those that match and
// come first after the mark, as many as a page can take.
func (s *search) strays(ctx context.Context, q query, after *mark, result *Result) (*strays, error) {
	kept := &strays{after: after}
	byID := orderOf(nil)
	hits, looked := s.stream(q, byID, nil, firstChunk), 0
	for {
		h, _, err := hits.next(ctx, mostChunk)
		if err != nil || h == nil {
			return kept, err
		}
		if looked++; looked > s.client.budget {
			return nil, s.tooCostly("the sort", looked)
		}
		result.Examined++
		d, matches, _, err := s.decide(ctx, h, result)
		if err == nil && d.Data == nil {
			d, err = h.document() // its place depends on its data
		}
		if err != nil {
			return nil, err
		}
		if !matches {
			continue
		}
		if err := kept.take(s, positionOf(d, s.order), h); err != nil {
			return nil, err
		}
	}
}

// take takes in a document that matches. It is kept where it comes after the
// mark; that of a crowd is known in any case.
func (s *strays) take(of *search, at position, h *hit) error {
	if _, crowded := at.crowded(); crowded {
		var err error
		if at, err = s.crowds.add(at); err != nil {
			return err
		}
	}
	if s.after == nil || s.after.compare(at, of.order) > 0 {
		s.insert(of, stray{at: at, hit: *h})
	}
	return nil
}

// insert keeps the entries in order and lets go of those that cannot be on the
// page, because the ones before them fill it.
func (s *strays) insert(of *search, e stray) {
	i, _ := slices.BinarySearchFunc(s.entries, e.at, func(x stray, at position) int { return x.at.compare(at, of.order) })
	s.entries = slices.Insert(s.entries, i, e)
	s.bytes += of.bytesOf(&e.hit)
	for n := len(s.entries); n > 2; n = len(s.entries) {
		size := of.bytesOf(&s.entries[n-1].hit)
		if n <= of.request.Limit+1 && s.bytes-size <= of.request.MaxBytes {
			return
		}
		s.entries[n-1] = stray{}
		s.entries = s.entries[:n-1]
		s.bytes -= size
		s.dropped = true
	}
}
