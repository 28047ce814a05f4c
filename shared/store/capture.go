package store

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

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
// moment while it moves, the end is read twice.
//
// What was acknowledged before, and had reached the feed, is in the answer in
// that version or a newer one. The feed follows the table within a moment that
// only its reader can allow for, by waiting before the call.
//
// The error is of kind Throttled or Unavailable, or of kind QueryTooCostly with
// the member limit where there are more entries than asked for.
func (s *Store) Capture(ctx context.Context, q CaptureQuery) ([]doc.Signal, error) {
	n, err := s.state.recordedBuckets(ctx)
	if err != nil {
		return nil, err
	}
	c := capture{store: s, query: q, newest: map[doc.ID]doc.Version{}}
	// An entry that moves gets a version of now, as a writer's clock has it.
	end := doc.VersionAt(s.clock.Now().Add(-s.feedMargin))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(captureLanes)
	for bucket := range n {
		work.Go(func() error {
			if err := c.read(ctx, bucket, q.From); err != nil {
				return err
			}
			return c.read(ctx, bucket, max(q.From, end))
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	signals := make([]doc.Signal, 0, len(c.newest))
	for id, v := range c.newest {
		signals = append(signals, doc.Signal{ID: id, Version: v})
	}
	return signals, nil
}

// capture is one reading of the whole feed.
type capture struct {
	store *Store
	query CaptureQuery

	mu     sync.Mutex
	newest map[doc.ID]doc.Version
	looked int
}

// read goes through one partition from a version on.
func (c *capture) read(ctx context.Context, bucket int, from doc.Version) error {
	in := changesRequest(c.store.documents, bucket, "", from)
	x := &expression{names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues}
	wanted := x.name(attrCollection) + " IN ("
	for i, name := range c.query.Collections {
		if i > 0 {
			wanted += ", "
		}
		wanted += x.value(fmt.Sprintf("c%d", i), str(string(name)))
	}
	in.FilterExpression = aws.String(wanted + ")")
	for {
		out, err := again(ctx, &c.store.engine, "capturing the change feed", func(ctx context.Context) (*dynamodb.QueryOutput, error) {
			return c.store.engine.client.Query(ctx, in, c.store.engine.options)
		})
		if err != nil {
			return err
		}
		if err := c.add(out); err != nil {
			return err
		}
		if len(out.LastEvaluatedKey) == 0 {
			return nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// add keeps a page, unless there is too much already.
func (c *capture) add(out *dynamodb.QueryOutput) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, item := range out.Items {
		id, err := itemID(item)
		if err != nil {
			continue // another tool's item under a key that is no id
		}
		if v := standingOf(item).version; v > c.newest[id] {
			c.newest[id] = v
		}
	}
	c.looked += int(out.ScannedCount)
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
