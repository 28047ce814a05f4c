package engines

import (
	"os/exec"
	"runtime"
	"syscall"
)

// startBound has the kernel kill the child when this process ends. The kernel
// watches the thread that made the child, not the process, so that thread is
// kept for as long as the child lives: a goroutine is locked to it and waits
// there. It never unlocks; the thread ends with the goroutine.
func startBound(cmd *exec.Cmd) (*child, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started, exited := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			exited <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return &child{pid: cmd.Process.Pid, exited: exited}, nil
}
