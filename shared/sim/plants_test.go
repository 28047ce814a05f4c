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
			for seed := uint64(1); seed <= 200; seed++ {
				r := sim.Run(t, sim.Config{Seed: seed, Ops: 600, Plant: &f.plant, NoRepair: f.alone})
				for _, v := range r.Violations {
					if slices.Contains(f.invariants, v.Invariant) {
						t.Logf("seed %d: %s", seed, v)
						return
					}
				}
				if len(r.Violations) > 0 {
					t.Logf("seed %d: %s, which is not what is expected", seed, r.Violations[0])
				}
			}
			t.Error("not found within 200 seeds")
		})
	}
}

// Without repair nothing is lost either, unless the stream or the queue lose it.
func TestSeedsWithoutRepair(t *testing.T) {
	sweep(t, 1, 20, func(t *testing.T, seed uint64) sim.Result {
		return sim.Run(t, sim.Config{Seed: seed, Ops: 1000, NoRepair: true})
	})
}
