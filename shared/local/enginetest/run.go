package enginetest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"holdfast/shared/local/engines"
)

// runDirs is the parent of all runs' directories. It is short, because the
// path of a socket has about a hundred bytes at most.
func runDirs() string {
	return filepath.Join(os.TempDir(), "holdfast-test-"+strconv.Itoa(os.Getuid()))
}

// run is a `go test` run, or a test binary run by hand: the process that the
// engines live as long as.
type run struct {
	pid     int
	started string // tells this process from a later one with the same number
}

// thisRun is the run that this test binary belongs to.
func thisRun() run {
	pid := os.Getpid()
	if engines.ParentIsGo() {
		pid = os.Getppid()
	}
	return run{pid: pid, started: startOf(pid)}
}

// dir is the run's directory: its name leads back to the process.
func (r run) dir() string {
	sum := sha256.Sum256([]byte(r.started))
	return filepath.Join(runDirs(), strconv.Itoa(r.pid)+"-"+hex.EncodeToString(sum[:4]))
}

// runOfDir is the inverse of dir, as far as the process still exists.
func runOfDir(dir string) (r run, alive bool) {
	number, _, _ := strings.Cut(filepath.Base(dir), "-")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return run{}, false
	}
	r = run{pid: pid, started: startOf(pid)}
	return r, r.started != "" && r.dir() == dir
}

// over reports whether the run has ended.
func (r run) over() bool {
	if err := syscall.Kill(r.pid, 0); err != nil && err != syscall.EPERM {
		return true
	}
	return startOf(r.pid) != r.started
}

// startOf is when a process started, in the system's own words, "" when there
// is none or it has ended without having been waited for.
func startOf(pid int) string {
	if runtime.GOOS == "linux" {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return ""
		}
		// Fields are counted after the name, which may hold anything: the state
		// comes first, the time since boot twentieth.
		_, after, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
		fields := strings.Fields(after)
		if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
			return ""
		}
		return fields[19]
	}
	return ps(pid, "lstart=")
}

func ps(pid int, column string) string {
	out, err := exec.Command("ps", "-o", column, "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
