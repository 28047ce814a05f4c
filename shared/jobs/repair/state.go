package repair

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/jobs"
	"holdfast/shared/pipeline"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

// stateName is the record of what a run passes on to the next.
const stateName = "repair/state"

// state is what a run passes on to the next. It is one item of the state table,
// so all lists in it are bounded.
type state struct {
	Runs      int       `json:"runs"`      // that began to prove; canaries go round by it
	Signalled time.Time `json:"signalled"` // when ids were last chosen to be signalled again
	Retried   time.Time `json:"retried"`   // when entries of the quarantine were last chosen to be tried again

	Pass     *pass        `json:"pass,omitempty"`
	Last     *PassFigures `json:"last,omitempty"`
	Drifted  *PassFigures `json:"drifted,omitempty"` // the last one that found a drift
	Compared time.Time    `json:"compared"`          // when the last pass began that came to its end
	Ended    time.Time    `json:"ended"`             // when it did
	Wanted   string       `json:"wanted,omitempty"`

	// Open are the differences of the last pass that are not seen healed yet.
	// With TooMany they are more than are kept by name, and only another pass
	// can tell.
	Open          []Difference         `json:"open,omitempty"`
	OpenSignalled time.Time            `json:"openSignalled,omitzero"`
	TooMany       map[string]bool      `json:"tooMany,omitempty"` // by generation
	Based         map[string]time.Time `json:"based,omitempty"`   // by generation: up to when the last pass proves it, once nothing of it is open; by move: when that pass began

	Counts    map[doc.Collection]int `json:"counts,omitempty"`
	CountedAt time.Time              `json:"countedAt,omitzero"`
	Indexes   map[string]string      `json:"indexes,omitempty"` // by generation: which index it was when it was last looked at
	Notes     map[string]string      `json:"notes,omitempty"`   // by generation: why it is built
	RetryAll  bool                   `json:"retryAll,omitempty"`
	Reindex   map[string]time.Time   `json:"reindex,omitempty"` // by family: when somebody asked for its index to be built anew
}

// noteKey is a generation as a member name.
func noteKey(g collection.Generation) string { return noteOf(keyOf(g)) }
func noteOf(k key) string                    { return fmt.Sprintf("%s %d", k.Family, k.Number) }

// readGenerations reads the generations of all families that there can be.
func (x *run) readGenerations(ctx context.Context) error {
	families := []collection.Family{collection.SharedFamily}
	for _, c := range slices.Sorted(maps.Keys(x.definitions)) {
		// What was never declared otherwise never had an index of its own.
		if d := x.definitions[c]; d.Revision > 1 || d.Family() != collection.SharedFamily {
			families = append(families, collection.Family(c))
		}
	}
	generations := map[collection.Family][]collection.Generation{}
	for _, f := range families {
		all, err := x.State.Generations(ctx, f)
		if err != nil {
			return err // what was known before stays: a part of it would pass for all
		}
		if len(all) > 0 {
			generations[f] = all
		}
	}
	x.generations = generations
	return nil
}

// families are those that have generations, in a fixed order.
func (x *run) families() []collection.Family { return slices.Sorted(maps.Keys(x.generations)) }

// fills reports whether documents are written to the generation and this program
// can fill it.
func (x *run) fills(g collection.Generation) bool {
	return g.Written() && g.Projector == search.Projector && !x.unfit[keyOf(g)]
}

// written are the generations that a collection's documents are written to and
// that this program can fill.
func (x *run) written(c doc.Collection) []collection.Generation {
	var all []collection.Generation
	for _, f := range x.definition(c).Writes() {
		for _, g := range x.generations[f] {
			if x.fills(g) {
				all = append(all, g)
			}
		}
	}
	return all
}

// allWritten are all generations that are written to and that this program can
// fill.
func (x *run) allWritten() []collection.Generation {
	var all []collection.Generation
	for _, f := range x.families() {
		for _, g := range x.generations[f] {
			if x.fills(g) {
				all = append(all, g)
			}
		}
	}
	return all
}

