package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/jobs/repair"
)

// verify waits until the index has what the table has, and is proven to, has all
// of both compared, and holds them against the record.
func (x *run) verify(ctx context.Context, r *Result) error {
	limited, cancel := context.WithTimeout(ctx, x.Within)
	defer cancel()
	err := x.converge(limited, r)
	if err == nil {
		err = x.compare(limited, r)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && limited.Err() != nil:
		r.Problems = append(r.Problems, fmt.Sprintf("while %s, the time of %s was up; %d documents differed", x.progress().Doing, x.Within, x.differ.Load()))
	case err != nil:
		return err
	}
	return x.inspect(ctx, r)
}

// lookPause is the pause between looks at the index, which take longer themselves
// when there are many documents.
const lookPause = 500 * time.Millisecond

// converge waits until a query finds exactly what the table holds, then until
// that is proven.
func (x *run) converge(ctx context.Context, r *Result) error {
	x.does("converging")
	begun, moment := x.age(), time.Now() // by which everything had been written
	// To load everything would take longer than what is measured here. In the end
	// it is done.
	table, doubtful := x.ledger.expected()
	loaded, err := x.api.loaded(ctx, doubtful)
	if err != nil {
		return err
	}
	maps.Copy(table, loaded)
	for first := true; ; first = false {
		differing, err := x.differing(ctx, table)
		if err != nil {
			return err
		}
		x.differ.Store(int64(len(differing)))
		if first {
			r.Backlog = len(differing)
		}
		if len(differing) == 0 {
			break
		}
		// A function that ran longer than its time may have written since; most
		// differences are just on their way.
		looked := differing[:min(len(differing), perLoad)]
		again, err := x.api.loaded(ctx, looked)
		if err != nil {
			return err
		}
		for _, id := range looked {
			delete(table, id)
		}
		maps.Copy(table, again)
		if !sleep(ctx, lookPause) {
			return ctx.Err()
		}
	}
	r.Seconds.Converge = (x.age() - begun).Seconds()
	x.Say(fmt.Sprintf("index and table agree after %.1f s", r.Seconds.Converge))
	x.does("waiting for the proof")
	if err := x.proven(ctx, moment); err != nil {
		return err
	}
	r.Seconds.Prove = (x.age() - begun).Seconds()
	x.Say(fmt.Sprintf("which is proven after %.1f s", r.Seconds.Prove))
	return nil
}

// differing are the documents that a query finds otherwise than the table has
// them.
func (x *run) differing(ctx context.Context, table map[doc.ID]held) (differing []doc.ID, err error) {
	index, err := x.api.queried(ctx, x.Documents.Collections(), false)
	if err != nil {
		return nil, err
	}
	shown := map[doc.ID]doc.Version{}
	for _, f := range index {
		shown[f.id] = f.version
	}
	for id, h := range table {
		if shown[id] != h.version {
			differing = append(differing, id)
		}
		delete(shown, id)
	}
	return append(differing, slices.Collect(maps.Keys(shown))...), nil
}

// proven waits until the indexes of all collections are proven beyond a moment.
func (x *run) proven(ctx context.Context, moment time.Time) error {
	for {
		var status struct {
			Collections []struct {
				Name          doc.Collection
				ProvenThrough *time.Time
			}
		}
		if _, err := x.api.read(ctx, http.MethodGet, "/status?limit=1000", nil, &status); err != nil {
			return err
		}
		left := map[doc.Collection]bool{}
		for _, c := range x.Documents.Collections() {
			left[c] = true
		}
		for _, c := range status.Collections {
			if c.ProvenThrough != nil && c.ProvenThrough.After(moment) {
				delete(left, c.Name)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if !sleep(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

// clocks is more than the stack's clock, which is corrected by what the engine
// says, and ours can be apart.
const clocks = 3 * time.Second

// compare has all of the table and all of the index compared.
func (x *run) compare(ctx context.Context, r *Result) error {
	x.does("comparing")
	if !sleep(ctx, clocks) {
		return ctx.Err()
	}
	asked := time.Now()
	for begun := asked; ; {
		pass, waits, err := x.lastPass(ctx)
		if err != nil {
			return err
		}
		if pass != nil && pass.Started.After(asked.Add(-clocks)) {
			r.Comparison = pass
			x.Say(fmt.Sprintf("compared %d documents in %.1f s", pass.Checked, pass.Finished.Sub(pass.Started).Seconds()))
			return nil
		}
		if !waits {
			// One that is under way may have begun too early, so it is refused
			// and asked for again.
			var answer json.RawMessage
			if _, err := x.api.read(ctx, http.MethodPost, "/jobs/repair", map[string]any{"mode": "compare"}, &answer, http.StatusConflict); err != nil {
				return err
			}
		}
		if !sleep(ctx, time.Second) {
			return errors.Join(fmt.Errorf("no comparison came to its end in %s", time.Since(begun).Round(time.Second)), ctx.Err())
		}
	}
}

// lastPass is the last comparison that ended, and whether another is asked for.
func (x *run) lastPass(ctx context.Context) (pass *repair.PassFigures, waits bool, err error) {
	var job struct {
		Last     *repairRun
		Requests []struct{ Mode string }
	}
	if _, err := x.api.read(ctx, http.MethodGet, "/jobs/repair", nil, &job); err != nil {
		return nil, false, err
	}
	if job.Last == nil {
		return nil, len(job.Requests) > 0, nil
	}
	report, err := job.Last.report()
	return report.LastPass, len(job.Requests) > 0 || report.Pass != nil, err
}

// inspect reads everything and holds it against the record.
func (x *run) inspect(ctx context.Context, r *Result) error {
	x.does("checking")
	s := seen{writes: x.ledger.writes, sights: x.ledger.sights, feed: map[doc.ID]standing{}}
	var err error
	if s.index, err = x.api.queried(ctx, x.Documents.Collections(), true); err != nil {
		return err
	}
	for _, c := range x.Documents.Collections() {
		changes, err := x.api.changed(ctx, c)
		if err != nil {
			return err
		}
		maps.Copy(s.feed, changes)
	}
	// What the feed shows and nobody wrote is looked at too.
	ids := map[doc.ID]bool{}
	for id := range s.writes {
		ids[id] = true
	}
	for id := range s.feed {
		ids[id] = true
	}
	if s.table, err = x.api.loaded(ctx, slices.Sorted(maps.Keys(ids))); err != nil {
		return err
	}
	r.Findings, r.Loads = *check(s), len(s.sights)
	r.Live, r.Gone = len(s.table), len(ids)-len(s.table)
	if p := r.Comparison; p != nil {
		if n := p.Missing + p.Older + p.Different + p.Extra + p.Ahead + p.Foreign; n > 0 {
			r.Problems = append(r.Problems, fmt.Sprintf("the comparison found %d differences: %+v, %v", n, p.Tally, p.Differences))
		}
		if p.Checked < len(s.feed) {
			r.Problems = append(r.Problems, fmt.Sprintf("the comparison looked at %d documents and deletes of %d", p.Checked, len(s.feed)))
		}
	}
	return nil
}
