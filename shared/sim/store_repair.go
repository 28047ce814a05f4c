package sim

import (
	"context"
	"encoding/json"
	"strconv"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// Sweep goes through the whole change feed from a version on.
func (s *Store) Sweep(ctx context.Context, from doc.Version, visit func([]doc.Change) error) error {
	return s.sweep(ctx, from, func(changes []doc.Change) error {
		if len(changes) == 0 {
			return nil
		}
		return visit(changes)
	})
}

// scanPage is how many items a page of a scan has at most.
const scanPage = 20

// Scan reads a page of a segment of the table.
func (s *Store) Scan(ctx context.Context, q store.ScanQuery) (page store.ScanPage, err error) {
	segments := max(q.Segments, 1)
	err = s.again(ctx, "scan", func() {
		page = store.ScanPage{}
		for _, id := range sortedKeys(s.w.Table.items) {
			if bucketOf(id, segments) != q.Segment || string(id) <= q.After {
				continue
			}
			if len(page.Items) == scanPage {
				page.Next = string(page.Items[scanPage-1].Document.ID)
				return
			}
			i := s.w.Table.items[id]
			page.Items = append(page.Items, store.Scanned{
				Document: i.document(), Seen: i.seen(),
				Foreign: i.version == 0 || i.nonce == "" || i.bucket < 0 || i.collection != string(id.Collection()),
			})
		}
	})
	return page, err
}

// Standings tells how ids stand, read strongly.
func (s *Store) Standings(ctx context.Context, ids []doc.ID) (map[doc.ID]store.Standing, error) {
	standings := map[doc.ID]store.Standing{}
	ids = distinct(ids)
	for at := 0; at < len(ids); at += readSlice {
		items, err := s.batch(ctx, ids[at:min(at+readSlice, len(ids))])
		if err != nil {
			return nil, err
		}
		for id, i := range items {
			standings[id] = store.Standing{Version: i.standing(), Deleted: i.deleted, ExpiresAt: i.expires}
		}
	}
	return standings, nil
}

// PutCanary writes the document that stands for a partition of the feed.
func (s *Store) PutCanary(ctx context.Context, n int) (doc.Written, error) {
	bucket := n % s.w.Table.buckets
	for k := 0; ; k++ {
		if id := doc.ID("$canary/" + strconv.Itoa(k)); bucketOf(id, s.w.Table.buckets) == bucket {
			return s.Put(ctx, id, map[string]any{"partition": json.Number(strconv.Itoa(bucket))}, doc.Condition{})
		}
	}
}

// FeedHas reports whether the feed shows a write.
func (s *Store) FeedHas(ctx context.Context, w doc.Written) (has bool, err error) {
	err = s.again(ctx, "feed has", func() { has = w.Version > 0 && s.w.Table.Feed.at(w.ID).version >= w.Version })
	return has, err
}
