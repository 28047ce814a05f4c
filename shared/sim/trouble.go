package sim

import (
	"context"
	"strconv"
	"time"
)

// trouble carries out the operations that are not those of clients.
func (w *World) trouble(_ context.Context, p *Process, a *actor, op Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[op.Kind.String()]++
	w.note("trouble", op.Kind.String())
	now := w.now()
	switch op.Kind {
	case ForeignPut:
		w.Table.foreignPut(p, op.ID, body(op))
	case ForeignEdit:
		w.Table.foreignEdit(p, op.ID, body(op))
	case ForeignRemove:
		w.Table.foreignRemove(p, op.ID)
	case Outage:
		w.outages[Engine(op.Arg)] = now.Add(op.For)
	case FeedStall:
		w.Table.Feed.stalled = now.Add(op.For)
	case Restart:
		w.Index.restart()
		w.outages[IndexEngine] = now.Add(time.Duration(op.Arg) * 10 * time.Millisecond)
	case LoseIndex:
		if names := sortedKeys(w.Index.indexes); len(names) > 0 {
			w.Index.lose(names[op.Arg%len(names)])
			w.lossCount++
		}
	case LoseAlias:
		if families := sortedKeys(w.Index.aliases); len(families) > 0 {
			delete(w.Index.aliases, families[op.Arg%len(families)])
		}
	case ClockStep:
		a.skew = op.For
	case Redrive:
		w.Queue.redrive()
	case Pause:
		w.asleep = now.Add(op.For)
	case Define:
		w.define(op)
	case Compare:
		w.request("compare " + strconv.Itoa(op.N))
	}
}

func (w *World) define(Op)      {}
func (w *World) request(string) {}
