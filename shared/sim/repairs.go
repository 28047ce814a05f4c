package sim

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"holdfast/shared/jobs/repair"
	"holdfast/shared/store"
)

// repairTime is the timeout of the function repair.
const repairTime = 2 * time.Minute

// canRepair says that there is a repair to be run.
const canRepair = true

// repairer is a schedule of repair: every minute. There are two, so that runs
// overlap.
func (w *World) repairer(p *Process, plant *Plant) {
	var host *Process
	var r *repair.Repair
	for !w.stopping && !w.draining {
		w.rest(p, time.Minute-time.Duration(p.rng.IntN(200))*time.Millisecond)
		if host == nil {
			host = w.container(p.name)
			s := plant.store(newStore(w, host))
			o := repair.Options{
				Table: s, Index: newIndexPort(w, host), State: s.state, Queue: newQueuePort(w, host),
				Margin: w.margin, TombstoneLife: tombstoneLife, Now: s.clk.Now,
				Sleep:  func(ctx context.Context, d time.Duration) error { return host.pause(ctx, d) },
				Jitter: host.rng.Float64,
			}
			plant.repair(&o)
			r = repair.New(o)
		}
		var report repair.Report
		var held bool
		var err error
		if !w.invoke(host, repairTime, func(ctx context.Context) { report, held, err = r.Run(ctx, repair.Prove) }) {
			host = nil
		} else if held && w.keep {
			w.mu.Lock()
			w.tell(p.name, "repaired: captured %d missing %d resignalled %d, %v", report.Captured, report.Missing, report.Resignalled, err)
			w.mu.Unlock()
		}
	}
}

// pause sleeps as production code does, until the context ends.
func (p *Process) pause(ctx context.Context, d time.Duration) error {
	if p.dead {
		return context.Canceled
	}
	p.w.mu.Lock()
	at, cut := p.arrival(ctx, d)
	p.w.mu.Unlock()
	p.sleepUntil(at)
	if cut {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// proven checks invariant 5 of a proof as it is written: everything that was
// written up to its moment, before the run began, is in the index and seen by
// searches, or known not to be takeable, or gone without a trace.
func (w *World) proven(p store.Proof) {
	if p.Through.IsZero() {
		return
	}
	name := fmt.Sprintf("%s-%d", p.Family, p.Generation)
	g, ok := w.State.generations[p.Family][p.Generation]
	if !ok {
		w.violate(5, "%s is proven and there is no such generation", name)
		return
	}
	index := w.Index.of(g)
	if index == nil || index.uuid() != p.Index {
		// It is about one that is gone by now, and nobody takes it for another.
		if number, err := strconv.Atoi(p.Index); err != nil || number > w.Index.made {
			w.violate(5, "%s is proven through %s in an index that never was: %q", name, p.Through, p.Index)
		}
		return
	}
	w.lacks(index, g, p.Through, p.At, func(format string, args ...any) {
		w.violate(5, name+" is proven through "+p.Through.Format("15:04:05.000")+" by a run of "+p.At.Format("15:04:05.000")+", but "+format, args...)
	})
}
