package main

import (
	"context"
	"os"
	"time"

	"holdfast/shared/local/engines"
)

// endWithGoRun cancels when the `go run` that started this program is gone. The
// go command passes no signal on: killed, it would leave this program behind,
// which nobody asked for by its own name. Programs started otherwise outlive
// their parents as usual.
func endWithGoRun(ctx context.Context, cancel func()) {
	parent := os.Getppid()
	if !engines.ParentIsGo() {
		return
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if os.Getppid() != parent {
				cancel()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
