//go:build !linux

package engines

import "os/exec"

// startBound puts a guard over the child, because this system has no way to
// bind a child's life to its parent's.
func startBound(cmd *exec.Cmd) (*child, error) { return startGuarded(cmd) }
