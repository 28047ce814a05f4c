package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake answers as a Holdfast does, from memory.
type fake struct {
	t   *testing.T
	url string

	mu        sync.Mutex
	documents map[string]fakeDocument
	clock     int64
	queries   []map[string]any // bodies of queries
	bulks     int              // bulk requests answered
	writes    []string         // ids, in the order in which they were written
	feedScan  int              // how many entries of the feed one request looks at; 0: all

	// before may answer a request itself, and then says so.
	before func(w http.ResponseWriter, r *http.Request, body []byte) bool
	// refuse gives the problem of a line or document, or "".
	refuse func(id string, data string) string
}

type fakeDocument struct {
	version int64
	data    string
}

const safeLag = 10 * time.Second

func newFake(t *testing.T) *fake {
	f := &fake{t: t, documents: map[string]fakeDocument{}, clock: time.Now().Add(-time.Hour).UnixMicro()}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.url = s.URL
	for _, name := range []string{endpointVariable, tokenVariable} {
		t.Setenv(name, "")
	}
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Holdfast-Request-Id", "fake")
	f.mu.Lock()
	before := f.before
	f.mu.Unlock()
	if before != nil && before(w, r, body) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	id := r.URL.Query().Get("id")
	switch {
	case r.URL.Path == "/docs" && r.URL.Query().Has("startsWith"):
		f.prefix(w, r)
	case r.URL.Path == "/docs" && r.Method == "GET":
		f.get(w, id)
	case r.URL.Path == "/docs" && r.Method == "PUT":
		f.put(w, r, id, string(body))
	case r.URL.Path == "/docs" && r.Method == "POST":
		f.put(w, r, fmt.Sprintf("%s%d", id, len(f.documents)+1), string(body))
	case r.URL.Path == "/docs" && r.Method == "DELETE":
		f.delete(w, id)
	case r.URL.Path == "/load":
		f.load(w, body)
	case r.URL.Path == "/bulk":
		f.bulk(w, body)
	case r.URL.Path == "/query":
		f.query(w, body)
	case r.URL.Path == "/changes":
		f.changes(w, r)
	case r.URL.Path == "/ids":
		ids := make([]string, 0)
		for n, _ := strconv.Atoi(r.URL.Query().Get("count")); len(ids) < n; {
			ids = append(ids, fmt.Sprintf("%s %d", r.URL.Query().Get("layout"), len(ids)))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"ids": ids})
	case r.URL.Path == "/openapi.json":
		_, _ = io.WriteString(w, "{}")
	default:
		tellProblem(w, 404, "no-such-route")
	}
}

func problemJSON(status int, slug string) string {
	return fmt.Sprintf(`{"type":"/problems/%s","title":"About %s","status":%d,"detail":"refused by the fake"}`, slug, slug, status)
}

func tellProblem(w http.ResponseWriter, status int, slug string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, problemJSON(status, slug))
}

func (f *fake) get(w http.ResponseWriter, id string) {
	d, ok := f.documents[id]
	if !ok {
		tellProblem(w, 404, "not-found")
		return
	}
	w.Header().Set("ETag", fmt.Sprintf("%q", strconv.FormatInt(d.version, 10)))
	_, _ = io.WriteString(w, d.data)
}

func (f *fake) write(id, data string) int64 {
	f.clock++
	f.documents[id] = fakeDocument{f.clock, data}
	f.writes = append(f.writes, id)
	return f.clock
}

func (f *fake) put(w http.ResponseWriter, r *http.Request, id, data string) {
	old, exists := f.documents[id]
	match := strings.Trim(r.Header.Get("If-Match"), `"`)
	if exists && r.Header.Get("If-None-Match") == "*" || match != "" && match != strconv.FormatInt(old.version, 10) {
		tellProblem(w, 412, "version-conflict")
		return
	}
	if f.refuse != nil {
		if slug := f.refuse(id, data); slug != "" {
			tellProblem(w, 400, slug)
			return
		}
	}
	if !json.Valid([]byte(data)) {
		tellProblem(w, 400, "invalid-json")
		return
	}
	version := f.write(id, data)
	w.Header().Set("Holdfast-Token", "token-of-"+strconv.FormatInt(version, 10))
	if !exists {
		w.WriteHeader(201)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"id": id, "version": version})
}

func (f *fake) delete(w http.ResponseWriter, id string) {
	if _, ok := f.documents[id]; ok {
		delete(f.documents, id)
		w.Header().Set("Holdfast-Token", "token-of-deletion")
	}
	w.WriteHeader(204)
}

func (f *fake) envelope(id string) string {
	d, ok := f.documents[id]
	if !ok {
		return "null"
	}
	name, _ := json.Marshal(id)
	return fmt.Sprintf(`{"id":%s,"version":%d,"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z","data":%s}`, name, d.version, d.data)
}

func (f *fake) load(w http.ResponseWriter, body []byte) {
	var in struct{ IDs []string }
	if json.Unmarshal(body, &in) != nil || len(in.IDs) > 100 {
		tellProblem(w, 400, "too-many")
		return
	}
	var members []string
	for _, id := range in.IDs {
		name, _ := json.Marshal(id)
		members = append(members, string(name)+":"+f.envelope(id))
	}
	fmt.Fprintf(w, `{"documents":{%s}}`, strings.Join(members, ","))
}