// filling reports whether a generation is only just getting the documents of a
// collection, so that their absence is no difference but work to be done.
func (x *run) filling(c doc.Collection, g collection.Generation) bool {
	d := x.definition(c)
	return d.Serving != nil && !d.Moved && g.Family == d.Family() && g.Family != d.Reads()
}

// dropProof withdraws what was proven of a generation.
func (x *run) dropProof(ctx context.Context, g collection.Generation, why string) error {
	if _, ok := x.proofs[keyOf(g)]; !ok {
		return nil
	}
	x.Log.WarnContext(ctx, "what was proven of an index is withdrawn", "family", g.Family, "generation", g.Number, "why", why)
	// The earlier pass proves nothing any more either. That is kept first, so
	// that a run that is cut here does not make the proof of it again.
	delete(x.state.Based, noteKey(g))
	if err := x.save(ctx); err != nil {
		return err
	}
	ok, err := x.State.DropProof(ctx, g.Family, g.Number, x.lease.Token)
	if err != nil {
		return err
	}
	if !ok {
		return jobs.ErrOvertaken
	}
	delete(x.proofs, keyOf(g))
	return nil
}

// provenNote reports whether the generation of a note is proven.
func (x *run) provenNote(note string) bool {
	for k := range x.proofs {
		if noteOf(k) == note {
			return true
		}
	}
	return false
}

// forget withdraws what was proven of a generation and what was found out on the
// way to that, because its index is not the one that was looked at.
func (x *run) forget(ctx context.Context, g collection.Generation, why string) error {
	keys := []string{noteKey(g)}
	for _, c := range slices.Sorted(maps.Keys(x.definitions)) {
		if x.filling(c, g) {
			keys = append(keys, moveKey(x.definitions[c]))
		}
	}
	changed := false
	for _, k := range keys {
		_, based := x.state.Based[k]
		delete(x.state.Based, k)
		changed = changed || based
	}
	// What was open in it is not what is missing now.
	open := len(x.state.Open)
	x.state.Open = slices.DeleteFunc(slices.Clone(x.state.Open), func(d Difference) bool { return d.Family == g.Family && d.Number == g.Number })
	changed = changed || len(x.state.Open) < open
	for _, k := range keys {
		delete(x.state.TooMany, k)
	}
	if p := x.state.Pass; p != nil {
		_, looked := p.From[noteKey(g)]
		delete(p.From, noteKey(g))
		changed = changed || looked
	}
	if changed {
		if err := x.save(ctx); err != nil {
			return err
		}
	}
	return x.dropProof(ctx, g, why)
}

// putProof keeps a proof.
func (x *run) putProof(ctx context.Context, p store.Proof) error {
	p.Fence = x.lease.Token
	ok, err := x.State.PutProof(ctx, p)
	if err != nil {
		return err
	}
	if !ok {
		return jobs.ErrOvertaken
	}
	x.proofs[key{p.Family, p.Generation}] = p
	return nil
}

// signal sends signals and answers with how many could be sent.
func (x *run) signal(ctx context.Context, signals []doc.Signal) (sent int, err error) {
	packed, err := pipeline.PackAgain(signals)
	if err != nil {
		return 0, err
	}
	for chunk := range slices.Chunk(packed, 10) {
		out := make([]pipeline.Outgoing, len(chunk))
		for i, p := range chunk {
			out[i] = pipeline.Outgoing{Body: p.Body}
		}
		errs := x.Queue.Send(ctx, out)
		for i, p := range chunk {
			if errs != nil && errs[i] != nil {
				err = errs[i]
				continue
			}
			sent += len(p.Signals)
		}
		x.queueDepth = -1 // no longer known
	}
	if err != nil {
		return sent, fmt.Errorf("signal documents again: %w", err)
	}
	return sent, nil
}
