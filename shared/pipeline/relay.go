package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/obs"
	"holdfast/shared/store"
)

// Adopter gives a version to a change that another program made to the table.
type Adopter interface {
	// Adopt writes a version over an item that was seen without a new one, or a
	// tombstone in the place of a removed one, unless the item has moved on. The
	// write makes a stream record of its own, and that one brings the signal.
	Adopt(ctx context.Context, f store.Foreign) error
}

// RelayOptions are what a Relay needs.
type RelayOptions struct {
	Queue   Sender
	Adopter Adopter
	Now     func() time.Time // nil: time.Now
	Margin  time.Duration    // kept free before the context's deadline; 0: two seconds
	Log     *slog.Logger     // nil: discarded
	Metrics *obs.Metrics     // nil: none
}

// Relay turns stream records into signals on the queue.
type Relay struct{ o RelayOptions }

// NewRelay makes a relay.
func NewRelay(o RelayOptions) *Relay {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Margin == 0 {
		o.Margin = 2 * time.Second
	}
	if o.Log == nil {
		o.Log = obs.Discard()
	}
	return &Relay{o: o}
}

// RelayReport says what became of the records of one batch. Outcomes add up to
// inputs:
//
//	Records = Merged + Signalled + Quiet + Adopted + Unadoptable + Unreadable + Failed
type RelayReport struct {
	Records     int
	Merged      int // about an id of which the batch has a newer version
	Signalled   int // became signals that were sent
	Quiet       int // no news: the removal of a tombstone or of an expired document
	Adopted     int // foreign changes that were given a version
	Unadoptable int // foreign changes that can never be given one; logged, and left to the full comparison
	Unreadable  int // no document's keys; logged, and left alone
	Failed      int // to be delivered again

	Messages int // messages sent
}

// ErrNoSequence says that a record failed that has no sequence number by which
// it could be named. The whole batch has to be delivered again.
var ErrNoSequence = errors.New("a record without a sequence number failed")

// Handle relays one batch of one shard. failed has at most one entry, the
// lowest sequence number that has to be delivered again: a stream delivers it
// and everything after it.
//
// A record with the keys of no document cannot become a signal, now or later.
// It must neither block its shard for a day nor vanish: it is logged at error
// level with its sequence number and counted, and not failed. A foreign change
// that the table refuses for good (it has no room for the version, say) is
// treated in the same way. Both stay in the table for the full comparison.
func (r *Relay) Handle(ctx context.Context, records []Record) (failed []string, err error) {
	report, failed, err := r.Relay(ctx, records)
	report.measure(r.o.Metrics)
	r.o.Log.InfoContext(ctx, "relayed", "records", report.Records, "signals", report.Signalled,
		"messages", report.Messages, "adopted", report.Adopted, "failed", report.Failed)
	return failed, err
}

// Relay is Handle with the outcomes counted.
func (r *Relay) Relay(ctx context.Context, records []Record) (report RelayReport, failed []string, err error) {
	report, lowest := r.relay(ctx, records)
	switch {
	case lowest == nil:
		return report, nil, nil
	case *lowest == "":
		return report, nil, ErrNoSequence
	}
	return report, []string{*lowest}, nil
}

// relay does it. lowest is nil when nothing failed.
func (r *Relay) relay(ctx context.Context, records []Record) (report RelayReport, lowest *string) {
	report.Records = len(records)
	fail := func(n int, sequence string) {
		report.Failed += n
		if lowest == nil || compareSequences(sequence, *lowest) < 0 {
			lowest = &sequence
		}
	}
	plan := plan(records, r.o.Now())
	report.Quiet = plan.quiet
	report.Unreadable = len(plan.unreadable)
	for _, i := range plan.unreadable {
		r.o.Log.ErrorContext(ctx, "a stream record is not about a document", "sequence", records[i].Sequence, "why", records[i].Unreadable)
	}

	// The signals go first: they are what most records are about, and sending
	// them takes one call for a thousand records.
	r.send(ctx, plan.news, &report, fail)

	for _, i := range plan.foreign {
		record := records[i]
		if !r.timeLeft(ctx) {
			fail(1, record.Sequence)
			continue
		}
		switch err := r.o.Adopter.Adopt(ctx, foreign(record)); {
		case err == nil:
			report.Adopted++
			r.o.Log.InfoContext(ctx, "a foreign change was adopted", "sequence", record.Sequence, "event", record.Event, "byTTL", record.ByTTL)
		case permanent(err):
			report.Unadoptable++
			r.o.Log.ErrorContext(ctx, "a foreign change cannot be adopted", "sequence", record.Sequence, "kind", doc.KindOf(err))
		default:
			fail(1, record.Sequence)
			r.o.Log.WarnContext(ctx, "adopting a foreign change failed", "sequence", record.Sequence, "error", err)
		}
	}
	return report, lowest
}

