package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/cmd/holdfast/internal/client"
)

// oddID has what shells, URLs and gateways could trip over.
const oddID = `users/a b+c%2F&d=e?f#g"h'é😀`

func TestOneDocument(t *testing.T) {
	f := newFake(t)
	path := file(t, "doc.json", `{"name":"Ada","address":{"city":"Bonn"}}`)
	r := f.holdfast("put", oddID, path, "--if-absent").expect(t, exitOK)
	var w client.Written
	if err := json.Unmarshal([]byte(r.out), &w); err != nil || w.ID != oddID || !w.Created || w.Token == "" {
		t.Errorf("put says %s (%v)", r.out, err)
	}
	f.holdfast("put", oddID, "--data", "{}", "--if-absent").expect(t, exitConflict)
	f.holdfast("put", oddID, "--data", "{}", "--if-match", "1").expect(t, exitConflict)
	if r := f.holdfast("get", oddID).expect(t, exitOK); !strings.Contains(r.out, `"Bonn"`) {
		t.Errorf("get says %s", r.out)
	}
	if r := f.holdfast("get", oddID, "--output", "table").expect(t, exitOK); !strings.Contains(r.out, "Ada") || !strings.Contains(r.out, `{"city":"Bonn"}`) {
		t.Errorf("get says %s", r.out)
	}
	f.holdfast("put", oddID, "--data", `{"n":2}`, "--if-match", w.Version.String()).expect(t, exitOK)
	if r := f.holdfast("get", oddID, "--output", "pretty").expect(t, exitOK); !strings.Contains(r.out, "\n  \"n\": 2\n") {
		t.Errorf("get says %s", r.out)
	}
	if r := f.holdfast("put", "users/1", "--data", "{").expect(t, exitFailed); !strings.Contains(r.messages, "About invalid-json: refused by the fake") || r.out != "" {
		t.Errorf("a refusal reads %s", r.messages)
	}
	if r := f.holdfast("delete", oddID).expect(t, exitOK); r.out != `{"id":"`+strings.ReplaceAll(oddID, `"`, `\"`)+`","deleted":true,"token":"token-of-deletion"}`+"\n" {
		t.Errorf("delete says %s", r.out)
	}
	if r := f.holdfast("delete", oddID).expect(t, exitOK); !strings.Contains(r.out, `"deleted":false`) {
		t.Errorf("delete of nothing says %s", r.out)
	}
	f.holdfast("get", oddID).expect(t, exitNotFound)
	if r := f.holdfast("create", "users/1/account/", "--data", `{"a":1}`).expect(t, exitOK); !strings.Contains(r.out, `"id":"users/1/account/1"`) {
		t.Errorf("create says %s", r.out)
	}
}

func TestLoad(t *testing.T) {
	f := newFake(t)
	f.fill(250, "c")
	if r := f.holdfast("load", "c/0001", "c/none", "c/0000").expect(t, exitNotFound); strings.Count(r.out, "\n") != 2 || !strings.HasPrefix(r.out, `{"id":"c/0001"`) || !strings.Contains(r.messages, "c/none") {
		t.Errorf("load says %s%s", r.out, r.messages)
	}
	var ids []string
	for i := range 250 {
		ids = append(ids, fmt.Sprintf("c/%04d", i))
	}
	in, err := os.Open(file(t, "ids", append(ids, "", "c/0001\r")...))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	old := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = old }()
	r := f.holdfast("load", "--output", "json").expect(t, exitOK)
	var all struct{ Documents map[string]*client.Envelope }
	if err := json.Unmarshal([]byte(r.out), &all); err != nil || len(all.Documents) != 250 || all.Documents["c/0249"] == nil {
		t.Errorf("%d documents (%v)", len(all.Documents), err)
	}
	if r := f.holdfast("load", "c/1", "--output", "json").expect(t, exitNotFound); r.out != `{"documents":{"c/1":null}}`+"\n" {
		t.Errorf("load says %s", r.out)
	}
	f.holdfast("load", "c/\xff").expect(t, exitFailed)
}

