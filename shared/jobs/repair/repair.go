package repair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/jobs"
	"holdfast/shared/obs"
	"holdfast/shared/pipeline"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

// Table is the documents and their change feed.
type Table interface {
	// Sweep reads the change feed from a version on to its end, without an upper
	// bound, page by page.
	Sweep(ctx context.Context, from doc.Version, visit func([]doc.Change) error) error
	Scan(ctx context.Context, q store.ScanQuery) (store.ScanPage, error)
	// Standings are what the table holds under the ids, by strong reads; ids of
	// which it has no trace are missing.
	Standings(ctx context.Context, ids []doc.ID) (map[doc.ID]store.Standing, error)
	Adopt(ctx context.Context, f store.Foreign) error
	// PutCanary writes a document into the n-th partition of the feed, and
	// FeedHas tells whether the feed shows it.
	PutCanary(ctx context.Context, n int) (doc.Written, error)
	FeedHas(ctx context.Context, w doc.Written) (bool, error)
}

// Index is the search engine.
type Index interface {
	pipeline.Ensurer
	Inspect(ctx context.Context, g collection.Generation) (search.Inspection, error)
	// UUID is that of Inspect.
	UUID(ctx context.Context, g collection.Generation) (string, error)
	Swap(ctx context.Context, to collection.Generation, from []collection.Generation) error
	Remove(ctx context.Context, g collection.Generation) error
	Versions(ctx context.Context, wanted []search.VersionOf) (map[doc.ID]doc.Version, error)
	Held(ctx context.Context, g collection.Generation, ids []doc.ID) (map[doc.ID]search.Held, error)
	Walk(ctx context.Context, g collection.Generation, q search.WalkQuery) ([]search.Standing, error)
	Erase(ctx context.Context, g collection.Generation, signals []doc.Signal) ([]search.Outcome, error)
	Refresh(ctx context.Context, generations []collection.Generation) error
	Counts(ctx context.Context, g collection.Generation) (map[doc.Collection]int, error)
}

// State is what the system keeps about itself.
type State interface {
	jobs.Leases
	jobs.Records
	// Register records that a collection has documents; done again it changes
	// nothing, and costs nothing in the same process.
	Register(ctx context.Context, c doc.Collection) error
	Definitions(ctx context.Context) ([]collection.Definition, error)
	// AmendDefinition replaces a definition that is exactly the expected one,
	// without a new revision; kind VersionConflict when it is another.
	AmendDefinition(ctx context.Context, d, expected collection.Definition) error
	Generations(ctx context.Context, f collection.Family) ([]collection.Generation, error)
	PutGeneration(ctx context.Context, g collection.Generation, expected *collection.Generation) error
	Proofs(ctx context.Context) ([]store.Proof, error)
	PutProof(ctx context.Context, p store.Proof) (bool, error)
	DropProof(ctx context.Context, f collection.Family, generation int, fence int64) (bool, error)
	JobRequests(ctx context.Context, name string) ([]store.JobRequest, error)
	DropJobRequest(ctx context.Context, r store.JobRequest) error
	Quarantine(ctx context.Context, ids []doc.ID) (map[doc.ID]doc.Quarantined, error)
	Quarantined(ctx context.Context, q store.QuarantineQuery) ([]doc.Quarantined, string, error)
	ClearQuarantine(ctx context.Context, c doc.Collection, id doc.ID, upTo doc.Version) error
}

// Defaults of Options.
const (
	DefaultMargin   = store.DefaultFeedMargin
	DefaultBudget   = 45 * time.Second
	DefaultPatience = 15 * time.Second
	// DefaultSettle is how long after the announcement of a generation everyone
	// writes to it: the lives of what is remembered of definitions and of
	// generations, and an invocation that began with the old ones, which is at
	// most two minutes.
	DefaultSettle = store.DefinitionLife + pipeline.GenerationsLife + 2*time.Minute
	// DefaultEvery is how often everything is compared.
	DefaultEvery = 24 * time.Hour
)

// Options are what a Repair needs. Table, Index, State and Queue are required.
type Options struct {
	Table Table
	Index Index
	State State
	Queue pipeline.Queue

	// Margin is how far before its beginning a capture of the feed proves the
	// index: it covers errors of clocks, the longest attempt of a write and the
	// delay of the feed. It must be that of the store. 0: DefaultMargin.
	Margin time.Duration
	// Budget is how long a run works. The lease lasts twice as long and a minute,
	// the function's timeout has to lie between. 0: DefaultBudget.
	Budget time.Duration
	// Patience is how long a run waits for the index to get what was captured, a
	// third of the budget at most. 0: DefaultPatience.
	Patience      time.Duration
	Settle        time.Duration // 0: DefaultSettle
	CompareEvery  time.Duration // 0: DefaultEvery
	TombstoneLife time.Duration // of the store; 0: store.DefaultTombstoneLife

	Now     func() time.Time                           // nil: time.Now
	Sleep   func(context.Context, time.Duration) error // nil: the real one
	Jitter  func() float64                             // in [0, 1); nil: random
	Log     *slog.Logger                               // nil: discarded
	Metrics *obs.Metrics                               // nil: none
}

// Repair is the scheduled function.
type Repair struct{ o Options }

// New makes a Repair.
func New(o Options) *Repair {
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&o.Margin, DefaultMargin}, {&o.Budget, DefaultBudget}, {&o.Patience, DefaultPatience}, {&o.Settle, DefaultSettle},
		{&o.CompareEvery, DefaultEvery}, {&o.TombstoneLife, store.DefaultTombstoneLife},
	} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
	// Whatever is waited for, the larger part of a run is for work.
	o.Patience = min(o.Patience, o.Budget/3)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Log == nil {
		o.Log = obs.Discard()
	}
	return &Repair{o: o}
}

