package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/obs"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

// Table is where the indexer reads documents again.
type Table interface {
	// Revisions reads what the table holds under the ids now, tombstones and
	// expired documents included, and passes it on in slices that together take
	// at most maxBytes of memory. It ends with the first error of visit.
	Revisions(ctx context.Context, ids []doc.ID, maxBytes int, visit func(found []doc.Document, absent []doc.ID) error) error
}

// Index is where the indexer writes.
type Index interface {
	Ensurer
	// Write answers with one outcome per operation, in order. Its error means
	// that the operations could not be tried.
	Write(ctx context.Context, ops []search.Operation) ([]search.Outcome, error)
	// MappedFields is what the generation's mapping has fields for already.
	MappedFields(ctx context.Context, g collection.Generation) (search.Fields, error)
}

// Ledger is where the indexer records what people and other functions look at.
type Ledger interface {
	RecordQuarantine(ctx context.Context, q doc.Quarantined) error
	ClearQuarantine(ctx context.Context, c doc.Collection, id doc.ID, upTo doc.Version) error
	Quarantine(ctx context.Context, ids []doc.ID) (map[doc.ID]doc.Quarantined, error)
	CountQuarantined(ctx context.Context, collections []doc.Collection) (int, error)
	RecordLag(ctx context.Context, m store.LagMeasure) error
}

const (
	// DefaultSliceBytes is how much of the table's items is in memory at once,
	// and how much of their projections.
	DefaultSliceBytes = 8 << 20
	// DefaultMargin is kept free of an invocation's time to send back what was
	// not done.
	DefaultMargin = 5 * time.Second
	// writeTime is how long one write may take. An index that does not answer
	// must not cost the whole of an invocation's time.
	writeTime = 30 * time.Second
	// lagEvery is how often a process records the lag. It is an item of the
	// state table that every process writes to.
	lagEvery = 5 * time.Second
)

// IndexerOptions are what an Indexer needs.
type IndexerOptions struct {
	Table       Table
	Generations *Generations
	Index       Index
	Ledger      Ledger
	Queue       Sender
	SliceBytes  int              // 0: DefaultSliceBytes
	Margin      time.Duration    // 0: DefaultMargin
	Now         func() time.Time // nil: time.Now
	Jitter      func() float64   // in [0, 1); nil: random
	Log         *slog.Logger     // nil: discarded
	Metrics     *obs.Metrics     // nil: none
}

// Indexer brings documents from the table to the index. It is safe for
// concurrent use, though a function handles one invocation at a time.
type Indexer struct {
	o          IndexerOptions
	quarantine *quarantineBook
	lag        lagBook
}

// NewIndexer makes an indexer.
func NewIndexer(o IndexerOptions) *Indexer {
	if o.SliceBytes == 0 {
		o.SliceBytes = DefaultSliceBytes
	}
	if o.Margin == 0 {
		o.Margin = DefaultMargin
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Log == nil {
		o.Log = obs.Discard()
	}
	return &Indexer{o: o, quarantine: newQuarantineBook(o.Ledger, o.Now), lag: lagBook{ledger: o.Ledger, now: o.Now}}
}

// ErrNoMessageID says that a message failed that has no id by which it could
// be named. The whole batch has to be delivered again.
var ErrNoMessageID = errors.New("a message without an id failed")

// Handle takes the messages of one invocation. failed holds the ids of the
// messages that must not be acknowledged: those that cannot be understood, and
// those whose unfinished signals could not be sent back.
func (x *Indexer) Handle(ctx context.Context, messages []Message) (failed []string, err error) {
	report, failed := x.Index(ctx, messages)
	for _, id := range failed {
		if id == "" {
			err = ErrNoMessageID
		}
	}
	report.measure(x.o.Metrics)
	x.o.Log.InfoContext(ctx, "indexed",
		"messages", report.Messages, "unreadable", report.Unreadable, "signals", report.Signals,
		"applied", report.Applied, "stale", report.Stale, "partial", report.Partial, "quarantined", report.Quarantined,
		"absent", report.Absent, "requeued", report.Requeued, "returned", report.Returned)
	return failed, err
}

// Index is Handle with the outcomes counted.
func (x *Indexer) Index(ctx context.Context, messages []Message) (report Report, failed []string) {
	r := newRun(x, messages)
	r.merge(ctx)
	r.work(ctx)
	r.sendBack(ctx)
	r.measureLag(ctx)
	for i, message := range messages {
		if r.failed[i] {
			failed = append(failed, message.ID)
		}
	}
	return r.report, failed
}

// lagBook records the lag from time to time.
type lagBook struct {
	ledger Ledger
	now    func() time.Time
	due    moment
}

func (b *lagBook) record(ctx context.Context, lag time.Duration) error {
	now := b.now()
	if !b.due.pass(now, lagEvery) {
		return nil
	}
	return b.ledger.RecordLag(ctx, store.LagMeasure{At: now, Lag: lag})
}
