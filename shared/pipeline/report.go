package pipeline

import "holdfast/shared/obs"

// Report says what became of the signals of one invocation of the indexer.
// Outcomes add up to inputs:
//
//	Signals = Merged + Applied + Stale + Partial + Quarantined + Absent + Requeued + Returned
type Report struct {
	Messages   int // messages taken
	Unreadable int // messages that cannot be understood; they are reported as failed until the queue moves them to the dead letters
	Signals    int // signals in the readable messages
	Merged     int // signals that another one about the same id made unnecessary

	Applied     int // the index took the whole document, or the marker of a deleted one
	Stale       int // the index already has a newer version
	Partial     int // the index took a reduced form; what is missing is recorded
	Quarantined int // the index refused every form; that is recorded
	Absent      int // the table has nothing under the id, not even a tombstone
	Requeued    int // went back as a new message
	Returned    int // could not go back as a new message, so the old message was reported as failed
}

// Settled is how many signals need no further work.
func (r Report) Settled() int {
	return r.Merged + r.Applied + r.Stale + r.Partial + r.Quarantined + r.Absent
}

// measure writes the report as metrics.
func (r Report) measure(m *obs.Metrics) {
	m.Record([]obs.Metric{
		{Name: "IndexerSignals", Unit: obs.Count, Value: float64(r.Signals)},
		{Name: "IndexerApplied", Unit: obs.Count, Value: float64(r.Applied)},
		{Name: "IndexerStale", Unit: obs.Count, Value: float64(r.Stale)},
		{Name: "IndexerPartial", Unit: obs.Count, Value: float64(r.Partial)},
		{Name: "IndexerQuarantined", Unit: obs.Count, Value: float64(r.Quarantined)},
		{Name: "IndexerAbsent", Unit: obs.Count, Value: float64(r.Absent)},
		{Name: "IndexerRequeued", Unit: obs.Count, Value: float64(r.Requeued)},
		{Name: "IndexerReturned", Unit: obs.Count, Value: float64(r.Returned)},
		{Name: "IndexerUnreadableMessages", Unit: obs.Count, Value: float64(r.Unreadable)},
	})
}
