package freshness

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/obs"
	"holdfast/shared/search"
)

// Index is what a wait asks about the index. Its errors are of kind
// IndexUnavailable where it does not answer.
type Index interface {
	// Versions is the version that every one of the named generations holds of
	// an id, the lowest where they differ, read in real time. An id that one of
	// them does not hold is missing from the answer.
	Versions(ctx context.Context, wanted []search.VersionOf) (map[doc.ID]doc.Version, error)
	// Refresh makes everything written so far visible to searches.
	Refresh(ctx context.Context, generations []collection.Generation) error
}

// Registry tells in which indexes a collection's documents are.
type Registry interface {
	Definition(ctx context.Context, c doc.Collection) (collection.Definition, error)
	Generations(ctx context.Context, f collection.Family) ([]collection.Generation, error)
}

// Quarantine tells which documents the index could not take.
type Quarantine interface {
	CountQuarantined(ctx context.Context, collections []doc.Collection) (int, error)
	Quarantine(ctx context.Context, ids []doc.ID) (map[doc.ID]doc.Quarantined, error)
}

// Table tells what there is to be indexed.
type Table interface {
	Revisions(ctx context.Context, ids []doc.ID, maxBytes int, visit func(found []doc.Document, absent []doc.ID) error) error
}

const (
	firstPause = 25 * time.Millisecond
	lastPause  = 250 * time.Millisecond
	// versionsChunk is how many ids one question about versions has.
	versionsChunk = 1000
	// quarantineAfter is how long an id is missing before the quarantine is
	// looked at, and quarantineEvery how often from then on.
	quarantineAfter = 100 * time.Millisecond
	quarantineEvery = time.Second
	// absentAfter, absentEvery: the same for the table, which is asked about at
	// most absentChunk ids, those with the oldest versions first. Only a
	// document that is gone without a trace makes this necessary, and its
	// tombstone has been kept for weeks.
	absentAfter = time.Second
	absentEvery = 5 * time.Second
	absentChunk = 100
	absentBytes = 8 << 20
	// familyLife is how long the generations of a family are believed.
	familyLife = 2 * time.Second
	// silentAfter is how long a look at the index goes without an answer before
	// the wait's end says that the index does not answer.
	silentAfter = time.Second
	// MaxNamed is how many ids an answer names at most.
	MaxNamed = 20
)

// WaiterOptions are what a Waiter needs.
type WaiterOptions struct {
	Index      Index
	Registry   Registry
	Quarantine Quarantine
	Table      Table
	Feed       Feed             // for AsOfNow
	Proofs     Proofs           // nil: nothing is proven
	Margin     time.Duration    // of AsOfNow; 0: DefaultMargin
	Now        func() time.Time // nil: time.Now; what answers tell as a moment
	Log        *slog.Logger     // nil: discarded
}

// Waiter waits until the index has seen writes. It is safe for concurrent use.
type Waiter struct {
	o WaiterOptions

	mu       sync.Mutex
	families map[collection.Family]familyLookup
}

type familyLookup struct {
	active []collection.Generation
	at     time.Time
}

