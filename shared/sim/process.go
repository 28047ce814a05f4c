package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"
)

// Engine names what a call goes to.
type Engine int

// The engines.
const (
	TableEngine Engine = iota
	StateEngine
	QueueEngine
	IndexEngine
	engines
)

func (e Engine) String() string { return [...]string{"table", "state", "queue", "index"}[e] }

// Process is one thread of work: a request of a client, an invocation of a
// function, a poller. A nil Process is that of the conformance suites, outside
// of any run: its calls never fail and take no time.
type Process struct {
	w    *World
	name string
	rng  *rand.Rand

	skew    *time.Duration // of its clock; nil: none
	mortal  bool           // may crash
	immune  bool           // its calls never fail: it is no part of the system
	dead    bool
	kill    time.Time // when the platform ends it; zero: never
	injured int       // faults that it was dealt
}

// spawn begins a process after a delay. It does not run before its beginner
// sleeps. ended, if not nil, is called at its end, however it ended.
func (w *World) spawn(name string, delay time.Duration, set func(*Process), run func(*Process), ended func(p *Process, finished bool)) {
	w.mu.Lock()
	n := w.spawned[name]
	w.spawned[name]++
	p := &Process{w: w, name: name, rng: w.random(fmt.Sprintf("%s/%d", name, n))}
	if set != nil {
		set(p)
	}
	at := w.slot(w.now().Add(delay + time.Microsecond))
	w.mu.Unlock()
	w.running.Add(1)
	w.work(func() {
		finished := false
		defer func() {
			p.dead = !finished
			if ended != nil {
				ended(p, finished)
			}
			w.running.Done()
		}()
		p.sleepUntil(at)
		run(p)
		finished = true
	})
}

// sleepUntil sleeps until a slot and ends the process when its time is over.
func (p *Process) sleepUntil(at time.Time) {
	if p.kill.IsZero() || !at.After(p.kill) {
		time.Sleep(at.Sub(p.w.now()))
		p.w.mu.Lock()
		delete(p.w.taken, at.UnixNano())
		p.w.mu.Unlock()
		return
	}
	p.w.mu.Lock()
	delete(p.w.taken, at.UnixNano())
	at = p.w.slot(p.kill)
	p.w.mu.Unlock()
	time.Sleep(at.Sub(p.w.now()))
	p.w.mu.Lock()
	delete(p.w.taken, at.UnixNano())
	p.w.note(p.name, "is out of time")
	p.w.mu.Unlock()
	p.die()
}

// die ends the process where it stands.
func (p *Process) die() {
	p.dead = true
	runtime.Goexit()
}

// sleep lets time pass.
func (p *Process) sleep(d time.Duration) {
	p.w.mu.Lock()
	at := p.w.slot(p.w.now().Add(d))
	p.w.mu.Unlock()
	p.sleepUntil(at)
}

// Now is the time by the process's clock.
func (p *Process) Now() time.Time {
	if p.skew == nil {
		return p.w.now()
	}
	return p.w.now().Add(*p.skew)
}

// chance is true with a probability.
func (p *Process) chance(of float64) bool { return of > 0 && p.rng.Float64() < of }

// verdict is what becomes of one call.
type verdict int

const (
	told      verdict = iota
	failed            // not applied
	throttled         // not applied, and the engine says so
	lost              // applied, but there is no answer
	ended             // the caller's context ended first; applied or not
)

func (v verdict) String() string {
	return [...]string{"", " FAILED", " THROTTLED", " LOST", " ENDED"}[v]
}

// crashPlan says where a process is to crash, for runs that go through all
// places one by one.
type crashPlan struct {
	at int // the number of the place, from 1; 0: nowhere
}

// point is a place where a process can crash.
func (p *Process) point() {
	w := p.w
	if !p.mortal {
		return
	}
	w.points++
	if w.points != w.crash.at && !p.chance(w.rates.Crash) {
		return
	}
	w.faults["crash"]++
	w.note(p.name, "CRASHES")
	w.mu.Unlock()
	p.die()
}

// call makes one call to an engine: it takes its time, may fail in one of
// several ways or be the end of the process, and else carries out apply, alone.
// kind is a constant that names the call in traces.
func (w *World) call(ctx context.Context, p *Process, e Engine, kind string, mutates bool, apply func()) verdict {
	if p == nil {
		if ctx.Err() != nil {
			return ended
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		apply()
		return told
	}
	if p.dead {
		return failed
	}
	if ctx.Err() != nil {
		return ended
	}
	w.mu.Lock()
	p.point()
	fate := p.fate(e, mutates)
	reach, back := p.latency(e, mutates)
	at, cut := p.arrival(ctx, reach)
	w.mu.Unlock()
	p.sleepUntil(at)
	w.mu.Lock()
	switch {
	case cut || ctx.Err() != nil:
		if fate = ended; mutates && p.chance(0.5) {
			apply()
		}
	case fate == failed || fate == throttled:
	default:
		apply()
	}
	if mutates && fate == failed && (e == IndexEngine || e == StateEngine) && p.chance(w.rates.Ghost) {
		w.ghost(p, apply)
	}
	w.note(p.name, kind+fate.String())
	if fate != told {
		p.injured++
		w.faults[e.String()+fate.String()]++
	}
	p.point()
	if back == 0 {
		w.mu.Unlock()
		return fate
	}
	at, cut = p.arrival(ctx, back)
	w.mu.Unlock()
	p.sleepUntil(at)
	if cut {
		p.injured++
		return ended
	}
	return fate
}

// ghost lets a request arrive that was given up: minutes after, whoever sent it.
func (w *World) ghost(p *Process, apply func()) {
	d := time.Duration(p.rng.IntN(180_000)) * time.Millisecond
	w.faults["ghost"]++
	w.mu.Unlock()
	w.spawn("ghost", d, func(g *Process) { g.immune = true }, func(g *Process) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.note(g.name, "arrives")
		apply()
	}, nil)
	w.mu.Lock()
}

// arrival is the moment after d, or that of the context's end if that is sooner.
func (p *Process) arrival(ctx context.Context, d time.Duration) (at time.Time, cut bool) {
	now := p.w.now()
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(now.Add(d)) {
		return p.w.slot(deadline.Add(time.Nanosecond)), true
	}
	return p.w.slot(now.Add(d)), false
}
