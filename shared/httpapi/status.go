package httpapi

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/jobs"
	"holdfast/shared/jobs/repair"
	"holdfast/shared/store"
)

// ProofStore keeps what is known of how far the index is behind the table.
type ProofStore interface {
	Proofs(ctx context.Context) ([]store.Proof, error)
	// Lag is the indexer's last measure; false when there is none of late.
	Lag(ctx context.Context) (store.LagMeasure, bool, error)
}

const (
	// repairEvery is how often repair runs unless the deployment says otherwise.
	repairEvery = time.Minute
	// lagLife is how long the indexer's last measure says something. Repair has
	// a document written every minute, so an idle system has measures too.
	lagLife = 2 * time.Minute
	// lookups is how many questions about collections are asked at a time.
	lookups = 16
)

// status is the answer to GET /status.
type status struct {
	Healthy     bool               `json:"healthy"`
	Problems    []jobs.Problem     `json:"problems"`
	Collections []collectionStatus `json:"collections"`
	Next        string             `json:"next,omitempty"`
	Pipeline    pipelineStatus     `json:"pipeline"`
	Jobs        []job              `json:"jobs"`
	Version     string             `json:"version"`
}

type collectionStatus struct {
	Name          doc.Collection `json:"name"`
	Documents     *int           `json:"documents"` // at the last full comparison
	Indexed       *int           `json:"indexed"`   // at repair's last run
	ProvenThrough *string        `json:"provenThrough"`
	Quarantined   int            `json:"quarantined"`
	Generation    *int           `json:"generation"` // that queries read
	Reindexing    bool           `json:"reindexing"`
}

type pipelineStatus struct {
	LagSeconds     *float64 `json:"lagSeconds"`
	FeedLagSeconds *float64 `json:"feedLagSeconds"`
	Pending        *int     `json:"pending"`
	DeadLetters    *int     `json:"deadLetters"`
	GivenUp        *int     `json:"givenUp"`
}

// getStatus answers GET /status.
func (a *admin) getStatus(ctx context.Context, c *call) (*Response, error) {
	p, err := c.query.names("status")
	if err != nil {
		return nil, err
	}
	k, err := a.gather(ctx)
	if err != nil {
		return nil, err
	}
	s := status{
		Problems: jobs.Judge(k.situation()), Collections: []collectionStatus{},
		Pipeline: k.pipeline(), Jobs: k.jobs, Version: a.version,
	}
	s.Healthy = len(s.Problems) == 0
	if s.Problems == nil {
		s.Problems = []jobs.Problem{}
	}
	for i, name := range k.known {
		if name <= p.after {
			continue
		}
		if len(s.Collections) == p.limit {
			s.Next = p.behind(k.known[i-1])
			break
		}
		s.Collections = append(s.Collections, k.collection(name))
	}
	return replyJSON(http.StatusOK, s)
}

// knowledge is what a status is made from.
type knowledge struct {
	now         time.Time
	every       time.Duration    // that repair is to run
	known       []doc.Collection // by name
	definitions map[doc.Collection]collection.Definition
	generations map[collection.Family][]collection.Generation
	proofs      map[collection.Family]map[int]store.Proof
	quarantined map[doc.Collection]int
	figures     map[doc.Collection]repair.CollectionFigures

	lag         *time.Duration // of the indexer
	pending     *int
	deadSignals *int
	givenUp     *int
	ran         bool // repair has
	record      jobs.Record
	report      repair.Report
	jobs        []job
}

// gather reads all of it. What queues do not tell stays unknown; the state table
// has to answer.
func (a *admin) gather(ctx context.Context) (*knowledge, error) {
	k := &knowledge{
		now: a.now(), every: a.every, definitions: map[doc.Collection]collection.Definition{}, proofs: map[collection.Family]map[int]store.Proof{},
		figures: map[doc.Collection]repair.CollectionFigures{},
	}
	var work errgroup.Group
	work.Go(func() error { return a.gatherCollections(ctx, k) })
	work.Go(func() error {
		proofs, err := a.state.Proofs(ctx)
		for _, p := range proofs {
			if k.proofs[p.Family] == nil {
				k.proofs[p.Family] = map[int]store.Proof{}
			}
			k.proofs[p.Family][p.Generation] = p
		}
		return err
	})
	work.Go(func() error {
		m, ok, err := a.state.Lag(ctx)
		if lag := max(m.Lag, 0); ok && k.now.Sub(m.At) < lagLife {
			k.lag = &lag
		}
		return err
	})
	work.Go(func() (err error) {
		if k.jobs, err = a.tellJobs(ctx); err != nil {
			return err
		}
		return a.gatherReport(ctx, k)
	})
	work.Go(func() error { return a.gatherQueues(ctx, k) })
	return k, work.Wait()
}