// NewWaiter makes a waiter.
func NewWaiter(o WaiterOptions) *Waiter {
	if o.Log == nil {
		o.Log = obs.Discard()
	}
	if o.Margin == 0 {
		o.Margin = DefaultMargin
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Waiter{o: o, families: map[collection.Family]familyLookup{}}
}

// Patience is how long a wait may take.
type Patience struct {
	Timeout time.Duration
	// Silence is how long the index may fail to answer before the wait is given
	// up; 0: until the timeout, because it may come back in time.
	Silence time.Duration
	// Read is where a search will look that is made afterwards: the generation in
	// which it reads each collection. Collections that are not named are waited
	// for in all generations that queries may read.
	Read map[doc.Collection]collection.Generation
	// Partly says that a wait which cannot be for everything that was asked for is
	// for the rest instead of being refused.
	Partly bool
}

// Waited is the outcome of a wait. The zero value is that of none.
type Waited struct {
	Documents    int      // how many were waited for
	Missing      []doc.ID // the first of those that the index has not been shown to have, at most MaxNamed
	MissingCount int
	// Quarantined are documents that were waited for and that the index could
	// not take: there is nothing to wait for. At most MaxNamed are named.
	Quarantined      []doc.ID
	QuarantinedCount int
	// AbsentCount is how many neither the table nor the index has a trace of:
	// there is nothing to wait for, either.
	AbsentCount int
	Took        time.Duration
	// Unavailable says that the index did not answer at the end, so that what is
	// missing may well be in there.
	Unavailable bool

	Tokens int         // how many of the documents were named by tokens
	AsOf   *AsOfWaited // nil: not asked for
}

// TimedOut reports whether the wait ended before everything was there, or
// before it was known what should be.
func (w Waited) TimedOut() bool { return w.MissingCount > 0 || w.AsOf != nil && !w.AsOf.Captured }

// Problem is the wait's failure as the client is told it, or nil: of kind
// IndexUnavailable where the index did not answer at the end, of kind
// QueryTooCostly where there was too much to wait for, else of kind
// WaitTimeout with the members missing (some of the ids) and missingCount; both
// with waitedMs.
func (w Waited) Problem() *doc.Error {
	if !w.TimedOut() {
		return nil
	}
	if w.Unavailable {
		return doc.Errorf(doc.IndexUnavailable,
			"the index did not answer at the end of the wait, so that %d of %d awaited writes could not be looked for; documents can be loaded by id all the same",
			w.MissingCount, w.Documents).With("waitedMs", w.Took.Milliseconds())
	}
	missing := w.Missing
	if missing == nil {
		missing = []doc.ID{}
	}
	if w.AsOf != nil && w.AsOf.TooMuch != nil {
		return w.AsOf.TooMuch
	}
	problem := doc.Errorf(doc.WaitTimeout, "%d of %d awaited writes were not in the index in time", w.MissingCount, w.Documents)
	if w.AsOf != nil && !w.AsOf.Captured {
		problem = w.AsOf.unread(w)
	}
	return problem.With("missing", missing).With("missingCount", w.MissingCount).With("waitedMs", w.Took.Milliseconds())
}

// Wait waits until a query sees each of the signals or something newer, at most
// for the timeout. A document that the index could not take is not waited for
// beyond its entry in the quarantine, nor one of which neither the table nor the
// index has a trace.
//
// Failures of engines are sat out as long as the patience lasts. The error is
// that of the context, when it ends for another reason than the timeout.
func (w *Waiter) Wait(ctx context.Context, signals []doc.Signal, patience Patience) (Waited, error) {
	signals = newest(signals)
	if len(signals) == 0 {
		return Waited{}, nil
	}
	t, end := newTerm(ctx, max(patience.Timeout, leastTimeout))
	defer end()
	waited, err := w.wait(ctx, t, signals, patience)
	waited.Tokens = waited.Documents
	return waited, err
}

// wait waits for distinct signals until the term ends or the index has been
// silent for too long.
func (w *Waiter) wait(ctx context.Context, t term, signals []doc.Signal, patience Patience) (Waited, error) {
	began := time.Now()
	p := &pending{w: w, left: signals, silence: patience.Silence, read: patience.Read}
	p.poll(t, began)
	if err := ctx.Err(); err != nil {
		return Waited{}, fmt.Errorf("wait for the index: %w", err)
	}
	done := Waited{Documents: len(signals), QuarantinedCount: len(p.quarantined), AbsentCount: p.absent}
	done.Quarantined = p.quarantined[:min(len(p.quarantined), MaxNamed)]
	done.Unavailable = p.unanswered()
	missing := p.left
	if len(missing) < len(signals) {
		if unanswered, err := w.refresh(t, signals, patience); err != nil {
			missing = signals // in the index, but no search is known to see it
			done.Unavailable = unanswered
		}
	}
	done.Unavailable = done.Unavailable && len(missing) > 0
	done.MissingCount = len(missing)
	for _, s := range missing[:min(len(missing), MaxNamed)] {
		done.Missing = append(done.Missing, s.ID)
	}
	done.Took = time.Since(began)
	return done, nil
}

// pending is what one wait still waits for.
type pending struct {
	read        map[doc.Collection]collection.Generation // in which a search will look
	w           *Waiter
	left        []doc.Signal    // in the order of ids
	unheld      map[doc.ID]bool // ids of which the index has just said that it has no version at all
	quarantined []doc.ID
	absent      int // of which neither the table nor the index has a trace

	silence     time.Duration // after which the wait is given up; 0: not before its end
	failing     bool          // a look at the index failed in the last round that the wait's end did not cut short
	silentSince time.Time     // when the first look began of those that failed since the last answer; zero: none
}

// unanswered reports whether the index does not answer.
func (p *pending) unanswered() bool { return p.failing || p.silentFor(silentAfter) }

// silentFor reports whether the index has not answered for so long.
func (p *pending) silentFor(d time.Duration) bool {
	return !p.silentSince.IsZero() && time.Since(p.silentSince) >= d
}

// poll asks until nothing is left, the time is over or the index has been silent
// for too long.
func (p *pending) poll(t term, began time.Time) {
	ctx := t.late
	pause := firstPause
	quarantineAt, absentAt := began.Add(quarantineAfter), began.Add(absentAfter)
	for {
		asked := time.Now()
		p.askIndex(ctx)
		if p.silence > 0 && p.silentFor(p.silence) {
			return
		}
		if len(p.left) > 0 && !time.Now().Before(quarantineAt) {
			p.askQuarantine(ctx)
			quarantineAt = time.Now().Add(quarantineEvery)
		}
		if len(p.left) > 0 && !time.Now().Before(absentAt) {
			p.askTable(ctx)
			absentAt = time.Now().Add(absentEvery)
		}
		if len(p.left) == 0 {
			return
		}
		// Asking about thousands of documents takes time of the index that it
		// needs for taking them: leave it twice as much.
		timer := time.NewTimer(max(pause, 2*time.Since(asked)))
		select {
		case <-t.time.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = min(2*pause, lastPause)
	}
}

// askIndex crosses off what the index holds in every active generation.
func (p *pending) askIndex(ctx context.Context) {
	p.unheld = map[doc.ID]bool{}
	groups, active, err := p.w.grouped(ctx, p.left, p.read)
	if err != nil {
		p.w.o.Log.WarnContext(ctx, "finding the generations of an index failed", "error", err)
		return
	}
	there := map[doc.ID]bool{}
	failing := false
	for _, family := range slices.Sorted(maps.Keys(groups)) {
		signals := groups[family]
		if len(active[family]) == 0 { // no index yet, so it holds nothing
			for _, s := range signals {
				p.unheld[s.ID] = true
			}
			continue
		}
		for chunk := range slices.Chunk(signals, versionsChunk) {
			err := p.askFamily(ctx, active[family], chunk, there)
			failing = failing || doc.KindOf(err) == doc.IndexUnavailable
		}
	}
	if ctx.Err() == nil { // else the looks may have failed for this alone
		p.failing = failing
	}
	p.cross(there)
}

// askFamily asks the generations of one family, and notes what they hold in
// the wanted version, and what they have no version of. A look of a wait that
// is given up early ends no later than that.
func (p *pending) askFamily(ctx context.Context, generations []collection.Generation, signals []doc.Signal, there map[doc.ID]bool) error {
	ids := make([]doc.ID, len(signals))
	for i, s := range signals {
		ids[i] = s.ID
	}
	wanted := make([]search.VersionOf, len(generations))
	for i, g := range generations {
		wanted[i] = search.VersionOf{Generation: g, IDs: ids}
	}
	since := p.silentSince
	if since.IsZero() {
		since = time.Now()
	}
	if p.silence > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, since.Add(p.silence))
		defer cancel()
	}
	versions, err := p.w.o.Index.Versions(ctx, wanted)
	if err != nil {
		p.w.o.Log.DebugContext(ctx, "asking the index for versions failed", "error", err)
		if doc.KindOf(err) == doc.IndexUnavailable {
			p.silentSince = since
		}
		return err
	}
	p.silentSince = time.Time{}
	for _, s := range signals {
		v, holds := versions[s.ID]
		there[s.ID] = holds && v >= s.Version
		p.unheld[s.ID] = !holds
	}
	return nil
}

