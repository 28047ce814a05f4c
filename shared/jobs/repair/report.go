package repair

import (
	"context"
	"slices"
	"strings"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/obs"
)

// Report says what a run found and did.
type Report struct {
	Collections []CollectionFigures `json:"collections"`
	Generations []GenerationFigures `json:"generations"`

	Margin   time.Duration  `json:"marginNs"`
	FeedLag  *time.Duration `json:"feedLagNs"`  // how long the feed took to show the run's canary; null: longer than the run waited
	IndexLag *time.Duration `json:"indexLagNs"` // how long the index took to hold the run's canary; null: longer than the run waited

	Captured    int `json:"captured"`    // entries of the feed that were held against the index
	Missing     int `json:"missing"`     // of these the index did not hold
	Resignalled int `json:"resignalled"` // signals sent again
	Retried     int `json:"retried"`     // of documents in quarantine
	Quarantined int `json:"quarantined"` // documents in quarantine
	Adopted     int `json:"adopted"`     // changes of other tools that their stream record did not tell of
	Purged      int `json:"purged"`      // markers removed
	Drift       int `json:"drift"`       // differences found where the index had been proven
	Unhealed    int `json:"unhealed"`    // differences that the last comparison found in indexes that queries read and that are not seen healed; at least so many

	// Pass is the comparison under way, LastPass the last one that came to its
	// end.
	Pass     *PassFigures `json:"pass,omitempty"`
	LastPass *PassFigures `json:"lastPass,omitempty"`
	// LastDrift is the last comparison that found differences where the index had
	// been proven.
	LastDrift *PassFigures `json:"lastDrift,omitempty"`
}

// CollectionFigures are about one collection that has documents.
type CollectionFigures struct {
	Name       doc.Collection    `json:"name"`
	Family     collection.Family `json:"family"`
	Generation int               `json:"generation"` // that queries read
	Indexed    int               `json:"indexed"`    // live documents in it
	// Documents is how many live ones the table had at the last comparison, at
	// CountedAt; null before the first.
	Documents *int       `json:"documents"`
	CountedAt *time.Time `json:"countedAt"`
	Moving    bool       `json:"moving,omitempty"` // its documents are on their way to another index
}

// GenerationFigures are about one generation that is written to.
type GenerationFigures struct {
	Family        collection.Family          `json:"family"`
	Number        int                        `json:"number"`
	State         collection.GenerationState `json:"state"`
	Since         time.Time                  `json:"since"`
	ProvenThrough *time.Time                 `json:"provenThrough"` // null: nothing is proven
	Missing       int                        `json:"missing"`       // what the last capture found missing
	Note          string                     `json:"note,omitempty"`
}

// PassFigures are about one comparison of table and index.
type PassFigures struct {
	Reason   string    `json:"reason"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"`
	Segment  int       `json:"segment"` // of Segments, those of the table that are done
	Segments int       `json:"segments"`
	Tally
	Differences []Difference `json:"differences,omitempty"` // the first of them
}

// Tally counts what a comparison found.
type Tally struct {
	Checked   int `json:"checked"`   // versions of the table held against the index
	Missing   int `json:"missing"`   // the index has nothing
	Older     int `json:"older"`     // the index has an older version
	Different int `json:"different"` // the same version with another content
	Extra     int `json:"extra"`     // in the index only
	Ahead     int `json:"ahead"`     // the index has a version that the table has lost
	Foreign   int `json:"foreign"`   // items of the table without what Holdfast writes
	Drift     int `json:"drift"`     // of these, where the index had been proven
}

// Difference is one document about which table and index differed.
type Difference struct {
	Family  collection.Family `json:"family"`
	Number  int               `json:"generation"`
	ID      doc.ID            `json:"id"`
	Version doc.Version       `json:"version"` // the table's; of an extra one the index's
	Reason  string            `json:"reason"`  // missing, older, different, extra or ahead
	Healed  bool              `json:"healed"`
}