func (f *fake) bulk(w http.ResponseWriter, body []byte) {
	f.bulks++
	line := 0
	for text := range bytes.SplitSeq(body, []byte("\n")) {
		line++
		var in struct {
			ID     string
			Data   json.RawMessage
			Delete bool
		}
		name := []byte("null")
		slug := "invalid-json"
		if json.Unmarshal(text, &in) == nil {
			name, _ = json.Marshal(in.ID)
			slug = ""
			if f.refuse != nil {
				slug = f.refuse(in.ID, string(in.Data))
			}
		}
		switch {
		case slug != "":
			fmt.Fprintf(w, `{"line":%d,"id":%s,"error":%s}`+"\n", line, name, problemJSON(400, slug))
		case in.Delete:
			delete(f.documents, in.ID)
			fmt.Fprintf(w, `{"line":%d,"id":%s,"version":null}`+"\n", line, name)
		default:
			fmt.Fprintf(w, `{"line":%d,"id":%s,"version":%d}`+"\n", line, name, f.write(in.ID, string(in.Data)))
		}
	}
	_, _ = io.WriteString(w, `{"token":"bulk-token"}`+"\n")
}

// page gives a page of ids in order; the cursor is the last id.
func (f *fake) page(keep func(id string) bool, after string, limit int) (documents, next string) {
	var envelopes []string
	for _, id := range slices.Sorted(maps.Keys(f.documents)) {
		if !keep(id) || id <= after {
			continue
		}
		if len(envelopes) == limit {
			cursor, _ := json.Marshal(next)
			return strings.Join(envelopes, ","), `,"next":` + string(cursor)
		}
		envelopes = append(envelopes, f.envelope(id))
		next = id
	}
	return strings.Join(envelopes, ","), ""
}

func (f *fake) prefix(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, _ := strconv.Atoi(q.Get("limit"))
	documents, next := f.page(func(id string) bool { return strings.HasPrefix(id, q.Get("startsWith")) }, q.Get("after"), limit)
	fmt.Fprintf(w, `{"documents":[%s]%s}`, documents, next)
}

func (f *fake) query(w http.ResponseWriter, body []byte) {
	var q map[string]any
	if json.Unmarshal(body, &q) != nil {
		tellProblem(w, 400, "invalid-query")
		return
	}
	f.queries = append(f.queries, q)
	from, _ := q["from"].(string)
	after, _ := q["after"].(string)
	limit := 25
	if n, ok := q["limit"].(float64); ok {
		limit = int(n)
	}
	keep := func(id string) bool { return strings.HasPrefix(id, from+"/") }
	documents, next := f.page(keep, after, limit)
	count := ""
	if q["count"] == true {
		n := 0
		for id := range f.documents {
			if keep(id) {
				n++
			}
		}
		count = fmt.Sprintf(`,"count":{"value":%d,"exact":true}`, n)
	}
	fmt.Fprintf(w, `{"documents":[%s]%s%s,"staleness":{"stale":true,"notice":"Results may be up to 3 s old."}}`, documents, count, next)
}

// changes answers a page of the feed. Its cursors are of one collection, or of
// all, and go on with the time at the end of one's.
func (f *fake) changes(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	of, position, given := strings.Cut(q.Get("after"), ":")
	if given && of != q.Get("collection") {
		tellProblem(w, 400, "cursor-mismatch")
		return
	}
	after, _ := strconv.ParseInt(position, 10, 64)
	limit, _ := strconv.Atoi(q.Get("limit"))
	type change struct {
		ID      string `json:"id"`
		Version int64  `json:"version"`
		Deleted bool   `json:"deleted"`
	}
	var all []change
	for id, d := range f.documents {
		if d.version > after {
			all = append(all, change{id, d.version, false})
		}
	}
	slices.SortFunc(all, func(a, b change) int { return int(a.Version - b.Version) })
	list, read, safe := []change{}, 0, time.Now().Add(-safeLag)
	for _, c := range all {
		if len(list) == limit || f.feedScan > 0 && read == f.feedScan {
			break
		}
		read, after = read+1, c.Version
		if strings.HasPrefix(c.ID, q.Get("collection")) {
			list = append(list, c)
		}
	}
	end := read == len(all)
	if end && q.Get("collection") != "" {
		after = max(after, safe.UnixMicro())
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"changes": list, "next": fmt.Sprintf("%s:%d", q.Get("collection"), after), "safeThrough": safe.UTC().Format(time.RFC3339Nano), "end": end,
	})
}

// at locks the fake and gives what it has of a document, "" for nothing.
func (f *fake) at(id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.documents[id].data
}

func (f *fake) fill(n int, collection string) {
	for i := range n {
		f.write(fmt.Sprintf("%s/%04d", collection, i), fmt.Sprintf(`{"n":%d,"name":"number %d"}`, i, i))
	}
}

// result is how a command ended.
type result struct {
	code          int
	out, messages string
}

// holdfast runs a command line against the fake.
func (f *fake) holdfast(args ...string) result {
	f.t.Helper()
	var out, messages bytes.Buffer
	code := run(f.t.Context(), append(args, "--endpoint", f.url), &out, &messages)
	return result{code, out.String(), messages.String()}
}

// expect compares an exit code.
func (r result) expect(t *testing.T, code int) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\n%s%s", r.code, code, r.out, r.messages)
	}
	return r
}

// file writes lines to a new file.
func file(t *testing.T, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	writeFile(t, path, strings.Join(lines, "\n")+"\n")
	return path
}

// rejectsOf reads a rejects file.
func rejectsOf(t *testing.T, path string) []rejected {
	t.Helper()
	var all []rejected
	lines := bufio.NewScanner(strings.NewReader(readFile(t, path)))
	lines.Buffer(nil, mostLine*2)
	for lines.Scan() {
		var r rejected
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		all = append(all, r)
	}
	return all
}
