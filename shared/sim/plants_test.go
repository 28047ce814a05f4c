package sim_test

import (
	"slices"
	"testing"

	"holdfast/shared/sim"
)

// planted is a fault that somebody could build in, and the invariants by which
// it is found.
type planted struct {
	name       string
	known      uint64 // a seed by which it is found; 0: one of the first
	invariants []int
	alone      bool // without repair, which would heal it
	plant      sim.Plant
}

// The simulation can fail: each of these faults is found within 200 seeds.
func TestPlantedFaultsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	faults := slices.Concat(pipelineFaults(), storeFaults(), repairFaults(), freshnessFaults())
	if len(faults) < 25 {
		t.Errorf("only %d faults are planted", len(faults))
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range f.order() {
				c := sim.Config{Seed: seed, Ops: 600, NoRepair: f.alone}
				planted := c
				planted.Plant = &f.plant
				for _, v := range sim.Run(t, planted).Violations {
					if !slices.Contains(f.invariants, v.Invariant) {
						continue
					}
					if sound := sim.Run(t, c); len(sound.Violations) > 0 {
						t.Fatalf("seed %d finds something without the fault as well: %s", seed, sound.Violations[0])
					}
					t.Logf("seed %d, invariant %d: %s", seed, v.Invariant, v.What)
					return
				}
			}
			t.Error("not found within 200 seeds")
		})
	}
}

// order is that in which seeds are tried: first the one that is known to find
// the fault, then 200 in a row.
func (f planted) order() []uint64 {
	seeds := []uint64{max(f.known, 1)}
	for seed := uint64(1); seed <= 200; seed++ {
		seeds = append(seeds, seed)
	}
	return seeds
}

// Without repair nothing is lost either, unless the stream or the queue lose it.
func TestSeedsWithoutRepair(t *testing.T) {
	n := 20
	if testing.Short() {
		n = 3
	}
	sweep(t, 1, n, func(t *testing.T, seed uint64) sim.Result {
		return sim.Run(t, sim.Config{Seed: seed, Ops: 1000, NoRepair: true})
	})
}
