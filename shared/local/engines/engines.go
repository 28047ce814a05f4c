// Package engines fetches, starts and looks after the real engines under the
// local stack and the tests: dynoxide (DynamoDB and its streams), ElasticMQ
// (SQS), OpenSearch and gofakes3 (S3).
//
// Engines are pinned, come through the ordinary package clients (npm, Maven)
// and are kept in a cache, so that only the very first start needs a network.
// Each runs on 127.0.0.1, on a port that it keeps for the life of its Set, and
// is started again on that port when it dies. None outlives the process that
// started it, however that process ends. Linux and macOS are supported.
//
// The package knows nothing of Holdfast itself.
package engines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Name is the name of an engine.
type Name string

// The engines, by what they stand in for.
const (
	DynamoDB   Name = "dynoxide"
	SQS        Name = "elasticmq"
	OpenSearch Name = "opensearch"
	S3         Name = "gofakes3"
)

// All is every engine, in the order of starting. They stop in reverse.
var All = []Name{DynamoDB, S3, SQS, OpenSearch}

// Region and Account are what the engines say of themselves.
const (
	Region  = "us-east-1"
	Account = "000000000000"
)

// Options of a Set. Dir is required.
type Options struct {
	Cache Cache
	Dir   string // holds data/<engine> and log/<engine>.log; made when missing
	Heap  string // of OpenSearch, as -Xmx takes it; "" means 512m

	// Say is told, one line at a time, what is fetched, started, lost and
	// started again. It may be called from several goroutines. Nil: nobody.
	Say func(line string)
}

// Set is a group of running engines with one data directory. Its methods may
// be called concurrently.
type Set struct {
	opts Options
	mu   sync.Mutex
	on   map[Name]*slot
	done bool
}

// slot is an engine's place in a set. Who holds starting may fill it.
type slot struct {
	starting sync.Mutex
	mu       sync.Mutex // of engine
	engine   engine
}

func (s *slot) get() engine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine
}

// engine is a started engine.
type engine interface {
	status() Status
	await(ctx context.Context) error
	kill(stayDown bool) error
	resume()
	stop(grace time.Duration)
}

// State is what an engine is doing.
type State string

// The states of an engine.
const (
	Starting State = "starting"
	Ready    State = "ready"
	Down     State = "down"    // died; it is started again after a pause
	Stopped  State = "stopped" // on request
)

// Status is an engine as it stands.
type Status struct {
	Name     Name
	State    State
	URL      string
	PID      int    // zero for S3, which runs in this process, and for an engine that is down
	Restarts int    // how often it had to be started again
	Log      string // the file with its output; "" for S3
}

// ErrNotStarted is returned for an engine that this set does not run.
var ErrNotStarted = errors.New("the engine was not started")

// NewSet makes an empty set over a directory. It starts nothing.
func NewSet(o Options) (*Set, error) {
	if o.Dir == "" {
		return nil, errors.New("engines need a directory for their data")
	}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.Heap == "" {
		o.Heap = "512m"
	}
	if o.Cache.Say == nil {
		o.Cache.Say = o.Say
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	o.Dir = dir
	for _, d := range []string{"data", "log"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, fmt.Errorf("data directory: %w", err)
		}
	}
	s := &Set{opts: o, on: map[Name]*slot{}}
	for _, n := range All {
		s.on[n] = &slot{}
	}
	return s, nil
}

