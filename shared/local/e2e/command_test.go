package e2e_test

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// buildCommand makes the command as a user has it.
func buildCommand(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "holdfast")
	if out, err := exec.Command("go", "build", "-o", bin, "holdfast/cmd/holdfast").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// startCommand runs `holdfast local` and waits for its READY line.
func startCommand(t *testing.T, bin string, args ...string) (cmd *exec.Cmd, url string) {
	t.Helper()
	cmd = exec.Command(bin, append([]string{"local"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ready := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if url, ok := strings.CutPrefix(lines.Text(), "READY "); ok {
				ready <- url
			}
		}
	}()
	select {
	case url = <-ready:
		return cmd, url
	case <-time.After(4 * time.Minute):
		t.Fatal("no READY line in four minutes")
		return nil, ""
	}
}

// descendants are the processes below pid.
func descendants(pid int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	children := map[int][]int{}
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(b), ") ") // the name may hold spaces
		fields := strings.Fields(after)
		if len(fields) < 2 {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		children[parent] = append(children[parent], child)
	}
	var all []int
	for next := []int{pid}; len(next) > 0; {
		p := next[0]
		next = append(next[1:], children[p]...)
		all = append(all, children[p]...)
	}
	return all
}

func alive(pids []int) (left []int) {
	for _, pid := range pids {
		if syscall.Kill(pid, 0) == nil {
			left = append(left, pid)
		}
	}
	return left
}

// gone waits until none of the processes is left.
func gone(t *testing.T, pids []int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); len(alive(pids)) > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("processes are left behind: %v", alive(pids))
		}
	}
}

// The whole stack is killed with SIGKILL in the middle of an import and started
// again on the same data.
func TestNothingAcknowledgedIsLostWhenTheStackIsKilled(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("counts processes by /proc")
	}
	bin, data, c := buildCommand(t), t.TempDir(), unique(t)
	cmd, url := startCommand(t, bin, "--addr", freeAddress(t), "--data", data)
	imported := startImport(t, &url, c)
	time.Sleep(3 * time.Second)
	engines := descendants(cmd.Process.Pid)
	if len(engines) < 3 {
		t.Errorf("%d child processes; the engines are at least three", len(engines))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	gone(t, engines)
	again, _ := startCommand(t, bin, "--addr", strings.TrimPrefix(url, "http://"), "--data", data)
	time.Sleep(time.Second)
	all := imported.stop()
	t.Logf("%d documents acknowledged", len(all))
	checkLoadable(t, url, all)
	checkFindable(t, url, c, all)

	// What a second stack is told about a directory and an address in use.
	out, err := exec.Command(bin, "local", "--addr", strings.TrimPrefix(url, "http://"), "--ephemeral", "--exit").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--addr") {
		t.Errorf("a busy address is named with a way out: %v\n%s", err, out)
	}
	out, err = exec.Command(bin, "local", "--addr", "127.0.0.1:0", "--data", data, "--exit").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--data") {
		t.Errorf("a data directory in use is named with a way out: %v\n%s", err, out)
	}

	engines = descendants(again.Process.Pid)
	if err := again.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := again.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	gone(t, engines)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// The first command of the README, on a data directory of its own.
func TestDemoShowsWhatIsPromised(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, buildCommand(t), "local", "--demo", "--exit", "--ephemeral", "--addr", "127.0.0.1:0").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, part := range []string{"READY http://127.0.0.1:", "staleness", "startsWith"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("the demo does not show %q:\n%s", part, out)
		}
	}
}
