package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/store"
)

// World is everything that the processes of one run share: the engines, the
// faults, and the record of what happened.
//
// It runs inside a bubble of testing/synctest, whose clock stands still while
// anybody runs. Each process sleeps before it touches an engine, and no two wake
// at the same nanosecond; so one process runs at a time, in an order that the
// seed alone decides, without a scheduler that production code would have to
// know of. Timers and deadlines of production code follow the same clock.
type World struct {
	mu   sync.Mutex
	seed uint64
	now  func() time.Time

	Table *Table
	State *Registry
	Queue *Queue
	Index *Index

	rates   Rates
	outages map[Engine]time.Time // engines that do not answer, until when
	crash   crashPlan
	points  int // places met so far where a crash can happen

	crashable int // of these, before the faults ended

	taken    map[int64]bool // moments at which somebody wakes
	spawned  map[string]int
	running  sync.WaitGroup
	workers  workers
	stopping bool
	draining bool      // nothing happens any more but old messages coming
	asleep   time.Time // until when all functions are switched off

	margin    time.Duration // of the store and of repair
	lossCount int           // indexes lost so far
	repairs   bool          // repair runs

	trace  uint64
	lines  []string
	keep   bool // lines are kept
	events int

	faults     map[string]int
	violations []Violation
	fresh      int // answers that were not stale
}

// Violation is an invariant that did not hold.
type Violation struct {
	Invariant int // 1 to 7
	At        time.Time
	What      string
}

func (v Violation) String() string {
	return fmt.Sprintf("invariant %d at %s: %s", v.Invariant, v.At.Format("01-02 15:04:05.000"), v.What)
}

// NewWorld makes a world with empty engines and no faults. now may be nil for
// time.Now, which in a bubble is virtual.
func NewWorld(seed uint64, now func() time.Time) *World {
	if now == nil {
		now = time.Now
	}
	w := &World{
		seed: seed, now: now, taken: map[int64]bool{}, spawned: map[string]int{},
		outages: map[Engine]time.Time{}, faults: map[string]int{}, trace: fnvOffset,
		margin: store.DefaultFeedMargin,
	}
	w.Table = newTable(w)
	w.State = newRegistry(w)
	w.Queue = newQueue(w)
	w.Index = newIndex(w)
	return w
}

// random is a source of chance of its own for a purpose. What it gives depends
// on the seed and the purpose only, so that leaving out a part of a run changes
// as little of the rest as possible.
func (w *World) random(purpose string) *rand.Rand {
	h := uint64(fnvOffset)
	for i := range len(purpose) {
		h = (h ^ uint64(purpose[i])) * fnvPrime
	}
	return rand.New(rand.NewPCG(w.seed*0x9e3779b97f4a7c15+1, h))
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// note adds an event to the trace.
func (w *World) note(who, what string) {
	w.events++
	h := w.trace ^ uint64(w.now().UnixNano())
	h *= fnvPrime
	for i := range len(who) {
		h = (h ^ uint64(who[i])) * fnvPrime
	}
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * fnvPrime
	}
	w.trace = h
	if w.keep {
		w.lines = append(w.lines, fmt.Sprintf("%s %-12s %s", w.now().Format("02 15:04:05.000000"), who, what))
	}
}

// tell adds a line for people to a kept trace; format is not evaluated else.
func (w *World) tell(who, format string, args ...any) {
	if w.keep {
		w.note(who, fmt.Sprintf(format, args...))
	}
}

// violate records that an invariant did not hold. The first ones matter; the
// rest usually follow from them.
func (w *World) violate(invariant int, format string, args ...any) {
	if len(w.violations) >= 20 {
		return
	}
	v := Violation{Invariant: invariant, At: w.now(), What: fmt.Sprintf(format, args...)}
	w.violations = append(w.violations, v)
	if w.keep {
		w.lines = append(w.lines, "VIOLATED "+v.String())
	}
}

// slot reserves a moment, at or just after t, at which nobody else wakes.
func (w *World) slot(t time.Time) time.Time {
	n := t.UnixNano()
	for w.taken[n] {
		n++
	}
	w.taken[n] = true
	return time.Unix(0, n)
}

// short names versions in traces by what differs.
func short(v doc.Version) string {
	s := v.String()
	if len(s) > 10 {
		s = s[len(s)-10:]
	}
	return strings.TrimLeft(s, "0")
}

// paused tells whether all functions are switched off.
func (w *World) paused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now().Before(w.asleep)
}
