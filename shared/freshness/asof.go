package freshness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// Feed is the change feed, for who has to know what there is to be indexed.
type Feed interface {
	// Capture gives the newest version of each document of the collections that
	// the feed shows, without an upper bound. The error is of kind
	// QueryTooCostly where there are more than the query allows.
	Capture(ctx context.Context, q store.CaptureQuery) ([]doc.Signal, error)
}

const (
	// DefaultMargin is how long a wait as of now lets the change feed catch up
	// before it reads it. It has to cover one thing only, the delay with which
	// DynamoDB brings an acknowledged write to the feed's index: a fraction of a
	// second, unless that index is starved of capacity. Clocks do not matter,
	// because the feed is read without an upper bound; nor does the time that a
	// write takes, because one that was acknowledged is in the table. A wait of
	// five seconds, the standard one, has room for it.
	DefaultMargin = 2 * time.Second

	// MaxCaptured is how many documents a wait as of now may have to look for in
	// the index, and MaxFeedRead how many entries of the change feed it reads
	// for that: 300,000 are some 45 MB, which eight partitions give in seconds.
	MaxCaptured = 10_000
	MaxFeedRead = 300_000

	// proofLife is how long a proof's measure of the feed's lag says something:
	// that of a run every minute, should one begin late.
	proofLife = 150 * time.Second
	// captureAgain is the pause before the feed is read again that failed.
	captureAgain = 250 * time.Millisecond
	// glanceTime is how long before its end a wait that is too short for the
	// margin begins to find out what is missing.
	glanceTime = 150 * time.Millisecond
)

// AsOfWaited is what became of a wait for everything as of its beginning.
type AsOfWaited struct {
	At       time.Time     // everything acknowledged before this moment was waited for
	Margin   time.Duration // what the change feed was given to catch up
	Captured bool          // the feed was read; else it is not known what should be there
	// TooMuch is, with Patience.Partly, why it was not: there would be too much to
	// look for. It is of kind QueryTooCostly.
	TooMuch *doc.Error
	// Known says that the feed was measured to be well within the margin, so
	// that nothing can have been overlooked, as long as the proof stands.
	Known bool
	proof *Proof // that what it speaks of was not looked for; nil: there was none
}

// unread is the failure of a wait that never learned what to wait for.
func (a *AsOfWaited) unread(w Waited) *doc.Error {
	return doc.Errorf(doc.WaitTimeout,
		"the wait of %s ended before the change feed was read, which begins %s after the query's arrival; more may be missing than is named",
		w.Took.Round(time.Millisecond), a.Margin)
}

// AsOfNow waits until a query sees everything of the collections that was
// acknowledged before this call, and the signals besides, at most for the
// timeout. What is written later does not extend the wait.
//
// It reads the change feed one margin after the call, from the last proof on or
// from its beginning, and then waits for the versions that it found there as Wait
// does. Only signals are exact: a write that the feed shows later than the margin
// is overlooked.
//
// The error is the context's, or of kind QueryTooCostly where there is too much to
// look for; but with Patience.Partly only the signals are waited for then, which
// the outcome says.
func (w *Waiter) AsOfNow(ctx context.Context, collections []doc.Collection, signals []doc.Signal, patience Patience) (Waited, error) {
	began := time.Now()
	signals = newest(signals)
	as := &AsOfWaited{At: w.o.Now(), Margin: w.o.Margin}
	timeout := max(patience.Timeout, leastTimeout)
	t, end := newTerm(ctx, timeout)
	defer end()
	var captured []doc.Signal
	var err error
	if timeout <= as.Margin {
		if err = sleep(t.time, timeout-min(glanceTime, timeout/2)); err == nil {
			captured = w.glance(t.late, collections, patience)
		}
	} else {
		captured, err = w.capture(t.time, collections, as, patience)
		as.Captured = err == nil
		switch {
		case err == nil || ctx.Err() != nil:
		case t.time.Err() != nil:
			captured = w.glance(t.late, collections, patience)
		case patience.Partly && errors.As(err, &as.TooMuch) && as.TooMuch.Kind == doc.QueryTooCostly:
		default:
			return Waited{}, err
		}
	}
	if ctx.Err() != nil {
		return Waited{}, fmt.Errorf("wait for the index: %w", ctx.Err())
	}
	var waited Waited
	if all := newest(append(slices.Clone(signals), captured...)); len(all) > 0 {
		if waited, err = w.wait(ctx, t, all, patience); err != nil {
			return Waited{}, err
		}
	}
	if !as.Captured && as.TooMuch == nil && !waited.Unavailable {
		<-t.time.Done() // what is not known may come as long as the wait lasts
	}
	waited.Tokens, waited.AsOf, waited.Took = len(signals), as, time.Since(began)
	return waited, nil
}