func TestQuery(t *testing.T) {
	f := newFake(t)
	f.fill(1200, "c")
	r := f.holdfast("query", "c", "n>5", "name=number 7", "--filter", `{"x":null}`, "--sort", "n:desc", "--limit", "3", "--count",
		"--fields", "n,name", "--where", "doc.n > 6", "--verified",
		"--wait", "one", "--wait", "two", "--as-of-now", "--timeout", "2s", "--on-timeout", "stale", "--output", "json").expect(t, exitOK)
	body, _ := json.Marshal(f.queries[0])
	want := `{"count":true,"fields":["n","name"],"filter":{"$and":[{"x":null},{"n":{"$gt":5}},{"name":{"$eq":"number 7"}}]},"from":"c","limit":3,"read":"verified","sort":[{"n":"desc"}],"wait":{"asOfNow":true,"onTimeout":"stale","timeout":"2s","tokens":["one","two"]},"where":"doc.n \u003e 6"}`
	if string(body) != want {
		t.Errorf("asked\n%s, want\n%s", body, want)
	}
	var answer client.Found
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil || len(answer.Documents) != 3 || answer.Count.Value != "1200" || answer.Next != "c/0002" || answer.Notice() == "" {
		t.Errorf("%s (%v)", r.out, err)
	}
	if !strings.Contains(r.messages, "3 documents of 1200; there are more. Results may be up to 3 s old.") {
		t.Errorf("the messages are %s", r.messages)
	}
	r = f.holdfast("query", "c", "--all", "--output", "json").expect(t, exitOK)
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil || len(answer.Documents) != 1200 {
		t.Errorf("%d documents (%v)", len(answer.Documents), err)
	}
	for _, wrong := range [][]string{{"--scan"}, {"--timeout", "2s"}, {"--fields", "a..b"}} {
		f.holdfast(append([]string{"query", "c"}, wrong...)...).expect(t, exitUsage)
	}
	r = f.holdfast("query", "none", "--output", "json").expect(t, exitOK)
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil || len(answer.Documents) != 0 {
		t.Errorf("%s (%v)", r.out, err)
	}
	if r := f.holdfast("query", "c", "--all", "--output", "ndjson").expect(t, exitOK); strings.Count(r.out, "\n") != 1200 {
		t.Errorf("%d lines", strings.Count(r.out, "\n"))
	}
	f.before = func(w http.ResponseWriter, r *http.Request, body []byte) bool { // pages may be empty although more follow
		if r.URL.Path == "/query" && !bytes.Contains(body, []byte(`"after"`)) {
			_, _ = io.WriteString(w, `{"documents":[],"next":"c/1197","examined":7,"staleness":{}}`)
			return true
		}
		return false
	}
	r = f.holdfast("query", "c", "--all", "--output", "json").expect(t, exitOK)
	answer = client.Found{}
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil || len(answer.Documents) != 2 || answer.Examined != "7" {
		t.Errorf("%s (%v)", r.out, err)
	}
	f.before = nil
	f.holdfast("query", "c", "--limit", "0", "--count").expect(t, exitOK)
	if last := f.queries[len(f.queries)-1]; last["limit"] != 0.0 {
		t.Errorf("asked %v", last)
	}
}

func TestQueryTable(t *testing.T) {
	f := newFake(t)
	f.write("c/1", `{"name":"Ada","n":1.5,"tags":["a","b"],"address":{"city":"Bonn"}}`)
	f.write("c/2", `{"name":"山田太郎","n":12345,"late":true,"a.b":1}`)
	f.write("c/3", `{"name":"`+strings.Repeat("long ", 20)+`","n":null,"esc":"\u001b[31mred\nline"}`)
	r := f.holdfast("query", "c").expect(t, exitOK)
	want := strings.TrimPrefix(`
id    address          n      name                                      tags       a.b   late  esc
----  ---------------  -----  ----------------------------------------  ---------  ----  ----  -------------
c/1   {"city":"Bonn"}    1.5  Ada                                       ["a","b"]
c/2                    12345  山田太郎                                                   1  true
c/3                           long long long long long long long long…                         `+"\ufffd"+`[31mred`+"\ufffd"+`line
`, "\n")
	if normal(r.out) != normal(want) {
		t.Errorf("the table is\n%s\nwant\n%s", r.out, want)
	}
	if r := f.holdfast("query", "c", "--fields", "address.city,n"); !strings.HasPrefix(r.out, "id    address.city      n\n") || strings.Contains(r.out, "Ada") {
		t.Errorf("the table is\n%s", r.out)
	}
}

