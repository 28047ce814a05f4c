package httpapi

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/pipeline"
	"holdfast/shared/store"
)

// fakeState is what the system keeps about itself, in memory. With err set
// everything of it fails so.
type fakeState struct {
	*fakeDefinitions
	quarantine []doc.Quarantined
	records    map[string]store.JobRecord
	requests   []store.JobRequest
	proofs     []store.Proof
	lag        *store.LagMeasure
}

func (f *fakeState) Quarantined(_ context.Context, q store.QuarantineQuery) ([]doc.Quarantined, string, error) {
	if f.err != nil {
		return nil, "", f.err
	}
	skip := 0
	if q.After != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(q.After, "skip"+string(q.Collection)))
		if err != nil {
			return nil, "", doc.Errorf(doc.InvalidCursor, "this is not a cursor of this listing")
		}
		skip = n
	}
	var all []doc.Quarantined
	for _, entry := range f.quarantine {
		if q.Collection == "" || entry.Collection == q.Collection {
			all = append(all, entry)
		}
	}
	all = all[min(skip, len(all)):]
	if len(all) <= q.Limit {
		return all, "", nil
	}
	return all[:q.Limit], "skip" + string(q.Collection) + strconv.Itoa(skip+q.Limit), nil
}

func (f *fakeState) Quarantine(_ context.Context, ids []doc.ID) (map[doc.ID]doc.Quarantined, error) {
	found := map[doc.ID]doc.Quarantined{}
	for _, entry := range f.quarantine {
		if slices.Contains(ids, entry.ID) {
			found[entry.ID] = entry
		}
	}
	return found, f.err
}

func (f *fakeState) CountQuarantined(_ context.Context, collections []doc.Collection) (n int, err error) {
	for _, entry := range f.quarantine {
		if slices.Contains(collections, entry.Collection) {
			n++
		}
	}
	return n, f.err
}

func (f *fakeState) Job(_ context.Context, name string) (store.JobRecord, bool, error) {
	r, ok := f.records[name]
	return r, ok && f.err == nil, f.err
}

func (f *fakeState) RequestJob(_ context.Context, r store.JobRequest) (store.JobRequest, bool, error) {
	if f.err != nil {
		return r, false, f.err
	}
	for _, waiting := range f.requests {
		if waiting.Name == r.Name && waiting.Mode == r.Mode && waiting.Collection == r.Collection {
			return waiting, false, nil
		}
	}
	f.requests = append(f.requests, r)
	return r, true, nil
}

func (f *fakeState) JobRequests(_ context.Context, name string) (waiting []store.JobRequest, err error) {
	for _, r := range f.requests {
		if r.Name == name {
			waiting = append(waiting, r)
		}
	}
	return waiting, f.err
}

func (f *fakeState) Proofs(context.Context) ([]store.Proof, error) { return f.proofs, f.err }

func (f *fakeState) Lag(context.Context) (store.LagMeasure, bool, error) {
	if f.lag == nil {
		return store.LagMeasure{}, false, f.err
	}
	return *f.lag, f.err == nil, f.err
}

// fakeSignals is a queue of signals.
type fakeSignals struct {
	sent  []doc.Signal
	calls int
	depth int
	err   error
	hangs bool // Depth does not answer
}

func (f *fakeSignals) Send(_ context.Context, out []pipeline.Outgoing) []error {
	if f.err != nil {
		return []error{f.err}
	}
	f.calls++
	for _, o := range out {
		signals, _, err := pipeline.Unpack(o.Body)
		if err != nil {
			return []error{err}
		}
		f.sent = append(f.sent, signals...)
	}
	return nil
}

func (f *fakeSignals) Depth(ctx context.Context) (int, error) {
	if f.hangs {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return f.depth, f.err
}

// fakeLetters are dead letters.
type fakeLetters struct {
	letters  []pipeline.DeadLetter
	err      error
	limit    int
	discards bool
}

func (f *fakeLetters) Counts(context.Context) (n pipeline.DeadCounts, err error) {
	for _, l := range f.letters {
		if l.Queue == pipeline.SignalLetters {
			n.Signals++
		} else {
			n.Relay++
		}
	}
	return n, f.err
}

func (f *fakeLetters) Look(_ context.Context, limit int) ([]pipeline.DeadLetter, error) {
	return f.letters[:min(limit, len(f.letters))], f.err
}

func (f *fakeLetters) Redrive(_ context.Context, limit int, discard bool) (r pipeline.Redriven, err error) {
	f.limit, f.discards = limit, discard
	for _, l := range f.letters {
		switch {
		case l.Unreadable == "":
			r.Moved++
		case discard:
			r.Discarded++
		default:
			r.Remaining++
		}
	}
	return r, f.err
}

var errSilent = errors.New("no answer")

// operated is an admin handler with everything it talks to.
type operated struct {
	Handler
	state   *fakeState
	signals *fakeSignals
	letters *fakeLetters
	now     time.Time
}

func newOperated() *operated {
	o := &operated{
		state:   &fakeState{fakeDefinitions: newFakeDefinitions(), records: map[string]store.JobRecord{}},
		signals: &fakeSignals{}, letters: &fakeLetters{}, now: time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC),
	}
	o.Handler = Admin(AdminOptions{
		State: o.state, Signals: o.signals, Letters: o.letters, Version: "v1.2.3", Now: func() time.Time { return o.now },
	})
	return o
}

func deadLetter(queue string) pipeline.DeadLetter {
	return pipeline.DeadLetter{Queue: queue, ID: "m", Unreadable: "no"}
}
