// Package chaos shows that a stack keeps its promises while everything under it
// breaks. It runs a stack on engines, writes to it from several sides, kills and
// restarts the engines and the stack itself, has requests between the functions
// and the engines fail, and in the end holds table and index against a record
// that it kept of every write.
//
// The engines and the proxies that make the faults are this process's. The stack
// is a process of its own, so that it can be killed as kill -9 does: functions,
// gateway and pollers end in the middle of what they do, and their successors go
// on with the data and the engines as they are.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/shared/local/engines"
)

// Options of a run. Dir, Command and Documents are required.
type Options struct {
	Dir   string        // gets everything: data, logs, what the pollers remember; made when missing
	Cache engines.Cache // where fetched engines are kept
	Heap  string        // of OpenSearch, as -Xmx takes it; "": the engines' default

	// Command makes the command of a process that does nothing but call Serve.
	Command func() *exec.Cmd

	Documents   Source        // what is imported
	Duration    time.Duration // over which documents and kills are spread; the import takes longer where the machine is too slow
	Kills       int           // how often something is killed
	Rate        float64       // the share of the requests between functions and engines that meet a fault, below 1
	Seed        uint64        // of what is left to chance here: which requests fail, what is killed when, what is written
	Writers     int           // clients that write at the same time; 0: DefaultWriters
	Within      time.Duration // how long table and index may take to agree, and to be proven to; 0: DefaultWithin
	RepairEvery time.Duration // how often repair runs; 0: DefaultRepairEvery
	Visibility  time.Duration // how long the queue hides what it handed out; 0: the stack's standard

	Say  func(line string) // told what goes on, one line each; nil: nobody
	Tell func(Progress)    // told how far the run has come, several times a second; nil: nobody
}

// Defaults of Options.
const (
	DefaultWriters     = 6
	DefaultWithin      = 10 * time.Minute
	DefaultRepairEvery = 5 * time.Second
)

// Progress is how far a run has come.
type Progress struct {
	Doing     string // in a word or two
	Documents int    // that were imported
	Of        int
	Writes    int // that were acknowledged
	Kills     int
	OfKills   int
	Faults    int
	Differing int // documents about which index and table differed when that was last looked at
}

// run is one run.
type run struct {
	Options
	began   time.Time
	set     *engines.Set
	gates   []*gate
	stack   *process
	log     *os.File // of the stack's processes
	api     *api
	ledger  *ledger
	watch   watch
	kills   tally
	told    sync.Mutex // of doing
	doing   string
	calm    atomic.Bool // all kills are done
	differ  atomic.Int64
	quiet   atomic.Bool  // nobody is to be told any more what the engines do
	written atomic.Int64 // when a write was last acknowledged, nanoseconds since began
}

// Run does all of it. The error says that the run could not be made or did not
// come to its end; what was found is in the result. After an error of ctx, too,
// nothing is left running.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.Writers <= 0 {
		o.Writers = DefaultWriters
	}
	if o.Within <= 0 {
		o.Within = DefaultWithin
	}
	if o.RepairEvery <= 0 {
		o.RepairEvery = DefaultRepairEvery
	}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	x := &run{Options: o, began: time.Now(), ledger: newLedger(), kills: tally{counts: map[string]int{}}}
	x.does("starting")
	if o.Tell != nil {
		stop := x.keepTelling()
		defer stop()
	}
	defer x.end()
	if err := x.start(ctx); err != nil {
		return nil, err
	}
	watching, stopWatching := context.WithCancel(ctx)
	var watched sync.WaitGroup
	watched.Go(func() { x.watch.run(watching, x.api) })
	defer watched.Wait()
	defer stopWatching()

	r := &Result{Seed: o.Seed, Rate: o.Rate, Documents: o.Documents.Len()}
	r.Seconds.Start = x.age().Seconds()
	x.does("importing")
	if err := x.upset(ctx); err != nil {
		return nil, err
	}
	r.Seconds.Import = x.age().Seconds() - r.Seconds.Start
	x.settle(ctx)
	if err := x.verify(ctx, r); err != nil {
		return nil, err
	}
	x.sum(r)
	return r, nil
}

// upset imports while things are killed and requests fail.
func (x *run) upset(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for i, g := range x.gates {
		g.open(x.Rate, x.Seed+uint64(i))
	}
	begin := x.age()
	x.written.Store(int64(begin))
	var running sync.WaitGroup
	fail := func(err error) {
		if err != nil {
			stop(err)
		}
	}
	running.Go(func() {
		fail(x.kill(ctx, begin))
		x.calm.Store(true)
	})
	intake := &intake{source: x.Documents, begin: begin, over: x.Duration}
	for n := range x.Writers {
		w := &writer{run: x, intake: intake, chance: rand.New(rand.NewPCG(x.Seed, uint64(n)+1))}
		running.Go(func() { fail(w.work(ctx)) })
	}
	running.Wait()
	return context.Cause(ctx)
}

// settle ends the faults. What is still on its way from before arrives.
func (x *run) settle(context.Context) {
	x.does("stopping the faults")
	for _, g := range x.gates {
		g.close()
	}
	x.Say("no more faults")
}

// age is the time since the run began.
func (x *run) age() time.Duration { return time.Since(x.began) }

func (x *run) does(what string) {
	x.told.Lock()
	x.doing = what
	x.told.Unlock()
}

// keepTelling tells the progress until it is stopped.
func (x *run) keepTelling() (stop func()) {
	done := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		for {
			x.Tell(x.progress())
			select {
			case <-done:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return func() { close(done); telling.Wait() }
}

func (x *run) progress() Progress {
	x.told.Lock()
	p := Progress{Doing: x.doing}
	x.told.Unlock()
	p.Documents, p.Writes = x.ledger.progress()
	p.Of, p.OfKills, p.Kills, p.Differing = x.Documents.Len(), x.Kills, x.kills.sum(), int(x.differ.Load())
	for _, g := range x.gates {
		p.Faults += g.faults()
	}
	return p
}

// errStuck says that a stack accepts nothing any more.
var errStuck = errors.New("no write was accepted for a long time")

// patience is how long writers go without an acknowledgement. OpenSearch does
// not matter to them, and everything else starts again within a minute.
const patience = 4 * time.Minute

func (x *run) stuck() error {
	if idle := x.age() - time.Duration(x.written.Load()); idle > patience {
		return fmt.Errorf("%w: %s", errStuck, idle.Round(time.Second))
	}
	return nil
}

// sleep waits, and reports whether ctx lets go on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
