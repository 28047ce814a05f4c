package pipeline

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/obs"
)

// task is what an invocation has to do about one id.
type task struct {
	signal   doc.Signal // the newest of the merged ones
	oldest   doc.Version
	tries    int // of the message that has had the fewest
	messages []int
	again    bool // no message tells of a write
	tried    bool // something was sent to the index
	done     bool
}

// run is one invocation of the indexer.
type run struct {
	x        *Indexer
	messages []Message
	failed   []bool // per message: it must not be acknowledged
	tasks    map[doc.ID]*task
	order    []doc.ID // of first mention
	report   Report
	open     *batch // read and projected, not yet written

	blocked map[collection.Family]bool // index families that did not answer well in this invocation
	unsure  map[doc.Collection]bool    // collections whose generations could not be found in this invocation
	stopped bool                       // the index as a whole does not answer: nothing more is tried
	late    bool                       // the time is used up: nothing more is tried
	oldest  doc.Version                // the oldest signal that the index took; 0: none
}

func newRun(x *Indexer, messages []Message) *run {
	r := &run{
		x: x, messages: messages, failed: make([]bool, len(messages)),
		tasks: map[doc.ID]*task{}, blocked: map[collection.Family]bool{}, unsure: map[doc.Collection]bool{},
	}
	r.open = newBatch(r)
	return r
}

// merge reads the messages and keeps one task per id.
func (r *run) merge(ctx context.Context) {
	r.report.Messages = len(r.messages)
	for i, m := range r.messages {
		e, err := unpack(m.Body)
		if err != nil {
			r.report.Unreadable++
			r.failed[i] = true
			r.x.o.Log.ErrorContext(ctx, "a message cannot be understood", "message", m.ID, "receives", m.Receives, "bytes", len(m.Body))
			continue
		}
		r.report.Signals += len(e.Signals)
		for _, s := range e.Signals {
			t, ok := r.tasks[s.ID]
			if !ok {
				r.tasks[s.ID] = &task{signal: s, oldest: s.Version, tries: e.Tries, again: e.Again, messages: []int{i}}
				r.order = append(r.order, s.ID)
				continue
			}
			r.report.Merged++
			t.signal.Version = max(t.signal.Version, s.Version)
			t.oldest = min(t.oldest, s.Version)
			t.tries = min(t.tries, e.Tries)
			t.again = t.again && e.Again
			if t.messages[len(t.messages)-1] != i {
				t.messages = append(t.messages, i)
			}
		}
	}
}

// errEnough ends the reading of the table before its end.
var errEnough = errors.New("the invocation does no more")

// work reads the table and writes the index until all is done, the time is
// used up or the index does not answer. What is left has a task not done.
func (r *run) work(ctx context.Context) {
	if len(r.order) == 0 {
		return
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-r.x.o.Margin))
		defer cancel()
	}
	err := r.x.o.Table.Revisions(ctx, r.order, r.x.o.SliceBytes, func(found []doc.Document, absent []doc.ID) error {
		return r.slice(ctx, found, absent)
	})
	r.flush(ctx) // also what was read before an error
	switch {
	case ctx.Err() != nil:
		r.late = true
	case err != nil && !errors.Is(err, errEnough):
		r.x.o.Log.WarnContext(ctx, "reading the documents again failed", "error", err)
	}
}

// slice handles what one slice of the table brought. A slice of small documents
// stays in the open batch: the table is read by the hundred, and the index takes
// a thousand small documents better at once.
func (r *run) slice(ctx context.Context, found []doc.Document, absent []doc.ID) error {
	for _, id := range absent {
		r.settle(id, &r.report.Absent)
	}
	for i := range found {
		if r.enough(ctx) {
			return errEnough
		}
		d := found[i] // a copy: a pointer into the slice would keep all of it in memory
		r.open.add(ctx, &d)
		if r.open.bytes >= r.x.o.SliceBytes {
			r.flush(ctx)
		}
	}
	if r.open.bytes >= r.x.o.SliceBytes/4 {
		r.flush(ctx)
	}
	if r.enough(ctx) {
		return errEnough
	}
	return nil
}