// normal makes one space of many: TestColumnsLineUp is about them.
func normal(s string) string { return strings.Join(strings.Fields(s), " ") }

func TestColumnsLineUp(t *testing.T) {
	rows := []client.Envelope{
		{ID: "c/1", Data: json.RawMessage(`{"a":"x","b":1}`)}, {ID: "c/22222", Data: json.RawMessage(`{"a":"山田","b":100}`)},
		{ID: "c/3", Data: json.RawMessage(`{"a":"é👩‍👩‍👧","b":22}`)},
	}
	var b bytes.Buffer
	c := newQuery()
	c.SetOut(&b)
	if err := printTable(c, rows, nil); err != nil {
		t.Fatal(err)
	}
	want := "id       a        b\n-------  ----  ----\nc/1      x        1\nc/22222  山田   100\nc/3      é👩‍👩‍👧     22\n"
	if b.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", b.String(), want)
	}
}

func TestExport(t *testing.T) {
	f := newFake(t)
	f.fill(1200, "c")
	f.fill(3, "d/1/e")
	r := f.holdfast("export", "--collection", "c").expect(t, exitOK)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if len(lines) != 1200 || lines[7] != `{"id":"c/0007","data":{"n":7,"name":"number 7"}}` || !strings.Contains(r.messages, "up to 3 s old") {
		t.Errorf("%d lines, %s\n%s", len(lines), lines[min(7, len(lines)-1)], r.messages)
	}
	if r := f.holdfast("export", "--prefix", "d/1/", "--envelope").expect(t, exitOK); strings.Count(r.out, "\n") != 3 || !strings.Contains(r.out, `"version":`) {
		t.Errorf("%s", r.out)
	}
	for _, name := range []string{"x.ndjson", "x.ndjson.gz", "x.ndjson.zst", "none.gz", "none.zst"} {
		path := filepath.Join(t.TempDir(), name)
		collection := "c"
		if strings.HasPrefix(name, "none") {
			collection = "none"
		}
		f.holdfast("export", "--collection", collection, "--out", path).expect(t, exitOK)
		if exists(partOf(path)) || exists(partOf(path)+".state") {
			t.Error("something is left behind")
		}
		f.holdfast("export", "--collection", collection, "--out", path).expect(t, exitFailed) // it exists
		f.holdfast("export", "--collection", collection, "--out", path, "--force").expect(t, exitOK)
		g := newFake(t)
		g.holdfast("import", path).expect(t, exitOK)
		if collection == "c" && (len(g.documents) != 1200 || g.at("c/0007") != f.at("c/0007")) {
			t.Errorf("%s: %d documents come back", name, len(g.documents))
		}
	}
}

// What the index shows is not what is exported: the table's state is.
func TestExportReadsStrongly(t *testing.T) {
	f := newFake(t)
	f.fill(5, "c")
	f.before = func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.URL.Path == "/load" { // between the query and the load
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.documents, "c/0001")
			f.write("c/0002", `{"n":"changed"}`)
			f.write("c/0003", `{"n":3,"name":"other"}`)
		}
		return false
	}
	r := f.holdfast("export", "--collection", "c", "--filter", `{"n":{"$gte":0}}`).expect(t, exitOK)
	if strings.Count(r.out, "\n") != 3 || strings.Contains(r.out, "c/0001") || strings.Contains(r.out, "c/0002") || !strings.Contains(r.out, "other") || !strings.Contains(r.messages, "2 that the index showed") {
		t.Errorf("%s%s", r.out, r.messages)
	}
	f.before = nil
	f.holdfast("export", "--collection", "c", "--strong=false").expect(t, exitOK)
}

