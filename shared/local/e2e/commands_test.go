package e2e_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/shared/local/sample"
	"holdfast/shared/value"
)

// command runs the command line against the stack and gives its output and exit
// code.
func command(t *testing.T, bin string, args ...string) (out, messages string, code int) {
	t.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), "HOLDFAST_ENDPOINT="+base)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// A real data set goes in by the command line, interrupted in the middle, is
// queried, and comes out again equal.
func TestTheCommandLineImportsResumesAndExports(t *testing.T) {
	bin, dir := buildCommand(t), t.TempDir()
	c := unique(t)
	movies, err := sample.Movies()
	if err != nil {
		t.Fatal(err)
	}
	movies = bytes.ReplaceAll(movies, []byte(`{"id":"movies/`), []byte(`{"id":"`+c+`/`))
	want := documentsOf(t, movies)
	file := filepath.Join(dir, "movies.ndjson.gz")
	writeGzip(t, file, movies)

	interruptImport(t, bin, file)
	out, messages, code := command(t, bin, "import", file, "--resume", "--output", "json")
	if code != 0 || !strings.Contains(messages, "going on after line") {
		t.Fatalf("resume: exit code %d\n%s%s", code, out, messages)
	}
	var summary struct {
		Complete                  bool
		Lines, Imported, Rejected int
	}
	if err := json.Unmarshal([]byte(out), &summary); err != nil || !summary.Complete || summary.Lines != len(want) || summary.Imported != len(want) || summary.Rejected != 0 {
		t.Errorf("the summary of %d documents is %s (%v)", len(want), out, err)
	}
	if left, _ := filepath.Glob(file + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	awaitCount(t, bin, c, len(want))
	exported := filepath.Join(dir, "again.ndjson.zst")
	if _, messages, code := command(t, bin, "export", "--collection", c, "--out", exported); code != 0 {
		t.Fatalf("export: exit code %d\n%s", code, messages)
	}
	out, messages, code = command(t, bin, "import", exported, "--output", "json")
	if code != 0 || !strings.Contains(out, fmt.Sprintf(`"imported":%d,`, len(want))) {
		t.Errorf("what was exported is imported again: exit code %d\n%s%s", code, out, messages)
	}
	compareExport(t, bin, c, want)

	out, messages, code = command(t, bin, "query", c, "Major Genre=Drama", "US Gross>100000000", "--all", "--sort", "US Gross:desc", "--output", "ndjson")
	if code != 0 || !strings.Contains(messages, "documents") {
		t.Fatalf("query: exit code %d\n%s%s", code, out, messages)
	}
	found, expected := strings.Count(out, "\n"), 0
	for _, data := range want {
		gross, isNumber := data["US Gross"].(json.Number)
		if data["Major Genre"] == "Drama" && isNumber && value.CompareNumbers(gross, "100000000") > 0 {
			expected++
		}
	}
	if found != expected || expected == 0 {
		t.Errorf("query finds %d of %d dramas", found, expected)
	}
	out, _, code = command(t, bin, "query", c, "Title=Jaws", "--fields", "Title,US Gross")
	if code != 0 || !strings.Contains(out, "US Gross") || !strings.Contains(out, "Jaws") {
		t.Errorf("table: exit code %d\n%s", code, out)
	}

	out, messages, code = command(t, bin, "changes", "--collection", c)
	if code != 0 || strings.Count(out, "\n") != len(want) || !strings.Contains(messages, "--after") {
		t.Errorf("changes: exit code %d, %d lines for %d documents\n%s", code, strings.Count(out, "\n"), len(want), messages)
	}
	oddDocument(t, bin, c)
	insertAgain(t, bin, c, dir)
}

// interruptImport begins an import and interrupts it by Ctrl-C in the middle.
func interruptImport(t *testing.T, bin, file string) {
	t.Helper()
	cmd := exec.Command(bin, "import", file, "--concurrency", "1")
	cmd.Env = append(os.Environ(), "HOLDFAST_ENDPOINT="+base)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	state := file + ".rejects.ndjson.state"
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var s struct{ At struct{ Line int } }
		b, err := os.ReadFile(state)
		if err == nil && json.Unmarshal(b, &s) == nil && s.At.Line > 0 {
			break
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("the import keeps no state\n%s", stderr.String())
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code says how it ended
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(stderr.String(), "--resume") {
		t.Fatalf("interrupted: exit code %d\n%s", code, stderr.String())
	}
}

// awaitCount waits until the index shows all documents.
func awaitCount(t *testing.T, bin, c string, n int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		out, messages, _ := command(t, bin, "query", c, "--limit", "0", "--count", "--output", "json")
		if strings.Contains(out, fmt.Sprintf(`"value":%d,`, n)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the index does not show %d documents: %s%s", n, out, messages)
		}
	}
}

func compareExport(t *testing.T, bin, c string, want map[string]map[string]any) {
	t.Helper()
	out, messages, code := command(t, bin, "export", "--collection", c)
	if code != 0 {
		t.Fatalf("export: exit code %d\n%s", code, messages)
	}
	got := documentsOf(t, []byte(out))
	if len(got) != len(want) || strings.Count(out, "\n") != len(want) {
		t.Errorf("%d documents come out of %d", len(got), len(want))
	}
	for id, data := range want {
		if !value.Equal(got[id], data) {
			t.Errorf("%s comes out as %v, not %v", id, got[id], data)
		}
	}
}

// oddDocument sends an id with everything that a shell, a URL or a gateway
// could trip over through all commands for one document.
func oddDocument(t *testing.T, bin, c string) {
	t.Helper()
	id := c + `/a b+c%2F&d=e?f#g"h'é😀`
	out, messages, code := command(t, bin, "put", id, "--data", `{"n":12345678901234567890}`, "--if-absent")
	if code != 0 {
		t.Fatalf("put: exit code %d\n%s", code, messages)
	}
	var written struct {
		ID      string
		Version json.Number
		Token   string
	}
	if err := json.Unmarshal([]byte(out), &written); err != nil || written.ID != id {
		t.Errorf("put says %s (%v)", out, err)
	}
	if out, _, code := command(t, bin, "get", id); code != 0 || out != `{"n":12345678901234567890}`+"\n" {
		t.Errorf("get: exit code %d, %s", code, out)
	}
	if _, messages, code := command(t, bin, "put", id, "--data", `{}`, "--if-match", "1"); code != 6 || !strings.Contains(messages, written.Version.String()) {
		t.Errorf("a conflict: exit code %d, %s", code, messages)
	}
	out, _, code = command(t, bin, "query", c, "$id="+id, "--wait", written.Token, "--timeout", "20s", "--output", "ndjson")
	if code != 0 || strings.Count(out, "\n") != 1 {
		t.Errorf("query waiting for the write: exit code %d, %s", code, out)
	}
	if out, _, code := command(t, bin, "load", id, c+"/none"); code != 5 || strings.Count(out, "\n") != 1 {
		t.Errorf("load: exit code %d, %s", code, out)
	}
	if out, _, code := command(t, bin, "export", "--prefix", id); code != 0 || strings.Count(out, "\n") != 1 {
		t.Errorf("export by prefix: exit code %d, %s", code, out)
	}
	if out, _, code := command(t, bin, "delete", id, "--if-match", written.Version.String()); code != 0 || !strings.Contains(out, `"deleted":true`) {
		t.Errorf("delete: exit code %d, %s", code, out)
	}
	if _, _, code := command(t, bin, "get", id); code != 5 {
		t.Errorf("get of what was deleted: exit code %d", code)
	}
}

// insertAgain imports what is there already, with a new document and bad lines
// in between.
func insertAgain(t *testing.T, bin, c, dir string) {
	t.Helper()
	file := filepath.Join(dir, "insert.ndjson")
	lines := []string{
		fmt.Sprintf(`{"id":"%s/1","data":{}}`, c), fmt.Sprintf(`{"id":"%s/new","data":{"a":1}}`, c), "nonsense", `{"id":"x","data":{}}`,
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	_, messages, code := command(t, bin, "import", file, "--mode", "insert")
	if code != 4 || !strings.Contains(messages, "1 documents imported") {
		t.Errorf("insert: exit code %d\n%s", code, messages)
	}
	rejects, err := os.ReadFile(file + ".rejects.ndjson")
	if err != nil || bytes.Count(rejects, []byte("\n")) != 3 || !bytes.Contains(rejects, []byte("/problems/version-conflict")) || !bytes.Contains(rejects, []byte(`"input":"nonsense"`)) {
		t.Errorf("rejects (%v):\n%s", err, rejects)
	}
}

func documentsOf(t *testing.T, lines []byte) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for line := range bytes.Lines(lines) {
		v, err := value.Decode(bytes.TrimSpace(line), value.MaxDepth+1)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		m, _ := v.(map[string]any)
		id, _ := m["id"].(string)
		data, _ := m["data"].(map[string]any)
		all[id] = data
	}
	return all
}

func writeGzip(t *testing.T, path string, text []byte) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	_, err = z.Write(text)
	if err := errors.Join(err, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}