// gatherCollections reads what there is about each collection.
func (a *admin) gatherCollections(ctx context.Context, k *knowledge) (err error) {
	if k.known, err = a.state.Collections(ctx); err != nil {
		return err
	}
	slices.Sort(k.known)
	definitions, err := a.state.Definitions(ctx)
	if err != nil {
		return err
	}
	for _, d := range definitions {
		k.definitions[d.Name] = d
	}
	families := map[collection.Family]bool{collection.SharedFamily: true}
	for _, name := range k.known {
		for _, f := range k.definition(name).Writes() {
			families[f] = true
		}
	}
	var mu sync.Mutex
	k.generations, k.quarantined = map[collection.Family][]collection.Generation{}, map[doc.Collection]int{}
	var work errgroup.Group
	work.SetLimit(lookups)
	for f := range families {
		work.Go(func() error {
			generations, err := a.state.Generations(ctx, f)
			mu.Lock()
			defer mu.Unlock()
			k.generations[f] = generations
			return err
		})
	}
	for _, name := range k.known {
		work.Go(func() error {
			n, err := a.state.CountQuarantined(ctx, []doc.Collection{name})
			mu.Lock()
			defer mu.Unlock()
			k.quarantined[name] = n
			return err
		})
	}
	return work.Wait()
}

// gatherReport reads what repair said last.
func (a *admin) gatherReport(ctx context.Context, k *knowledge) (err error) {
	if k.record, k.ran, err = a.lastRun(ctx, repair.Name); err != nil {
		return err
	}
	if k.report, err = readReport(k.record); err != nil {
		return err
	}
	for _, f := range k.report.Collections {
		k.figures[f.Name] = f
	}
	return nil
}

// queuePatience is how long a status waits for the queues: whoever asks why
// nothing is found wants the rest of it soon.
const queuePatience = 5 * time.Second

// gatherQueues asks the queues. It makes no error: the rest of a status is of
// use without them, and most of all then.
func (a *admin) gatherQueues(ctx context.Context, k *knowledge) error {
	ctx, cancel := context.WithTimeout(ctx, queuePatience)
	defer cancel()
	if n, err := a.signals.Depth(ctx); err == nil {
		k.pending = &n
	} else {
		a.log.WarnContext(ctx, "the queue does not tell its depth", "error", err)
	}
	if counts, err := a.letters.Counts(ctx); err == nil {
		k.deadSignals, k.givenUp = &counts.Signals, &counts.Relay
	} else {
		a.log.WarnContext(ctx, "the queues of dead letters do not tell their depth", "error", err)
	}
	return nil
}

// definition is what is declared of a collection.
func (k *knowledge) definition(name doc.Collection) collection.Definition {
	if d, ok := k.definitions[name]; ok {
		return d
	}
	return collection.Definition{Name: name}
}

// collection is what is told of one.
func (k *knowledge) collection(name doc.Collection) collectionStatus {
	d := k.definition(name)
	s := collectionStatus{Name: name, Quarantined: k.quarantined[name]}
	if f, ok := k.figures[name]; ok {
		s.Documents, s.Indexed = f.Documents, &f.Indexed
	}
	if g, ok := collection.Read(k.generations[d.Reads()]); ok {
		s.Generation = &g.Number
		if p := k.proofs[g.Family][g.Number]; !p.Through.IsZero() {
			through := tellTime(p.Through)
			s.ProvenThrough = &through
		}
	}
	_, s.Reindexing = destination(d, k.generations[d.Family()])
	return s
}

// behind is the larger of the indexer's lag and the age of the oldest change
// that an index was last found to lack; nil when neither is known.
func (k *knowledge) behind() *time.Duration {
	behind := k.lag
	for _, g := range k.read() {
		p := k.proofs[g.Family][g.Number]
		if p.Missing == 0 || p.OldestMissing.IsZero() {
			continue
		}
		if age := k.now.Sub(p.OldestMissing); behind == nil || age > *behind {
			behind = &age
		}
	}
	return behind
}

