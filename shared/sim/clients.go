package sim

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"holdfast/shared/doc"
)

// actor is a client: what it remembers from one operation to the next.
type actor struct {
	number int
	skew   time.Duration
	clk    *doc.Clock    // of its store, over its own clock
	wrote  []doc.Written // what it wrote last, to wait for
}

// act goes through an actor's operations, one after the other, each in a process
// of its own.
func (w *World) act(self *Process, a *actor, ops []Op, plant *Plant, all *sync.WaitGroup) {
	defer all.Done()
	start := w.now()
	for _, op := range ops {
		if due := start.Add(op.At); due.After(w.now()) {
			self.sleep(due.Sub(w.now()))
		}
		done := make(chan struct{})
		w.spawn("op"+strconv.Itoa(op.N), 0, func(p *Process) {
			p.mortal, p.skew = op.Kind <= AsOf, &a.skew
			p.immune = op.Kind > AsOf
			if !p.immune {
				p.kill = w.now().Add(29 * time.Second)
			}
		}, func(p *Process) {
			w.mu.Lock()
			w.tell(p.name, "begins %s", op)
			w.mu.Unlock()
			w.do(p, a, op, plant)
		}, func(*Process, bool) { close(done) })
		<-done
	}
}

// body is the document that an operation writes.
func body(op Op) map[string]any {
	data := map[string]any{"n": json.Number(strconv.Itoa(op.N))}
	switch op.N % 6 {
	case 0:
		data["t"] = "text"
	case 1:
		data["o"] = map[string]any{"a": []any{true, nil, json.Number("1")}}
	}
	if op.Kind == Poison {
		data["poison"] = json.Number(strconv.Itoa(op.Arg))
	}
	return data
}

// do carries out one operation and checks what it was told.
func (w *World) do(p *Process, a *actor, op Op, plant *Plant) {
	ctx := context.Background()
	if !p.kill.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, p.kill)
		defer cancel()
	}
	s := plant.store(newStore(w, p))
	s.clk, s.state.clk = a.clk, a.clk
	began := w.now()
	cond := doc.Condition{}
	switch op.Kind {
	case PutNew:
		cond = doc.Condition{Absent: true}
	case PutSeen, DeleteSeen, Load:
		d, err := s.Load(ctx, op.ID)
		w.loaded(p, op, d, err, began)
		if err != nil || op.Kind == Load {
			return
		}
		cond = doc.Condition{Exists: true, AnyOf: []doc.Version{d.Version}}
		began = w.now()
	}
	switch op.Kind {
	case Put, PutSeen, PutNew, Poison:
		written, err := s.Put(ctx, op.ID, body(op), cond)
		w.wrote(p, a, op, cond, written, err, began, false)
	case Delete, DeleteSeen:
		written, err := s.Delete(ctx, op.ID, cond)
		w.wrote(p, a, op, cond, written, err, began, true)
	case Wait, AsOf:
		w.wait(ctx, p, a, op, s, plant)
	default:
		w.trouble(ctx, p, a, op)
	}
}

// loaded checks invariant 1 of a load: the answer stood in the table at some
// moment of the call.
func (w *World) loaded(p *Process, op Op, d doc.Document, err error, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell(p.name, "loads %s: %s %v", op.ID, short(d.Version), doc.KindOf(err))
	version := d.Version
	switch doc.KindOf(err) {
	case "":
	case doc.NotFound:
		version = 0
	default:
		return
	}
	history := w.Table.history[op.ID]
	until := w.now()
	for k := len(history); k >= 0; k-- {
		var stood *item
		from := time.Time{}
		if k > 0 {
			stood, from = history[k-1].item, history[k-1].at
		}
		if !from.After(w.now()) && !until.Before(began) && stood.live(w.now()) == version {
			return
		}
		if until = from; until.Before(began) {
			break
		}
	}
	w.violate(1, "%s was loaded at version %s, at which it did not stand during the load", op.ID, short(version))
}

// wrote checks invariants 1 and 4 of a write: what was acknowledged happened
// once, during the call and on its condition, and what was refused did not.
func (w *World) wrote(p *Process, a *actor, op Op, cond doc.Condition, told doc.Written, err error, began time.Time, deletes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell(p.name, "wrote %s: %s %v", op.ID, short(told.Version), doc.KindOf(err))
	if err == nil && told.Version > 0 {
		a.wrote = append(a.wrote[max(0, len(a.wrote)-3):], told)
	}
	history := w.Table.history[op.ID]
	times, at := 0, -1
	// A repetition of one attempt that another tool undid meanwhile is no second
	// write: it has the nonce of the first.
	nonces := map[string]bool{}
	for k := len(history) - 1; k >= 0 && !history[k].at.Before(began); k-- {
		i := history[k].item
		if i == nil || history[k].foreign || nonces[i.nonce] {
			continue
		}
		switch {
		case deletes && i.deleted && i.version == told.Version,
			!deletes && !i.deleted && i.data["n"] == json.Number(strconv.Itoa(op.N)) && !i.adopted:
			times, at = times+1, k
			nonces[i.nonce] = true
		}
	}
	switch {
	case doc.KindOf(err) == doc.OutcomeUnknown:
		return
	case err != nil:
		if times > 0 && !deletes {
			w.violate(1, "write #%d of %s was refused (%s) and applied", op.N, op.ID, doc.KindOf(err))
		}
		return
	case deletes && told.Version == 0, deletes && times == 0 && w.stood(history, told.Version):
		return
	case times != 1 && !deletes || times == 0:
		w.violate(4, "write #%d of %s was acknowledged and applied %d times", op.N, op.ID, times)
		return
	case history[at].item.version != told.Version:
		w.violate(4, "write #%d of %s was acknowledged at version %s and stands at %s", op.N, op.ID, short(told.Version), short(history[at].item.version))
	}
	var before *item
	if at > 0 {
		before = history[at-1].item
	}
	switch {
	case cond.Absent && before.live(history[at].at) != 0:
		w.violate(1, "write #%d of %s was made on the condition that there is none, over version %s", op.N, op.ID, short(before.standing()))
	case len(cond.AnyOf) > 0 && before.standing() != cond.AnyOf[0]:
		w.violate(1, "write #%d of %s was made over version %s and not over %s: an update is lost", op.N, op.ID, short(before.standing()), short(cond.AnyOf[0]))
	}
}

func (w *World) stood(history []state, v doc.Version) bool {
	for _, s := range history {
		if s.item != nil && s.item.version == v {
			return true
		}
	}
	return false
}
