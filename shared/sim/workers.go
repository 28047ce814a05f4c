package sim

import "sync"

// workers are goroutines that wait for something to do: their stacks have grown
// already, which is what most of a short process's time would go to. A process
// that crashes takes its goroutine with it.
type workers struct {
	mu   sync.Mutex
	idle []chan func()
	over bool
}

// work does something in a goroutine of its own. Which one makes no difference.
func (w *World) work(do func()) {
	w.workers.mu.Lock()
	defer w.workers.mu.Unlock()
	if n := len(w.workers.idle); n > 0 {
		w.workers.idle[n-1] <- do
		w.workers.idle = w.workers.idle[:n-1]
		return
	}
	jobs := make(chan func(), 1)
	jobs <- do
	go func() {
		for do := range jobs {
			do()
			if !w.rests(jobs) {
				return
			}
		}
	}()
}

// rests puts a worker among the idle ones, unless the world has ended.
func (w *World) rests(jobs chan func()) bool {
	w.workers.mu.Lock()
	defer w.workers.mu.Unlock()
	if !w.workers.over {
		w.workers.idle = append(w.workers.idle, jobs)
	}
	return !w.workers.over
}

// dismiss ends the workers.
func (w *World) dismiss() {
	w.workers.mu.Lock()
	defer w.workers.mu.Unlock()
	w.workers.over = true
	for _, jobs := range w.workers.idle {
		close(jobs)
	}
	w.workers.idle = nil
}
