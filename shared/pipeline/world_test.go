package pipeline_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/pipeline"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

// world is everything around an indexer, in memory. Its engines keep the rules
// of the real ones: the index lets the newest version win and refuses what it
// is told to refuse, the registry lets one of two creators through.
type world struct {
	now   time.Time
	table map[doc.ID]doc.Document
	tell  func(format string, args ...any) // what happens, for transcripts; never nil

	definitions map[doc.Collection]collection.Definition
	generations map[collection.Family][]collection.Generation
	indexes     map[string]map[doc.ID]held // by family and number
	sent        []pipeline.Outgoing
	quarantined map[doc.ID]doc.Quarantined
	lag         []store.LagMeasure

	// what goes wrong
	refused     map[doc.ID]search.Reduction // the index refuses the id at levels below this one; above EnvelopeOnly: at all
	environment func(op search.Operation) (search.Outcome, bool)
	broken      map[string]bool // engine or call → it fails
	sliceOf     int             // documents per slice of the table; 0: all
	onWrite     func()
}

// held is what an index holds under an id.
type held struct {
	version doc.Version
	form    string
}

func newWorld() *world {
	return &world{
		now: noon, tell: func(string, ...any) {}, table: map[doc.ID]doc.Document{},
		definitions: map[doc.Collection]collection.Definition{}, generations: map[collection.Family][]collection.Generation{},
		indexes: map[string]map[doc.ID]held{}, quarantined: map[doc.ID]doc.Quarantined{},
		refused: map[doc.ID]search.Reduction{}, broken: map[string]bool{},
	}
}

func (w *world) indexer(sliceBytes int) *pipeline.Indexer {
	clock := func() time.Time { return w.now }
	return pipeline.NewIndexer(pipeline.IndexerOptions{
		Table: w, Index: w, Ledger: w, Queue: w, SliceBytes: sliceBytes,
		Generations: pipeline.NewGenerations(w, w, clock),
		Now:         clock, Jitter: func() float64 { return 0 },
	})
}

var errBroken = errors.New("does not answer")

func (w *world) fails(what string) error {
	if w.broken[what] {
		w.tell("%s: fails", what)
		return fmt.Errorf("%s: %w", what, errBroken)
	}
	return nil
}

// Revisions is the table.
func (w *world) Revisions(_ context.Context, ids []doc.ID, _ int, visit func([]doc.Document, []doc.ID) error) error {
	for chunk := range slices.Chunk(ids, cmp.Or(w.sliceOf, len(ids))) {
		if err := w.fails("table"); err != nil {
			return err
		}
		var found []doc.Document
		var absent []doc.ID
		for _, id := range chunk {
			if d, ok := w.table[id]; ok {
				found = append(found, d)
			} else {
				absent = append(absent, id)
			}
		}
		w.tell("table reads %s", shorten(chunk))
		if err := visit(found, absent); err != nil {
			return err
		}
	}
	return nil
}

func shorten[T ~string](ids []T) string {
	var parts []string
	for _, id := range ids {
		parts = append(parts, string(id))
	}
	if n := len(parts); n > 8 {
		parts = []string{parts[0], parts[1], fmt.Sprintf("… %d more …", n-3), parts[n-1]}
	}
	return strings.Join(parts, " ")
}

func indexName(g collection.Generation) string { return fmt.Sprintf("%s-%d", g.Family, g.Number) }

// Write is the index.
func (w *world) Write(ctx context.Context, ops []search.Operation) ([]search.Outcome, error) {
	if w.onWrite != nil {
		w.onWrite()
	}
	outcomes := make([]search.Outcome, len(ops))
	var lines []string
	for i, op := range ops {
		form := formOf(op.Source)
		outcomes[i] = w.write(ctx, op, form)
		name := [...]string{"", "applied", "stale", "refused", "environment"}[outcomes[i].Kind]
		if outcomes[i].Status != 0 && outcomes[i].Kind == search.Environment {
			name += fmt.Sprintf(" %d", outcomes[i].Status)
		}
		lines = append(lines, fmt.Sprintf("  %s %s@%d %s: %s", indexName(op.Generation), op.ID, op.Version, form, name))
	}
	if n := len(lines); n > 12 {
		lines = append(lines[:2], fmt.Sprintf("  … %d more …", n-3), lines[n-1])
	}
	w.tell("index writes\n%s", strings.Join(lines, "\n"))
	return outcomes, nil
}

func (w *world) write(ctx context.Context, op search.Operation, form string) search.Outcome {
	if ctx.Err() != nil {
		return search.Outcome{Kind: search.Environment, Reason: "no time"}
	}
	if w.environment != nil {
		if o, ok := w.environment(op); ok {
			return o
		}
	}
	index, ok := w.indexes[indexName(op.Generation)]
	if !ok {
		return search.Outcome{Kind: search.Environment, Status: 404, Reason: "the index is missing", IndexMissing: true}
	}
	if index[op.ID].version > op.Version {
		return search.Outcome{Kind: search.Stale, Status: 409}
	}
	if from, ok := w.refused[op.ID]; ok && levels[form] < from && form != "marker" {
		return search.Outcome{Kind: search.Refused, Status: 400, Reason: "a value is too long for the index", Field: "doc.a.$num"}
	}
	index[op.ID] = held{op.Version, form}
	return search.Outcome{Kind: search.Applied, Status: 200}
}

