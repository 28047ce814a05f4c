package sim

import (
	"context"
	"time"

	"holdfast/shared/collection"
	"holdfast/shared/jobs/repair"
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
		// A tombstone that goes before its signal has arrived leaves a document
		// in the index that only the comparison of everything finds.
		if i := w.Table.items[op.ID]; w.repairs || i != nil && !i.deleted {
			w.Table.foreignRemove(p, op.ID)
		}
	case Outage:
		w.outages[Engine(op.Arg)] = now.Add(op.For)
	case FeedStall:
		if until := now.Add(op.For); until.After(w.Table.Feed.stalled) {
			w.Table.Feed.stalled = until
		}
	case Restart:
		w.Index.restart()
		w.outages[IndexEngine] = now.Add(time.Duration(op.Arg) * 10 * time.Millisecond)
	case LoseIndex:
		if names := sortedKeys(w.Index.indexes); len(names) > 0 {
			name := names[op.Arg%len(names)]
			w.lossCount++
			if op.Arg%4 == 0 {
				w.Index.indexes[name].spoiled = true
			} else {
				w.Index.lose(name)
			}
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
		w.State.request(repair.Name, string(repair.Compare))
	}
}

// forms are what a collection may be declared to be indexed as.
var forms = []collection.Definition{
	{}, {Index: collection.Own}, {Index: collection.Own, Nested: []string{"o"}}, {Text: []string{"t"}},
}

// define declares another form of a collection's index, as a client does whose
// collection has documents.
func (w *World) define(op Op) {
	current := w.State.definition(op.ID.Collection())
	d := forms[op.Arg%len(forms)]
	d.Name = current.Name
	d = d.Changed(current, w.now().UTC().Truncate(time.Microsecond))
	if _, ok := w.State.putDefinition(d, current.Revision); !ok {
		w.violate(4, "the definition of %s could not be put", d.Name)
	}
}