// Name is the name of the job: of its lease, its record and its requests.
const Name = "repair"

// Reindex is the name of the job that builds the index of one collection anew.
// Repair does it.
const Reindex = "reindex"

// Mode says what a run does besides what is due.
type Mode string

// The modes of a run.
const (
	Prove   Mode = "prove"   // what is due
	Compare Mode = "compare" // begins a comparison of everything
	Purge   Mode = "purge"   // the same: markers are found by it
	Retry   Mode = "retry"   // tries the whole quarantine again
)

// Modes are all of them.
var Modes = []Mode{Prove, Compare, Purge, Retry}

// Run is one run. held is false when another run is under way; then nothing was
// done. The report says what was found and done, also beside an error.
func (r *Repair) Run(ctx context.Context, mode Mode) (report Report, held bool, err error) {
	if !slices.Contains(Modes, mode) {
		return report, false, fmt.Errorf("repair knows no mode %q", mode)
	}
	held, err = jobs.Hold(ctx, r.o.State, Name, 2*r.o.Budget+time.Minute, func(lease store.Lease) error {
		x := &run{Options: r.o, lease: lease, mode: mode, began: r.o.Now(), unfit: map[key]bool{}, inspected: map[key]bool{}}
		x.Index = patient{r.o.Index, x}
		err := x.work(ctx)
		report = x.report
		if recordErr := x.record(ctx, err); recordErr != nil {
			err = errors.Join(err, recordErr)
		}
		return err
	})
	if held {
		report.measure(r.o)
	}
	return report, held, err
}

// run is one run.
type run struct {
	Options
	lease  store.Lease
	mode   Mode
	began  time.Time
	state  state
	report Report

	definitions map[doc.Collection]collection.Definition
	generations map[collection.Family][]collection.Generation
	proofs      map[key]store.Proof
	unfit       map[key]bool // whose index has another mapping than it should
	inspected   map[key]bool // whose index was looked at
	queueDepth  int
	unwell      bool          // the index did not answer: nothing more is asked of it
	lost        time.Duration // to requests that the index failed at
}

// key names a generation.
type key struct {
	Family collection.Family
	Number int
}

func keyOf(g collection.Generation) key { return key{g.Family, g.Number} }

// work does everything, each part whether or not the one before failed.
func (x *run) work(ctx context.Context) error {
	if err := x.load(ctx); err != nil {
		return err
	}
	var problems []error
	for _, step := range []struct {
		doing string
		do    func(context.Context) error
	}{
		{"take requests", x.takeRequests},
		{"look after generations", x.tend},
		{"prove the index", x.prove},
		{"compare table and index", x.compare},
		{"look after generations", x.tendAgain},
		{"retry the quarantine", x.retry},
		{"count documents", x.count},
	} {
		err := step.do(ctx)
		if errors.Is(err, jobs.ErrOvertaken) || ctx.Err() != nil {
			return errors.Join(append(problems, err, ctx.Err())...)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", step.doing, err))
			x.Log.WarnContext(ctx, "a part of repair failed", "part", step.doing, "error", err)
		}
	}
	return errors.Join(problems...)
}

// load reads what the run works with.
func (x *run) load(ctx context.Context) error {
	if _, err := jobs.Read(ctx, x.State, stateName, &x.state); err != nil {
		return err
	}
	definitions, err := x.State.Definitions(ctx)
	if err != nil {
		return err
	}
	x.definitions = map[doc.Collection]collection.Definition{}
	for _, d := range definitions {
		x.definitions[d.Name] = d
	}
	if x.proofs, err = x.readProofs(ctx); err != nil {
		return err
	}
	if x.queueDepth, err = x.Queue.Depth(ctx); err != nil {
		x.queueDepth = -1 // not known
		x.Log.WarnContext(ctx, "reading the queue's depth failed", "error", err)
	}
	return x.readGenerations(ctx)
}

func (x *run) readProofs(ctx context.Context) (map[key]store.Proof, error) {
	all, err := x.State.Proofs(ctx)
	if err != nil {
		return nil, err
	}
	proofs := map[key]store.Proof{}
	for _, p := range all {
		if !p.Through.IsZero() {
			proofs[key{p.Family, p.Generation}] = p
		}
	}
	return proofs, nil
}

// definition is what is declared of a collection, as the run began.
func (x *run) definition(c doc.Collection) collection.Definition {
	if d, ok := x.definitions[c]; ok {
		return d
	}
	return collection.Definition{Name: c}
}

// left is how much of the run's time is left.
func (x *run) left() time.Duration { return x.Budget - x.Now().Sub(x.began) }

// save keeps the run's state under the lease.
func (x *run) save(ctx context.Context) error {
	return jobs.Write(ctx, x.State, x.lease, stateName, x.state)
}

// record leaves the report where people and the status look.
func (x *run) record(ctx context.Context, failure error) error {
	if errors.Is(failure, jobs.ErrOvertaken) {
		return nil
	}
	detail, err := json.Marshal(x.report)
	if err != nil {
		return fmt.Errorf("write the report of repair: %w", err)
	}
	r := jobs.Record{Name: Name, Mode: string(x.mode), Started: x.began.UTC(), Finished: x.Now().UTC(), Outcome: jobs.OK, Detail: detail}
	switch {
	case failure != nil:
		r.Outcome, r.Error = jobs.Failed, failure.Error()
	case x.state.Pass != nil:
		r.Outcome = jobs.More
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	return jobs.Write(ctx, x.State, x.lease, Name, r)
}

// recordTime is what the last record of a run may take when its own time is over.
const recordTime = 3 * time.Second

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
