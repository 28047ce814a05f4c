package store

import (
	"context"
	"sync"

	"holdfast/shared/doc"
)

// CaptureQuery asks which versions there are.
type CaptureQuery struct {
	Collections []doc.Collection // whose documents; 1 to 100
	From        doc.Version      // entries of lower versions are left out; 0: none
	MaxEntries  int              // most documents of these collections
	MaxRead     int              // most entries of the feed that are looked at, those of other collections included
}

// captureLanes is how many partitions of the feed are read at once.
const captureLanes = 8

// Capture reads every partition of the change feed to its end, without an upper
// bound, and gives the newest version of each document of the collections. Where
// a document changes meanwhile, its old or its new version is given: an entry
// only moves towards the end of its partition. Since it may be nowhere for a
// moment while it moves, the ends are read twice.
//
// What was acknowledged before, and had reached the feed, is in the answer in
// that version or a newer one. The feed follows the table within a moment that
// only its reader can allow for, by waiting before the call.
//
// The error is of kind Throttled or Unavailable, or of kind QueryTooCostly with
// the member limit where there are more entries than asked for.
func (s *Store) Capture(ctx context.Context, q CaptureQuery) ([]doc.Signal, error) {
	c := capture{query: q, newest: map[doc.ID]doc.Version{}}
	r := feedReading{store: s, from: q.From, collections: q.Collections, lanes: captureLanes, visit: c.add}
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	signals := make([]doc.Signal, 0, len(c.newest))
	for id, v := range c.newest {
		signals = append(signals, doc.Signal{ID: id, Version: v})
	}
	return signals, nil
}

// capture is what was read of the feed.
type capture struct {
	query CaptureQuery

	mu     sync.Mutex
	newest map[doc.ID]doc.Version
	looked int
}

// add keeps a page, unless there is too much already.
func (c *capture) add(changes []doc.Change, looked int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range changes {
		c.newest[e.ID] = max(c.newest[e.ID], e.Version)
	}
	c.looked += looked
	if c.query.MaxEntries > 0 && len(c.newest) > c.query.MaxEntries {
		return doc.Errorf(doc.QueryTooCostly, "more than %d documents of these collections are not proven to be in the index", c.query.MaxEntries).
			With("limit", c.query.MaxEntries)
	}
	if c.query.MaxRead > 0 && c.looked > c.query.MaxRead {
		return doc.Errorf(doc.QueryTooCostly, "more than %d changes, those of other collections included, are not proven to be in the index", c.query.MaxRead).
			With("limit", c.query.MaxRead)
	}
	return nil
}
