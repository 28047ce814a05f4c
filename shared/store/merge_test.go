package store

import (
	"slices"
	"testing"

	"holdfast/shared/doc"
)

// TestMerge gives the merging of buckets what it may have read when it has to
// stop: only what nothing can precede any more is told.
func TestMerge(t *testing.T) {
	entry := func(id doc.ID, v doc.Version) doc.Change { return doc.Change{ID: id, Version: v} }
	bucket := func(horizon doc.Version, entries ...doc.Change) *feedBucket {
		return &feedBucket{entries: entries, horizon: horizon, done: horizon == 0}
	}
	for name, c := range map[string]struct {
		buckets []*feedBucket
		limit   int
		want    []doc.ID
		next    feedPosition
		all     bool
	}{
		"nothing": {nil, 5, nil, feedPosition{version: 1}, true},
		"read to the end": {
			[]*feedBucket{bucket(0, entry("a/1", 3), entry("a/2", 9)), bucket(0, entry("b/1", 5))},
			5, []doc.ID{"a/1", "b/1", "a/2"}, feedPosition{9, "a/2"}, true,
		},
		"as many as asked for": {
			[]*feedBucket{bucket(0, entry("a/1", 3)), bucket(0, entry("b/1", 5))}, 2, []doc.ID{"a/1", "b/1"}, feedPosition{5, "b/1"}, true,
		},
		"cut by the limit": {
			[]*feedBucket{bucket(0, entry("a/1", 3), entry("a/2", 9)), bucket(0, entry("b/1", 5))}, 2, []doc.ID{"a/1", "b/1"}, feedPosition{5, "b/1"}, false,
		},
		"one bucket behind": {
			[]*feedBucket{bucket(0, entry("a/1", 3), entry("a/2", 9)), bucket(6, entry("b/1", 5), entry("b/2", 6))},
			5, []doc.ID{"a/1", "b/1"}, feedPosition{version: 6}, false,
		},
		"nothing of what was read can be told": {
			[]*feedBucket{bucket(0, entry("a/1", 9)), bucket(4)}, 5, nil, feedPosition{version: 4}, false,
		},
		"changed while it was read": {
			[]*feedBucket{bucket(0, entry("a/1", 3), entry("a/2", 4), entry("a/1", 8))}, 5, []doc.ID{"a/2", "a/1"}, feedPosition{8, "a/1"}, true,
		},
		"equal versions": {
			[]*feedBucket{bucket(0, entry("c/1", 3), entry("a/1", 3)), bucket(0, entry("b/1", 3))}, 2, []doc.ID{"a/1", "b/1"}, feedPosition{3, "b/1"}, false,
		},
	} {
		f := feed{query: ChangesQuery{Limit: c.limit}, from: feedPosition{version: 1}, buckets: c.buckets}
		changes, next, all := f.merge()
		var ids []doc.ID
		for _, e := range changes {
			ids = append(ids, e.ID)
		}
		if !slices.Equal(ids, c.want) || next != c.next || all != c.all {
			t.Errorf("%s: %v, %+v, all %t; want %v, %+v, %t", name, ids, next, all, c.want, c.next, c.all)
		}
	}
}
