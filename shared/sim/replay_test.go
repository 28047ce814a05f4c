package sim_test

import (
	"testing"

	"holdfast/shared/sim"
)

// Two runs of one seed are the same run: every event at the same moment.
func TestARunReplays(t *testing.T) {
	for seed := uint64(1); seed <= 8; seed++ {
		a := sim.Run(t, sim.Config{Seed: seed, Ops: 500, Keep: true})
		b := sim.Run(t, sim.Config{Seed: seed, Ops: 500, Keep: true})
		if a.Trace == b.Trace {
			continue
		}
		t.Errorf("seed %d gave two different runs", seed)
		for i := range a.Lines {
			if i >= len(b.Lines) || a.Lines[i] != b.Lines[i] {
				t.Logf("line %d\n%s\n%s", i, a.Lines[i], b.Lines[min(i, len(b.Lines)-1)])
				break
			}
		}
	}
}
