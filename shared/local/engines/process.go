package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// command is how an engine's process is started and told to serve.
type command struct {
	name Name
	path string
	args []string
	dir  string // working directory
	log  string // file that gets its output
	url  string
	say  func(string)

	ready  func(ctx context.Context) error // nil once it serves; asked again and again
	says   string                          // what its output has to have by then; "": nothing
	within time.Duration                   // how long that may take
	tune   func(ctx context.Context) error // done after each start, once it serves; nil: nothing
}

// Pauses before a dead engine is started again: they double from the first to
// the last and begin anew after an engine that had lived.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 5 * time.Second
	hasLived   = 20 * time.Second
	askEvery   = 50 * time.Millisecond
)

// process is an engine in a process of its own, under supervision. It has its
// own process group, so that a Ctrl-C at the terminal reaches only its parent,
// which then stops it in order.
type process struct {
	c command

	mu       sync.Mutex
	state    State
	pid      int
	restarts int
	changed  chan struct{} // closed and replaced at each change of state
	stopping bool
	halted   bool
	wake     chan struct{} // ends a pause
	ended    chan struct{} // closed when supervision is over
}

// startProcess starts the engine and waits until it serves. A process that
// ends or does not serve in time is an error, with the end of its log.
func startProcess(ctx context.Context, c command) (*process, error) {
	p := &process{c: c, state: Starting, changed: make(chan struct{}), wake: make(chan struct{}, 1), ended: make(chan struct{})}
	first := make(chan error, 1)
	go p.supervise(first)
	select {
	case err := <-first:
		if err != nil {
			p.stop(0)
			return nil, fmt.Errorf("%w; its log %s ends:\n%s", err, c.log, tail(c.log))
		}
		return p, nil
	case <-ctx.Done():
		p.stop(stopGrace)
		return nil, ctx.Err()
	}
}

// supervise runs the engine again and again until it is to stop. The outcome
// of the first start goes to first; if that failed, there is no second.
func (p *process) supervise(first chan<- error) {
	defer close(p.ended)
	pause := firstPause
	for {
		begun := time.Now()
		served, err := p.live(first)
		if first != nil {
			if !served {
				p.set(Stopped, 0)
				first <- err
				return
			}
			first = nil // live has reported it
		}
		if p.isStopping() {
			p.set(Stopped, 0)
			return
		}
		p.set(Down, 0)
		p.c.say(fmt.Sprintf("%s ended (%v); it will be started again", p.c.name, err))
		if time.Since(begun) > hasLived {
			pause = firstPause
		}
		p.pause(pause)
		pause = min(2*pause, lastPause)
		if p.isStopping() {
			p.set(Stopped, 0)
			return
		}
		p.mu.Lock()
		p.restarts++
		p.mu.Unlock()
	}
}

// live is one life of the process, from start to end. It returns why it ended
// and whether it had served.
func (p *process) live(first chan<- error) (served bool, why error) {
	log, err := OpenLog(p.c.log)
	if err != nil {
		return false, err
	}
	defer log.Close()
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return false, err
	}
	cmd := exec.Command(p.c.path, p.c.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.c.dir, log, log
	child, err := startBound(cmd)
	if err != nil {
		return false, err
	}
	p.set(Starting, child.pid)
	if p.isStopping() { // stop came between the last look and the start, and had nobody to signal
		child.signal(syscall.SIGKILL)
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.c.within)
	defer cancel()
	serves := make(chan error, 1)
	go func() { serves <- p.awaitServing(ctx, from) }()
	select {
	case why = <-child.exited:
		return false, fmt.Errorf("before it served: %w", exitError(why))
	case err := <-serves:
		if err != nil {
			child.signal(syscall.SIGKILL)
			<-child.exited
			return false, err
		}
	}
	p.set(Ready, child.pid)
	if first != nil {
		first <- nil
	} else {
		p.c.say(fmt.Sprintf("%s serves again", p.c.name))
	}
	why = <-child.exited
	return true, exitError(why)
}

// awaitServing asks until the engine serves and has been tuned. Its output
// begins at an offset of the log.
func (p *process) awaitServing(ctx context.Context, from int64) error {
	for {
		err := p.c.ready(ctx)
		if err == nil && p.c.says != "" {
			err = hasSaid(p.c.log, from, p.c.says)
		}
		if err == nil && p.c.tune != nil {
			err = p.c.tune(ctx)
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("does not serve after %s: %w", p.c.within, err)
		case <-time.After(askEvery):
		}
	}
}

// hasSaid looks for a text in a log after an offset.
func hasSaid(log string, from int64, text string) error {
	f, err := os.Open(log)
	if err != nil {
		return err
	}
	defer f.Close()
	said, err := io.ReadAll(io.NewSectionReader(f, from, logLimit))
	if err != nil {
		return err
	}
	if !bytes.Contains(said, []byte(text)) {
		return fmt.Errorf("it has not said %q", text)
	}
	return nil
}

// pause waits, and goes on waiting while the engine is halted.
func (p *process) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.wake:
	}
	for {
		p.mu.Lock()
		wait := p.halted && !p.stopping
		p.mu.Unlock()
		if !wait {
			return
		}
		<-p.wake
	}
}

func (p *process) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *process) isStopping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopping
}

func (p *process) set(s State, pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.pid = s, pid
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *process) status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Status{Name: p.c.name, State: p.state, URL: p.c.url, PID: p.pid, Restarts: p.restarts, Log: p.c.log}
}

func (p *process) await(ctx context.Context) error {
	for {
		p.mu.Lock()
		state, changed := p.state, p.changed
		p.mu.Unlock()
		switch state {
		case Ready:
			return nil
		case Stopped:
			return fmt.Errorf("%s was stopped", p.c.name)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s is %s: %w", p.c.name, state, ctx.Err())
		}
	}
}

// kill returns once the life that it ended is over.
func (p *process) kill(stayDown bool) error {
	p.mu.Lock()
	p.halted = stayDown
	pid := p.pid
	p.mu.Unlock()
	if pid == 0 {
		return nil // down already
	}
	signalGroup(pid, syscall.SIGKILL)
	for {
		p.mu.Lock()
		now, changed := p.pid, p.changed
		p.mu.Unlock()
		if now != pid {
			return nil
		}
		<-changed
	}
}

func (p *process) resume() {
	p.mu.Lock()
	p.halted = false
	p.mu.Unlock()
	p.nudge()
}

func (p *process) stop(grace time.Duration) {
	p.mu.Lock()
	p.stopping = true
	pid := p.pid
	p.mu.Unlock()
	p.nudge()
	if pid != 0 {
		signalGroup(pid, syscall.SIGTERM)
	}
	select {
	case <-p.ended:
		return
	case <-time.After(grace):
	}
	p.mu.Lock()
	pid = p.pid
	p.mu.Unlock()
	if pid != 0 {
		signalGroup(pid, syscall.SIGKILL)
	}
	<-p.ended
}

// signalGroup signals a process group. That it may be gone is fine.
func signalGroup(pid int, s syscall.Signal) { _ = syscall.Kill(-pid, s) }

func exitError(err error) error {
	if err == nil {
		return errors.New("it ended by itself")
	}
	return err
}

// tail is the end of a log, for an error that a person reads.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const most = 8 << 10
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, 2)
	}
	buf := make([]byte, most)
	n, _ := f.Read(buf)
	return lastLines(string(buf[:n]), 20)
}
