package store

import (
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/doc"
)

// Defaults of Options.
const (
	DefaultBuckets       = 8
	DefaultTombstoneLife = 30 * 24 * time.Hour
	DefaultFeedMargin    = 10 * time.Second
)

// leastWriteTime is what a write is given however small the margin is.
const leastWriteTime = time.Second

// Options are the dependencies and settings of a Store. Client, Documents and
// State are required.
type Options struct {
	Client    *dynamodb.Client // its own retries are not used
	Documents string           // name of the table of documents
	State     string           // name of the table of the system's own records
	Clock     *doc.Clock       // nil: the machine's clock; it is corrected by the engine's answers

	// Buckets is the number of partitions of the change feed. The number in
	// force is recorded in the state table and only grows. 0: DefaultBuckets.
	Buckets int
	// TombstoneLife is how long a delete stays visible. 0: DefaultTombstoneLife.
	TombstoneLife time.Duration
	// FeedMargin is how far behind now the change feed is safe. A write never
	// takes longer than two thirds of it from choosing its version to being
	// applied; the rest covers clock errors and the delay of the feed's index.
	// 0: DefaultFeedMargin. Below three seconds this does not hold.
	FeedMargin time.Duration
	Log        *slog.Logger // nil: no logs
}

// Store is the documents in DynamoDB. It is safe for concurrent use.
type Store struct {
	engine    engine
	state     *State
	documents string
	clock     *doc.Clock

	buckets       int
	tombstoneLife time.Duration
	feedMargin    time.Duration
	writeTime     time.Duration // of one attempt of a write, and until its version is given up

	sequences sequences
	typical   typicalSize
	log       *slog.Logger
}

// New makes a Store. It makes no request.
func New(o Options) *Store {
	if o.Clock == nil {
		o.Clock = doc.NewClock(nil)
	}
	if o.Buckets <= 0 {
		o.Buckets = DefaultBuckets
	}
	if o.TombstoneLife <= 0 {
		o.TombstoneLife = DefaultTombstoneLife
	}
	if o.FeedMargin <= 0 {
		o.FeedMargin = DefaultFeedMargin
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Store{
		engine:        engine{client: o.Client, clock: o.Clock, attempt: largeTime},
		state:         NewState(o.Client, o.State, o.Clock),
		writeTime:     max(o.FeedMargin/3, leastWriteTime),
		documents:     o.Documents,
		clock:         o.Clock,
		buckets:       o.Buckets,
		tombstoneLife: o.TombstoneLife,
		feedMargin:    o.FeedMargin,
		log:           o.Log,
	}
}

// State is the system's own records, of the same tables and client.
func (s *Store) State() *State { return s.state }
