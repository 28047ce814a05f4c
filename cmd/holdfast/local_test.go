package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/shared/local/engines"
)

// asCommand has the test binary be the command.
const asCommand = "HOLDFAST_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	engines.Guard()
	if os.Getenv(asCommand) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestCommandLines(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--help"}, exitOK, "local"},
		{[]string{"--help"}, exitOK, "completion"},
		{[]string{"--version"}, exitOK, "holdfast version "},
		{[]string{"local", "--help"}, exitOK, "Exit codes:"},
		{[]string{"local", "--help"}, exitOK, "holdfast local --demo --exit"},
		{[]string{"nonsense"}, exitUsage, "nonsense"},
		{[]string{"local", "--repair-every", "10ms"}, exitUsage, "at least 1s"},
		{[]string{"local", "--nonsense"}, exitUsage, "See holdfast local --help"},
		{[]string{"local", "extra"}, exitUsage, `unexpected argument "extra"`},
		{[]string{"local", "--ephemeral", "--data", "x"}, exitUsage, "--ephemeral"},
	} {
		var out, progress bytes.Buffer
		code := run(t.Context(), c.args, &out, &progress)
		if all := out.String() + progress.String(); code != c.code || !strings.Contains(all, c.says) {
			t.Errorf("%v: exit code %d, want %d, and %q in:\n%s", c.args, code, c.code, c.says, all)
		}
	}
}

func TestABusyAddressIsNamedAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var out, progress bytes.Buffer
	code := run(t.Context(), []string{"local", "--addr", l.Addr().String(), "--data", t.TempDir()}, &out, &progress)
	if text := progress.String(); code != exitFailed || !strings.Contains(text, l.Addr().String()+" is in use") || !strings.Contains(text, "--addr") {
		t.Errorf("exit code %d, says %s", code, text)
	}
}

func TestMissingToolsAreNamedAtOnce(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(cacheVariable, t.TempDir())
	var out, progress bytes.Buffer
	code := run(t.Context(), []string{"local", "--addr", "127.0.0.1:0", "--data", t.TempDir()}, &out, &progress)
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	for _, tool := range []string{"java", "mvn", "npm", "apt-get install"} {
		if !strings.Contains(progress.String(), tool) {
			t.Errorf("%s is not named:\n%s", tool, progress.String())
		}
	}
	if out.Len() > 0 {
		t.Errorf("standard output has %q", out.String())
	}
}

// command is a running holdfast.
type command struct {
	cmd   *exec.Cmd
	url   string
	mu    sync.Mutex
	out   []string
	ended chan error
}

func startCommand(t *testing.T, args ...string) *command {
	t.Helper()
	c := &command{cmd: exec.Command(os.Args[0], append([]string{"local", "--addr", "127.0.0.1:0"}, args...)...), ended: make(chan error, 1)}
	c.cmd.Env = append(os.Environ(), asCommand+"=1")
	progress, err := os.Create(filepath.Join(t.TempDir(), "progress"))
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stderr = progress
	pipe, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	ready := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			if url, ok := strings.CutPrefix(lines.Text(), "READY "); ok {
				ready <- url
			}
			c.mu.Lock()
			c.out = append(c.out, lines.Text())
			c.mu.Unlock()
		}
		c.ended <- c.cmd.Wait()
	}()
	select {
	case c.url = <-ready:
	case err := <-c.ended:
		text, _ := os.ReadFile(progress.Name())
		t.Fatalf("ended before it was ready: %v\n%s", err, text)
	case <-time.After(4 * time.Minute):
		t.Fatal("not ready after four minutes")
	}
	return c
}

// awaitLine waits for a line of standard output.
func (c *command) awaitLine(t *testing.T, part string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c.mu.Lock()
		text := strings.Join(c.out, "\n")
		c.mu.Unlock()
		if strings.Contains(text, part) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited two minutes for %q in:\n%s", part, text)
		}
	}
}

