package engines

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// guardMark is the first argument of a guard.
const guardMark = "holdfast-engine-guard"

// Guard is to be the first call of every main function (and TestMain) whose
// program starts engines. It returns at once, unless the program was started
// as a guard: a second copy of the program that holds a pipe to the first and
// kills the engine that it runs when the pipe closes, which also happens when
// the first is killed. Linux does without guards.
func Guard() {
	if len(os.Args) > 2 && os.Args[1] == guardMark {
		os.Exit(guard(os.Args[2], os.Args[3:]))
	}
}

// guard runs a program in its own process group and answers with an exit code.
func guard(path string, args []string) int {
	// Signals reach the engine, which is in this group, and its end is ours. They
	// are caught, not ignored: the engine would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent does
		signalGroup(os.Getpid(), syscall.SIGKILL)
	}()
	if err := cmd.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startGuarded starts the command under a guard. Guard and engine are one
// process group, so a signal to the group reaches the engine.
func startGuarded(cmd *exec.Cmd) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	guarded := exec.Command(self, append([]string{guardMark, cmd.Path}, cmd.Args[1:]...)...)
	guarded.Dir, guarded.Env, guarded.Stdout, guarded.Stderr = cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr
	guarded.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := guarded.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	if err := guarded.Start(); err != nil {
		return nil, errors.Join(err, pipe.Close())
	}
	exited := make(chan error, 1)
	go func() {
		err := guarded.Wait() // it closes the pipe, after the end
		// A guard that was killed alone has left its engine in the group.
		signalGroup(guarded.Process.Pid, syscall.SIGKILL)
		exited <- err
	}()
	return &child{pid: guarded.Process.Pid, exited: exited}, nil
}
