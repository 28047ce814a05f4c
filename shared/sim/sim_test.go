package sim_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/shared/sim"
)

var (
	seeds = flag.Int("sim.seeds", 200, "how many seeds are run")
	ops   = flag.Int("sim.ops", 2000, "operations of each run")
	seed  = flag.Uint64("sim.seed", 0, "the one seed to run, with its trace; 0: many")
	first = flag.Uint64("sim.first", 1, "the first of many seeds")
	alone = flag.Bool("sim.alone", false, "without repair")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // worlds are small and short-lived
	os.Exit(m.Run())
}

// Whatever fails, everything converges and nothing is told that is not so.
func TestSeeds(t *testing.T) {
	if *seed != 0 {
		r := sim.Run(t, sim.Config{Seed: *seed, Ops: *ops, Keep: true, NoRepair: *alone})
		for _, l := range r.Lines {
			fmt.Println(l)
		}
		t.Logf("%d events, %d places to crash, %s of virtual time, settled in %s, faults %v", r.Events, r.Points, r.Virtual, r.Settled, r.Faults)
		for _, v := range r.Violations {
			t.Error(v)
		}
		return
	}
	if testing.Short() {
		*seeds, *ops = min(*seeds, 4), min(*ops, 300)
	}
	began := time.Now()
	total := sweep(t, *first, *seeds, func(t *testing.T, seed uint64) sim.Result { return sim.Run(t, sim.Config{Seed: seed, Ops: *ops}) })
	total.explain(t)
	t.Logf("%d seeds of %d operations in %s: %d events, %s of virtual time, longest to settle %s, %d answers that were not stale, faults %v",
		*seeds, *ops, time.Since(began).Round(time.Millisecond), total.Events, total.Virtual.Round(time.Hour), total.Settled.Round(time.Second), total.Fresh, total.Faults)
}

// swept is what came of many seeds.
type swept struct {
	sim.Result
	failed []uint64
}

// explain shows the shortest form of the first failure.
func (s swept) explain(t *testing.T) {
	if len(s.failed) == 0 {
		return
	}
	seed := slices.Min(s.failed)
	c, r := sim.Shrink(t, sim.Config{Seed: seed, Ops: *ops}, 300)
	t.Logf("seed %d fails under %+v", seed, *c.Rates)
	const most = 60
	t.Logf("%d operations, the last of them:", len(c.Script))
	for _, op := range c.Script[max(0, len(c.Script)-most):] {
		t.Log(op)
	}
	violated := slices.IndexFunc(r.Lines, func(l string) bool { return strings.HasPrefix(l, "VIOLATED") })
	if violated < 0 {
		violated = len(r.Lines) - 1
	}
	for _, l := range r.Lines[max(0, violated-most) : violated+1] {
		t.Log(l)
	}
	for _, v := range r.Violations {
		t.Log(v)
	}
}

// sweep runs many seeds, as many at once as there are processors.
func sweep(t *testing.T, from uint64, n int, run func(t *testing.T, seed uint64) sim.Result) (total swept) {
	total.Faults = map[string]int{}
	next := make(chan uint64)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for s := range next {
				r := run(t, s)
				mu.Lock()
				total.Events += r.Events
				total.Virtual += r.Virtual
				total.Fresh += r.Fresh
				total.Settled = max(total.Settled, r.Settled)
				for k, v := range r.Faults {
					total.Faults[k] += v
				}
				if len(r.Violations) > 0 {
					total.Violations = append(total.Violations, r.Violations...)
					total.failed = append(total.failed, s)
					t.Errorf("seed %d (-sim.seed=%d -sim.ops=%d): %s", s, s, *ops, r.Violations[0])
				}
				mu.Unlock()
			}
		})
	}
	for k := range n {
		next <- from + uint64(k)
	}
	close(next)
	wg.Wait()
	return total
}
