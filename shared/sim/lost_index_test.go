package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/sim"
)

// losing is a script in which the one index that there is gets lost, at whatever
// moment, while clients write and ask for everything as of now.
func losing(seed uint64) []sim.Op {
	r := rand.New(rand.NewPCG(seed, 0))
	var ops []sim.Op
	add := func(at time.Duration, actor int, kind sim.OpKind) {
		ops = append(ops, sim.Op{N: len(ops), At: at, Actor: actor, Kind: kind, ID: doc.ID(fmt.Sprintf("users/%d", r.IntN(30))), Arg: 1})
	}
	for range 40 {
		add(0, 0, sim.Put)
	}
	const proven = 4 * time.Minute // by then
	for at := proven; at < proven+4*time.Minute; at += time.Duration(r.IntN(3000)) * time.Millisecond {
		actor := r.IntN(4)
		if r.IntN(4) == 0 {
			add(at, actor, sim.Put)
			continue
		}
		add(at, actor, sim.AsOf)
	}
	for range 1 + r.IntN(2) {
		ops = append(ops, sim.Op{N: len(ops), At: proven + time.Duration(r.IntN(200_000))*time.Millisecond, Actor: 4, Kind: sim.LoseIndex, Arg: 1})
	}
	return ops
}

// However an index is lost, and made again by whoever meets that first, no answer
// takes it for the one that was proven.
func TestALostIndexIsNotTakenForTheProvenOne(t *testing.T) {
	n := 60
	if testing.Short() {
		n = 10
	}
	total := sweep(t, 1, n, func(t *testing.T, seed uint64) sim.Result {
		c := sim.Config{Seed: seed, Script: losing(seed)}
		if seed%2 == 0 {
			c.Rates = &sim.Rates{}
		}
		return sim.Run(t, c)
	})
	// That nothing is known is no answer to be content with.
	if asked := total.Faults["lose-index"]; asked < n || total.Fresh < 10*n {
		t.Errorf("%d indexes were lost, %d answers were not stale", asked, total.Fresh)
	}
	t.Logf("%d indexes were lost, %d answers were not stale", total.Faults["lose-index"], total.Fresh)
}