// glance reads the feed too early for a wait that is too short, to name at least
// what is surely missing.
func (w *Waiter) glance(ctx context.Context, collections []doc.Collection, patience Patience) []doc.Signal {
	q := store.CaptureQuery{Collections: collections, MaxEntries: MaxCaptured, MaxRead: MaxFeedRead}
	if proof, ok := w.proof(ctx, collections, patience.Read); ok {
		q.From = doc.VersionAt(proof.Through)
	}
	captured, err := w.o.Feed.Capture(ctx, q)
	if err != nil {
		w.o.Log.DebugContext(ctx, "reading the change feed failed", "error", err)
		return nil
	}
	return captured
}

// capture waits for the margin and reads the feed, again where that fails, until
// ctx ends.
func (w *Waiter) capture(ctx context.Context, collections []doc.Collection, as *AsOfWaited, patience Patience) ([]doc.Signal, error) {
	if err := sleep(ctx, as.Margin); err != nil {
		return nil, err
	}
	q := store.CaptureQuery{Collections: collections, MaxEntries: MaxCaptured, MaxRead: MaxFeedRead}
	if proof, ok := w.proof(ctx, collections, patience.Read); ok {
		q.From, as.proof = doc.VersionAt(proof.Through), &proof
		as.Known = w.o.Now().Sub(proof.At) < proofLife && 2*proof.FeedLag <= as.Margin
	}
	for {
		captured, err := w.o.Feed.Capture(ctx, q)
		switch doc.KindOf(err) {
		case "":
			return captured, nil
		case doc.Throttled, doc.Unavailable:
			w.o.Log.WarnContext(ctx, "reading the change feed failed", "error", err)
		case doc.QueryTooCostly:
			return nil, tooMuch(err, q)
		default:
			return nil, err
		}
		if err := sleep(ctx, captureAgain); err != nil {
			return nil, err
		}
	}
}

// proof is what is proven of the collections where they are read; a failure to
// find out proves nothing.
func (w *Waiter) proof(ctx context.Context, collections []doc.Collection, read map[doc.Collection]collection.Generation) (Proof, bool) {
	if w.o.Proofs == nil {
		return Proof{}, false
	}
	p, ok, err := w.o.Proofs.Proof(ctx, collections, read)
	if err != nil {
		w.o.Log.WarnContext(ctx, "reading the proofs failed", "error", err)
		return Proof{}, false
	}
	if !ok {
		return Proof{}, false
	}
	stands, err := w.o.Proofs.Stands(ctx, p, 0)
	if err != nil {
		// An index that does not answer may still be the one. Whether it was is
		// asked again when there is an answer to be told about.
		w.o.Log.WarnContext(ctx, "looking at the index failed", "error", err)
		return p, true
	}
	return p, stands
}

// tooMuch says of a refusal why there was so much to look at.
func tooMuch(err error, q store.CaptureQuery) error {
	limit := q.MaxEntries
	var e *doc.Error
	if errors.As(err, &e) {
		if n, given := e.Members["limit"].(int); given {
			limit = n
		}
	}
	since := "since the index was last proven complete"
	if q.From == 0 {
		since = "and the index is not proven complete, so all of them would have to be looked for"
	}
	what := "documents of these collections have changed"
	if limit == q.MaxRead {
		what = "changes are in the change feed, those of other collections included,"
	}
	return doc.Errorf(doc.QueryTooCostly, "more than %d %s %s; wait for the tokens of your writes instead", limit, what, since).
		With("limit", limit)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
