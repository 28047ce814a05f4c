package sim_test

import (
	"testing"

	"holdfast/shared/sim"
)

// A process may crash before and after each of its calls to an engine. Short
// scripts without any other fault are run once for every such place.
func TestACrashAtEveryPlace(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	for _, part := range []struct {
		name     string
		ops      int
		noRepair bool
		seeds    uint64
	}{
		{"the pipeline", 25, true, 4},
		{"repair beside it", 25, false, 2},
	} {
		t.Run(part.name, func(t *testing.T) {
			for seed := uint64(1); seed <= part.seeds; seed++ {
				c := sim.Config{Seed: seed, Ops: part.ops, Rates: &sim.Rates{}, NoRepair: part.noRepair}
				calm := sim.Run(t, c)
				if len(calm.Violations) > 0 || calm.Points < part.ops {
					t.Fatalf("seed %d without a crash: %d places, %v", seed, calm.Points, calm.Violations)
				}
				crashes := 0
				for c.Crash = 1; c.Crash <= calm.Points; c.Crash++ {
					r := sim.Run(t, c)
					crashes += r.Faults["crash"]
					if len(r.Violations) > 0 {
						t.Fatalf("seed %d, a crash at place %d: %s", seed, c.Crash, r.Violations[0])
					}
				}
				t.Logf("seed %d: %d places, %d crashes", seed, calm.Points, crashes)
				if crashes < calm.Points*9/10 {
					t.Errorf("seed %d: only %d crashes", seed, crashes)
				}
			}
		})
	}
}
