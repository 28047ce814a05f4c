package sim

import (
	"context"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// Store is one process's store: the protocol by which documents are written and
// read, over the model of the table. Its promises are those of package store,
// and it passes that package's conformance suite.
type Store struct {
	w     *World
	p     *Process
	state *State
	clk   *doc.Clock

	ignoreNonce bool          // a refusal is believed, whoever wrote
	blind       bool          // versions are not compared
	life        time.Duration // of tombstones; 0: the usual one
}

const (
	tombstoneLife = 30 * 24 * time.Hour
	maxRounds     = 16
	maxAttempts   = 10
)

func newStore(w *World, p *Process) *Store {
	s := &Store{w: w, p: p, clk: doc.NewClock(func() time.Time { return p.clock(w) })}
	s.state = newState(w, p, s.clk)
	return s
}

// call makes a call to the table.
func (s *Store) call(ctx context.Context, kind string, mutates bool, apply func()) verdict {
	return s.w.dated(ctx, s.p, s.clk, TableEngine, kind, mutates, apply)
}

// dated makes a call to an engine whose answers carry its time, and sets a clock
// by it.
func (w *World) dated(ctx context.Context, p *Process, clk *doc.Clock, e Engine, kind string, mutates bool, apply func()) verdict {
	sent := clk.Local()
	var date time.Time
	v := w.call(ctx, p, e, kind, mutates, func() {
		date = w.now().Truncate(time.Second)
		apply()
	})
	if received := clk.Local(); v == told && p != nil && !received.Before(sent) && received.Sub(sent) <= 2*time.Second {
		clk.Correct(date, sent, received)
	}
	return v
}

// demand is what a write requires of the item that it finds.
type demand func(found *item, now time.Time) bool

func anything(found *item, now time.Time) bool { return found == nil || !found.expired(now) }
func absent(found *item, now time.Time) bool   { return found.live(now) == 0 }
func unused(found *item, _ time.Time) bool     { return found == nil }
func present(found *item, now time.Time) bool  { return found.live(now) != 0 }
func exactly(v doc.Version) demand {
	return func(found *item, now time.Time) bool { return found.live(now) != 0 && found.standing() == v }
}

// change is a write of one item.
type change struct {
	id     doc.ID
	cond   doc.Condition
	first  demand // with the zero condition
	unused bool
	make   func(version doc.Version, nonce string, was *item, created bool) *item
	enough func(found *item, unclear bool) bool
}

func (c change) aim(found *item, known bool, now time.Time) demand {
	switch {
	case c.cond.Absent:
		return absent
	case c.cond.Exists && len(c.cond.AnyOf) == 0:
		return present
	case c.cond.Exists && !known:
		return exactly(c.cond.AnyOf[0])
	case c.cond.Exists:
		return exactly(found.standing())
	case c.first != nil:
		return c.first
	case known && found != nil && found.expired(now):
		return absent
	}
	return anything
}

// settled is how a write ended.
type settled struct {
	version doc.Version
	created bool
	written bool
}

// run carries a change through, attempt after attempt, each with a version of
// its own.
func (s *Store) run(ctx context.Context, c change) (settled, error) {
	var known *item
	var floor doc.Version
	isKnown := false
	if len(c.cond.AnyOf) > 1 {
		found, err := s.get(ctx, c.id)
		if err != nil {
			return settled{}, err
		}
		if err := c.cond.Check(found.live(s.clk.Now())); err != nil {
			return settled{}, err
		}
		known, floor, isKnown = found, found.standing(), true
	}
	aim := c.aim(known, isKnown, s.clk.Now())
	for round := 0; ; round++ {
		version, now := s.clk.Next(floor), s.clk.Now()
		nonce := s.newNonce()
		out, err := s.try(ctx, c, aim, version, nonce, now)
		if err != nil {
			k := doc.KindOf(err)
			if (k == doc.Throttled || k == doc.Unavailable) && round+1 < maxRounds && s.pause(ctx, round) {
				continue
			}
			return settled{}, err
		}
		if out.applied {
			return settled{version: version, created: out.created, written: true}, nil
		}
		found := out.found
		if found != nil && found.nonce == nonce && found.version == version && !s.ignoreNonce {
			return settled{version: version, created: found.created.Equal(version.Time()) && !found.deleted, written: true}, nil
		}
		if c.enough != nil && c.enough(found, out.unclear) {
			return settled{}, nil
		}
		if out.unclear && (found == nil || found.standing() > version || found.standing() == unversioned) && !s.ignoreNonce {
			return settled{}, outcomeUnknown()
		}
		live := found.live(s.clk.Now())
		if c.unused && found != nil {
			return settled{}, doc.Errorf(doc.VersionConflict, "the id is in use").With("expected", nil).With("actual", live)
		}
		if err := c.cond.Check(live); err != nil {
			return settled{}, err
		}
		if round+1 >= maxRounds {
			return settled{}, doc.Errorf(doc.Throttled, "too many writers change this document at once")
		}
		floor = found.standing()
		aim = c.aim(found, true, s.clk.Now())
	}
}

type attempted struct {
	applied, created, unclear bool
	found                     *item
}

// try sends one attempt, again while it is unclear whether it was applied.
func (s *Store) try(ctx context.Context, c change, aim demand, version doc.Version, nonce string, now time.Time) (attempted, error) {
	began := s.w.now()
	unclear := false
	for n := 0; ; n++ {
		if ctx.Err() != nil && !unclear {
			return attempted{}, problem("write", failed)
		}
		var out attempted
		limited, cancel := context.WithTimeout(ctx, s.writeTime())
		v := s.call(limited, "write", true, func() {
			was := s.w.Table.items[c.id]
			if !aim(was, now) || was.standing() >= version && !s.blind {
				out.found = was
				return
			}
			out.created = was.live(now) == 0
			out.applied = true
			s.w.Table.set(s.p, c.id, c.make(version, nonce, was, out.created), ours)
		})
		cancel()
		switch v {
		case told:
			out.unclear = unclear
			return out, nil
		case throttled:
			if !unclear {
				return attempted{}, problem("write", v)
			}
		default:
			unclear = true
		}
		if n+1 >= maxAttempts || !s.pause(ctx, n) || s.w.now().Sub(began) > s.writeTime() {
			return attempted{}, outcomeUnknown()
		}
	}
}

func outcomeUnknown() error {
	return doc.Errorf(doc.OutcomeUnknown, "the write may or may not have happened; load the document to see")
}

func (s *Store) newNonce() string {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.Table.nonce()
}

// pause waits before the next attempt, unless the context ends before.
func (s *Store) pause(ctx context.Context, n int) bool {
	d := min(time.Second, 20*time.Millisecond<<min(n, 10))
	if deadline, ok := ctx.Deadline(); ok && deadline.Sub(s.w.now()) <= d {
		return false
	}
	if s.p == nil {
		return ctx.Err() == nil
	}
	if s.p.dead {
		return false
	}
	s.p.sleep(d/2 + time.Duration(s.p.rng.Int64N(int64(d/2))))
	return ctx.Err() == nil
}

// get reads an item, strongly, again where that fails.
func (s *Store) get(ctx context.Context, id doc.ID) (found *item, err error) {
	err = s.again(ctx, "load", func() { found = s.w.Table.items[id] })
	return found, err
}

// again makes a call that may be repeated freely.
func (s *Store) again(ctx context.Context, kind string, apply func()) error {
	for n := 0; ; n++ {
		v := s.call(ctx, kind, false, apply)
		if v == told {
			return nil
		}
		if n+1 >= maxAttempts || !s.pause(ctx, n) {
			return problem(kind, v)
		}
	}
}

// Put writes a document over whatever is there, if the condition holds.
func (s *Store) Put(ctx context.Context, id doc.ID, data map[string]any, cond doc.Condition) (doc.Written, error) {
	return s.put(ctx, id, data, cond, false)
}

func (s *Store) put(ctx context.Context, id doc.ID, data map[string]any, cond doc.Condition, fresh bool) (doc.Written, error) {
	if err := s.state.Register(ctx, id.Collection()); err != nil {
		return doc.Written{}, err
	}
	c := change{id: id, cond: cond, unused: fresh, make: func(version doc.Version, nonce string, was *item, created bool) *item {
		i := &item{
			id: id, version: version, nonce: nonce, collection: string(id.Collection()), bucket: bucketOf(id, s.w.Table.buckets),
			created: version.Time(), updated: version.Time(), data: data,
		}
		if !created && !was.created.IsZero() {
			i.created = was.created
		}
		return i
	}}
	if fresh {
		c.first = unused
	}
	end, err := s.run(ctx, c)
	if err != nil {
		return doc.Written{}, err
	}
	return doc.Written{ID: id, Version: end.version, Created: end.created}, nil
}

// Delete puts a tombstone in the document's place, if the condition holds.
func (s *Store) Delete(ctx context.Context, id doc.ID, cond doc.Condition) (doc.Written, error) {
	if cond.Absent {
		return doc.Written{}, doc.Errorf(doc.InvalidRequest, "a delete cannot demand that the document is absent")
	}
	var late doc.Version
	end, err := s.run(ctx, change{
		id: id, cond: cond, first: present,
		make: func(version doc.Version, nonce string, _ *item, _ bool) *item { return s.tombstone(id, version, nonce) },
		enough: func(found *item, unclear bool) bool {
			if !cond.Unconditional() || found.live(s.clk.Now()) != 0 {
				return false
			}
			if unclear && found != nil {
				late = found.standing() // this delete or another one: it is gone either way
			}
			return true
		},
	})
	if err != nil || !end.written {
		return doc.Written{ID: id, Version: late}, err
	}
	return doc.Written{ID: id, Version: end.version}, nil
}

func (s *Store) tombstone(id doc.ID, version doc.Version, nonce string) *item {
	life := tombstoneLife
	if s.life > 0 {
		life = s.life
	}
	return &item{
		id: id, version: version, nonce: nonce, collection: string(id.Collection()), bucket: bucketOf(id, s.w.Table.buckets),
		updated: version.Time(), deleted: true, ttl: s.clk.Now().Add(life),
	}
}

// Adopt gives a foreign change a place in the order of versions, unless somebody
// has written since.
func (s *Store) Adopt(ctx context.Context, f store.Foreign) error {
	if err := s.state.Register(ctx, f.ID.Collection()); err != nil {
		return err
	}
	found, err := s.get(ctx, f.ID)
	if err != nil {
		return err
	}
	var was store.Seen
	if found != nil {
		was = found.seen()
	}
	switch {
	case found == nil && f.Removed:
	case found != nil && (!f.Removed && was == f.New || found.standing() <= f.Old.Version):
	default:
		return nil
	}
	version := s.clk.Next(max(f.Old.Version, f.New.Version, found.standing()))
	same := func(i *item, _ time.Time) bool { return (i == nil) == (found == nil) && i.seen() == was }
	_, err = s.try(ctx, change{id: f.ID, make: func(v doc.Version, nonce string, i *item, _ bool) *item {
		if i == nil || i.deleted {
			return s.tombstone(f.ID, v, nonce)
		}
		n := *i
		n.adopted = true
		n.version, n.nonce, n.collection, n.bucket, n.updated = v, nonce, string(f.ID.Collection()), bucketOf(f.ID, s.w.Table.buckets), v.Time()
		if n.created.IsZero() {
			n.created = v.Time()
		}
		return &n
	}}, same, version, s.newNonce(), s.clk.Now())
	return err
}

// writeTime is how long an attempt of a write lasts at most.
func (s *Store) writeTime() time.Duration { return s.w.margin / 3 }

// IgnoreNonce makes the store believe a refusal even by its own write.
func (s *Store) IgnoreNonce() { s.ignoreNonce = true }

// Blind makes the store write whatever version stands there.
func (s *Store) Blind() { s.blind = true }

// Tombstones makes tombstones last for so long.
func (s *Store) Tombstones(life time.Duration) { s.life = life }
