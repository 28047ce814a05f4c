package store

import (
	"context"
	"time"

	"holdfast/shared/doc"
)

// Standing is how an id stands in the table, without the document.
type Standing struct {
	Version   doc.Version // of the item; 1 for one that another tool left without a usable version
	Deleted   bool
	ExpiresAt time.Time
}

// Standings tells how ids stand, read strongly: tombstones and expired documents
// included. Ids for which there is no item at all are not in the answer. Ids may
// repeat and be any number; they are read in batches of 100.
//
// The error is of kind Throttled or Unavailable and means that not all ids were
// read.
func (s *Store) Standings(ctx context.Context, ids []doc.ID) (map[doc.ID]Standing, error) {
	ids = distinct(ids)
	standings := make(map[doc.ID]Standing, len(ids))
	for at := 0; at < len(ids); at += maxBatch {
		items, _, err := s.batch(ctx, ids[at:min(at+maxBatch, len(ids))], attrPK, attrSK, attrVersion, attrDeleted, attrExpiresAt)
		if err != nil {
			return nil, err
		}
		for id, item := range items {
			st := standingOf(item)
			standings[id] = Standing{Version: st.version, Deleted: st.deleted, ExpiresAt: st.expiresAt}
		}
	}
	return standings, nil
}
