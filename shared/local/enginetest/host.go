package enginetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"holdfast/shared/local/engines"
)

// hostDir, in the environment, makes a test binary the host of the run whose
// directory it names.
const hostDir = "HOLDFAST_ENGINE_HOST"

const (
	socketName = "s"        // in a run's directory: where the host answers
	logName    = "host.log" // its output
	pidName    = "pid"      // its process id, for who looks for it
	lockName   = "lock"     // held while a host is started
)

// lookEvery is how often the host looks whether its run is over.
const lookEvery = 300 * time.Millisecond

// runHost serves engines to a run until it is over. It answers with an exit
// code.
func runHost(dir string) int {
	r, alive := runOfDir(dir)
	if !alive {
		fmt.Fprintln(os.Stderr, "the run is over already")
		return 1
	}
	if err := serveRun(dir, r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveRun(dir string, r run) error {
	removeEndedRuns()
	socket := filepath.Join(dir, socketName)
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // a host that crashed left it
	}
	set, err := engines.NewSet(engines.Options{
		Cache: Cache(), Dir: filepath.Join(dir, fmt.Sprintf("engines-%d", os.Getpid())),
		Say: func(line string) { fmt.Println(time.Now().Format(time.TimeOnly), line) },
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, pidName), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	server := &http.Server{
		Handler:           hostHandler(ctx, set),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	go func() { _ = server.Serve(l) }()
	for ctx.Err() == nil && !r.over() {
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
	cancel()
	_ = server.Close()
	// Nobody needs the data any more, so nobody waits for an orderly end.
	for _, s := range set.Status() {
		_ = set.Halt(s.Name)
	}
	set.Stop()
	return os.RemoveAll(dir)
}

// hostHandler answers GET /<engine> with its URL once it serves. An engine
// that could not be started is tried again by the next who asks. Its start does
// not end with the request: a test that gives up must not take the engine from
// the others that wait for it.
func hostHandler(ctx context.Context, set *engines.Set) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{engine}", func(w http.ResponseWriter, req *http.Request) {
		n := engines.Name(req.PathValue("engine"))
		if err := set.Start(ctx, n); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, set.URL(n))
	})
	return mux
}

// removeEndedRuns removes what hosts that were killed left behind.
func removeEndedRuns() {
	dirs, err := filepath.Glob(filepath.Join(runDirs(), "*"))
	if err != nil {
		return
	}
	for _, d := range dirs {
		if _, alive := runOfDir(d); !alive {
			_ = os.RemoveAll(d) // another host may be at it too
		}
	}
}
