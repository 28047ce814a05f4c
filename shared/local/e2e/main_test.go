// Package e2e_test drives the whole stack from outside, over HTTP.
package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"holdfast/shared/local"
)

var (
	stack *local.Stack // a stack of these tests' own, since they kill its engines
	base  string       // where it serves
)

// repairEvery is shorter than people have it, since here somebody waits for what
// repair does.
const repairEvery = 5 * time.Second

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if testing.Short() {
		fmt.Println("skipped: these tests need the engines")
		return 0
	}
	dir, err := os.MkdirTemp("", "holdfast-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	stack, err = local.Start(ctx, local.Options{
		Address: "127.0.0.1:0", DataDir: dir, RepairEvery: repairEvery, Say: func(line string) { fmt.Fprintln(os.Stderr, line) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stack.Stop()
	base = stack.URL()
	return m.Run()
}
