package e2e_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"holdfast/shared/local/sample"
)

var update = flag.Bool("update", false, "write the answers into README.md instead of comparing them")

const readme = "../../../README.md"

// example is a query of the README and the answer that stands below it.
var example = regexp.MustCompile("(?s)```json\n([^`]+)\n```\n\n→ ([^\n]+)\n")

// The queries of the README answer what stands there.
func TestQueriesByExample(t *testing.T) {
	samples(t)
	films(t)
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	text = example.ReplaceAllFunc(text, func(part []byte) []byte {
		found++
		m := example.FindSubmatch(part)
		got := inWords(t, query(t, string(m[1])))
		if !*update && string(m[2]) != got {
			t.Errorf("%s\nanswers %s\nREADME: %s", m[1], got, m[2])
		}
		return bytes.Replace(part, m[2], []byte(got), 1)
	})
	if found < 8 {
		t.Errorf("%d examples are in the README", found)
	}
	if *update {
		if err := os.WriteFile(readme, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// inWords says what an answer holds.
func inWords(t *testing.T, a answer) string {
	t.Helper()
	var s struct {
		Documents []struct {
			ID   string
			Data map[string]any
		}
		Included   map[string]any
		Aggregates map[string]struct {
			Groups []struct {
				Key    json.RawMessage
				Orders int
			}
			Others int
		}
		Count    *struct{ Value int }
		Examined int
		Next     string
	}
	if err := json.Unmarshal(a.Body, &s); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
	var words []string
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if n := len(s.Documents); n > 0 {
		first := "`" + s.Documents[0].ID + "`"
		if title, ok := s.Documents[0].Data["Title"]; ok {
			first += fmt.Sprintf(" (%v)", title)
		}
		if n == 1 {
			say("1 document, %s", first)
		} else {
			say("%d documents, the first %s", n, first)
		}
	}
	if s.Count != nil {
		say("%d in all", s.Count.Value)
	}
	if len(s.Included) > 0 {
		say("%d more included", len(s.Included))
	}
	if s.Examined > 0 {
		say("%d examined", s.Examined)
	}
	for _, g := range s.Aggregates {
		say("%d groups, the first `%s` with %d orders, and %d orders in others", len(g.Groups), g.Groups[0].Key, g.Groups[0].Orders, g.Others)
	}
	if s.Next != "" {
		say("and a `next`")
	}
	return strings.Join(words, ", ") + "."
}

// films are the movies in a collection whose titles can be searched by words.
func films(t *testing.T) {
	t.Helper()
	if a := send(t, "PUT", "/collections/films", `{"text":["Title"]}`, "If-None-Match", "*"); a.Status != 200 && a.Status != 201 {
		t.Fatalf("%s", a)
	}
	movies, err := sample.Movies()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(string(movies)), `{"id":"movies/`, `{"id":"films/`), "\n")
	for len(lines) > 0 {
		n := min(500, len(lines))
		a := send(t, "POST", "/bulk", strings.Join(lines[:n], "\n"), "Content-Type", "application/x-ndjson")
		told := strings.Split(strings.TrimSpace(string(a.Body)), "\n")
		if a.Status != 200 || len(told) != n+1 {
			t.Fatalf("%s", a)
		}
		token := answer{Body: []byte(told[n])}.JSON("token")
		query(t, fmt.Sprintf(`{"from":"films","limit":0,"wait":{"tokens":[%q],"timeout":"20s"}}`, token))
		lines = lines[n:]
	}
}
