package store

import (
	"context"
	"encoding/json"
	"strconv"

	"holdfast/shared/doc"
)

// canaryRoot begins the ids of the documents that are written to be seen in the
// change feed. Clients see nothing of them.
const canaryRoot = "$canary/"

// PutCanary writes the document that stands for a partition of the change feed:
// that of n modulo their number. So n that counts up has every partition's turn,
// and there are no more such documents than partitions. It goes the way of any
// other document, into the index too. Errors are of the kinds of Put.
func (s *Store) PutCanary(ctx context.Context, n int) (doc.Written, error) {
	buckets, err := s.state.raiseBuckets(ctx, s.buckets)
	if err != nil {
		return doc.Written{}, err
	}
	bucket := n % buckets
	if bucket < 0 {
		bucket += buckets
	}
	data := map[string]any{"partition": json.Number(strconv.Itoa(bucket))}
	return s.Put(ctx, canaryID(bucket, buckets), data, doc.Condition{})
}

// canaryID is the first id that belongs to a partition.
func canaryID(bucket, buckets int) doc.ID {
	for k := 0; ; k++ {
		if id := doc.ID(canaryRoot + strconv.Itoa(k)); bucketOf(id, buckets) == bucket {
			return id
		}
	}
}

// FeedHas reports whether the change feed shows a write: the document at its
// version or a newer one. The feed is eventually consistent, so false means "not
// yet". It reads what came into one partition since that version.
//
// The error is of kind Throttled or Unavailable.
func (s *Store) FeedHas(ctx context.Context, w doc.Written) (bool, error) {
	if w.Version == 0 {
		return false, nil
	}
	// Which partition it is in was decided when it was written: their number may
	// have grown since.
	item, err := s.get(ctx, w.ID, attrBucket)
	if err != nil {
		return false, err
	}
	bucket, ok := partitionOf(item)
	if !ok {
		return false, nil
	}
	found := false
	err = s.readFeed(ctx, feedRange{bucket: bucket, from: w.Version, collections: []doc.Collection{w.ID.Collection()}},
		func(changes []doc.Change, _ int) error {
			for _, c := range changes {
				if c.ID == w.ID && c.Version >= w.Version {
					found = true
					return errEnough
				}
			}
			return nil
		})
	return found, err
}
