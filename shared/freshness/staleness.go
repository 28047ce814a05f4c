package freshness

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/obs"
	"holdfast/shared/store"
)

// Staleness is what every answer of a query says about how current it is. A
// null says that it is not known.
type Staleness struct {
	// Stale is false only when it is known that the answer misses nothing.
	Stale bool `json:"stale"`
	// ProvenThrough is the moment up to which the index has been compared with
	// the table and found complete.
	ProvenThrough *time.Time `json:"provenThrough"`
	LagSeconds    *float64   `json:"lagSeconds"`
	Pending       *int       `json:"pending"`
	Quarantined   *int       `json:"quarantined"`
	Dropped       int        `json:"dropped"`
	WaitedMs      int64      `json:"waitedMs"`
	TimedOut      bool       `json:"timedOut"`
	// WaitedFor says what a wait was about: tokens, which are exact, asOfNow, or
	// both. AsOf is then the moment before which everything was waited for, and
	// MarginMs what the change feed was given to catch up.
	WaitedFor []string   `json:"waitedFor,omitempty"`
	AsOf      *time.Time `json:"asOf,omitempty"`
	MarginMs  int64      `json:"marginMs,omitempty"`
	// Notice is a sentence for people. It never claims more than is known.
	Notice string `json:"notice"`
}

// Depth tells how many messages are on their way to the index.
type Depth interface {
	Depth(ctx context.Context) (int, error)
}

// Measures tells what the indexer recorded.
type Measures interface {
	Lag(ctx context.Context) (m store.LagMeasure, ok bool, err error)
	CountQuarantined(ctx context.Context, collections []doc.Collection) (int, error)
}

const (
	// measureLife is how long the indexer's last measure of its lag says
	// something.
	measureLife = time.Minute
	// lookupLife is how long a number is used again, so that queries do not
	// each pay for it, and lookupTime how long a query waits for one.
	lookupLife = 2 * time.Second
	lookupTime = time.Second
	// mostCounts bounds the remembered counts; their keys are what clients ask
	// for.
	mostCounts = 1000
)

// ReporterOptions are what a Reporter needs.
type ReporterOptions struct {
	Queue    Depth
	Measures Measures
	Proofs   Proofs           // nil: nothing is proven
	Now      func() time.Time // nil: time.Now
	Log      *slog.Logger     // nil: discarded
}

// Reporter says how current answers are. It is safe for concurrent use.
type Reporter struct {
	o ReporterOptions

	depth *remembered[int]
	lag   *remembered[store.LagMeasure]

	mu     sync.Mutex
	counts map[string]*remembered[int]
}

// NewReporter makes a reporter.
func NewReporter(o ReporterOptions) *Reporter {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = obs.Discard()
	}
	r := &Reporter{o: o, counts: map[string]*remembered[int]{}}
	r.depth = remember(o, "the queue's depth", func(ctx context.Context) (int, bool, error) {
		n, err := o.Queue.Depth(ctx)
		return n, err == nil, err
	})
	r.lag = remember(o, "the indexer's lag", o.Measures.Lag)
	return r
}

// Staleness says what is known about an answer from these collections, given
// after this wait. It makes no error: what cannot be found out is unknown.
func (r *Reporter) Staleness(ctx context.Context, collections []doc.Collection, waited Waited) Staleness {
	s := Staleness{Stale: true, WaitedMs: waited.Took.Milliseconds(), TimedOut: waited.TimedOut()}
	var lookups sync.WaitGroup
	lookups.Go(func() {
		if n, ok := r.depth.get(ctx); ok {
			s.Pending = &n
		}
	})
	lookups.Go(func() {
		m, ok := r.lag.get(ctx)
		if ok && r.o.Now().Sub(m.At) < measureLife {
			seconds := math.Ceil(max(m.Lag, 0).Seconds()*1000) / 1000
			s.LagSeconds = &seconds
		}
	})
	lookups.Go(func() {
		if n, ok := r.count(collections).get(ctx); ok {
			s.Quarantined = &n
		}
	})
	var proof Proof
	replaced := false
	lookups.Go(func() {
		if waited.AsOf != nil && waited.AsOf.proof != nil {
			replaced = !r.stands(ctx, *waited.AsOf.proof, 0)
		}
		if p, ok := r.proof(ctx, collections); ok {
			proof = p
			through := p.Through.UTC()
			s.ProvenThrough = &through
		}
	})
	lookups.Wait()
	if !proof.OldestMissing.IsZero() && r.o.Now().Sub(proof.At) < proofLife {
		// What is known to be missing has waited since it was written.
		age := math.Ceil(max(r.o.Now().Sub(proof.OldestMissing), 0).Seconds()*1000) / 1000
		if s.LagSeconds == nil || *s.LagSeconds < age {
			s.LagSeconds = &age
		}
	}
	s.tellWait(waited, replaced)
	s.Notice = notice(s, waited, replaced)
	return s
}