// Start fetches what is missing and starts the named engines (none: all),
// side by side, and returns when each serves. Engines that run already are left
// alone. After an error, Stop ends those that did start.
//
// Tools that are missing are reported all at once as *MissingTools, before
// anything is fetched or started.
func (s *Set) Start(ctx context.Context, names ...Name) error {
	if len(names) == 0 {
		names = All
	}
	for _, n := range names {
		if s.on[n] == nil {
			return fmt.Errorf("there is no engine %q", n)
		}
	}
	parts, err := s.opts.Cache.Provide(ctx, names...)
	if err != nil {
		return err
	}
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, n := range names {
		wg.Go(func() {
			if err := s.start(ctx, n, parts); err != nil {
				errs[i] = fmt.Errorf("start %s: %w", n, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *Set) start(ctx context.Context, n Name, parts Parts) error {
	slot := s.on[n]
	slot.starting.Lock()
	defer slot.starting.Unlock()
	if e := slot.get(); e != nil {
		return e.await(ctx)
	}
	s.mu.Lock()
	done := s.done
	s.mu.Unlock()
	if done {
		return errors.New("the engines were stopped")
	}
	begun := time.Now()
	e, err := s.launch(ctx, n, parts)
	if err != nil {
		return err
	}
	slot.mu.Lock()
	slot.engine = e
	slot.mu.Unlock()
	s.opts.Say(fmt.Sprintf("%s serves %s after %.1f s", n, e.status().URL, time.Since(begun).Seconds()))
	return nil
}

func (s *Set) launch(ctx context.Context, n Name, parts Parts) (engine, error) {
	dir := filepath.Join(s.opts.Dir, "data", string(n))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if n == S3 {
		return startS3(dir)
	}
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		var c command
		switch n {
		case DynamoDB:
			c = dynoxide(parts, dir, port)
		case SQS:
			c, err = elasticMQ(parts, dir, port)
		case OpenSearch:
			c, err = openSearch(parts, dir, port, s.opts.Heap)
		}
		if err != nil {
			return nil, err
		}
		c.name, c.log, c.say = n, filepath.Join(s.opts.Dir, "log", string(n)+".log"), s.opts.Say
		p, err := startProcess(ctx, c)
		if err == nil {
			return p, nil
		}
		if try == 3 || ctx.Err() != nil || portIsFree(port) {
			return nil, err
		}
		// Somebody took the port between our choice and the engine's bind.
	}
}

// URL is where a started engine serves, without a trailing slash; "" for one
// that was not started.
func (s *Set) URL(n Name) string {
	if e := s.get(n); e != nil {
		return e.status().URL
	}
	return ""
}

// Status tells how the started engines are, in the order of All.
func (s *Set) Status() []Status {
	var all []Status
	for _, n := range All {
		if e := s.get(n); e != nil {
			all = append(all, e.status())
		}
	}
	return all
}

// Await returns when the engine serves.
func (s *Set) Await(ctx context.Context, n Name) error {
	e := s.get(n)
	if e == nil {
		return fmt.Errorf("%s: %w", n, ErrNotStarted)
	}
	return e.await(ctx)
}

// Kill ends the engine as kill -9 does and returns when it is gone. It is
// started again on the same port like any engine that died; Await tells when.
func (s *Set) Kill(n Name) error { return s.kill(n, false) }

// Halt is Kill, but the engine stays down until Resume.
func (s *Set) Halt(n Name) error { return s.kill(n, true) }

func (s *Set) kill(n Name, stayDown bool) error {
	e := s.get(n)
	if e == nil {
		return fmt.Errorf("%s: %w", n, ErrNotStarted)
	}
	return e.kill(stayDown)
}

// Resume lets an engine that was halted come up again.
func (s *Set) Resume(n Name) error {
	e := s.get(n)
	if e == nil {
		return fmt.Errorf("%s: %w", n, ErrNotStarted)
	}
	e.resume()
	return nil
}

func (s *Set) get(n Name) engine {
	if slot := s.on[n]; slot != nil {
		return slot.get()
	}
	return nil
}

// stopGrace is how long an engine may take to end by itself. Cutting it short
// loses nothing: what an engine has acknowledged is on disk.
const stopGrace = 10 * time.Second

// Stop ends the engines, the one that feeds others last: each is asked to
// stop, and killed when it has not after ten seconds. An engine that is just
// starting is waited for; cancel the context of Start first. The set cannot be
// started again.
func (s *Set) Stop() {
	s.mu.Lock()
	s.done = true
	s.mu.Unlock()
	order := slices.Clone(All)
	slices.Reverse(order)
	for _, n := range order {
		slot := s.on[n]
		slot.starting.Lock()
		if e := slot.get(); e != nil {
			e.stop(stopGrace)
		}
		slot.starting.Unlock()
	}
}