// read are the generations that queries read, by family. Of a family that has
// documents on their way to its first one, that has no number yet.
func (k *knowledge) read() []collection.Generation {
	var families []collection.Family
	if _, ok := collection.Read(k.generations[collection.SharedFamily]); ok {
		families = append(families, collection.SharedFamily) // for repair's own documents
	}
	for _, name := range k.known {
		families = append(families, k.definition(name).Reads())
	}
	slices.Sort(families)
	var all []collection.Generation
	for _, f := range slices.Compact(families) {
		g, ok := collection.Read(k.generations[f])
		if !ok {
			g.Family = f
		}
		all = append(all, g)
	}
	return all
}

func (k *knowledge) pipeline() pipelineStatus {
	return pipelineStatus{
		LagSeconds: seconds(k.behind()), FeedLagSeconds: seconds(k.report.FeedLag),
		Pending: k.pending, DeadLetters: k.deadSignals, GivenUp: k.givenUp,
	}
}

// seconds is a length of time in seconds, to the millisecond, rounded up.
func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	s := math.Ceil(d.Seconds()*1000) / 1000
	return &s
}

// situation is what is known for judging whether all is well.
func (k *knowledge) situation() jobs.Situation {
	s := jobs.Situation{
		Now: k.now, Lag: k.behind(), Pending: k.pending, DeadLetters: k.deadSignals, GivenUp: k.givenUp,
		Jobs: []jobs.JobSituation{{
			Name: repair.Name, Every: k.every, Started: k.record.Started, Failed: k.record.Outcome == jobs.Failed, Error: k.record.Error,
		}},
	}
	if k.ran && k.record.Outcome != jobs.Failed {
		s.FeedLag, s.Margin = k.report.FeedLag, k.report.Margin
	}
	for _, n := range k.quarantined {
		s.Quarantined += n
	}
	s.Unhealed = k.report.Unhealed
	if last := k.report.LastPass; last != nil {
		s.ComparedAt, s.Differences = last.Started, last.Missing+last.Older+last.Different+last.Extra+last.Ahead
	}
	for _, g := range k.read() {
		p := k.proofs[g.Family][g.Number]
		s.Indexes = append(s.Indexes, jobs.IndexSituation{Name: indexName(g.Family), Generation: g.Number, Through: p.Through, Missing: p.Missing})
	}
	return k.builds(s)
}

// builds adds the indexes that are being filled: new generations, and those that
// documents of a collection move to.
func (k *knowledge) builds(s jobs.Situation) jobs.Situation {
	filling := map[collection.Family]time.Time{} // since when
	for _, name := range k.known {
		if d := k.definition(name); d.Serving != nil && !d.Moved {
			filling[d.Family()] = d.Since
		}
	}
	numbers := map[collection.Family]int{}
	for f, generations := range k.generations {
		for _, g := range generations {
			if g.State == collection.Building {
				filling[f], numbers[f] = g.Since, g.Number
			}
		}
	}
	for f, since := range filling {
		number := numbers[f]
		if number == 0 {
			g, _ := collection.Read(k.generations[f])
			number = g.Number
		}
		s.Indexes = append(s.Indexes, jobs.IndexSituation{Name: indexName(f), Generation: number, Building: true, Moved: k.moved(since)})
	}
	slices.SortStableFunc(s.Indexes, func(x, y jobs.IndexSituation) int { return strings.Compare(x.Name, y.Name) })
	return s
}

// moved is when something was last done about indexes that are being filled,
// since they are. A run of repair that goes on with a comparison does something.
func (k *knowledge) moved(since time.Time) time.Time {
	moved := since
	later := func(t time.Time) {
		if t.After(moved) {
			moved = t
		}
	}
	if pass := k.report.Pass; pass != nil && k.record.Outcome == jobs.More {
		later(k.record.Finished)
	}
	if last := k.report.LastPass; last != nil {
		later(last.Finished)
	}
	return moved
}

func indexName(f collection.Family) string {
	if f == collection.SharedFamily {
		return "the shared index"
	}
	return "the index of " + string(f)
}
