package repair

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
	"holdfast/shared/store"
)

const (
	// maxMissing bounds what a capture remembers of a generation as missing.
	maxMissing = 10_000
	// chunk is how many ids one question to the index has.
	chunk = 1000
	// firstLook and lastLook are the pauses between looks for what is missing.
	firstLook = 250 * time.Millisecond
	lastLook  = 2 * time.Second
	// feedLook is the pause between looks for a canary in the feed, and so the
	// precision of the measured lag.
	feedLook = 50 * time.Millisecond
)

// errBehind ends a capture that the run has no time for, and errLate one that it
// would have the time for if the index had not failed for so long.
var (
	errBehind = errors.New("there is more in the change feed than one run can look at")
	errLate   = errors.New("the index failed for too long to leave time for the change feed")
)

// captured is what a capture found out about one generation.
type captured struct {
	generation collection.Generation
	from       doc.Version
	entries    int
	missing    map[doc.ID]doc.Version
	tooMany    bool // more are missing than are remembered
}

// prove holds the change feed since the last proof against the index.
//
// The capture begins at a moment S and has no upper bound, so that the newest
// entry of a document that changes all the time is in it too. Once the index
// holds at least each captured version, everything is in it that was written
// before S less the margin: such a write is in the table, and the feed has shown
// it, or what came after it, by S.
func (x *run) prove(ctx context.Context) error {
	x.state.Runs++
	canary, feedLag, err := x.measureFeed(ctx)
	if err != nil {
		return err
	}
	began := x.Now() // S
	targets := map[key]*captured{}
	from := doc.Version(0)
	for _, g := range x.allWritten() {
		p, ok := x.proofs[keyOf(g)]
		if !ok {
			continue // a comparison gives the proof to begin with
		}
		c := &captured{generation: g, from: doc.VersionAt(p.Through), missing: map[doc.ID]doc.Version{}}
		targets[keyOf(g)] = c
		if from == 0 || c.from < from {
			from = c.from
		}
	}
	if len(targets) > 0 {
		if err := x.capture(ctx, targets, from); err != nil {
			return err
		}
		if err := x.await(ctx, targets); err != nil {
			return err
		}
	}
	if err := x.measureIndex(ctx, canary); err != nil {
		return err
	}
	if err := x.conclude(ctx, targets, began, feedLag); err != nil {
		return err
	}
	return x.resignal(ctx, targets, began)
}

// measureFeed writes a canary and waits until the feed shows it, at most for half
// of the margin. Beyond that nothing can be proven. A nil lag is a longer one.
func (x *run) measureFeed(ctx context.Context) (canary doc.Written, lag *time.Duration, err error) {
	if canary, err = x.Table.PutCanary(ctx, x.state.Runs); err != nil {
		return canary, nil, err
	}
	written := x.Now()
	for {
		shown, err := x.Table.FeedHas(ctx, canary)
		if err != nil {
			return canary, nil, err
		}
		took := max(x.Now().Sub(written), 0)
		if shown {
			x.report.FeedLag = &took
			return canary, &took, nil
		}
		if took > x.Margin/2 {
			return canary, nil, nil
		}
		if err := x.Sleep(ctx, feedLook); err != nil {
			return canary, nil, err
		}
	}
}

// measureIndex tells how long ago a canary was written that the index holds by
// now; it looks once, after everything else was waited for.
func (x *run) measureIndex(ctx context.Context, canary doc.Written) error {
	if x.unwell {
		return nil
	}
	generations := x.written(canary.ID.Collection())
	if len(generations) == 0 {
		return nil
	}
	versions, err := x.Index.Versions(ctx, []search.VersionOf{{Generation: generations[0], IDs: []doc.ID{canary.ID}}})
	if err != nil {
		return err
	}
	if versions[canary.ID] >= canary.Version {
		lag := max(x.Now().Sub(canary.Version.Time()), 0)
		x.report.IndexLag = &lag
	}
	return nil
}

// capture reads the feed and notes what each generation does not hold.
func (x *run) capture(ctx context.Context, targets map[key]*captured, from doc.Version) error {
	err := x.Table.Sweep(ctx, from, func(changes []doc.Change) error {
		switch left := x.left(); {
		case left >= x.Patience:
			return x.hold(ctx, targets, changes)
		case left+x.lost >= x.Patience:
			return errLate
		}
		return errBehind
	})
	if errors.Is(err, errBehind) {
		// The next run would not get further. A comparison does, piece by piece.
		x.want("more has changed since the last proof than one run can look at")
		for _, c := range targets {
			if err := x.dropProof(ctx, c.generation, "too much has changed since"); err != nil {
				return err
			}
			delete(targets, keyOf(c.generation))
		}
		return nil
	}
	return err
}

