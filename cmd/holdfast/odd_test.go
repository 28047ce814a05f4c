package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is no command, or lacks an argument, does nothing, says what would be
// right and is no success to a script.
func TestCommandLinesWithASlip(t *testing.T) {
	newFake(t) // clears the environment
	for args, says := range map[string]string{
		"collections lst":                 `no command "lst"`,
		"quarantine rety c/1":             `no command "rety"`,
		"dead-letters redirve":            `no command "redirve"`,
		"help nosuch":                     `no command "nosuch"`,
		"help collections nosuch":         `no command "collections nosuch"`,
		"get":                             "holdfast get takes ID; arguments given: 0",
		"get a/b c/d":                     "holdfast get takes ID; arguments given: 2",
		"changes c":                       `takes no arguments; "c" is one`,
		"collections put c":               "holdfast collections put takes NAME FILE|-; arguments given: 1",
		"changes --collection=":           "--collection is empty",
		"changes --after=":                "--after is empty",
		"quarantine list --collection=":   "--collection is empty",
		"jobs run reindex --collection=":  "--collection is empty",
		"jobs run repair --mode=":         "--mode is empty",
		"export --collection c --filter=": "--filter is empty",
		"export --collection c --out=":    "--out is empty",
		"import - --rejects=":             "--rejects is empty",
	} {
		var out, messages bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), &out, &messages); code != exitUsage || out.Len() > 0 || !strings.Contains(messages.String(), says) {
			t.Errorf("%s: exit code %d\n%s%s", args, code, out.String(), messages.String())
		}
	}
	for _, args := range []string{"collections", "quarantine", "dead-letters", "help", "help collections put"} {
		var out, messages bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), &out, &messages); code != exitOK || !strings.Contains(out.String(), "Usage:") {
			t.Errorf("%s: exit code %d\n%s%s", args, code, out.String(), messages.String())
		}
	}
}

// The exit codes that --help lists are those that commands have.
func TestTheExitCodeOfAStatusIsTheOneThatHelpSays(t *testing.T) {
	var out bytes.Buffer
	run(t.Context(), []string{"--help"}, &out, &out)
	if want := fmt.Sprintf("%d  local --demo, doctor, status:", exitNotAsPromised); !strings.Contains(out.String(), want) {
		t.Errorf("%q is not in\n%s", want, out.String())
	}
}

// A byte order mark, which some editors and shells put before everything, is no
// part of a document or of an id.
func TestAByteOrderMarkIsPassedOver(t *testing.T) {
	f := newFake(t)
	path := filepath.Join(t.TempDir(), "x.json")
	writeFile(t, path, "\ufeff{\"a\":1}\r\n")
	f.holdfast("put", "c/1", path).expect(t, exitOK)
	if got := f.at("c/1"); strings.TrimSpace(got) != `{"a":1}` {
		t.Errorf("saved %q", got)
	}
	writeFile(t, path, "\ufeffc/1\r\n\r\nc/1")
	withStdin(t, path)
	if r := f.holdfast("load").expect(t, exitOK); strings.Count(r.out, `{"id":"c/1"`) != 2 {
		t.Errorf("%s%s", r.out, r.messages)
	}
}

// withStdin makes a file the standard input.
func withStdin(t *testing.T, path string) {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdin
	os.Stdin = in
	t.Cleanup(func() { os.Stdin = old; in.Close() })
}

// Of many ids the one that is none is named.
func TestLoadNamesTheIDThatIsNone(t *testing.T) {
	f := newFake(t)
	f.fill(3, "c")
	for line, says := range map[string]string{
		"  ": `"  ": an id has at least two segments`, "c/0001/": `"c/0001/": no segment`, "c/\x1b[31m": `"c/\x1b[31m": an id contains no control character`,
		"c/\xff": `"c/\xff": an id is valid UTF-8`, strings.Repeat("a", mostIDLine+1): "a line has more than 65536 bytes; an id has at most 512",
	} {
		path := file(t, "ids", "c/0000", line, "c/0001")
		withStdin(t, path)
		if r := f.holdfast("load").expect(t, exitFailed); !strings.Contains(r.messages, says) {
			t.Errorf("%.20q: %s", line, r.messages)
		}
	}
}