// askQuarantine crosses off what the index could not take.
func (p *pending) askQuarantine(ctx context.Context) {
	collections := map[doc.Collection]bool{}
	ids := make([]doc.ID, len(p.left))
	for i, s := range p.left {
		ids[i] = s.ID
		collections[s.ID.Collection()] = true
	}
	n, err := p.w.o.Quarantine.CountQuarantined(ctx, slices.Collect(maps.Keys(collections)))
	if err != nil || n == 0 {
		return
	}
	entries, err := p.w.o.Quarantine.Quarantine(ctx, ids)
	if err != nil {
		return
	}
	there := map[doc.ID]bool{}
	for _, s := range p.left {
		// A partial entry says that a reduced form is in the index, so the index
		// itself is the one to ask.
		if q, ok := entries[s.ID]; ok && q.Version >= s.Version && !q.Partial {
			there[s.ID] = true
			p.quarantined = append(p.quarantined, s.ID)
		}
	}
	p.cross(there)
}

// askTable crosses off what is nowhere: the index does not hold it and the
// table has not even a tombstone.
func (p *pending) askTable(ctx context.Context) {
	var candidates []doc.Signal
	for _, s := range p.left {
		if p.unheld[s.ID] {
			candidates = append(candidates, s)
		}
	}
	slices.SortStableFunc(candidates, func(a, b doc.Signal) int { return int(min(max(a.Version-b.Version, -1), 1)) })
	candidates = candidates[:min(len(candidates), absentChunk)]
	if len(candidates) == 0 {
		return
	}
	ids := make([]doc.ID, len(candidates))
	for i, s := range candidates {
		ids[i] = s.ID
	}
	there := map[doc.ID]bool{}
	err := p.w.o.Table.Revisions(ctx, ids, absentBytes, func(_ []doc.Document, absent []doc.ID) error {
		for _, id := range absent {
			there[id] = true
		}
		return nil
	})
	if err != nil {
		p.w.o.Log.DebugContext(ctx, "asking the table failed", "error", err)
	}
	p.absent += len(there)
	p.cross(there)
}