// hold holds entries of the feed against the generations.
func (x *run) hold(ctx context.Context, targets map[key]*captured, changes []doc.Change) error {
	wanted := map[key]map[doc.ID]doc.Version{}
	for _, change := range changes {
		for _, g := range x.written(change.ID.Collection()) {
			c := targets[keyOf(g)]
			if c == nil || change.Version < c.from {
				continue
			}
			of := wanted[keyOf(g)]
			if of == nil {
				of = map[doc.ID]doc.Version{}
				wanted[keyOf(g)] = of
			}
			of[change.ID] = max(of[change.ID], change.Version)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(wanted), compareKeys) {
		versions := wanted[k]
		c := targets[k]
		c.entries += len(versions)
		x.report.Captured += len(versions)
		missing, err := x.missing(ctx, c.generation, versions)
		if err != nil {
			return err
		}
		for id, v := range missing {
			if _, again := c.missing[id]; !again && len(c.missing) >= maxMissing {
				c.tooMany = true
				continue
			}
			c.missing[id] = max(c.missing[id], v)
		}
	}
	return nil
}

// missing is what of these versions the generation's index does not hold, or
// something newer in their place.
func (x *run) missing(ctx context.Context, g collection.Generation, versions map[doc.ID]doc.Version) (map[doc.ID]doc.Version, error) {
	missing := map[doc.ID]doc.Version{}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(versions)), chunk) {
		held, err := x.Index.Versions(ctx, []search.VersionOf{{Generation: g, IDs: ids}})
		if err != nil {
			x.unwell = true
			return nil, err
		}
		for _, id := range ids {
			if held[id] < versions[id] {
				missing[id] = versions[id]
			}
		}
	}
	return missing, nil
}

// await looks again for what is missing until it is there or the patience is
// over, and strikes what there is no need to wait for: what the quarantine names,
// and what the table has no trace of any more.
func (x *run) await(ctx context.Context, targets map[key]*captured) error {
	until := x.Now().Add(min(x.Patience, x.left()))
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		open := false
		for _, c := range x.ordered(targets) {
			missing, err := x.missing(ctx, c.generation, c.missing)
			if err != nil {
				return err
			}
			c.missing = missing
			open = open || len(missing) > 0
		}
		if !open {
			return nil
		}
		if x.Now().Add(pause).After(until) {
			break
		}
		if err := x.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	for _, c := range x.ordered(targets) {
		if err := x.strike(ctx, c.missing); err != nil {
			return err
		}
	}
	return nil
}

// strike removes what cannot be waited for from what is missing.
func (x *run) strike(ctx context.Context, missing map[doc.ID]doc.Version) error {
	ids := slices.Sorted(maps.Keys(missing))
	if len(ids) == 0 {
		return nil
	}
	quarantined, err := x.State.Quarantine(ctx, ids)
	if err != nil {
		return err
	}
	for id, q := range quarantined {
		if q.Version >= missing[id] && !q.Partial {
			delete(missing, id)
		}
	}
	standings, err := x.Table.Standings(ctx, slices.Sorted(maps.Keys(missing)))
	if err != nil {
		return err
	}
	for id := range missing {
		if _, there := standings[id]; !there {
			delete(missing, id)
		}
	}
	return nil
}

// conclude keeps what was proven. A generation of which something is missing, or
// a feed that is slower than the margin allows for, leaves the proof where it is.
func (x *run) conclude(ctx context.Context, targets map[key]*captured, began time.Time, feedLag *time.Duration) error {
	for _, c := range x.ordered(targets) {
		p := x.proofs[keyOf(c.generation)]
		p.Family, p.Generation, p.At, p.Margin = c.generation.Family, c.generation.Number, began.UTC(), x.Margin
		p.Missing, p.OldestMissing, p.FeedLag = len(c.missing), time.Time{}, x.Margin
		if feedLag != nil {
			p.FeedLag = *feedLag
		}
		x.report.Missing += len(c.missing)
		for _, v := range c.missing {
			if at := v.Time(); p.OldestMissing.IsZero() || at.Before(p.OldestMissing) {
				p.OldestMissing = at.UTC()
			}
		}
		same, err := x.same(ctx, c.generation)
		if err != nil {
			return err
		}
		if !same {
			continue
		}
		if len(c.missing) == 0 && !c.tooMany && feedLag != nil {
			// What the index holds has to be what searches see.
			if err := x.Index.Refresh(ctx, []collection.Generation{c.generation}); err != nil {
				return err
			}
			if through := began.Add(-x.Margin).UTC().Truncate(time.Microsecond); through.After(p.Through) {
				p.Through = through
			}
		}
		if err := x.putProof(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// ordered are the targets in a fixed order.
func (x *run) ordered(targets map[key]*captured) []*captured {
	keys := slices.SortedFunc(maps.Keys(targets), compareKeys)
	all := make([]*captured, len(keys))
	for i, k := range keys {
		all[i] = targets[k]
	}
	return all
}

func compareKeys(a, b key) int {
	if c := strings.Compare(string(a.Family), string(b.Family)); c != 0 {
		return c
	}
	return a.Number - b.Number
}

// proofOf makes the first proof of a generation, by a comparison that began one
// margin after the moment through which it proves.
func (x *run) proofOf(g collection.Generation, through time.Time) store.Proof {
	return store.Proof{
		Family: g.Family, Generation: g.Number, Index: x.state.Indexes[noteKey(g)], Margin: x.Margin, FeedLag: x.Margin,
		Through: through.UTC().Truncate(time.Microsecond), At: through.Add(x.Margin).UTC(),
	}
}