// tellWait says what was waited for, and that nothing is missing where that is
// known: everything up to the query's arrival was found in the index, which is
// still the one that was proven, the feed that said what there is was measured to
// be fast enough, and no document of the collections is in quarantine.
func (s *Staleness) tellWait(w Waited, replaced bool) {
	if w.Tokens > 0 {
		s.WaitedFor = append(s.WaitedFor, "tokens")
	}
	if w.AsOf == nil {
		return
	}
	s.WaitedFor = append(s.WaitedFor, "asOfNow")
	at := w.AsOf.At.UTC().Truncate(time.Microsecond)
	s.AsOf, s.MarginMs = &at, w.AsOf.Margin.Milliseconds()
	s.Stale = w.TimedOut() || !w.AsOf.Known || replaced || w.QuarantinedCount > 0 || s.Quarantined == nil || *s.Quarantined > 0
}

// proof is what is proven of the collections and stands; a failure to find out
// proves nothing.
func (r *Reporter) proof(ctx context.Context, collections []doc.Collection) (Proof, bool) {
	if r.o.Proofs == nil {
		return Proof{}, false
	}
	limited, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	p, ok, err := r.o.Proofs.Proof(limited, collections, nil)
	if err != nil {
		r.o.Log.WarnContext(ctx, "a look-up for the staleness failed", "of", "the proofs", "error", err)
		return Proof{}, false
	}
	return p, ok && r.stands(ctx, p, proofsLife)
}

// stands reports whether the indexes of a proof are known to be the ones that are
// there.
func (r *Reporter) stands(ctx context.Context, p Proof, age time.Duration) bool {
	if r.o.Proofs == nil {
		return false
	}
	stands, err := r.o.Proofs.Stands(ctx, p, age)
	if err != nil {
		r.o.Log.WarnContext(ctx, "a look-up for the staleness failed", "of", "the indexes", "error", err)
	}
	return err == nil && stands
}

// count is the remembered number of quarantined documents in the collections.
func (r *Reporter) count(collections []doc.Collection) *remembered[int] {
	collections = slices.Clone(collections)
	slices.Sort(collections)
	collections = slices.Compact(collections)
	names := make([]string, len(collections))
	for i, c := range collections {
		names[i] = string(c)
	}
	key := strings.Join(names, "\x00") // no name contains it
	r.mu.Lock()
	defer r.mu.Unlock()
	count, ok := r.counts[key]
	if !ok {
		if len(r.counts) >= mostCounts {
			clear(r.counts)
		}
		count = remember(r.o, "the quarantine", func(ctx context.Context) (int, bool, error) {
			n, err := r.o.Measures.CountQuarantined(ctx, collections)
			return n, err == nil, err
		})
		r.counts[key] = count
	}
	return count
}

// remembered is a number that is looked up at most every lookupLife. Several
// who ask at once wait for one look-up.
type remembered[T any] struct {
	o    ReporterOptions
	what string
	ask  func(ctx context.Context) (T, bool, error)

	mu    sync.Mutex
	at    time.Time
	value T
	known bool
}

func remember[T any](o ReporterOptions, what string, ask func(context.Context) (T, bool, error)) *remembered[T] {
	return &remembered[T]{o: o, what: what, ask: ask}
}

func (r *remembered[T]) get(ctx context.Context) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.o.Now(); r.at.IsZero() || now.Sub(r.at) >= lookupLife || now.Before(r.at) {
		// The answer is for others too, so it does not depend on one caller staying.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTime)
		defer cancel()
		value, known, err := r.ask(ctx)
		if err != nil {
			r.o.Log.WarnContext(ctx, "a look-up for the staleness failed", "of", r.what, "error", err)
		}
		r.at, r.value, r.known = now, value, known && err == nil
	}
	return r.value, r.known
}

// notice makes the sentence for people out of what is known.
func notice(s Staleness, w Waited, replaced bool) string {
	var sentences []string
	if w.Documents > 0 || w.AsOf != nil {
		sentences = append(sentences, waitedNotice(w, replaced))
	}
	if s.Stale {
		sentences = append(sentences, currentNotice(s, w, replaced))
	}
	if s.Quarantined != nil && *s.Quarantined > 0 {
		sentences = append(sentences, amount(*s.Quarantined, "document is", "documents are")+" not indexed in full.")
	}
	return strings.Join(sentences, " ")
}

