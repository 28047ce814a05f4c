package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/shared/local/chaos"
)

func TestChaosCommandLines(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(full, "bad.ndjson")
	if err := os.WriteFile(bad, []byte(`{"id":"users/1","data":{}}`+"\n\n"+`{"id":"users","data":{}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--help"}, exitOK, "Break a stack of its own"},
		{[]string{"chaos", "--help"}, exitOK, "holdfast chaos --documents 1500"},
		{[]string{"chaos", "a", "b"}, exitUsage, "takes [FILE]; arguments given: 2"},
		{[]string{"chaos", "--documents", "0"}, exitUsage, "--documents"},
		{[]string{"chaos", "--kills", "-1"}, exitUsage, "--kills"},
		{[]string{"chaos", "--visibility", "14s"}, exitUsage, "at least 15s"},
		{[]string{"chaos", "--faults", "0.6"}, exitUsage, "--faults"},
		{[]string{"chaos", "--faults", "NaN"}, exitUsage, "--faults"},
		{[]string{"chaos", "--writers", "0"}, exitUsage, "--writers"},
		{[]string{"chaos", "--duration", "10ms"}, exitUsage, "--duration"},
		{[]string{"chaos", "--output", "table"}, exitUsage, "--output"},
		{[]string{"chaos", "--dir", full}, exitUsage, "not empty"},
		{[]string{"chaos", filepath.Join(full, "none")}, exitFailed, "no such file"},
		{[]string{"chaos", bad}, exitFailed, "document 3"},
	} {
		var out, progress bytes.Buffer
		code := run(t.Context(), c.args, &out, &progress)
		if all := out.String() + progress.String(); code != c.code || !strings.Contains(all, c.says) {
			t.Errorf("%v: exit code %d, want %d, and %q in:\n%s", c.args, code, c.code, c.says, all)
		}
	}
}

// A short form of what the command is for: everything is killed once and one
// request in twenty fails while documents come in, and all promises hold.
func TestNothingIsLostInChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("starts engines and kills them")
	}
	t.Setenv(asCommand, "1") // the stack is this test binary
	dir := filepath.Join(t.TempDir(), "chaos")
	var out, progress bytes.Buffer
	code := run(t.Context(), []string{
		"chaos", "--documents", "1500", "--duration", "20s", "--kills", "4", "--faults", "0.05", "--seed", "42",
		"--visibility", "20s", "--repair-every", "2s", "--opensearch-heap", "384m", "--dir", dir, "--output", "json",
	}, &out, &progress)
	t.Log(progress.String())
	var r chaos.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, out.String())
	}
	t.Log(out.String())
	if code != exitOK || !r.Clean {
		t.Errorf("exit code %d, clean %t, %v %v", code, r.Clean, r.Problems, r.Examples)
	}
	if r.Documents != 1500 || r.Live+r.Gone < 1500 || r.Writes.Acknowledged < 1500 || r.Writes.Deletes == 0 || r.Writes.Conditional == 0 || r.Writes.Refused == 0 {
		t.Errorf("%+v", r)
	}
	for _, who := range []string{"opensearch", "elasticmq", "dynoxide", "stack"} {
		if r.Kills[who] != 1 {
			t.Errorf("%s was killed %d times", who, r.Kills[who])
		}
	}
	for engine, requests := range r.Requests {
		if requests == 0 {
			t.Errorf("%s was not reached through the proxy", engine)
		}
	}
	if len(r.Requests) != 3 || len(r.Faults["dynoxide"]) < 5 {
		t.Errorf("requests %v, faults %v", r.Requests, r.Faults)
	}
	if r.Stacks < 2 || r.Comparison == nil || r.Comparison.Checked < r.Live+r.Gone || r.Seconds.Converge <= 0 || r.Seconds.Prove < r.Seconds.Converge {
		t.Errorf("%+v", r)
	}
	awaitNoProcess(t, dir, 30*time.Second)
}