// flush writes the open batch, unless nothing more is to be tried.
func (r *run) flush(ctx context.Context) {
	if !r.enough(ctx) {
		r.open.write(ctx)
	}
	r.open = newBatch(r)
}

// enough reports whether nothing more is to be tried.
func (r *run) enough(ctx context.Context) bool {
	if ctx.Err() != nil {
		r.late = true
	}
	return r.stopped || r.late
}

// settle marks an id as done and counts it.
func (r *run) settle(id doc.ID, counter *int) {
	t := r.tasks[id]
	if t == nil || t.done {
		return
	}
	t.done = true
	*counter++
}

// taken notes that the index took a document because of a signal.
func (r *run) taken(id doc.ID) {
	if t := r.tasks[id]; t != nil && !t.again && (r.oldest == 0 || t.oldest < r.oldest) {
		r.oldest = t.oldest
	}
}

// sendBack sends what is not done as new messages, before the old ones are
// acknowledged. Where that fails the old messages are not acknowledged. What was
// not tried comes first, so that the next invocation begins with it and nothing
// waits for ever behind documents that fail.
func (r *run) sendBack(ctx context.Context) {
	// Where only the time was too short, nothing is wrong: the rest is for the
	// next invocation.
	enough := r.late && r.report.Settled() > r.report.Merged
	byTries := map[int][]doc.Signal{}
	for _, tried := range []bool{false, true} {
		for _, id := range r.order {
			t := r.tasks[id]
			if t.done || t.tried != tried {
				continue
			}
			n := t.tries + 1
			if enough {
				n = t.tries
			}
			byTries[n] = append(byTries[n], t.signal)
		}
	}
	var out []Outgoing
	var content [][]doc.Signal
	for _, n := range slices.Sorted(maps.Keys(byTries)) {
		packed, err := Pack(byTries[n], n)
		if err != nil {
			r.x.o.Log.ErrorContext(ctx, "packing signals failed", "error", err)
			r.giveBack(byTries[n])
			continue
		}
		for _, p := range packed {
			m := Outgoing{Body: p.Body}
			if !enough {
				m.Delay = r.delay(n)
			}
			out = append(out, m)
			content = append(content, p.Signals)
		}
	}
	if len(out) == 0 {
		return
	}
	errs := r.x.o.Queue.Send(ctx, out)
	for i, signals := range content {
		if errs != nil && errs[i] != nil {
			r.x.o.Log.WarnContext(ctx, "sending signals back failed", "signals", len(signals), "error", errs[i])
			r.giveBack(signals)
			continue
		}
		r.report.Requeued += len(signals)
	}
}

// giveBack leaves signals in the messages that brought them.
func (r *run) giveBack(signals []doc.Signal) {
	r.report.Returned += len(signals)
	for _, s := range signals {
		for _, i := range r.tasks[s.ID].messages {
			r.failed[i] = true
		}
	}
}

const (
	firstDelay = time.Second
	lastDelay  = time.Minute
)

// delay is how long signals rest that went back so many times: twice as long
// each time, up to a minute, of which up to a half is left to chance so that
// the work of an outage does not come back all at once.
func (r *run) delay(tries int) time.Duration {
	d := lastDelay
	if tries < 7 { // 1 s doubled six times is above a minute
		d = min(firstDelay<<(tries-1), lastDelay)
	}
	return d - time.Duration(r.x.o.Jitter()*float64(d)/2)
}

// measureLag tells how old the oldest news was that the index took.
func (r *run) measureLag(ctx context.Context) {
	if r.oldest == 0 {
		return
	}
	lag := max(r.x.o.Now().Sub(r.oldest.Time()), 0)
	r.x.o.Metrics.Record([]obs.Metric{{Name: "IndexerLag", Unit: obs.Milliseconds, Value: float64(lag.Milliseconds())}})
	if err := r.x.lag.record(ctx, lag); err != nil {
		r.x.o.Log.WarnContext(ctx, "recording the lag failed", "error", err)
	}
}