// Whoever answers without being a Holdfast is not believed: {} from somebody
// else would be an empty result.
func TestAnswersOfSomebodyElse(t *testing.T) {
	for _, body := range []string{"{}", "<html>", ""} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		defer s.Close()
		newFake(t) // clears the environment
		target := filepath.Join(t.TempDir(), "x.ndjson")
		for _, args := range [][]string{
			{"get", "c/1"}, {"load", "c/1"}, {"put", "c/1", "--data", "{}"}, {"create", "c/", "--data", "{}"}, {"delete", "c/1"}, {"query", "c"}, {"changes"},
			{"export", "--collection", "c", "--out", target}, {"export", "--prefix", "c/1"}, {"import", file(t, "in", `{"id":"c/1","data":{}}`)}, {"status"},
			{"collections", "list"}, {"collections", "get", "c"}, {"quarantine", "list"}, {"quarantine", "retry", "c/1"}, {"dead-letters", "list"}, {"jobs"}, {"ids"},
		} {
			var out, messages bytes.Buffer
			if code := run(t.Context(), append(args, "--endpoint", s.URL), &out, &messages); code != exitFailed || out.Len() > 0 || !strings.Contains(messages.String(), "no Holdfast") {
				t.Errorf("%q to %v: exit code %d\n%s%s", body, args, code, out.String(), messages.String())
			}
		}
		if exists(target) {
			t.Errorf("%q makes an export complete", body)
		}
	}
}

func TestAWrongEndpointIsNamed(t *testing.T) {
	f := newFake(t)
	for endpoint, want := range map[string]struct {
		code int
		says string
	}{
		"127.0.0.1:8787":      {exitUsage, `"127.0.0.1:8787" is no URL such as`},
		"localhost:8787":      {exitUsage, `"localhost:8787" is no URL such as`},
		" " + f.url:           {exitUsage, "is no URL such as"},
		"http://[::1":         {exitUsage, "is no URL such as"},
		f.url + "/prod":       {exitFailed, "the endpoint is " + f.url + "/prod"},
		"https://127.0.0.1:1": {exitFailed, "--token-file"},
		"http://127.0.0.1:1":  {exitFailed, "http://127.0.0.1:1 cannot be reached"},
		f.url + "/":           {exitNotFound, ""},
	} {
		for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
			t.Setenv(name, "")
		}
		var out, messages bytes.Buffer
		if code := run(t.Context(), []string{"get", "c/none", "--endpoint", endpoint}, &out, &messages); code != want.code || !strings.Contains(messages.String(), want.says) {
			t.Errorf("%q: exit code %d\n%s", endpoint, code, messages.String())
		}
	}
}

