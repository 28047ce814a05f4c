package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"holdfast/shared/local/engines"
)

// Names of what is killed besides engines.
const (
	theStack   = "stack"
	everything = "everything"
)

// used are the engines of a run. S3 is not among them: nothing writes to it.
var used = []engines.Name{engines.DynamoDB, engines.SQS, engines.OpenSearch}

// firstStart is how long everything may take to serve for the first time, when
// nothing is fetched.
const firstStart = 5 * time.Minute

// start starts the engines, the proxies before them, and a stack.
func (x *run) start(ctx context.Context) (err error) {
	if err := os.MkdirAll(x.Dir, 0o755); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if x.set, err = engines.NewSet(engines.Options{Cache: x.Cache, Dir: x.Dir, Heap: x.Heap, Say: x.sayOf}); err != nil {
		return err
	}
	if err := x.set.Start(ctx, used...); err != nil {
		return err
	}
	c := config{Dir: x.Dir, RepairEvery: x.RepairEvery, Visibility: x.Visibility, Engines: map[engines.Name]string{}, Reach: map[engines.Name]string{}}
	for i, n := range used {
		g := newGate(n, x.set.URL(n), x.Seed<<8+uint64(i))
		x.gates = append(x.gates, g)
		c.Engines[n], c.Reach[n] = x.set.URL(n), g.proxy.URL()
	}
	if x.log, err = engines.OpenLog(filepath.Join(x.Dir, "log", "stack.log")); err != nil {
		return fmt.Errorf("log of the stack: %w", err)
	}
	x.api = newAPI()
	x.stack = newProcess(&process{command: x.Command, config: c, log: x.log, serves: x.api.moved})
	ctx, cancel := context.WithTimeout(ctx, firstStart)
	defer cancel()
	if err := x.stack.await(ctx); err != nil {
		return err
	}
	x.Say("the stack serves " + x.api.base())
	return nil
}

// sayOf passes on what the engines tell.
func (x *run) sayOf(line string) {
	if !x.quiet.Load() {
		x.Say(line)
	}
}

// end ends whatever runs.
func (x *run) end() {
	x.quiet.Store(true)
	if x.stack != nil {
		x.stack.stop()
	}
	if x.log != nil {
		_ = x.log.Close() // lines are not buffered
	}
	for _, g := range x.gates {
		g.end()
	}
	if x.set != nil {
		// Nobody needs an orderly end.
		for _, s := range x.set.Status() {
			_ = x.set.Halt(s.Name)
		}
		x.set.Stop()
	}
}