// count fills in how many documents the indexes hold.
func (x *run) count(ctx context.Context) error {
	x.figures()
	if x.unwell {
		return nil
	}
	seen := map[doc.Collection]bool{}
	for _, family := range x.families() {
		g, ok := collection.Read(x.generations[family])
		if !ok || x.unfit[keyOf(g)] {
			continue
		}
		counts, err := x.Index.Counts(ctx, g)
		if err != nil {
			return err
		}
		for c, n := range counts {
			d := x.definition(c)
			if d.Reads() != family || c.System() || seen[c] {
				continue
			}
			seen[c] = true
			f := CollectionFigures{Name: c, Family: family, Generation: g.Number, Indexed: n, Moving: d.Serving != nil && !d.Moved}
			x.report.Collections = append(x.report.Collections, x.counted(f))
		}
	}
	for c := range x.state.Counts {
		if d := x.definition(c); !seen[c] && !c.System() {
			g, _ := collection.Read(x.generations[d.Reads()])
			x.report.Collections = append(x.report.Collections, x.counted(CollectionFigures{Name: c, Family: d.Reads(), Generation: g.Number}))
		}
	}
	slices.SortFunc(x.report.Collections, func(a, b CollectionFigures) int { return strings.Compare(string(a.Name), string(b.Name)) })
	x.report.Collections = x.report.Collections[:min(len(x.report.Collections), maxReported)]
	return nil
}

// maxReported bounds the collections in a report, which is one item of the state
// table.
const maxReported = 500

// counted adds what the last comparison counted.
func (x *run) counted(f CollectionFigures) CollectionFigures {
	if x.state.CountedAt.IsZero() {
		return f
	}
	n, at := x.state.Counts[f.Name], x.state.CountedAt
	f.Documents, f.CountedAt = &n, &at
	return f
}

// figures are those of the generations and of the comparisons.
func (x *run) figures() {
	x.report.Margin = x.Margin
	x.report.Generations = nil
	for _, family := range x.families() {
		for _, g := range x.generations[family] {
			if !g.Written() {
				continue
			}
			f := GenerationFigures{Family: family, Number: g.Number, State: g.State, Since: g.Since, Note: x.state.Notes[noteKey(g)]}
			if p, ok := x.proofs[keyOf(g)]; ok {
				through := p.Through.UTC()
				f.ProvenThrough, f.Missing = &through, p.Missing
			}
			x.report.Generations = append(x.report.Generations, f)
		}
	}
	x.report.Unhealed = x.unhealed()
	x.report.Pass, x.report.LastPass, x.report.LastDrift = nil, x.state.Last, x.state.Drifted
	if p := x.state.Pass; p != nil {
		x.report.Pass = p.figures()
	}
}

// unhealed counts what is open in the generations that queries read, but for what
// is only just on its way there.
func (x *run) unhealed() int {
	n := 0
	for _, family := range x.families() {
		if g, ok := collection.Read(x.generations[family]); ok {
			n += len(x.openOf(noteKey(g)))
		}
	}
	return n
}

// measure writes the report as metrics.
func (r Report) measure(o Options) {
	m := []obs.Metric{
		{Name: "Captured", Unit: obs.Count, Value: float64(r.Captured)},
		{Name: "Missing", Unit: obs.Count, Value: float64(r.Missing)},
		{Name: "Resignalled", Unit: obs.Count, Value: float64(r.Resignalled)},
		{Name: "Quarantined", Unit: obs.Count, Value: float64(r.Quarantined)},
		{Name: "Adopted", Unit: obs.Count, Value: float64(r.Adopted)},
		{Name: "Purged", Unit: obs.Count, Value: float64(r.Purged)},
		{Name: "Drift", Unit: obs.Count, Value: float64(r.Drift)},
	}
	if r.FeedLag != nil {
		m = append(m, obs.Metric{Name: "FeedLag", Unit: obs.Milliseconds, Value: float64(r.FeedLag.Milliseconds())})
	}
	if r.IndexLag != nil {
		m = append(m, obs.Metric{Name: "IndexLag", Unit: obs.Milliseconds, Value: float64(r.IndexLag.Milliseconds())})
	}
	now := o.Now()
	var oldest, building time.Duration
	for _, g := range r.Generations {
		switch age := now.Sub(g.Since); {
		case g.State == collection.Building:
			building = max(building, age)
		case g.ProvenThrough != nil:
			oldest = max(oldest, now.Sub(*g.ProvenThrough))
		default:
			// Never proven: as old as the generation, which for the very first
			// one is not known.
			if !g.Since.IsZero() {
				oldest = max(oldest, age)
			}
		}
	}
	m = append(m,
		obs.Metric{Name: "ProofAge", Unit: obs.Seconds, Value: oldest.Seconds()},
		obs.Metric{Name: "RebuildAge", Unit: obs.Seconds, Value: building.Seconds()},
	)
	o.Metrics.Record(m)
}
