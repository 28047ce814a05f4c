package engines

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// scene has this test binary, started once more, play a parent that dies.
const scene = "HOLDFAST_TEST_DYING_PARENT"

var ways = map[string]func(*exec.Cmd) (*child, error){"bound": startBound, "guarded": startGuarded}

// However a process ends, the children it started end too.
func TestChildrenDieWithTheirParent(t *testing.T) {
	for way := range ways {
		t.Run(way, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestDyingParent$", "-test.v")
			cmd.Env = append(os.Environ(), scene+"="+way)
			out, err := cmd.Output()
			if err == nil || cmd.ProcessState.ExitCode() != -1 {
				t.Fatalf("the parent was to be killed: %v\n%s", err, out)
			}
			var pid int
			for line := range strings.Lines(string(out)) {
				_, _ = fmt.Sscanf(line, "CHILD %d", &pid)
			}
			if pid == 0 {
				t.Fatalf("no child:\n%s", out)
			}
			for deadline := time.Now().Add(5 * time.Second); groupLives(pid); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					signalGroup(pid, syscall.SIGKILL)
					t.Fatal("the child outlives its parent by five seconds")
				}
			}
		})
	}
}

func groupLives(pid int) bool { return syscall.Kill(-pid, 0) == nil && !isZombie(pid) }

// isZombie looks past a process that has ended and that nobody has waited for.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// TestDyingParent is the scene.
func TestDyingParent(t *testing.T) {
	start := ways[os.Getenv(scene)]
	if start == nil {
		t.Skip("a scene of another test")
	}
	// The thread that starts the child must not be one that ends early.
	for range 4 {
		go func() { runtime.LockOSThread() }()
	}
	c, err := start(exec.Command("sleep", "300"))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // long enough for idle threads to end
	select {
	case err := <-c.exited:
		t.Fatalf("the child ended before its parent: %v", err)
	default:
	}
	fmt.Printf("\nCHILD %d\n", c.pid)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

func TestAGuardHandsOverTheEndOfItsEngine(t *testing.T) {
	c, err := startGuarded(exec.Command("sh", "-c", "exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	if err := <-c.exited; err == nil {
		t.Error("the engine failed and its guard did not")
	}
	c, err = startGuarded(exec.Command("sleep", "300"))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // the guard has started it
	c.signal(syscall.SIGTERM)
	select {
	case <-c.exited:
	case <-time.After(30 * time.Second):
		c.signal(syscall.SIGKILL)
		t.Error("SIGTERM does not reach the engine under the guard")
	}
}