// send packs and sends the news. A message that could not be sent fails every
// record that fed it, also those about older versions.
func (r *Relay) send(ctx context.Context, all []news, report *RelayReport, fail func(n int, sequence string)) {
	signals := make([]doc.Signal, len(all))
	for i, n := range all {
		signals[i] = n.signal
	}
	packed, err := Pack(signals, 0)
	if err != nil {
		for _, n := range all {
			fail(n.records, n.lowest)
		}
		r.o.Log.ErrorContext(ctx, "packing signals failed", "error", err)
		return
	}
	out := make([]Outgoing, len(packed))
	for i, p := range packed {
		out[i] = Outgoing{Body: p.Body}
	}
	if len(out) == 0 {
		return
	}
	errs := r.o.Queue.Send(ctx, out)
	next := 0
	for i, p := range packed {
		fed := all[next : next+len(p.Signals)]
		next += len(p.Signals)
		if errs == nil || errs[i] == nil {
			report.Messages++
			for _, n := range fed {
				report.Signalled++
				report.Merged += n.records - 1
			}
			continue
		}
		r.o.Log.WarnContext(ctx, "sending signals failed", "signals", len(fed), "error", errs[i])
		for _, n := range fed {
			fail(n.records, n.lowest)
		}
	}
}

func (r *Relay) timeLeft(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > r.o.Margin
}

// permanent reports whether trying again cannot help: the table understood the
// write and refuses it for what it is.
func permanent(err error) bool {
	switch doc.KindOf(err) {
	case doc.InvalidID, doc.DocumentTooLarge, doc.NumberOutOfRange, doc.DocumentTooDeep:
		return true
	}
	return false
}

// news is what a batch says about one id.
type news struct {
	signal  doc.Signal // the newest version
	lowest  string     // the lowest sequence number among the records about it
	records int
}

// reading is what a batch of records comes to, before anything is done.
type reading struct {
	news       []news // one per id, in the order of first mention
	foreign    []int  // records to adopt
	unreadable []int
	quiet      int
}

// plan reads a batch. It does nothing else.
func plan(records []Record, now time.Time) reading {
	var p reading
	at := map[doc.ID]int{}
	for i, record := range records {
		switch judge(record, now) {
		case unreadable:
			p.unreadable = append(p.unreadable, i)
		case quiet:
			p.quiet++
		case foreignChange:
			p.foreign = append(p.foreign, i)
		case ownChange:
			version := record.New.Version
			k, seen := at[record.ID]
			if !seen {
				at[record.ID] = len(p.news)
				p.news = append(p.news, news{
					signal: doc.Signal{ID: record.ID, Version: version}, lowest: record.Sequence, records: 1,
				})
				continue
			}
			n := &p.news[k]
			n.records++
			n.signal.Version = max(n.signal.Version, version)
			if compareSequences(record.Sequence, n.lowest) < 0 {
				n.lowest = record.Sequence
			}
		}
	}
	return p
}

type verdict int

const (
	unreadable verdict = iota
	quiet
	foreignChange
	ownChange
)

// judge decides what one record is.
func judge(r Record, now time.Time) verdict {
	if r.ID == "" || r.Unreadable != "" {
		return unreadable
	}
	switch r.Event {
	case Insert, Modify:
		if r.New == nil {
			return unreadable
		}
		if !r.New.ours(r.ID) {
			return foreignChange
		}
		if r.Old != nil && r.New.Version <= r.Old.Version {
			return foreignChange
		}
		return ownChange
	case Remove:
		if r.Old == nil {
			return unreadable
		}
		// A tombstone has been told already. An expired document is its own
		// tombstone: queries leave it out by its date. Who removes the item, time
		// to live or a person, makes no difference then.
		if r.Old.Deleted || r.Old.expired(now) {
			return quiet
		}
		return foreignChange
	}
	return unreadable
}

// ours reports whether the item has what every write of this system gives it.
func (i *Image) ours(id doc.ID) bool {
	return i.Version > 0 && i.Nonce != "" && i.Collection == string(id.Collection())
}

func (i *Image) expired(now time.Time) bool {
	return !i.ExpiresAt.IsZero() && !now.Before(i.ExpiresAt)
}

func foreign(r Record) store.Foreign {
	f := store.Foreign{ID: r.ID, Removed: r.Event == Remove}
	if r.Old != nil {
		f.Old = store.Seen{Version: r.Old.Version, Nonce: r.Old.Nonce}
	}
	if r.New != nil {
		f.New = store.Seen{Version: r.New.Version, Nonce: r.New.Nonce}
	}
	return f
}

func (r RelayReport) measure(m *obs.Metrics) {
	m.Record([]obs.Metric{
		{Name: "RelayRecords", Unit: obs.Count, Value: float64(r.Records)},
		{Name: "RelaySignals", Unit: obs.Count, Value: float64(r.Signalled)},
		{Name: "RelayAdopted", Unit: obs.Count, Value: float64(r.Adopted)},
		{Name: "RelayUnadoptable", Unit: obs.Count, Value: float64(r.Unadoptable)},
		{Name: "RelayUnreadable", Unit: obs.Count, Value: float64(r.Unreadable)},
		{Name: "RelayFailed", Unit: obs.Count, Value: float64(r.Failed)},
	})
}
