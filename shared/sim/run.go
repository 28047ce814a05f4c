package sim

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/jobs/repair"
)

// Config says what is run.
type Config struct {
	Seed   uint64
	Ops    int
	Script []Op   // instead of a drawn one
	Rates  *Rates // instead of drawn ones
	Crash  int    // the one place where a process crashes, from 1; 0: where chance wants
	Keep   bool   // the trace's lines
	Plant  *Plant // a planted fault

	NoRepair bool
}

// Result is what came of a run.
type Result struct {
	Trace      uint64 // equal for equal runs
	Events     int
	Points     int // places where a process can crash
	Script     []Op
	Lines      []string
	Violations []Violation
	Faults     map[string]int
	Began      time.Time
	Virtual    time.Duration // how long the run took by the clock of its world
	Settled    time.Duration // how long after the last fault everything was right
	Fresh      int           // answers that were not stale
}

// settleTime is within what virtual time of the last fault everything has to be
// right again.
const settleTime = 3 * time.Hour

// Run runs one script in a world of its own.
func Run(t *testing.T, c Config) (result Result) {
	synctest.Test(t, func(*testing.T) { result = run(c) })
	return result
}

func run(c Config) Result {
	w := NewWorld(c.Seed, nil)
	w.keep, w.crash.at, w.repairs = c.Keep, c.Crash, !c.NoRepair && canRepair
	plant := c.Plant
	if plant == nil {
		plant = &Plant{}
	}
	if plant.Engines != nil {
		plant.Engines(w)
	}
	r := w.random("run")
	rates := drawRates(r)
	if c.Rates != nil {
		rates = *c.Rates
	}
	if !w.repairs {
		// Without repair nothing finds what was lost on the way.
		rates.DropRecord, rates.DropMessage = 0, 0
		rates.LateMost = min(rates.LateMost, 10*time.Minute)
	}
	w.rates = rates
	w.margin = []time.Duration{10 * time.Second, 10 * time.Second, 150 * time.Second}[w.random("margin").IntN(3)]
	// What is usual for the feed has to fit into the margin with the errors of
	// clocks and the time of a write; a feed that is slower is stalled as a
	// whole, and that is seen by its measure.
	w.rates.FeedMost = min(w.rates.FeedMost, w.margin/2-clockError)
	ops := c.Script
	if ops == nil {
		ops = script(r, c.Ops, scriptOptions{repair: w.repairs, pauses: w.repairs && r.IntN(8) == 0, foreign: r.IntN(2) == 0})
	}
	start := w.now()
	poller := func(name string, run func(*Process)) {
		w.spawn(name, 0, func(p *Process) { p.immune = true }, run, nil)
	}
	for lane := range shards {
		poller(fmt.Sprint("lane", lane), func(p *Process) { w.lane(p, lane, plant) })
	}
	for n := range consumers {
		poller(fmt.Sprint("indexer", n), func(p *Process) { w.consumer(p, plant) })
	}
	if w.repairs {
		for n := range 2 {
			poller(fmt.Sprint("repair", n), func(p *Process) { w.repairer(p, plant) })
		}
	}
	poller("janitor", w.janitor)
	var busy sync.WaitGroup
	for n := range clients + 1 {
		var own []Op
		for _, op := range ops {
			if op.Actor == n {
				own = append(own, op)
			}
		}
		busy.Add(1)
		a := &actor{number: n}
		a.skew = time.Duration(w.random(fmt.Sprint("skew", n)).IntN(1_200_000)-600_000) * time.Millisecond
		a.clk = doc.NewClock(func() time.Time { return w.now().Add(a.skew) })
		poller(fmt.Sprint("actor", n), func(p *Process) { w.act(p, a, own, plant, &busy) })
	}
	busy.Wait()
	settled := w.settle()
	w.stopping = true
	w.running.Wait()
	w.dismiss()
	return Result{
		Trace: w.trace, Events: w.events, Points: w.crashable, Script: ops, Lines: w.lines, Violations: w.violations,
		Faults: w.faults, Began: start, Virtual: w.now().Sub(start), Settled: settled, Fresh: w.fresh,
	}
}

// settle ends all faults and waits until everything is right.
func (w *World) settle() time.Duration {
	p := &Process{w: w, name: "end", immune: true, rng: w.random("end")}
	p.sleep(time.Second)
	w.calm()
	began := w.now()
	var wrong []Violation
	for pause := 2 * time.Second; ; pause = min(2*pause, time.Minute) {
		p.sleep(pause)
		w.mu.Lock()
		wrong = w.differences()
		w.mu.Unlock()
		if len(wrong) == 0 || w.now().Sub(began) > settleTime {
			break
		}
	}
	settled := w.now().Sub(began)
	w.violations = append(w.violations, wrong[:min(len(wrong), 5)]...)
	// Old messages come when all is well.
	w.draining = true
	for range 10 {
		w.mu.Lock()
		next := w.Queue.nextVisible()
		w.mu.Unlock()
		if next.IsZero() {
			break
		}
		p.sleep(max(next.Sub(w.now()), 0) + 2*time.Hour)
	}
	w.mu.Lock()
	if wrong := w.differences(); len(wrong) > 0 && len(w.violations) == 0 {
		w.violations = append(w.violations, wrong[:min(len(wrong), 5)]...)
	}
	w.mu.Unlock()
	return settled
}

// janitor is the table's time to live.
func (w *World) janitor(p *Process) {
	for !w.stopping {
		p.sleep(min(max(w.Table.reapDelay, time.Minute), time.Hour))
		w.mu.Lock()
		w.Table.reap()
		w.mu.Unlock()
	}
}

// calm ends all faults.
func (w *World) calm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rates = Rates{}
	clear(w.outages)
	w.crash.at, w.crashable = 0, w.points
	w.asleep = time.Time{}
	w.Queue.redrive()
	// What other tools did and the stream lost is found by the comparison of
	// everything only, which is due once a day.
	w.State.request(repair.Name, string(repair.Compare))
	w.note("end", "no more faults")
}

// Broken are the invariants that did not hold, each once.
func (r Result) Broken() []int {
	var broken []int
	for _, v := range r.Violations {
		broken = append(broken, v.Invariant)
	}
	slices.Sort(broken)
	return slices.Compact(broken)
}
