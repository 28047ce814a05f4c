package search

import (
	"context"
	"fmt"
)

// Hits are fetched in chunks of about this many bytes of document text, so that
// a page never has many large documents in memory at once.
const (
	chunkBytes = 4 << 20
	firstChunk = 32 // before anything is known of the documents' size: 32 of the largest are 13 MB
	mostChunk  = 1000
)

// stream gives the hits of a query one after the other.
type stream struct {
	search *search
	query  query
	order  []orderBy
	after  position
	size   int // of the next chunk

	buffer []hit
	at     int
	ended  bool
	seen   int // hits, and
	bytes  int // their text, for the size of the next chunk
}

func (s *search) stream(q query, order []orderBy, after position, wanted int) *stream {
	return &stream{search: s, query: q, order: order, after: after, size: min(wanted, firstChunk)}
}

// next is the next hit with its position; nil at the end. The hit is valid
// until the following call.
func (st *stream) next(ctx context.Context, wanted int) (*hit, position, error) {
	if st.at == len(st.buffer) && !st.ended {
		st.buffer, st.at = nil, 0 // let go of the old chunk before the new one comes
		if err := st.fetch(ctx, wanted); err != nil {
			return nil, nil, err
		}
	}
	if st.at == len(st.buffer) {
		return nil, nil, nil
	}
	h := &st.buffer[st.at]
	p, ok := sortValues(h.Sort)
	if !ok || len(p) != len(st.order) {
		return nil, nil, unavailable(fmt.Errorf("a hit has no usable sort values"))
	}
	st.at++
	st.after = p
	return h, p, nil
}

// request is the search for the next chunk.
func (st *stream) request() object { return st.search.body(st.query, st.order, st.after, st.size) }

func (st *stream) fetch(ctx context.Context, wanted int) error {
	st.size = st.chunk(wanted)
	answers, err := st.search.searches(ctx, st.request())
	if err != nil {
		return err
	}
	st.take(answers[0].Hits.Hits)
	return nil
}

// chunk is how many hits to ask for: what is still wanted, more each time when
// that turned out not to be enough, and never more than fit.
func (st *stream) chunk(wanted int) int {
	n := st.size
	if st.seen > 0 {
		n = min(max(wanted, 2*st.size), mostChunk)
		n = min(n, max(1, chunkBytes/max(1, st.bytes/st.seen)))
	}
	return n
}

func (st *stream) take(hits []hit) {
	st.ended = len(hits) < st.size
	st.buffer, st.at = hits, 0
	st.seen += len(hits)
	for i := range hits {
		st.bytes += len(hits[i].Source.Raw)
	}
}
