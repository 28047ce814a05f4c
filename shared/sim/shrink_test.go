package sim_test

import (
	"slices"
	"testing"

	"holdfast/shared/sim"
)

// What is left of a failing run is short, fails in the same way, and is the same
// each time.
func TestAFailureIsShortenedAndReplays(t *testing.T) {
	fault := storeFaults()[1]
	c := sim.Config{Seed: 1, Ops: 600, Plant: &fault.plant, NoRepair: true}
	whole := sim.Run(t, c)
	if len(whole.Violations) == 0 {
		t.Fatal("the planted fault is not found")
	}
	short, result := sim.Shrink(t, c, 300)
	if len(short.Script) > 20 {
		t.Errorf("%d operations are left of %d", len(short.Script), len(whole.Script))
	}
	if !slices.Contains(result.Broken(), whole.Violations[0].Invariant) {
		t.Errorf("%v was shortened to %v", whole.Violations[0], result.Violations)
	}
	if again := sim.Run(t, short); again.Trace != result.Trace || len(again.Lines) != len(result.Lines) {
		t.Errorf("the shortened run has trace %x, then %x", result.Trace, again.Trace)
	}
	t.Logf("%d operations left, %d lines of trace", len(short.Script), len(result.Lines))
}