// processesOf are the running processes whose command line names the directory.
func processesOf(t *testing.T, dir string) (all []string) {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); strings.Contains(line, dir) && !strings.HasPrefix(fields[1], "Z") {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

func awaitNoProcess(t *testing.T, dir string, within time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		left := processesOf(t, dir)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s there are still:\n%s", within, strings.Join(left, "\n"))
		}
	}
}

// The whole life of a stack: the demo, a second one that must not touch its
// data, kill -9, a restart with everything there, and an orderly end.
func TestTheLocalStack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts all engines")
	}
	dir := filepath.Join(t.TempDir(), "data")
	c := startCommand(t, "--demo", "--data", dir)
	c.awaitLine(t, "Everything was as promised")

	var out, progress bytes.Buffer
	if code := run(t.Context(), []string{"local", "--addr", "127.0.0.1:0", "--data", dir}, &out, &progress); code != exitFailed || !strings.Contains(progress.String(), "--data") {
		t.Errorf("a second stack on the same data: exit code %d, says %s", code, progress.String())
	}

	// Kill it in the middle of an import. What was acknowledged must be there later.
	acknowledged := make(chan map[string]json.Number, 1)
	first := make(chan struct{})
	go func() { acknowledged <- importUntilItFails(c.url, first) }()
	<-first
	if n := len(processesOf(t, dir)); n < 4 {
		t.Errorf("%d processes of the stack, want itself and three engines", n)
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.ended
	awaitNoProcess(t, dir, 30*time.Second)
	saved := <-acknowledged
	if len(saved) == 0 {
		t.Fatal("nothing was imported before the kill")
	}

	c = startCommand(t, "--data", dir)
	checkLoaded(t, c.url, saved)
	awaitFound(t, c.url, saved)
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-c.ended; err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	awaitNoProcess(t, dir, time.Second)
}

// importUntilItFails imports documents in small requests and answers with the
// versions of those that were acknowledged. The first request done closes first.
func importUntilItFails(url string, first chan<- struct{}) map[string]json.Number {
	saved := map[string]json.Number{}
	for round := 0; ; round++ {
		var body strings.Builder
		for i := range 20 {
			fmt.Fprintf(&body, "{\"id\":\"imported/%d-%d\",\"data\":{\"round\":%d}}\n", round, i, round)
		}
		res, err := http.Post(url+"/bulk", "application/x-ndjson", strings.NewReader(body.String()))
		if err != nil {
			return saved
		}
		lines := json.NewDecoder(res.Body)
		for {
			var line struct {
				ID      string
				Version json.Number
			}
			if lines.Decode(&line) != nil {
				break
			}
			if line.Version != "" {
				saved[line.ID] = line.Version
			}
		}
		res.Body.Close()
		if round == 2 {
			close(first)
		}
	}
}

func checkLoaded(t *testing.T, url string, saved map[string]json.Number) {
	t.Helper()
	for id, version := range saved {
		res, err := http.Get(url + "/docs/" + id)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK || res.Header.Get("ETag") != `"`+version.String()+`"` {
			t.Errorf("%s was acknowledged at %s and answers %d %s", id, version, res.StatusCode, res.Header.Get("ETag"))
		}
	}
}

func awaitFound(t *testing.T, url string, saved map[string]json.Number) {
	t.Helper()
	missing := len(saved)
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		found, after := map[string]bool{}, ""
		for {
			res, err := http.Post(url+"/query", "application/json", strings.NewReader(`{"from":"imported","limit":1000`+after+`}`))
			if err != nil {
				t.Fatal(err)
			}
			var page struct {
				Documents []struct{ ID string }
				Next      string
			}
			err = json.NewDecoder(res.Body).Decode(&page)
			res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range page.Documents {
				found[d.ID] = true
			}
			if page.Next == "" {
				break
			}
			after = fmt.Sprintf(`,"after":%q`, page.Next)
		}
		missing = 0
		for id := range saved {
			if !found[id] {
				missing++
			}
		}
		if missing == 0 {
			return
		}
	}
	t.Errorf("%d of %d acknowledged documents are not found", missing, len(saved))
}
