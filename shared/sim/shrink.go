package sim

import (
	"reflect"
	"slices"
	"testing"

	"holdfast/shared/doc"
)

// Shrink looks for a shorter script, and for fewer kinds of fault, by which the
// first violated invariant of a run is still violated, in at most so many runs.
// It gives what is to be run and the result of that, with its trace.
func Shrink(t *testing.T, c Config, most int) (Config, Result) {
	failing := Run(t, c)
	if len(failing.Violations) == 0 {
		return c, failing
	}
	invariant := failing.Violations[0].Invariant
	c.Script = failing.Script
	rates := drawRates(NewWorld(c.Seed, nil).random("run"))
	if c.Rates != nil {
		rates = *c.Rates
	}
	c.Rates = &rates
	fails := func(c Config) bool {
		most--
		return most >= 0 && slices.Contains(Run(t, c).Broken(), invariant)
	}
	failsWith := func(ops []Op) bool {
		shorter := c
		shorter.Script = ops
		return fails(shorter)
	}
	// What begins after the violation has not caused it, unless that was found
	// at the end; and most ids and kinds of operation have nothing to do with it.
	over := failing.Violations[0].At.Sub(failing.Began)
	c.Script = without(c.Script, failsWith, func(op Op) bool { return op.At > over })
	for kind := range opKinds {
		c.Script = without(c.Script, failsWith, func(op Op) bool { return op.Kind == kind })
	}
	for _, id := range idsOf(c.Script) {
		c.Script = without(c.Script, failsWith, func(op Op) bool { return op.ID == id })
	}
	c.Script = shorter(c.Script, failsWith)
	for _, calmer := range calmer(rates) {
		next := c
		kept := *c.Rates
		calmer(&kept)
		next.Rates = &kept
		if kept != *c.Rates && fails(next) {
			c = next
		}
	}
	c.Keep = true
	return c, Run(t, c)
}

// without leaves out some operations, if it still fails.
func without(ops []Op, fails func([]Op) bool, some func(Op) bool) []Op {
	rest := slices.DeleteFunc(slices.Clone(ops), some)
	if len(rest) < len(ops) && fails(rest) {
		return rest
	}
	return ops
}

func idsOf(ops []Op) []doc.ID {
	ids := map[doc.ID]bool{}
	for _, op := range ops {
		ids[op.ID] = true
	}
	return sortedKeys(ids)
}

// shorter leaves out what it can: halves, quarters and so on, down to single
// operations.
func shorter(ops []Op, fails func([]Op) bool) []Op {
	for size := len(ops) / 2; size > 0; size /= 2 {
		for at := 0; at < len(ops); {
			without := append(slices.Clone(ops[:at]), ops[min(at+size, len(ops)):]...)
			if fails(without) {
				ops = without
				continue
			}
			at += size
		}
	}
	return ops
}

// calmer are the ways to have one kind of fault less.
func calmer(rates Rates) []func(*Rates) {
	var all []func(*Rates)
	for field := range reflect.TypeOf(rates).NumField() {
		all = append(all, func(r *Rates) { reflect.ValueOf(r).Elem().Field(field).SetZero() })
	}
	return all
}
