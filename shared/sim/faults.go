package sim

import (
	"math/rand/v2"
	"time"
)

// Rates are how likely things go wrong, each per call or per entry. The zero
// value is a world without faults.
type Rates struct {
	Fail, Lost, Throttle [engines]float64
	Slow, Stall, Crash   float64
	Ghost                float64 // of a change that failed: it arrives minutes later

	Partial     float64       // of an index request: some items fail
	Unprocessed float64       // of a read of many: a part is not told
	FeedLate    float64       // of a change: late in the feed
	FeedMost    time.Duration // how late at most
	DropRecord  float64       // of a stream record: it never comes
	AgainRecord float64       // of a batch of records: it comes again
	DropMessage float64
	AgainMessage,
	LateMessage float64
	LateMost time.Duration // how late a message is at most
}

// drawRates chooses what a run has to endure. Most runs have most kinds of
// fault, few have all, so that none hides behind another.
func drawRates(r *rand.Rand) Rates {
	some := func(most float64) float64 {
		if r.IntN(3) == 0 {
			return 0
		}
		x := r.Float64()
		return most * x * x
	}
	var f Rates
	for e := range engines {
		f.Fail[e], f.Lost[e], f.Throttle[e] = some(0.1), some(0.1), some(0.1)
	}
	f.Fail[IndexEngine] *= 3
	f.Throttle[IndexEngine] *= 3
	f.Slow, f.Stall, f.Crash = some(0.1), some(0.002), some(0.01)
	f.Ghost = some(0.5)
	f.Partial, f.Unprocessed = some(0.3), some(0.1)
	f.FeedLate, f.FeedMost = some(0.3), time.Duration(r.IntN(60_000))*time.Millisecond
	f.DropRecord, f.AgainRecord = some(0.02), some(0.2)
	f.DropMessage, f.AgainMessage, f.LateMessage = some(0.02), some(0.2), some(0.2)
	f.LateMost = time.Duration(1+r.IntN(600)) * time.Second
	if r.IntN(8) == 0 {
		f.LateMost = time.Duration(1+r.IntN(14*24)) * time.Hour
	}
	return f
}

// latency is how long a call takes to reach the engine, and its answer to come
// back.
func (p *Process) latency(e Engine, mutates bool) (reach, back time.Duration) {
	f := &p.w.rates
	reach = time.Duration(500_000 + p.rng.IntN(8_000_000))
	if e == IndexEngine {
		reach += time.Duration(p.rng.IntN(30_000_000))
	}
	if mutates && p.rng.IntN(4) == 0 {
		back = time.Duration(500_000 + p.rng.IntN(20_000_000))
	}
	if p.immune {
		return reach, back
	}
	switch {
	case p.chance(f.Stall):
		back += time.Duration(1+p.rng.IntN(600)) * time.Second
	case p.chance(f.Slow):
		reach += time.Duration(p.rng.IntN(3_000)) * time.Millisecond
	}
	return reach, back
}

// fate decides what becomes of a call.
func (p *Process) fate(e Engine, mutates bool) verdict {
	w := p.w
	if p.immune {
		return told
	}
	if until, out := w.outages[e]; out && w.now().Before(until) {
		if p.rng.IntN(3) == 0 {
			return throttled
		}
		return failed
	}
	f := &w.rates
	switch {
	case p.chance(f.Throttle[e]):
		return throttled
	case p.chance(f.Fail[e]):
		return failed
	case mutates && p.chance(f.Lost[e]):
		return lost
	}
	return told
}