func TestAnInterruptedExportGoesOn(t *testing.T) {
	for _, name := range []string{"x.ndjson", "x.gz", "x.zst"} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.fill(2600, "c")
			path := filepath.Join(t.TempDir(), name)
			pages := 0
			f.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
				if r.URL.Path == "/query" {
					if pages++; pages > 3 {
						tellProblem(w, 403, "not-authorised")
						return true
					}
				}
				return false
			}
			f.holdfast("export", "--collection", "c", "--out", path).expect(t, exitFailed)
			if exists(path) {
				t.Error("the file has its name before it is whole")
			}
			f.before = nil
			// What was written behind the last checkpoint is cut off.
			part, err := os.OpenFile(partOf(path), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = part.WriteString("half a li")
			part.Close()
			f.holdfast("export", "--collection", "d", "--out", path, "--resume").expect(t, exitFailed)
			r := f.holdfast("export", "--collection", "c", "--out", path, "--resume").expect(t, exitOK)
			if !strings.Contains(r.messages, "going on after 1500 documents") || !strings.Contains(r.messages, "2600 documents exported") {
				t.Errorf("the messages are\n%s", r.messages)
			}
			g := newFake(t)
			g.holdfast("import", path).expect(t, exitOK)
			if len(g.documents) != 2600 || len(g.writes) != 2600 {
				t.Errorf("%d documents in %d lines", len(g.documents), len(g.writes))
			}
		})
	}
}

func TestChanges(t *testing.T) {
	f := newFake(t)
	f.fill(2500, "c")
	f.fill(5, "d")
	r := f.holdfast("changes").expect(t, exitOK)
	if strings.Count(r.out, "\n") != 2505 || !strings.HasPrefix(r.out, `{"id":"c/0000","version":`) {
		t.Errorf("%d changes", strings.Count(r.out, "\n"))
	}
	_, cursor, ok := strings.Cut(r.messages, "--after ")
	if !ok {
		t.Fatalf("no cursor: %s", r.messages)
	}
	f.write("d/9", "{}")
	r = f.holdfast("changes", "--after", strings.TrimSpace(cursor)).expect(t, exitOK)
	if strings.Count(r.out, "\n") != 1 || !strings.Contains(r.out, "d/9") {
		t.Errorf("after the cursor: %s", r.out)
	}
	r = f.holdfast("changes", "--collection", "d", "--after", strings.TrimSpace(cursor)).expect(t, exitFailed)
	if r.out != "" || !strings.Contains(r.messages, "cursor-mismatch") {
		t.Errorf("with the cursor of another listing: %s%s", r.out, r.messages)
	}
}

// Where nothing is settled there is no cursor to go on with.
func TestChangesOfTheLatestSeconds(t *testing.T) {
	f := newFake(t)
	f.clock = time.Now().UnixMicro()
	f.fill(2, "c")
	r := f.holdfast("changes", "--collection", "c").expect(t, exitOK)
	if strings.Count(r.out, "\n") != 2 || !strings.Contains(r.messages, "without --after") {
		t.Errorf("%s%s", r.out, r.messages)
	}
}

// Pages of one collection may be empty although more follows, and its cursor
// goes on with the time where nothing does: only the feed says where it ends.
func TestChangesOfOneCollectionAmongMany(t *testing.T) {
	f := newFake(t)
	f.fill(1, "d")
	f.fill(40, "c")
	f.write("d/1", "{}")
	f.write("d/2", "{}")
	f.feedScan = 10
	r := f.holdfast("changes", "--collection", "d").expect(t, exitOK)
	if got := strings.Count(r.out, "\n"); got != 3 {
		t.Errorf("%d changes of 3:\n%s", got, r.out)
	}
	_, cursor, _ := strings.Cut(r.messages, "--after ")
	f.clock = time.Now().UnixMicro()
	f.write("d/9", "{}")
	if r = f.holdfast("changes", "--collection", "d", "--after", strings.TrimSpace(cursor)).expect(t, exitOK); !strings.Contains(r.out, "d/9") || strings.Count(r.out, "\n") != 1 {
		t.Errorf("after the cursor: %s", r.out)
	}
}

