package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"holdfast/shared/local"
	"holdfast/shared/local/demo"
	"holdfast/shared/local/engines"
	"holdfast/shared/local/sample"
)

// cacheVariable names another place for fetched engines.
const cacheVariable = "HOLDFAST_CACHE"

// localOptions are the flags of the command.
type localOptions struct {
	address   string
	data      string
	ephemeral bool
	demo      bool
	exit      bool
	heap      string
	repair    time.Duration
}

func newLocal() *cobra.Command {
	var o localOptions
	c := &cobra.Command{
		Use:   "local",
		Short: "Run all of Holdfast on this machine, on real engines",
		Long: `Runs the gateway, every function and the engines they need (dynoxide for
DynamoDB, ElasticMQ for SQS, OpenSearch, gofakes3 for S3) on this machine, and
prints a line "READY http://..." on standard output when everything serves.
Progress goes to standard error.

The first start fetches the engines, about 100 MB, and keeps them in the user's
cache directory (or in $` + cacheVariable + `); later starts need no network. It takes
Java 17 or later, and for that first start also a JDK's javac, Maven and npm.

Ctrl-C stops everything. Documents stay in the data directory.

Exit codes:
  0  stopped on request, or the demo ended with everything as promised
  1  something could not be started or stopped working; the message says what
  2  the command line was not understood
  3  the demo found something that was not as promised`,
		Example: `  holdfast local                          # serve on 127.0.0.1:8787, keep data in .holdfast
  holdfast local --demo                   # import sample data, show what is promised, keep serving
  holdfast local --demo --exit --ephemeral  # the same as a check: exit code 0 if all was as promised
  holdfast local --addr 127.0.0.1:9000 --data /tmp/second
  holdfast local --repair-every 10s       # prove the index against the table more often`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{command: c.CommandPath(), err: fmt.Errorf("unexpected argument %q", args[0])}
			}
			if o.repair < time.Second {
				return &usageError{command: c.CommandPath(), err: errors.New("--repair-every is at least 1s")}
			}
			if o.ephemeral && c.Flags().Changed("data") {
				return &usageError{command: c.CommandPath(), err: errors.New("--ephemeral keeps nothing; it cannot be used with --data")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			return runLocal(c.Context(), o, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.address, "addr", local.DefaultAddress, "host:port to serve at; port 0 takes a free one")
	f.StringVar(&o.data, "data", ".holdfast", "directory that keeps everything over restarts")
	f.BoolVar(&o.ephemeral, "ephemeral", false, "keep everything in a temporary directory and remove it in the end")
	f.BoolVar(&o.demo, "demo", false, "import sample data through the API and show what is promised")
	f.BoolVar(&o.exit, "exit", false, "end when everything serves, or after the demo, instead of serving on")
	f.StringVar(&o.heap, "opensearch-heap", "512m", "memory of OpenSearch, as Java's -Xmx takes it")
	f.DurationVar(&o.repair, "repair-every", local.DefaultRepairEvery, "how often repair proves the index against the table")
	return c
}

// runLocal starts the stack, shows the demo and waits for the end.
func runLocal(ctx context.Context, o localOptions, out, progress io.Writer) error {
	ctx, stop := endings(ctx, progress)
	defer stop()
	if o.ephemeral {
		dir, err := os.MkdirTemp("", "holdfast-")
		if err != nil {
			return failed(err)
		}
		defer os.RemoveAll(dir)
		o.data = dir
	}
	say := teller(progress)
	say("starting, data in " + o.data)
	stack, err := local.Start(ctx, local.Options{
		Address: o.address, DataDir: o.data, Heap: o.heap, Say: say, RepairEvery: o.repair,
		Cache: engines.Cache{Dir: os.Getenv(cacheVariable)},
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil // stopped on request while starting
		}
		return failed(explain(err))
	}
	defer func() {
		say("stopping")
		stack.Stop()
		say("stopped")
	}()
	fmt.Fprintf(out, "READY %s\n", stack.URL())
	if o.demo {
		if err := runDemo(ctx, stack.URL(), out, progress); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if o.exit {
				return err
			}
			fmt.Fprintf(progress, "holdfast: %v\n", err)
		}
	}
	if o.exit {
		return nil
	}
	if o.demo {
		fmt.Fprintf(out, "Go on in another terminal, for example with\n  curl %[1]s/status\n  go run ./cmd/holdfast query customers address.country=Germany --endpoint %[1]s\nand with what the README shows under \"Five minutes\".\n", stack.URL())
	}
	say("serving " + stack.URL() + " until Ctrl-C")
	select {
	case <-ctx.Done():
		return nil
	case err := <-stack.Failed():
		return failed(err)
	}
}

func runDemo(ctx context.Context, url string, out, progress io.Writer) error {
	d := demo.Demo{URL: url, Data: sample.Northwind(), Out: out, Progress: progress, Terminal: isTerminal(progress)}
	err := d.Run(ctx)
	var broken *demo.NotAsPromised
	switch {
	case err == nil:
		return nil
	case errors.As(err, &broken):
		return &codedError{code: exitNotAsPromised, err: err}
	}
	return &codedError{code: exitNotAsPromised, err: fmt.Errorf("the demo could not go on: %w", err)}
}

// explain adds what a person can do.
func explain(err error) error {
	var busy *local.AddressInUse
	switch {
	case errors.As(err, &busy):
		return fmt.Errorf("%w; stop that one, or choose another with --addr, such as --addr 127.0.0.1:8788", err)
	case errors.Is(err, local.ErrInUse):
		return fmt.Errorf("%w; stop that one, or choose another directory with --data", err)
	}
	return err
}

func failed(err error) error { return &codedError{code: exitFailed, err: err} }

// oneInterruption is how long signals count as the same: timeout(1) and wrappers
// that pass signals on deliver one interruption twice.
const oneInterruption = 500 * time.Millisecond

// endings gives a context that ends at Ctrl-C, at a request to terminate, when
// the terminal goes away, and when the `go run` that started this program does.
// A second Ctrl-C ends the program at once; its engines end with it.
func endings(ctx context.Context, progress io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
		begun := time.Now()
		for range signals {
			if time.Since(begun) > oneInterruption {
				fmt.Fprintln(progress, "holdfast: ended at once")
				os.Exit(exitFailed)
			}
		}
	}()
	go endWithGoRun(ctx, cancel)
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// teller prints lines with the time since the start.
func teller(w io.Writer) func(string) {
	begun := time.Now()
	var mu sync.Mutex
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, "%6.1fs  %s\n", time.Since(begun).Seconds(), line)
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