// Results are JSON that no terminal obeys, and the same values.
func TestResultsHoldNothingThatATerminalObeys(t *testing.T) {
	f := newFake(t)
	const data = "{\"a\u009b\":\"\u009b31m\u007f\u0085\u009f\",\"b\":\"\\u001b[2J\",\"c\":\"é€😀\u00a0\"}"
	f.write("c/1", data)
	withAnswers := operate(f, map[string]string{
		"GET /collections":   `{"collections":[{"name":"c\u009b","revision":1,"definition":{"text":["` + "\u009b" + `"]}}]}`,
		"GET /collections/c": `{"text":["` + "\u009b" + `"]}`,
		"GET /quarantine":    `{"entries":[{"id":"c/1","version":1,"reason":"` + "\u009b\u202e" + `","attempts":1,"since":"` + "\u009b" + `","partial":false}]}`,
		"GET /jobs":          `{"jobs":` + strings.Replace(jobsText, "no answer", "\u009b", 1) + `}`,
		"GET /jobs/repair":   `{"name":"repair","modes":[],"last":{"mode":"prove","started":"","finished":"","outcome":"ok","detail":{"a":"` + "\u009b\u007f" + `"}},"requests":[]}`,
	})
	for _, args := range []string{
		"get c/1", "get c/1 -o pretty", "get c/1 -o table", "load c/1", "load c/1 -o json", "load c/1 -o table", "query c", "query c -o json", "query c -o ndjson",
		"export --collection c", "export --prefix c/1 --envelope", "collections list", "collections list -o json", "collections get c", "collections get c -o json",
		"quarantine list", "quarantine list -o json", "jobs", "jobs -o json", "jobs repair", "jobs repair -o json",
	} {
		r := f.holdfast(strings.Fields(args)...).expect(t, exitOK)
		for _, c := range r.out + r.messages {
			if c != '\n' && (c < ' ' || c >= 0x7f && c <= 0x9f) {
				t.Errorf("%s writes %U:\n%q", args, c, r.out)
			}
		}
		if r.out == "" {
			t.Errorf("%s writes nothing", args)
		}
	}
	if len(*withAnswers) == 0 {
		t.Error("nobody was asked")
	}
	r := f.holdfast("get", "c/1").expect(t, exitOK)
	if !equalJSON([]byte(data), []byte(r.out)) || !strings.Contains(r.out, "é€😀\u00a0") {
		t.Errorf("%s is another value than %s", r.out, data)
	}
}

// Numbers come through YAML as they are written.
func TestNumbersInYAML(t *testing.T) {
	const numbers = `{"version":1796095940720991,"long":12345678901234567890123,"dec":0.10000000000000000001,"exp":1e+400,"list":[1,2.5,-3],"text":"12","t":true,"n":null}`
	text, err := toYAML([]byte(numbers))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"version: 1796095940720991\n", "long: 12345678901234567890123\n", "dec: 0.10000000000000000001\n", "- 2.5\n", "text: \"12\"\n", "t: true\n", "n\": null\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	back, err := toJSON([]byte("{version: 1796095940720991, list: [1, 2.5, -3]}"))
	if err != nil || string(back) != `{"list":[1,2.5,-3],"version":1796095940720991}` {
		t.Errorf("%s, %v", back, err)
	}
}

// What is wrong with the file of a definition is said in its own words.
func TestFilesThatAreNoDefinition(t *testing.T) {
	f := newFake(t)
	for text, says := range map[string]string{
		"": "there is nothing in it", "# only a comment\n": "there is nothing in it", "1: 2\n": "names are texts", "a: .nan\n": "numbers are finite",
		"text: [a\n": "neither YAML nor JSON", "a: 1\na: 2\n": "already defined", "---\na: 1\n---\nb: 1\n": "more than one document", "a: &a [*a]\n": "contains itself",
	} {
		path := filepath.Join(t.TempDir(), "d.yaml")
		writeFile(t, path, text)
		r := f.holdfast("collections", "put", "c", path).expect(t, exitFailed)
		if !strings.Contains(r.messages, says) || !strings.Contains(r.messages, "d.yaml") || strings.Contains(r.messages, "interface") {
			t.Errorf("%q: %s", text, r.messages)
		}
	}
}

// The text of an answer that is escaped stays JSON, wherever the escapes fall.
func TestEscapedControlsStayJSON(t *testing.T) {
	for _, text := range []string{`"\\` + "\u0085" + `"`, `"` + "\u007f" + `\""`, `{"` + "\u0080" + `":[` + "\n" + `"x"]}`, `"é"`} {
		escaped := escapeControls([]byte(text))
		var before, after any
		if err := json.Unmarshal([]byte(text), &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(escaped, &after); err != nil || fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("%q became %q, %v", text, escaped, err)
		}
	}
}