func (p *pending) cross(there map[doc.ID]bool) {
	p.left = slices.DeleteFunc(slices.Clone(p.left), func(s doc.Signal) bool { return there[s.ID] })
}

// grouped sorts signals by the family that their documents are indexed in, and
// finds each family's generations that queries read, or the one that is given.
func (w *Waiter) grouped(ctx context.Context, signals []doc.Signal, read map[doc.Collection]collection.Generation) (
	groups map[collection.Family][]doc.Signal, active map[collection.Family][]collection.Generation, err error,
) {
	groups, active = map[collection.Family][]doc.Signal{}, map[collection.Family][]collection.Generation{}
	families := map[doc.Collection]collection.Family{}
	for _, s := range signals {
		c := s.ID.Collection()
		family, known := families[c]
		if g, given := read[c]; !known && given {
			family, known = g.Family, true
			families[c], active[family] = family, []collection.Generation{g}
		}
		if !known {
			d, err := w.o.Registry.Definition(ctx, c)
			if err != nil {
				return nil, nil, fmt.Errorf("find the definition of a collection: %w", err)
			}
			family = d.Reads()
			families[c] = family
			if len(active[family]) == 0 {
				if active[family], err = w.activeOf(ctx, family); err != nil {
					return nil, nil, err
				}
			}
		}
		groups[family] = append(groups[family], s)
	}
	return groups, active, nil
}

// activeOf is the family's generations that queries read. That there is none
// yet is not remembered: the first document is on its way.
func (w *Waiter) activeOf(ctx context.Context, family collection.Family) ([]collection.Generation, error) {
	w.mu.Lock()
	found, ok := w.families[family]
	w.mu.Unlock()
	if ok && time.Since(found.at) < familyLife {
		return found.active, nil
	}
	at := time.Now()
	all, err := w.o.Registry.Generations(ctx, family)
	if err != nil {
		return nil, fmt.Errorf("find the generations of an index: %w", err)
	}
	active := slices.DeleteFunc(slices.Clone(all), func(g collection.Generation) bool { return g.State != collection.Active })
	if len(active) > 0 {
		w.mu.Lock()
		w.families[family] = familyLookup{active, at}
		w.mu.Unlock()
	}
	return active, nil
}

func elementPointer(pointer string, i int) string {
	return strings.TrimSuffix(pointer, "/") + "/" + strconv.Itoa(i)
}
