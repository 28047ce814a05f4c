package pipeline_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what happens into the transcripts in testdata")

// A transcript is a text file that says what goes in and what comes out. It is
// a series of steps, each a command with its lines, a line of four dashes and
// what happened; steps are divided by an empty line, and lines that begin with
// # are for the reader. With -update what happened is written into the file.

// step is one command of a transcript.
type step struct {
	comment string // the lines before it
	command string
	lines   []string // its input
	want    string
}

// playTranscripts runs each file of a directory of transcripts. begin makes a
// fresh world and returns what carries out one step.
func playTranscripts(t *testing.T, pattern string, begin func(t *testing.T) func(step) string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			play := begin(t)
			var told strings.Builder
			for _, s := range parseTranscript(t, string(text)) {
				got := strings.TrimRight(play(s), "\n")
				if !*update && got != s.want {
					t.Errorf("%s\n%s\n--- what happened:\n%s\n--- what the transcript says:\n%s", s.command, strings.Join(s.lines, "\n"), got, s.want)
				}
				told.WriteString(s.comment)
				told.WriteString(s.command + "\n")
				for _, line := range s.lines {
					told.WriteString("  " + line + "\n")
				}
				told.WriteString("----\n")
				if got != "" {
					told.WriteString(got + "\n")
				}
				told.WriteString("\n")
			}
			if *update {
				if err := os.WriteFile(file, []byte(strings.TrimRight(told.String(), "\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func parseTranscript(t *testing.T, text string) []step {
	t.Helper()
	var steps []step
	comment := "" // blocks of comments only belong to the next step
	for block := range strings.SplitSeq(text, "\n\n") {
		s := step{comment: comment}
		part := "comment"
		var want []string
		for line := range strings.SplitSeq(strings.Trim(block, "\n"), "\n") {
			switch {
			case part == "comment" && strings.HasPrefix(line, "#"):
				s.comment += line + "\n"
			case part == "comment":
				s.command, part = line, "input"
			case part == "input" && line == "----":
				part = "output"
			case part == "input":
				s.lines = append(s.lines, strings.TrimSpace(line))
			default:
				want = append(want, line)
			}
		}
		if s.command == "" {
			comment = s.comment + "\n"
			continue
		}
		comment = ""
		s.want = strings.Join(want, "\n")
		steps = append(steps, s)
	}
	if len(steps) == 0 {
		t.Fatal("a transcript without steps")
	}
	return steps
}

// words splits a line into its words and its name=value options; a word alone
// is an option that is "yes".
func words(line string, fixed int) (first []string, options map[string]string) {
	options = map[string]string{}
	for i, w := range strings.Fields(line) {
		if i < fixed {
			first = append(first, w)
			continue
		}
		name, value, has := strings.Cut(w, "=")
		if !has {
			value = "yes"
		}
		options[name] = value
	}
	for len(first) < fixed {
		first = append(first, "")
	}
	return first, options
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	var n int64
	if _, err := fmt.Sscanf(s, "%d", &n); err != nil {
		t.Fatalf("%q is no number", s)
	}
	return n
}
