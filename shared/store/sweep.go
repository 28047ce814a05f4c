package store

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"holdfast/shared/doc"
)

// Sweep is the capture of everything: it goes through every partition of the
// change feed from a version on to its end, without an upper bound, and then
// reads the ends again. It calls visit with at most 1000 entries at a time, those
// of the system's own collections included, from one goroutine. An id may come
// several times, with the same version or others; the newest counts. visit must
// not keep what it is given. Its error ends the sweep and is returned.
//
// What was acknowledged before the call, and had reached the feed, is visited in
// that version or a newer one, however much is written meanwhile. Another error
// is of kind Throttled or Unavailable and means that not everything was visited.
func (s *Store) Sweep(ctx context.Context, from doc.Version, visit func([]doc.Change) error) error {
	r := feedReading{store: s, from: from, lanes: 1, limit: maxFeedPage, visit: func(changes []doc.Change, _ int) error {
		if len(changes) == 0 {
			return nil
		}
		return visit(changes)
	}}
	return r.run(ctx)
}

// feedReading is the reading of the whole feed, in such a way that nothing is
// missed that was there when it began: an entry only moves towards the end of its
// partition, so it is met where it was or where it is, unless it is nowhere for a
// moment while it moves, or moves into another partition when their number is
// raised. Both give it a version of now, which is why the ends are read again
// after everything.
type feedReading struct {
	store       *Store
	from        doc.Version
	collections []doc.Collection // nil: all
	lanes       int              // how many partitions are read at once
	limit       int              // of entries in a page; 0: as many as the engine gives
	// visit is called for every page, by as many goroutines as there are lanes,
	// with the number of entries that were looked at.
	visit func(changes []doc.Change, looked int) error
}

func (r *feedReading) run(ctx context.Context) error {
	// An entry that moves gets a version of now, as a writer's clock has it.
	end := doc.VersionAt(r.store.clock.Now().Add(-r.store.feedMargin))
	n, err := r.store.state.recordedBuckets(ctx)
	if err != nil {
		return err
	}
	if err := r.pass(ctx, n, func(int) doc.Version { return r.from }); err != nil {
		return err
	}
	for {
		more, err := r.store.state.recordedBuckets(ctx)
		if err != nil {
			return err
		}
		err = r.pass(ctx, more, func(bucket int) doc.Version {
			if bucket < n {
				return max(r.from, end)
			}
			return r.from
		})
		if err != nil || more == n {
			return err
		}
		n = more
	}
}

// pass reads the first n partitions, each from its own version on.
func (r *feedReading) pass(ctx context.Context, n int, from func(bucket int) doc.Version) error {
	read := func(ctx context.Context, bucket int) error {
		return r.store.readFeed(ctx, feedRange{bucket: bucket, from: from(bucket), collections: r.collections, limit: r.limit}, r.visit)
	}
	if r.lanes <= 1 {
		for bucket := range n {
			if err := read(ctx, bucket); err != nil {
				return err
			}
		}
		return nil
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(r.lanes)
	for bucket := range n {
		work.Go(func() error { return read(ctx, bucket) })
	}
	return work.Wait()
}

// feedRange is a part of the change feed: of one partition, from a version on.
type feedRange struct {
	bucket      int
	from        doc.Version
	collections []doc.Collection // nil: all
	limit       int              // of entries in a page; 0: as many as the engine gives, up to 1 MB
}

// errEnough is what a visitor returns that has seen what it wanted.
var errEnough = errors.New("enough")

// readFeed goes through a range to its end, page by page, and tells with each how
// many entries were looked at.
func (s *Store) readFeed(ctx context.Context, r feedRange, visit func(changes []doc.Change, looked int) error) error {
	in := changesRequest(s.documents, r.bucket, r.collections, r.from)
	if r.limit > 0 {
		in.Limit = aws.Int32(int32(r.limit))
	}
	for {
		out, err := again(ctx, &s.engine, "reading the change feed", func(ctx context.Context) (*dynamodb.QueryOutput, error) {
			return s.engine.client.Query(ctx, in, s.engine.options)
		})
		if err != nil {
			return err
		}
		err = visit(changesOf(out.Items), int(out.ScannedCount))
		switch {
		case errors.Is(err, errEnough):
			return nil
		case err != nil:
			return err
		case len(out.LastEvaluatedKey) == 0:
			return nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// changesOf are the entries of a page of the feed, without those of another
// tool's items under keys that are no ids.
func changesOf(items []map[string]types.AttributeValue) []doc.Change {
	changes := make([]doc.Change, 0, len(items))
	for _, item := range items {
		id, err := itemID(item)
		if err != nil {
			continue
		}
		st := standingOf(item)
		changes = append(changes, doc.Change{ID: id, Version: st.version, Collection: id.Collection(), Deleted: st.deleted})
	}
	return changes
}
