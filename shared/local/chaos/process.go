package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process keeps a stack running in a process of its own: one that ends is
// followed by the next.
type process struct {
	command func() *exec.Cmd
	config  config
	log     *os.File         // gets the standard error of all of them
	serves  func(url string) // told where the stack serves, each time

	mu       sync.Mutex
	runs     *os.Process // nil: none
	ready    bool        // it serves
	killed   bool        // it was killed, by us
	halted   bool
	stopping bool
	changed  chan struct{} // closed and replaced at each change
	lives    int           // that served
	failed   int           // that did not get so far
	crashes  []string      // ends of those that served and were not killed
	ended    chan struct{}
}

// restartPause is how long an ended stack stays away, at least.
const restartPause = 300 * time.Millisecond

func newProcess(p *process) *process {
	p.changed, p.ended = make(chan struct{}), make(chan struct{})
	go p.supervise()
	return p
}

func (p *process) supervise() {
	defer close(p.ended)
	for {
		served, err := p.live()
		p.mu.Lock()
		switch {
		case p.stopping || p.killed:
		case served:
			p.crashes = append(p.crashes, err.Error())
		default: // an engine that it needs to start is away
			p.failed++
		}
		p.runs, p.ready, p.killed = nil, false, false
		p.change()
		p.mu.Unlock()
		time.Sleep(restartPause)
		p.mu.Lock()
		for p.halted && !p.stopping {
			p.wait(context.Background())
		}
		done := p.stopping
		p.mu.Unlock()
		if done {
			return
		}
	}
}

// live is one process, from its start to its end.
func (p *process) live() (served bool, err error) {
	cmd := p.command()
	cmd.Stderr = p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C at the terminal is not for it
	in, err := cmd.StdinPipe()
	if err != nil {
		return false, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	p.mu.Lock()
	p.runs = cmd.Process
	done := p.stopping
	p.change()
	p.mu.Unlock()
	if !done {
		if err := json.NewEncoder(in).Encode(p.config); err != nil {
			_ = cmd.Process.Kill()
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			url, ok := strings.CutPrefix(lines.Text(), readyMark)
			if !ok {
				continue
			}
			served = true
			p.serves(url)
			p.mu.Lock()
			p.ready = true
			p.lives++
			p.change()
			p.mu.Unlock()
		}
	}
	_ = in.Close() // where it still lives, it ends by that
	if err = cmd.Wait(); err == nil {
		err = errors.New("it ended by itself")
	}
	return served, err
}

// change wakes who waits. The mutex is held.
func (p *process) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// wait waits for a change; the mutex is held before and after.
func (p *process) wait(ctx context.Context) {
	changed := p.changed
	p.mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
	p.mu.Lock()
}

// await returns when the stack serves.
func (p *process) await(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.ready && !p.stopping && ctx.Err() == nil {
		p.wait(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the stack does not serve; %d starts failed, see its log: %w", p.failed, ctx.Err())
	case p.stopping:
		return errors.New("the stack was stopped")
	}
	return nil
}

// kill ends the stack at once, if it runs, and keeps it down until resume.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halted = true
	now := p.runs
	if now == nil {
		return
	}
	p.killed = true
	_ = now.Kill() // it may have ended
	for p.runs == now {
		p.wait(context.Background())
	}
}

func (p *process) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halted = false
	p.change()
}

// stop ends the stack for good. Its data is of no further use to a run, so
// nobody waits for an orderly end.
func (p *process) stop() {
	p.mu.Lock()
	p.stopping = true
	p.change()
	if p.runs != nil {
		_ = p.runs.Kill() // it may have ended
	}
	p.mu.Unlock()
	<-p.ended
}

// figures are how many processes served, how many did not get so far, and how
// those ended that served and were not killed.
func (p *process) figures() (lives, failed int, crashes []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lives, p.failed, p.crashes
}