// A follower of a feed whose latest entries arrive out of order writes each once
// and misses none.
func TestFollowingMissesNothingAndRepeatsNothing(t *testing.T) {
	feed := &slowFeed{now: time.UnixMicro(1_000_000_000_000_000)}
	written := map[client.Change]int{}
	f := &following{
		read: feed.read, seen: map[client.Change]int{},
		write: func(ch client.Change) error { written[ch]++; return nil }, flush: func() error { return nil },
	}
	var all []client.Change
	for i := range 400 {
		feed.now = feed.now.Add(time.Second)
		for j := range 7 {
			// Some entries show up seconds after others of a later version.
			late := time.Duration((i*7+j*3)%9) * time.Second
			ch := client.Change{ID: fmt.Sprintf("c/%d-%d", i, j), Version: feed.now.Add(-late).UnixMicro() + int64(j)}
			feed.entries = append(feed.entries, ch)
			all = append(all, ch)
		}
		if err := f.round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, ch := range all {
		if written[ch] != 1 {
			t.Fatalf("%v was written %d times", ch, written[ch])
		}
	}
	if most := 7*10 + worthCutting + 50; len(f.seen) > most {
		t.Errorf("%d changes are remembered, of %d", len(f.seen), len(all))
	}
	if feed.mostRead > 3*changesPage {
		t.Errorf("a round reads %d changes", feed.mostRead)
	}
}

// A document that changes all the time must not fill the memory.
func TestFollowingForgetsReplacedChanges(t *testing.T) {
	feed := &slowFeed{now: time.UnixMicro(1_000_000_000_000_000)}
	f := &following{
		read: feed.read, seen: map[client.Change]int{},
		write: func(client.Change) error { return nil }, flush: func() error { return nil },
	}
	for range 1000 {
		feed.now = feed.now.Add(time.Second)
		feed.entries = []client.Change{{ID: "c/hot", Version: feed.now.UnixMicro()}}
		if err := f.round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.seen) > 100 {
		t.Errorf("%d changes are remembered", len(f.seen))
	}
}

// slowFeed is a change feed of one collection whose cursor moves with the time
// where it is empty, as the real one's does.
type slowFeed struct {
	now      time.Time
	entries  []client.Change
	mostRead int
}

func (s *slowFeed) read(_ context.Context, after string, limit int) (client.Changes, error) {
	from, _ := strconv.ParseInt(after, 10, 64)
	safe := s.now.Add(-safeLag)
	page := client.Changes{SafeThrough: safe}
	for _, ch := range s.entries {
		if ch.Version > from {
			page.Changes = append(page.Changes, ch)
		}
	}
	slices.SortFunc(page.Changes, func(a, b client.Change) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.ID, b.ID))
	})
	s.mostRead = max(s.mostRead, len(page.Changes))
	page.Changes = page.Changes[:min(len(page.Changes), limit)]
	next := max(from, 0)
	if n := len(page.Changes); n > 0 {
		next = page.Changes[n-1].Version
	} else {
		next = max(next, safe.UnixMicro())
		page.End = true
	}
	page.Next = strconv.FormatInt(next, 10)
	return page, nil
}

func TestFollowEndsWithTheInterruption(t *testing.T) {
	f := newFake(t)
	f.fill(3, "c")
	ctx, cancel := context.WithCancel(t.Context())
	polls := 0
	f.before = func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		if polls++; polls > 3 {
			cancel()
		}
		return false
	}
	var out, messages bytes.Buffer
	if code := run(ctx, []string{"changes", "--follow", "--endpoint", f.url}, &out, &messages); code != exitOK || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("exit code %d\n%s%s", code, out.String(), messages.String())
	}
}

func TestIDs(t *testing.T) {
	f := newFake(t)
	for args, want := range map[string]string{
		"":                          "text 0\n",
		"--count 2":                 "text 0\ntext 1\n",
		"--layout sqlserver":        "sqlserver 0\n",
		"--count 3 --layout binary": "binary 0\nbinary 1\nbinary 2\n",
	} {
		if r := f.holdfast(append([]string{"ids"}, strings.Fields(args)...)...).expect(t, exitOK); r.out != want {
			t.Errorf("%s: %q", args, r.out)
		}
	}
	f.before = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		_, _ = io.WriteString(w, `{"ids":["one"]}`)
		return true
	}
	f.holdfast("ids", "--count", "2").expect(t, exitFailed)
}

