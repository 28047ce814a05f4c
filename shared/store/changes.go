package store

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"holdfast/shared/doc"
)

// ChangesQuery asks for a page of the change feed.
type ChangesQuery struct {
	Collection doc.Collection // "" for all
	After      string         // the Next of a page before; "" for the beginning
	Limit      int            // most changes of the page; 0: 100
}

// ChangesPage is a page of the change feed, in the order of versions and, where
// they are equal, of ids. An id appears at its newest version only.
//
// A page may hold fewer changes than asked for, even none, although more follow:
// the work of a call is bounded. Next is always there, also at the end of the
// feed, to go on from later.
//
// Who follows Next misses nothing: from the end of the feed it goes back to
// SafeThrough, and tells what has appeared before that end since. It remembers
// the last changes that were told after SafeThrough, so that they are not told
// again; of more than maxTold of them the oldest may be.
type ChangesPage struct {
	Changes []doc.Change
	Next    string
	// SafeThrough is the moment up to which the feed is complete. Changes later
	// than it may still gain predecessors, because writers' clocks differ and
	// the feed is eventually consistent.
	SafeThrough time.Time
	// End says that nothing follows before SafeThrough, so that a reader may wait
	// before it goes on.
	End bool
}

const (
	defaultChangesLimit = 100
	// maxFeedRounds bounds how often a call goes back to the buckets that are
	// behind, once it can answer something.
	maxFeedRounds = 6
	// maxFeedPage is the most entries asked for from one bucket at once.
	maxFeedPage = 1000
)

// Changes reads a page of the change feed, without the system's own documents.
// It is eventually consistent.
// The error is of kind InvalidCursor, Throttled or Unavailable.
func (s *Store) Changes(ctx context.Context, q ChangesQuery) (ChangesPage, error) {
	if q.Limit <= 0 {
		q.Limit = defaultChangesLimit
	}
	cursor, err := parseFeedCursor(q.After)
	if err != nil {
		return ChangesPage{}, err
	}
	page := ChangesPage{SafeThrough: s.clock.Now().Add(-s.feedMargin)}
	// Read each time: another process may have raised it since.
	n, err := s.state.recordedBuckets(ctx)
	if err != nil {
		return ChangesPage{}, err
	}
	buckets := make([]*feedBucket, n)
	for i := range buckets {
		buckets[i] = &feedBucket{number: i}
	}
	feed := feed{store: s, query: q, from: cursor.read, told: cursor.toldSet(), buckets: buckets}
	if err := feed.read(ctx); err != nil {
		return ChangesPage{}, err
	}
	changes, next, all := feed.merge()
	safe := feedPosition{version: doc.VersionAt(page.SafeThrough)}
	if q.Collection != "" && all && next.before(safe.version, safe.id) {
		// Nothing of the collection can appear before this any more, so the
		// next poll need not look at other collections' changes again.
		next = safe
	}
	after := cursor.after(changes, feed.again(), next, safe, all)
	page.Changes, page.Next = changes, after.String()
	// Of all collections the floor stays behind the last change, and so does the
	// cursor.
	page.End = page.Next == q.After || !after.floor.before(safe.version, safe.id)
	return page, nil
}

// feed is the merging of the buckets for one page.
type feed struct {
	store   *Store
	query   ChangesQuery
	from    feedPosition
	told    map[uint64]bool // marks of entries that were told before
	buckets []*feedBucket
}

// feedBucket is what was read of one partition of the feed.
type feedBucket struct {
	number  int
	entries []doc.Change
	told    []doc.Change                    // entries that were told before
	next    map[string]types.AttributeValue // where to go on
	horizon doc.Version                     // all entries of lower versions were read
	done    bool                            // and all others too
}

func (f *feed) finished() bool {
	return !slices.ContainsFunc(f.buckets, func(b *feedBucket) bool { return !b.done })
}

// horizon is the version below which every bucket was read to the end.
func (f *feed) horizon() doc.Version {
	h := maxVersion + 1
	for _, b := range f.buckets {
		if !b.done {
			h = min(h, b.horizon)
		}
	}
	return h
}

// read fetches from the buckets until the page can be told.
func (f *feed) read(ctx context.Context) error {
	for round := 0; ; round++ {
		h := f.horizon()
		if f.finished() || f.count(h) >= f.query.Limit {
			return nil
		}
		if round >= maxFeedRounds && (f.count(h) > 0 || h > f.from.version) {
			return nil // the next call goes on from here
		}
		work, ctx := errgroup.WithContext(ctx)
		for _, b := range f.buckets {
			if !b.done && b.horizon == h {
				work.Go(func() error { return f.fetch(ctx, b) })
			}
		}
		if err := work.Wait(); err != nil {
			return err
		}
	}
}