// currentNotice says how current everything is that was not waited for.
func currentNotice(s Staleness, w Waited, replaced bool) string {
	about := "these results are"
	switch {
	case replaced:
	case w.AsOf != nil && w.AsOf.Captured && !w.TimedOut():
		about = "the results are beyond that"
	case w.Documents > 0:
		about = "everything else is"
	}
	current := "How current " + about + " has not been proven yet"
	if s.ProvenThrough != nil {
		current = "The index is proven complete up to " + s.ProvenThrough.Format("2006-01-02 15:04:05 MST")
	}
	switch {
	case s.LagSeconds != nil && s.Pending != nil && *s.Pending > 0:
		current += fmt.Sprintf("; indexing last took %s, and about %s still queued", seconds(*s.LagSeconds), amount(*s.Pending, "message is", "messages are"))
	case s.LagSeconds != nil:
		current += fmt.Sprintf("; indexing last took %s", seconds(*s.LagSeconds))
	case s.Pending != nil && *s.Pending > 0:
		current += fmt.Sprintf("; about %s still queued", amount(*s.Pending, "message is", "messages are"))
	}
	return current + "."
}

// waitedNotice says what became of the writes that were waited for.
func waitedNotice(w Waited, replaced bool) string {
	switch {
	case w.AsOf != nil && w.AsOf.TooMuch != nil:
		text := "There was too much to wait for, and more may be missing here than is known: " + w.AsOf.TooMuch.Detail + "."
		switch {
		case w.MissingCount > 0:
			text += fmt.Sprintf(" %s not in the index.", amount(w.MissingCount, "awaited write was", "awaited writes were"))
		case w.Tokens > 0 && w.QuarantinedCount == 0:
			text += " The writes named by tokens are included."
		}
		return text + refusedNotice(w)
	case w.AsOf != nil && !w.AsOf.Captured:
		text := fmt.Sprintf("The wait ended before the change feed was read, %s after the query's arrival: more may be missing here than is known.", seconds(w.AsOf.Margin.Seconds()))
		if w.MissingCount > 0 {
			text += fmt.Sprintf(" %s not in the index.", amount(w.MissingCount, "awaited write was", "awaited writes were"))
		}
		return text + refusedNotice(w)
	case w.TimedOut():
		text := fmt.Sprintf("The wait ended before %d of the %s in the index: they may be missing here.",
			w.MissingCount, amount(w.Documents, "awaited write was", "awaited writes were"))
		return text + refusedNotice(w)
	case replaced:
		text := "The index may have been lost or replaced while it was waited for: more may be missing here than is known."
		return text + refusedNotice(w)
	case w.AsOf != nil:
		text := fmt.Sprintf("Everything is included that was written before %s and that the change feed showed %s later.",
			w.AsOf.At.UTC().Format("15:04:05 MST"), seconds(w.AsOf.Margin.Seconds()))
		if w.QuarantinedCount > 0 {
			text = "Apart from that, everything" + strings.TrimPrefix(text, "Everything")
		}
		return strings.TrimSpace(refusedNotice(w) + " " + text)
	case w.QuarantinedCount+w.AbsentCount == w.Documents:
		return strings.TrimSpace(refusedNotice(w))
	}
	text := "The writes you waited for are included."
	if w.Documents == 1 {
		text = "The write you waited for is included."
	} else if w.QuarantinedCount+w.AbsentCount > 0 {
		text = "The other writes you waited for are included."
	}
	return strings.TrimSpace(refusedNotice(w) + " " + text)
}

// refusedNotice names awaited documents that the index could not take, and counts
// those that nobody knows: by a token of another deployment, or of a delete that
// was long ago.
func refusedNotice(w Waited) string {
	const most = 3
	unknown := ""
	if w.AbsentCount > 0 {
		unknown = fmt.Sprintf(" Neither the table nor the index has a trace of %s.", amount(w.AbsentCount, "awaited write", "awaited writes"))
	}
	if w.QuarantinedCount == 0 {
		return unknown
	}
	names := make([]string, 0, most)
	for _, id := range w.Quarantined[:min(len(w.Quarantined), most)] {
		names = append(names, string(id))
	}
	text := strings.Join(names, ", ")
	if more := w.QuarantinedCount - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return " The index could not take " + text + "." + unknown
}

func amount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// seconds is a time as people write it, rounded up: 0.4 s, 12 s.
func seconds(s float64) string {
	if s < 10 {
		return fmt.Sprintf("%.1f s", math.Ceil(s*10)/10)
	}
	return fmt.Sprintf("%.0f s", math.Ceil(s))
}