func TestUsage(t *testing.T) {
	f := newFake(t)
	for _, args := range []string{
		"get", "get a b", "get a --output xml", "put a", "put a - --data {}", "put a --data {} --if-match x", "put a --data {} --if-match 1 --if-absent",
		"create users", "create users --data {}", "delete", "delete a --if-match=", "query", "query c nonsense", "query c --filter [", "query c --sort :asc",
		"query c --all --limit 5", "query c --timeout 5s", "query c --fields a..b", "changes x", "export", "export --collection c --prefix c/1/",
		"export --prefix c/1/ --filter {}", "export --prefix c/1/ --strong=false", "export --collection c --resume", "export --collection c --filter {",
		"export --collection c --out x --resume --force", "version x", "doctor x", "get a --token-file x --region y", "get a --nonsense", "ids x", "ids --layout oracle", "ids --count 0", "ids --count 1001", "ids --count x", "load --output xml", "nonsense",
	} {
		if r := f.holdfast(strings.Fields(args)...); r.code != exitUsage || r.out != "" || !strings.Contains(r.messages, "--help") {
			t.Errorf("%s: exit code %d\n%s%s", args, r.code, r.out, r.messages)
		}
	}
	if len(f.writes) > 0 || len(f.queries) > 0 {
		t.Error("something was done all the same")
	}
}

func TestHelpHasExamplesAndExitCodes(t *testing.T) {
	root := &bytes.Buffer{}
	if code := run(t.Context(), []string{"--help"}, root, root); code != exitOK || !strings.Contains(root.String(), "Exit codes of all commands") {
		t.Errorf("%s", root)
	}
	for _, name := range []string{"get", "put", "create", "delete", "load", "query", "changes", "ids", "import", "export", "doctor", "version", "status", "quarantine", "jobs", "dead-letters", "reindex"} {
		var out bytes.Buffer
		if code := run(t.Context(), []string{name, "--help"}, &out, &out); code != exitOK || !strings.Contains(out.String(), "Examples:") || !strings.Contains(root.String(), "\n  "+name+" ") {
			t.Errorf("%s --help: %s", name, out.String())
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var out bytes.Buffer
		if code := run(t.Context(), []string{"completion", shell}, &out, &out); code != exitOK || out.Len() < 1000 {
			t.Errorf("completion %s: %s", shell, out.String())
		}
	}
}

func TestDoctorAndVersion(t *testing.T) {
	f := newFake(t)
	r := f.holdfast("doctor", "--output", "json")
	var all struct {
		Healthy  bool
		Findings []finding
	}
	if err := json.Unmarshal([]byte(r.out), &all); err != nil || all.Healthy != (r.code == exitOK) {
		t.Fatalf("exit code %d, %s (%v)", r.code, r.out, err)
	}
	found := map[string]finding{}
	for _, x := range all.Findings {
		found[x.Check] = x
	}
	if !found["endpoint"].OK || !found["go"].OK || !found["credentials"].OK || !strings.Contains(found["port"].Detail, "in use") {
		t.Errorf("%+v", all.Findings)
	}
	var out, messages bytes.Buffer
	if code := run(t.Context(), []string{"doctor", "--endpoint", "http://127.0.0.1:1"}, &out, &messages); code != exitNotAsPromised || !strings.Contains(out.String(), "!  endpoint") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), messages.String())
	}
	out.Reset()
	if code := run(t.Context(), []string{"version", "--output", "json"}, &out, &messages); code != exitOK || !json.Valid(out.Bytes()) {
		t.Errorf("version says %s", out.String())
	}
}

func TestEndpointAndTokenOfTheEnvironment(t *testing.T) {
	f := newFake(t)
	var got string
	f.before = func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		got = r.Header.Get("Authorization")
		return false
	}
	f.write("c/1", "{}")
	t.Setenv(endpointVariable, f.url)
	t.Setenv(tokenVariable, "secret-token")
	var out, messages bytes.Buffer
	if code := run(t.Context(), []string{"get", "c/1"}, &out, &messages); code != exitOK || got != "Bearer secret-token" {
		t.Errorf("exit code %d, %q\n%s", code, got, messages.String())
	}
	messages.Reset()
	if code := run(t.Context(), []string{"get", "c/1", "--endpoint", "http://example.com"}, &out, &messages); code != exitFailed || strings.Contains(messages.String(), "secret") || !strings.Contains(messages.String(), "plain http") {
		t.Errorf("exit code %d\n%s", code, messages.String())
	}
}
