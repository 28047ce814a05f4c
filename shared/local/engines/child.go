package engines

import "syscall"

// child is a running process in a process group of its own that does not
// outlive this process.
type child struct {
	pid    int
	exited <-chan error // its end, once
}

func (c *child) signal(s syscall.Signal) { signalGroup(c.pid, s) }
