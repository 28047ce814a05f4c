package sim

import "time"

// bell wakes one poller that has nothing to do, so that it need not look again
// and again. Who rings it decides when the poller wakes, at a moment of its own
// like everybody else. All fields are used with the world's lock held.
type bell struct {
	waiting bool
	ring    chan time.Time
}

func newBell() *bell { return &bell{ring: make(chan time.Time, 1)} }

// rung wakes the poller, if it waits, a moment from now.
func (w *World) rung(b *bell) {
	if b.waiting {
		b.waiting = false
		b.ring <- w.slot(w.now().Add(3 * time.Millisecond))
	}
}

// await sleeps until the bell rings or a moment comes.
func (p *Process) await(b *bell, until time.Time) {
	w := p.w
	w.mu.Lock()
	at := w.slot(until)
	b.waiting = true
	w.mu.Unlock()
	timer := time.NewTimer(at.Sub(w.now()))
	defer timer.Stop()
	select {
	case early := <-b.ring:
		p.sleepUntil(early)
		w.mu.Lock()
		delete(w.taken, at.UnixNano())
		w.mu.Unlock()
	case <-timer.C:
		w.mu.Lock()
		delete(w.taken, at.UnixNano())
		b.waiting = false
		w.mu.Unlock()
	}
}