// count is how many entries can be told: those below the horizon. Above it an
// entry of another bucket may come first.
func (f *feed) count(h doc.Version) int {
	n := 0
	for _, b := range f.buckets {
		for _, e := range b.entries {
			if e.Version < h {
				n++
			}
		}
	}
	return n
}

// merge gives the page's changes, the position behind them, and whether these
// were all there are.
func (f *feed) merge() (changes []doc.Change, next feedPosition, all bool) {
	h := f.horizon()
	newest := map[doc.ID]doc.Change{}
	for _, b := range f.buckets {
		for _, e := range b.entries {
			// A document that changed between two pages of its bucket is in both.
			if e.Version > newest[e.ID].Version {
				newest[e.ID] = e
			}
		}
	}
	changes = make([]doc.Change, 0, len(newest))
	for _, e := range newest {
		if e.Version < h {
			changes = append(changes, e)
		}
	}
	slices.SortFunc(changes, compareChanges)
	switch {
	case len(changes) > f.query.Limit:
		changes = changes[:f.query.Limit]
	case !f.finished() && f.from.before(h, ""):
		return changes, feedPosition{version: h}, false
	default:
		all = f.finished()
	}
	if len(changes) == 0 {
		return changes, f.from, all
	}
	last := changes[len(changes)-1]
	return changes, feedPosition{version: last.Version, id: last.ID}, all
}

// compareChanges is the order of the feed.
func compareChanges(a, b doc.Change) int {
	return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.ID, b.ID))
}

// again are the entries met that were told before.
func (f *feed) again() (told []doc.Change) {
	for _, b := range f.buckets {
		told = append(told, b.told...)
	}
	return told
}

// fetch reads the next page of one bucket.
func (f *feed) fetch(ctx context.Context, b *feedBucket) error {
	var only []doc.Collection
	if f.query.Collection != "" {
		only = append(only, f.query.Collection)
	}
	in := changesRequest(f.store.documents, b.number, only, f.from.version)
	in.ExclusiveStartKey = b.next
	// A little more than a fair share, since the buckets are not equally full.
	share := f.query.Limit/len(f.buckets)*3/2 + 10
	if f.query.Collection != "" {
		share = maxFeedPage // others are counted by the engine too
	}
	in.Limit = aws.Int32(int32(min(share, maxFeedPage)))
	out, err := again(ctx, &f.store.engine, "reading the change feed", func(ctx context.Context) (*dynamodb.QueryOutput, error) {
		return f.store.engine.client.Query(ctx, in, f.store.engine.options)
	})
	if err != nil {
		return err
	}
	for _, e := range changesOf(out.Items) {
		switch {
		case e.Collection.System() || !f.from.before(e.Version, e.ID):
		case f.told[mark(e)]:
			b.told = append(b.told, e)
		default:
			b.entries = append(b.entries, e)
		}
	}
	b.next = out.LastEvaluatedKey
	if len(b.next) == 0 {
		b.done = true
		return nil
	}
	// Entries of one version have no order that is known, so the version of the
	// last may have more to come.
	b.horizon = min(doc.Version(integer(b.next[attrVersion])), maxVersion)
	return nil
}

// changesRequest asks for a bucket's entries from a version on, those of some
// collections or, when none are given, all.
func changesRequest(table string, bucket int, only []doc.Collection, from doc.Version) *dynamodb.QueryInput {
	x := newExpression()
	key := x.name(attrBucket) + " = " + x.value("bucket", num(bucket)) +
		" AND " + x.name(attrVersion) + " >= " + x.value("from", num(from))
	in := &dynamodb.QueryInput{
		TableName:              aws.String(table),
		IndexName:              aws.String(changesIndex),
		KeyConditionExpression: aws.String(key),
	}
	if len(only) > 0 {
		placeholders := make([]string, len(only))
		for i, c := range only {
			placeholders[i] = x.value("c"+strconv.Itoa(i), str(string(c)))
		}
		in.FilterExpression = aws.String(x.name(attrCollection) + " IN (" + strings.Join(placeholders, ", ") + ")")
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = x.names, x.values
	return in
}
