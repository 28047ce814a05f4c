package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// endWithGoRun cancels when the `go run` that started this program is gone. The
// go command passes no signal on: killed, it would leave this program behind,
// which nobody asked for by its own name. Programs started otherwise outlive
// their parents as usual.
func endWithGoRun(ctx context.Context, cancel func()) {
	path, err := os.Executable()
	if err != nil || !builtByGoRun(path) {
		return
	}
	parent := os.Getppid()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if os.Getppid() != parent {
			cancel()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// builtByGoRun reports whether a program lies where `go run` puts what it
// builds: <temporary directory>/go-build<number>/b001/exe/<name>.
func builtByGoRun(path string) bool {
	dir := filepath.Dir(path)
	return filepath.Base(dir) == "exe" && strings.Contains(dir, string(filepath.Separator)+"go-build")
}
