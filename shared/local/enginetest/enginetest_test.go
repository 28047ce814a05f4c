package enginetest

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/shared/local/engines"
)

// byHand makes this test binary play a test binary run by hand, which has a
// host of its own, so that the host of this run is left alone.
const byHand = "HOLDFAST_TEST_BY_HAND"

func TestMain(m *testing.M) { Main(m) }

func TestAllTestsShareOneEngine(t *testing.T) {
	first := url(t, engines.DynamoDB, "")
	if second := url(t, engines.DynamoDB, ""); second != first {
		t.Errorf("the second test got %s, the first %s", second, first)
	}
	if !serves(first) {
		t.Errorf("%s does not answer", first)
	}
}

func TestEnginesEndWithTheRun(t *testing.T) {
	u, _ := runByHand(t, "use")
	eventually(t, "the engine to end", func() bool { return !serves(u) })
}

func TestEnginesEndWithARunThatIsKilled(t *testing.T) {
	u, pid := runByHand(t, "kill")
	eventually(t, "the engine to end", func() bool { return !serves(u) })
	eventually(t, "the run's directory to go", func() bool {
		dirs, err := filepath.Glob(filepath.Join(runDirs(), pid+"-*"))
		return err == nil && len(dirs) == 0
	})
}

func TestACrashedHostIsReplaced(t *testing.T) {
	runByHand(t, "crash")
}

// runByHand plays a scene in a process of its own and answers with the URL of
// its engine and its process id.
func runByHand(t *testing.T, scene string) (url, pid string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an engine")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestScene$", "-test.v")
	cmd.Env = append(os.Environ(), byHand+"="+scene)
	out, err := cmd.CombinedOutput()
	if err != nil && scene != "kill" {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "SCENE" {
			return fields[1], fields[2]
		}
	}
	t.Fatalf("the scene says nothing:\n%s", out)
	return "", ""
}

// TestScene is what runByHand runs.
func TestScene(t *testing.T) {
	scene := os.Getenv(byHand)
	if scene == "" {
		t.Skip("a scene of other tests")
	}
	u := url(t, engines.DynamoDB, "")
	if !serves(u) {
		t.Fatalf("%s does not answer", u)
	}
	switch scene {
	case "kill":
		say(u)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "crash":
		text, err := os.ReadFile(filepath.Join(thisRun().dir(), pidName))
		if err != nil {
			t.Fatal(err)
		}
		host, err := strconv.Atoi(string(bytes.TrimSpace(text)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(host, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the crashed host's engine to end", func() bool { return !serves(u) })
		u = url(t, engines.DynamoDB, "")
		if !serves(u) {
			t.Fatalf("%s of the new host does not answer", u)
		}
	}
	say(u)
}

func say(u string) {
	_, _ = os.Stdout.WriteString("\nSCENE " + u + " " + strconv.Itoa(os.Getpid()) + "\n")
}

func serves(u string) bool {
	res, err := http.Get(u)
	if err != nil {
		return false
	}
	res.Body.Close()
	return true
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}
