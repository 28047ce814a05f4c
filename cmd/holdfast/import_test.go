package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// many are n lines of a collection.
func many(n int, collection string) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"id":"%s/%d","data":{"n":%d}}`, collection, i, i)
	}
	return lines
}

func TestImportOfEveryKindOfFile(t *testing.T) {
	lines := strings.Join(many(500, "c"), "\n") + "\n"
	array := "\ufeff [\n" + strings.Join(many(500, "c"), "\n,\n") + "\n] \n"
	pretty := strings.ReplaceAll(array, `"data":`, "\"data\":\n  ")
	gz := func(s string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, s)
		_ = z.Close()
		return b.String()
	}
	zst := func(s string) string {
		z, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(z.EncodeAll([]byte(s), nil))
	}
	for name, text := range map[string]string{
		"a.ndjson": lines, "crlf.ndjson": strings.ReplaceAll(lines, "\n", "\r\n"), "bom.ndjson": "\ufeff" + lines,
		"a.json": array, "pretty.json": pretty, "a.ndjson.gz": gz(lines), "a.json.gz": gz(array), "a.ndjson.zst": zst(lines),
		"unnamed": zst(array), "twice.gz": gz(lines[:len(lines)/2]) + gz(lines[len(lines)/2:]), "noend.ndjson": strings.TrimSpace(lines),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			path := filepath.Join(t.TempDir(), name)
			writeFile(t, path, text)
			r := f.holdfast("import", path, "--output", "json").expect(t, exitOK)
			var summary struct {
				Complete        bool
				Lines, Imported int
			}
			if err := json.Unmarshal([]byte(r.out), &summary); err != nil || !summary.Complete || summary.Lines != 500 || summary.Imported != 500 {
				t.Errorf("%s (%v)", r.out, err)
			}
			if len(f.documents) != 500 || f.at("c/499") != `{"n":499}` && name != "pretty.json" {
				t.Errorf("%d documents, the last %s", len(f.documents), f.at("c/499"))
			}
			if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestImportFromStandardInput(t *testing.T) {
	f := newFake(t)
	in, err := os.Open(file(t, "x", many(3, "c")...))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	old := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = old }()
	f.holdfast("import", "-").expect(t, exitOK)
	if len(f.documents) != 3 {
		t.Errorf("%d documents", len(f.documents))
	}
}

// Ctrl-C ends an import that waits for standard input, and what was read is
// acknowledged.
func TestAnImportThatWaitsForInputIsInterrupted(t *testing.T) {
	f := newFake(t)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	old := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = old }()
	if _, err := io.WriteString(out, strings.Join(many(bulkLines+5, "c"), "\n")+"\n"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.before = func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.URL.Path == "/bulk" {
			cancel()
		}
		return false
	}
	var messages bytes.Buffer
	code := run(ctx, []string{"import", "-", "--endpoint", f.url}, io.Discard, &messages)
	if want := fmt.Sprintf("up to line %d is acknowledged", bulkLines); code != exitInterrupted || !strings.Contains(messages.String(), want) {
		t.Errorf("exit code %d\n%s", code, messages.String())
	}
	f.before = nil
	// Also one that has not had a byte to see what it is.
	for _, args := range [][]string{{"load", "--endpoint", f.url}, {"put", "c/1", "-", "--endpoint", f.url}, {"import", "-", "--endpoint", f.url}, {"chaos", "-"}} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		var messages bytes.Buffer
		if code := run(ctx, args, io.Discard, &messages); code != exitInterrupted {
			t.Errorf("%v: exit code %d\n%s", args, code, messages.String())
		}
		cancel()
	}
}

func TestBadLinesAreRejectedAndTheRestIsImported(t *testing.T) {
	f := newFake(t)
	f.refuse = func(id, _ string) string {
		if id == "c/bad" {
			return "document-too-large"
		}
		return ""
	}
	path := file(t, "x.ndjson",
		`{"id":"c/1","data":{"a":1}}`,
		`{"id":"c/2","data":{"a":1}`,
		``,
		`{"id":"c/bad","data":{"b":2}}`,
		`{"id":7,"data":{}}`,
		`[1]`,
		`{"data":{}}`,
		`{"id":"c/3"}`,
		`{"id":"c/4","data":{},"what":1}`,
		"{\"id\":\"c/\xff\",\"data\":{}}",
		`{"id":"c/`+strings.Repeat("x", mostLine)+`","data":{}}`,
		`{"id":"c/5","data":{},"version":1,"createdAt":"x","updatedAt":"y"}`,
		`null`,
		`{"id":"c/1","delete":true}`,
		`{"id":"c/6","delete":true,"data":{}}`,
	)
	r := f.holdfast("import", path).expect(t, exitRejected)
	if !strings.Contains(r.messages, "3 documents imported") || !strings.Contains(r.messages, "11 rejected") || !strings.Contains(r.messages, "line 2: ") {
		t.Errorf("the messages are\n%s", r.messages)
	}
	if f.at("c/1") != "" || f.at("c/5") != "{}" || len(f.documents) != 1 {
		t.Errorf("stored: %v", f.documents)
	}
	var at []int64
	for _, r := range rejectsOf(t, path+".rejects.ndjson") {
		at = append(at, r.Line)
		var problem struct{ Type, Detail string }
		if err := json.Unmarshal(r.Error, &problem); err != nil || problem.Type == "" || problem.Detail == "" {
			t.Errorf("line %d: the error is %s", r.Line, r.Error)
		}
		switch r.Line {
		case 2, 10, 11:
			if r.Input[0] != '"' || len(r.Input) > 2*keptOfLongLine {
				t.Errorf("line %d: what is no JSON is kept as text: %.50s", r.Line, r.Input)
			}
		case 4:
			if string(r.Input) != `{"id":"c/bad","data":{"b":2}}` || *r.ID != "c/bad" {
				t.Errorf("line 4 is kept as %s", r.Input)
			}
		}
	}
	if want := []int64{2, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15}; !slices.Equal(at, want) {
		t.Errorf("rejected are %v, want %v", at, want)
	}
}

func TestImportOfPlainDocuments(t *testing.T) {
	f := newFake(t)
	path := file(t, "x.ndjson",
		`{"email":"a@b","n":1}`, `{"email":12,"n":2}`, `{"n":3}`, `{"email":"a/b"}`, `{"email":null}`, `{"email":1.5}`, `{"email":".."}`, `[]`)
	f.holdfast("import", path, "--collection", "people", "--id-field", "email").expect(t, exitRejected)
	if f.at("people/a@b") != `{"email":"a@b","n":1}` || f.at("people/12") != `{"email":12,"n":2}` || len(f.documents) != 2 {
		t.Errorf("stored: %v", f.documents)
	}
	if n := len(rejectsOf(t, path+".rejects.ndjson")); n != 6 {
		t.Errorf("%d rejects", n)
	}
	f.holdfast("import", path, "--collection", "p/1/q/", "--id-field", "n").expect(t, exitRejected)
	if f.at("p/1/q/3") != `{"n":3}` {
		t.Errorf("stored: %v", f.documents)
	}
}

func TestServerAssignedIDs(t *testing.T) {
	f := newFake(t)
	lost := 0
	f.before = func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
		if string(body) == `{"n":2}` {
			lost++
			panic(http.ErrAbortHandler)
		}
		return false
	}
	path := file(t, "x.ndjson", `{"n":1}`, `{"n":2}`, `{"n":3}`)
	f.holdfast("import", path, "--collection", "c").expect(t, exitRejected)
	rejects := rejectsOf(t, path+".rejects.ndjson")
	if len(f.documents) != 2 || lost != 1 || len(rejects) != 1 || !strings.Contains(string(rejects[0].Error), "nobody knows") {
		t.Errorf("%d documents, %d attempts of the lost one, rejects %+v", len(f.documents), lost, rejects)
	}
	if exists(path + ".rejects.ndjson.state") {
		t.Error("there is a state that nothing can go on with")
	}
}

func TestInsertDoesNotReplace(t *testing.T) {
	f := newFake(t)
	f.write("c/1", `{"old":true}`)
	f.write("c/2", `{"n":2}`)
	path := file(t, "x.ndjson", `{"id":"c/1","data":{"n":1}}`, `{"id":"c/2","data":{"n":2}}`, `{"id":"c/3","data":{"n":3}}`, `{"id":"c/3","delete":true}`)
	f.holdfast("import", path, "--mode", "insert").expect(t, exitRejected)
	if f.at("c/1") != `{"old":true}` || f.at("c/3") != `{"n":3}` {
		t.Errorf("stored: %v", f.documents)
	}
	rejects := rejectsOf(t, path+".rejects.ndjson")
	if len(rejects) != 3 || rejects[1].Line != 2 || !strings.Contains(string(rejects[1].Error), "version-conflict") {
		t.Errorf("rejects: %+v", rejects)
	}
}

// An insert whose answer got lost finds its own document.
func TestAnInsertKnowsItsOwnLostWrite(t *testing.T) {
	f := newFake(t)
	f.before = func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Method == "PUT" && f.at("c/1") == "" {
			f.mu.Lock()
			f.write("c/1", string(body))
			f.mu.Unlock()
			panic(http.ErrAbortHandler) // written, but nobody hears of it
		}
		return false
	}
	r := f.holdfast("import", file(t, "x.ndjson", `{"id":"c/1","data":{"n":1.0}}`), "--mode", "insert").expect(t, exitOK)
	if !strings.Contains(r.messages, "1 were there already") {
		t.Errorf("the messages are\n%s", r.messages)
	}
}

func TestLinesOfOneIDAreWrittenInOrder(t *testing.T) {
	f := newFake(t)
	var lines []string
	for i := range 3000 {
		lines = append(lines, fmt.Sprintf(`{"id":"c/%d","data":{"n":%d}}`, i%700, i))
	}
	f.holdfast("import", file(t, "x.ndjson", lines...), "--concurrency", "8").expect(t, exitOK)
	for i := 2300; i < 3000; i++ {
		if got, want := f.at(fmt.Sprintf("c/%d", i%700)), fmt.Sprintf(`{"n":%d}`, i); got != want {
			t.Fatalf("c/%d is %s, want %s", i%700, got, want)
		}
	}
}

func TestLinesThatWereNotTriedAreSentAgain(t *testing.T) {
	f := newFake(t)
	refused := map[string]int{}
	f.refuse = func(id, _ string) string {
		if refused[id]++; refused[id] < 3 && strings.HasSuffix(id, "7") {
			return []string{"throttled", "unavailable", "outcome-unknown"}[refused[id]%3]
		}
		return ""
	}
	f.holdfast("import", file(t, "x.ndjson", many(300, "c")...)).expect(t, exitOK)
	if len(f.documents) != 300 {
		t.Errorf("%d documents", len(f.documents))
	}
}

// Requests that are too large are divided until the line is alone that cannot
// be sent at all.
func TestRequestsThatAreTooLargeAreDivided(t *testing.T) {
	f := newFake(t)
	f.before = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if bytes.Count(body, []byte("\n")) > 20 || bytes.Contains(body, []byte(`"c/60"`)) {
			tellProblem(w, 413, "request-too-large")
			return true
		}
		return false
	}
	path := file(t, "x.ndjson", many(300, "c")...)
	f.holdfast("import", path).expect(t, exitRejected)
	rejects := rejectsOf(t, path+".rejects.ndjson")
	if len(f.documents) != 299 || len(rejects) != 1 || rejects[0].Line != 61 {
		t.Errorf("%d documents, rejects %+v", len(f.documents), rejects)
	}
}

// An import is interrupted while it runs, and goes on. Every line is
// acknowledged exactly once in the summary, and every reject is in the file
// exactly once.
func TestAnInterruptedImportGoesOn(t *testing.T) {
	for _, mode := range []string{modeUpsert, modeInsert} {
		for _, kind := range []string{"ndjson", "json", "ndjson.gz"} {
			t.Run(mode+" "+kind, func(t *testing.T) {
				f := newFake(t)
				f.refuse = func(id, _ string) string {
					if strings.HasSuffix(id, "3") {
						return "invalid-json"
					}
					return ""
				}
				const n = 2000
				path := interrupted(t, f, mode, kind, n)
				r := f.holdfast("import", path, "--mode", mode, "--resume", "--output", "json").expect(t, exitRejected)
				var s struct{ Lines, Imported, Present, Rejected int }
				if err := json.Unmarshal([]byte(r.out), &s); err != nil || s.Lines != n || s.Imported+s.Present != n*9/10 || s.Rejected != n/10 {
					t.Errorf("%s (%v)", r.out, err)
				}
				if !strings.Contains(r.messages, "going on after line") {
					t.Errorf("the messages are\n%s", r.messages)
				}
				lines := map[int64]bool{}
				for _, r := range rejectsOf(t, path+".rejects.ndjson") {
					if lines[r.Line] {
						t.Errorf("line %d is rejected twice", r.Line)
					}
					lines[r.Line] = true
				}
				if len(lines) != n/10 || len(f.documents) != n*9/10 {
					t.Errorf("%d rejects, %d documents", len(lines), len(f.documents))
				}
				if exists(path + ".rejects.ndjson.state") {
					t.Error("the state is left behind")
				}
			})
		}
	}
}

// interrupted begins an import of n lines and interrupts it in the middle.
func interrupted(t *testing.T, f *fake, mode, kind string, n int) string {
	t.Helper()
	text := strings.Join(many(n, "c"), "\n") + "\n"
	switch kind {
	case "json":
		text = "[" + strings.Join(many(n, "c"), " , ") + "]"
	case "ndjson.gz":
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		text = b.String()
	}
	path := filepath.Join(t.TempDir(), "x."+kind)
	writeFile(t, path, text)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.before = func(http.ResponseWriter, *http.Request, []byte) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.documents) > n/3 {
			cancel()
		}
		return false
	}
	var out, messages bytes.Buffer
	code := run(ctx, []string{"import", path, "--mode", mode, "--endpoint", f.url, "--concurrency", "3"}, &out, &messages)
	f.mu.Lock()
	f.before = nil
	f.mu.Unlock()
	if code != exitInterrupted || !strings.Contains(messages.String(), "--resume") {
		t.Fatalf("exit code %d\n%s", code, messages.String())
	}
	if len(f.documents) == 0 || len(f.documents) >= n*9/10 {
		t.Fatalf("%d documents: not in the middle", len(f.documents))
	}
	return path
}

func TestResumeIsBoundToTheFileAndTheFlags(t *testing.T) {
	f := newFake(t)
	path := interrupted(t, f, modeUpsert, "ndjson", 2000)
	f.holdfast("import", path, "--mode", "insert", "--resume").expect(t, exitFailed)
	whole := readFile(t, path)
	writeFile(t, path, "X"+whole[1:])
	if r := f.holdfast("import", path, "--resume").expect(t, exitFailed); !strings.Contains(r.messages, "not the file") {
		t.Errorf("another file: %s", r.messages)
	}
	writeFile(t, path, whole+"\n")
	f.holdfast("import", path, "--resume").expect(t, exitFailed)
	writeFile(t, path, whole)
	if r := f.holdfast("import", path).expect(t, exitOK); !strings.Contains(r.messages, "starts at the beginning") {
		t.Errorf("a new import does not tell of the old one: %s", r.messages)
	}
	if r := f.holdfast("import", path, "--resume").expect(t, exitOK); !strings.Contains(r.messages, "starting at the beginning") {
		t.Errorf("nothing to resume: %s", r.messages)
	}
}

// What the server refuses for good, such as a wrong token, stops the import;
// nothing is counted that was not acknowledged, and it goes on later.
func TestAFailureStopsTheImport(t *testing.T) {
	f := newFake(t)
	f.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.bulks >= 3 {
			tellProblem(w, 403, "not-authorised")
			return true
		}
		return false
	}
	path := file(t, "x.ndjson", many(2000, "c")...)
	r := f.holdfast("import", path).expect(t, exitFailed)
	if !strings.Contains(r.messages, "not-authorised") || !strings.Contains(r.messages, "--resume") {
		t.Errorf("the messages are\n%s", r.messages)
	}
	f.before = nil
	f.holdfast("import", path, "--resume").expect(t, exitOK)
	if len(f.documents) != 2000 {
		t.Errorf("%d documents", len(f.documents))
	}
}

func TestBrokenInputs(t *testing.T) {
	f := newFake(t)
	dir := t.TempDir()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, strings.Join(many(5000, "c"), "\n"))
	_ = z.Close()
	for name, c := range map[string]struct{ text, says string }{
		"cut.gz":      {b.String()[:b.Len()/2], "unexpected EOF"},
		"named.gz":    {"{}\n", "not compressed"},
		"cut.json":    {`[{"id":"c/1","data":{}},{"id":"c/2"`, "cut off after element 1"},
		"comma.json":  {`[{"id":"c/1","data":{}} {"id":"c/2","data":{}}]`, "more text"},
		"close.json":  {`[{"id":"c/1","data":{}}}]`, "broken"},
		"follow.json": {`[{"id":"c/1","data":{}}] {}`, "follows the array"},
	} {
		path := filepath.Join(dir, name)
		writeFile(t, path, c.text)
		if r := f.holdfast("import", path); r.code == exitOK || !strings.Contains(r.messages+readIfThere(path+".rejects.ndjson"), c.says) {
			t.Errorf("%s: exit code %d\n%s", name, r.code, r.messages)
		}
	}
	f.holdfast("import", filepath.Join(dir, "none")).expect(t, exitFailed)
	f.holdfast("import", dir).expect(t, exitFailed)
	empty := filepath.Join(dir, "empty")
	writeFile(t, empty, "")
	f.holdfast("import", empty).expect(t, exitOK)
	writeFile(t, empty, "[ ]")
	f.holdfast("import", empty).expect(t, exitOK)
}

func readIfThere(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

func TestContradictionsOfImport(t *testing.T) {
	f := newFake(t)
	path := file(t, "x.ndjson", many(1, "c")...)
	for _, args := range [][]string{
		{}, {path, path}, {path, "--mode", "replace"}, {path, "--id-field", "x"}, {path, "--collection", ""},
		{path, "--collection", "c", "--mode", "upsert"}, {"-", "--resume"}, {path, "--collection", "c", "--resume"},
		{path, "--collection", "c/1", "--id-field", "x"}, {path, "--collection", "c", "--id-field", ""},
		{path, "--concurrency", "0"}, {path, "--concurrency", "1000"}, {path, "--rejects", path}, {path, "--retry-for", "-1s"},
		{path, "--output", "xml"}, {path, "--profile", "x", "--token-file", "y"}, {path, "--endpoint", "nowhere"},
	} {
		var out, messages bytes.Buffer
		if code := run(t.Context(), append([]string{"import", "--endpoint", f.url}, args...), &out, &messages); code != exitUsage {
			t.Errorf("%q: exit code %d\n%s", args, code, messages.String())
		}
	}
	if len(f.documents) != 0 {
		t.Error("something was imported")
	}
}

// The memory of an import does not grow with its input: no more batches are
// read than can be on their way.
func TestReadingDoesNotRunAhead(t *testing.T) {
	f := newFake(t)
	hold := make(chan struct{})
	f.before = func(http.ResponseWriter, *http.Request, []byte) bool { <-hold; return false }
	endless := &endlessLines{}
	im := &importer{concurrency: 2, commit: func(*batch) error { return nil }, sleep: interruptible(t.Context())}
	api, err := (&connection{endpoint: f.url}).open(t.Context(), newImport(), time.Minute, true)
	if err != nil {
		t.Fatal(err)
	}
	im.api = api
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- im.run(ctx, endless) }()
	time.Sleep(300 * time.Millisecond)
	cancel()
	close(hold)
	if err := <-done; err != context.Canceled {
		t.Errorf("ended with %v", err)
	}
	if most := int64(bulkLines * (2*im.concurrency + im.concurrency + 3)); endless.n > most {
		t.Errorf("%d lines were read; at most %d are needed", endless.n, most)
	}
}

type endlessLines struct{ n int64 }

func (e *endlessLines) next() (record, error) {
	e.n++
	return record{line: e.n, text: []byte(fmt.Sprintf(`{"id":"c/%d","data":{}}`, e.n)), end: position{e.n, e.n}}, nil
}
