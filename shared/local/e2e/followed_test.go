package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeBlock = regexp.MustCompile("(?s)```(console|sh)\n(.*?)```\n")
	// stable is what an answer in the README has in common with that of another
	// day: the status, what is refused and where, ids, names and sentences.
	stable = regexp.MustCompile(`HTTP/1\.1 \d{3} [A-Za-z ]+|"(?:type|pointer|name|detail)":"[^"…]*"|"id":"users[^"…]*"|"born":\d+|The write you waited for is included\.`)
	// otherwise are the commands that do not come to an end, or are about another
	// stack or this machine.
	otherwise = regexp.MustCompile(`--follow|--watch|holdfast chaos|holdfast doctor|go build`)
)

// Whoever types what the README says, from its tour to the end of its queries, on
// a new stack and in its order, gets what stands there.
func TestTheReadmeCanBeFollowed(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("the README's tour is one with curl")
	}
	bin, address := buildCommand(t), freeAddress(t)
	startCommand(t, bin, "--ephemeral", "--addr", address)
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	_, followed, _ := strings.Cut(string(text), "\n## Five minutes\n")
	followed, _, _ = strings.Cut(followed, "\n## What is promised")

	// All are lines of one script, since some set variables for the next.
	type step struct{ command, answer string }
	var steps []step
	for _, block := range codeBlock.FindAllStringSubmatch(followed, -1) {
		if block[1] == "sh" {
			for line := range strings.Lines(block[2]) {
				if !otherwise.MatchString(line) {
					steps = append(steps, step{command: line})
				}
			}
			continue
		}
		for _, part := range strings.Split("\n"+block[2], "\n$ ")[1:] {
			command, answer, _ := strings.Cut(strings.ReplaceAll(part, "\\\n", " "), "\n")
			steps = append(steps, step{command, answer})
		}
	}
	if len(steps) < 20 {
		t.Errorf("only %d commands are in the README", len(steps))
	}
	var script strings.Builder
	const mark = "=== the next command"
	for _, s := range steps {
		fmt.Fprintf(&script, "echo '%s'\n%s\necho \" exit code $?\"\n", mark, strings.ReplaceAll(s.command, "localhost:8787", address))
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // for what is exported
	if err := os.Symlink(filepath.Join(root, "shared"), filepath.Join(dir, "shared")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOLDFAST_ENDPOINT=http://"+address, "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	answers := strings.Split(string(out), mark+"\n")[1:]
	if len(answers) != len(steps) {
		t.Fatalf("%d answers to %d commands:\n%s", len(answers), len(steps), out)
	}
	for i, s := range steps {
		if !strings.HasSuffix(answers[i], " exit code 0\n") {
			t.Errorf("%s\nends with\n%s", s.command, answers[i])
		}
		for _, part := range stable.FindAllString(s.answer, -1) {
			if !strings.Contains(answers[i], part) {
				t.Errorf("%s\nshows no %s:\n%s", s.command, part, answers[i])
			}
		}
	}
}
