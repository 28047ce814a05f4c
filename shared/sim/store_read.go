package sim

import (
	"context"

	"holdfast/shared/doc"
	"holdfast/shared/store"
	"holdfast/shared/value"
)

// readSlice is how many items one request of many brings at most.
const readSlice = 100

// Load reads a document strongly. The error is of kind NotFound where there is
// no live one.
func (s *Store) Load(ctx context.Context, id doc.ID) (doc.Document, error) {
	found, err := s.get(ctx, id)
	if err != nil {
		return doc.Document{}, err
	}
	if found.live(s.clk.Now()) == 0 {
		return doc.Document{}, doc.Errorf(doc.NotFound, "there is no document of this id")
	}
	return found.document(), nil
}

// batch reads items, strongly, and asks again for what was left out.
func (s *Store) batch(ctx context.Context, ids []doc.ID) (items map[doc.ID]*item, err error) {
	items = map[doc.ID]*item{}
	read := 0
	for read < len(ids) {
		from, to := read, len(ids)
		if s.p != nil && to-from > 1 && s.p.chance(s.w.rates.Unprocessed) {
			to = from + 1 + s.p.rng.IntN(to-from-1)
		}
		err = s.again(ctx, "read many", func() {
			for _, id := range ids[from:to] {
				if i := s.w.Table.items[id]; i != nil {
					items[id] = i
				}
			}
		})
		if err != nil {
			return items, err
		}
		read = to
	}
	return items, nil
}

func textBytes(i *item) int {
	if i.deleted {
		return 64
	}
	return len(value.Append(nil, i.data)) + 64
}

// LoadMany reads many documents, strongly, as many as fit.
func (s *Store) LoadMany(ctx context.Context, ids []doc.ID, maxBytes int) (store.LoadResult, error) {
	ids = distinct(ids)
	result := store.LoadResult{Documents: map[doc.ID]doc.Document{}}
	size := 0
	now := s.clk.Now()
	for at := 0; at < len(ids); at += readSlice {
		part := ids[at:min(at+readSlice, len(ids))]
		items, err := s.batch(ctx, part)
		if err != nil {
			if at == 0 {
				return store.LoadResult{}, err
			}
			result.Remaining = append(result.Remaining, ids[at:]...)
			return result, nil
		}
		for k, id := range part {
			i := items[id]
			if i.live(now) == 0 {
				continue
			}
			bytes := textBytes(i)
			if maxBytes > 0 && size > 0 && size+bytes > maxBytes {
				result.Remaining = append(result.Remaining, ids[at+k:]...)
				return result, nil
			}
			size += bytes
			result.Documents[id] = i.document()
		}
	}
	return result, nil
}

// Revisions tells what the table holds for the ids, read strongly, in slices.
func (s *Store) Revisions(ctx context.Context, ids []doc.ID, maxBytes int, visit func(found []doc.Document, absent []doc.ID) error) error {
	ids = distinct(ids)
	for at := 0; at < len(ids); at += readSlice {
		part := ids[at:min(at+readSlice, len(ids))]
		items, err := s.batch(ctx, part)
		if err != nil {
			return err
		}
		var found []doc.Document
		var absent []doc.ID
		size := 0
		for _, id := range part {
			i, ok := items[id]
			if !ok {
				absent = append(absent, id)
				continue
			}
			bytes := textBytes(i)
			if maxBytes > 0 && size > 0 && size+bytes > maxBytes {
				if err := visit(found, absent); err != nil {
					return err
				}
				found, absent, size = nil, nil, 0
			}
			found, size = append(found, i.document()), size+bytes
		}
		if err := visit(found, absent); err != nil {
			return err
		}
	}
	return nil
}

func distinct(ids []doc.ID) []doc.ID {
	seen := make(map[doc.ID]bool, len(ids))
	out := make([]doc.ID, 0, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// Capture gives the newest version of each document of the collections that the
// feed shows, bucket by bucket, the end of each read twice.
func (s *Store) Capture(ctx context.Context, q store.CaptureQuery) ([]doc.Signal, error) {
	wanted := map[doc.Collection]bool{}
	for _, c := range q.Collections {
		wanted[c] = true
	}
	newest := map[doc.ID]doc.Version{}
	err := s.sweep(ctx, q.From, func(changes []doc.Change) error {
		for _, c := range changes {
			if wanted[c.Collection] {
				newest[c.ID] = max(newest[c.ID], c.Version)
			}
		}
		if q.MaxEntries > 0 && len(newest) > q.MaxEntries {
			return doc.Errorf(doc.QueryTooCostly, "more than %d documents", q.MaxEntries).With("limit", q.MaxEntries)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var signals []doc.Signal
	for _, id := range sortedKeys(newest) {
		signals = append(signals, doc.Signal{ID: id, Version: newest[id]})
	}
	return signals, nil
}

// feedPage is how many entries one request of the feed brings at most.
const feedPage = 40

// sweep goes through every bucket from a version on, page by page, and through
// the end of each once more.
func (s *Store) sweep(ctx context.Context, from doc.Version, visit func([]doc.Change) error) error {
	end := doc.VersionAt(s.clk.Now().Add(-s.w.margin))
	for bucket := range s.w.Table.buckets {
		for _, start := range []doc.Version{from, max(from, end)} {
			after, afterID := start, doc.ID("")
			for {
				var page []doc.Change
				err := s.again(ctx, "feed", func() { page = s.w.Table.Feed.page(bucket, after, afterID, feedPage) })
				if err != nil {
					return err
				}
				if err := visit(page); err != nil {
					return err
				}
				if len(page) < feedPage {
					break
				}
				last := page[len(page)-1]
				after, afterID = last.Version, last.ID
			}
		}
	}
	return nil
}