// levels are the forms of an index document, by what formOf sees of them.
var levels = map[string]search.Reduction{
	"full": search.Full, "known fields": search.KnownFields, "without tree": search.WithoutTree, "envelope": search.EnvelopeOnly,
}

// formOf tells the levels of reduction apart by what is left.
func formOf(source []byte) string {
	var s struct {
		Deleted bool            `json:"$deleted"`
		Partial []string        `json:"$partial"`
		Shape   json.RawMessage `json:"$shape"`
	}
	switch err := json.Unmarshal(source, &s); {
	case err != nil:
		return "garbage"
	case s.Deleted:
		return "marker"
	case s.Shape == nil:
		return "envelope"
	case slices.Contains(s.Partial, ""):
		return "without tree"
	case len(s.Partial) > 0:
		return "known fields"
	}
	return "full"
}

func (w *world) Ensure(_ context.Context, g collection.Generation) error {
	if err := w.fails("ensure"); err != nil {
		return err
	}
	w.tell("index creates %s", indexName(g))
	if _, ok := w.indexes[indexName(g)]; !ok {
		w.indexes[indexName(g)] = map[doc.ID]held{}
	}
	return nil
}

func (w *world) MappedFields(context.Context, collection.Generation) (search.Fields, error) {
	if err := w.fails("fields"); err != nil {
		return nil, err
	}
	return search.Fields{"doc.b.$num": true, "doc.b.$key": true}, nil
}

func (w *world) Definition(_ context.Context, c doc.Collection) (collection.Definition, error) {
	d := w.definitions[c]
	d.Name = c
	return d, w.fails("definitions")
}

func (w *world) Generations(_ context.Context, f collection.Family) ([]collection.Generation, error) {
	return slices.Clone(w.generations[f]), w.fails("generations")
}

func (w *world) PutGeneration(_ context.Context, g collection.Generation, expected *collection.Generation) error {
	if err := w.fails("generations"); err != nil {
		return err
	}
	if expected != nil {
		return errors.New("an indexer only begins families")
	}
	for _, old := range w.generations[g.Family] {
		if old.Number == g.Number {
			return doc.Errorf(doc.VersionConflict, "there is one")
		}
	}
	w.tell("registry begins %s", indexName(g))
	w.generations[g.Family] = append(w.generations[g.Family], g)
	return nil
}

func (w *world) RecordQuarantine(_ context.Context, q doc.Quarantined) error {
	if err := w.fails("quarantine"); err != nil {
		return err
	}
	kind := "in part"
	if !q.Partial {
		kind = "not at all"
	}
	w.tell("quarantine records %s@%d, indexed %s after %d attempts: %s", q.ID, q.Version, kind, q.Attempts, q.Reason)
	w.quarantined[q.ID] = q
	return nil
}

func (w *world) ClearQuarantine(_ context.Context, c doc.Collection, id doc.ID, upTo doc.Version) error {
	if err := w.fails("quarantine"); err != nil {
		return err
	}
	w.tell("quarantine clears %s in %s up to %d", id, c, upTo)
	if q, ok := w.quarantined[id]; ok && q.Version <= upTo {
		delete(w.quarantined, id)
	}
	return nil
}

func (w *world) Quarantine(_ context.Context, ids []doc.ID) (map[doc.ID]doc.Quarantined, error) {
	w.tell("quarantine looks up %s", shorten(ids))
	found := maps.Clone(w.quarantined)
	maps.DeleteFunc(found, func(id doc.ID, _ doc.Quarantined) bool { return !slices.Contains(ids, id) })
	return found, w.fails("quarantine")
}

func (w *world) CountQuarantined(_ context.Context, collections []doc.Collection) (int, error) {
	n := 0
	for id := range w.quarantined {
		if slices.Contains(collections, id.Collection()) {
			n++
		}
	}
	return n, w.fails("quarantine")
}

func (w *world) RecordLag(_ context.Context, m store.LagMeasure) error {
	w.tell("lag is measured since @%d", doc.VersionAt(m.At.Add(-m.Lag)))
	w.lag = append(w.lag, m)
	return w.fails("lag")
}

// Send is the queue.
func (w *world) Send(_ context.Context, out []pipeline.Outgoing) []error {
	errs := make([]error, len(out))
	for i, m := range out {
		signals, tries, err := pipeline.Unpack(m.Body)
		if err != nil {
			panic(err)
		}
		if errs[i] = w.fails("queue"); errs[i] == nil {
			w.tell("queue takes %s, tries %d, in %s", list(signals), tries, m.Delay)
			w.sent = append(w.sent, m)
		}
	}
	return errs
}
