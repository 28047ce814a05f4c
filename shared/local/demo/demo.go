// Package demo shows what Holdfast promises, against a running one: it imports
// an order database and then makes a few requests, each printed with its
// answer, and checks that each promise was kept.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// Demo is a demonstration.
type Demo struct {
	URL      string    // of a Holdfast, without a trailing slash
	Data     []byte    // documents to import, NDJSON lines {"id","data"}
	Out      io.Writer // gets the requests and answers
	Progress io.Writer // gets the progress of the import
	Terminal bool      // Progress is a terminal: a bar may be drawn over and over
}

// NotAsPromised is the error of a demo that ran and found promises broken.
type NotAsPromised struct {
	Broken []string
}

func (e *NotAsPromised) Error() string {
	return "not as promised:\n  " + strings.Join(e.Broken, "\n  ")
}

// waitTimeout is how long the demo lets a query wait for its own write.
const waitTimeout = "20s"

// Run runs the demo. It may be run again on the same data: everything it
// writes, it writes to the same ids.
func (d *Demo) Run(ctx context.Context) error {
	s := &stage{client: client{base: d.URL}, out: d.Out}
	sample, err := d.importAll(ctx, &s.client)
	if err != nil {
		return err
	}
	for _, scene := range []func(context.Context, *stage, *sampleData) error{loadAfterSave, queryWithStaleness, queryWaiting, ordersByPrefix} {
		if err := scene(ctx, s, sample); err != nil {
			return err
		}
	}
	if len(s.broken) > 0 {
		return &NotAsPromised{Broken: s.broken}
	}
	fmt.Fprintf(d.Out, "\nEverything was as promised: %d checks.\n", s.checks)
	return nil
}

// stage keeps what scenes hand to later ones and what they found.
type stage struct {
	client client
	out    io.Writer
	checks int
	broken []string

	saved savedDocument
}

// savedDocument is the document that the first scene saves.
type savedDocument struct {
	id      string
	data    map[string]any
	version json.Number
	token   string
}

// check notes a promise that was not kept.
func (s *stage) check(kept bool, promise string, args ...any) {
	s.checks++
	mark := "✓"
	promise = fmt.Sprintf(promise, args...)
	if !kept {
		mark = "✗"
		s.broken = append(s.broken, promise)
	}
	fmt.Fprintf(s.out, "  %s %s\n", mark, promise)
}

func (s *stage) title(n int, text string) { fmt.Fprintf(s.out, "\n── %d. %s\n\n", n, text) }

// longToken is a token that names many writes. A person is shown how it begins.
var longToken = regexp.MustCompile(`"([A-Za-z0-9_-]{40})[A-Za-z0-9_-]{20,}"`)

// call makes a request and prints it with its answer.
func (s *stage) call(ctx context.Context, method, target string, body any) (answer, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.MarshalIndent(body, "    ", "  "); err != nil {
			return answer{}, err
		}
	}
	fmt.Fprintf(s.out, "  > %s %s\n", method, target)
	if body != nil {
		fmt.Fprintf(s.out, "    %s\n", longToken.ReplaceAll(text, []byte(`"$1…"`)))
	}
	a, err := s.client.do(ctx, method, target, "application/json", text)
	if err != nil {
		return a, err
	}
	fmt.Fprintf(s.out, "  < %d %s (%d ms)\n", a.status, http.StatusText(a.status), a.took.Milliseconds())
	for _, name := range []string{"ETag", "Holdfast-Token"} {
		if v := a.header.Get(name); v != "" {
			fmt.Fprintf(s.out, "    %s: %s\n", name, v)
		}
	}
	if len(a.body) > 0 {
		fmt.Fprintf(s.out, "    %s\n", a.shown())
	}
	return a, nil
}

func loadAfterSave(ctx context.Context, s *stage, _ *sampleData) error {
	s.title(1, "A load right after a save")
	doc := savedDocument{id: "customers/DEMO", data: map[string]any{
		"companyName": "Demo GmbH", "address": map[string]any{"city": "Bonn", "country": "Germany"},
		"savedAt": time.Now().UTC().Format(time.RFC3339Nano),
	}}
	put, err := s.call(ctx, http.MethodPut, "/docs/"+doc.id, doc.data)
	if err != nil {
		return err
	}
	doc.version, doc.token = put.number("version"), put.header.Get("Holdfast-Token")
	got, err := s.call(ctx, http.MethodGet, "/docs/"+doc.id, nil)
	if err != nil {
		return err
	}
	s.saved = doc
	s.check(put.status == http.StatusCreated || put.status == http.StatusOK, "the save is acknowledged")
	s.check(doc.token != "", "the save answers with a token")
	s.check(got.status == http.StatusOK && reflect.DeepEqual(got.json(), any(doc.data)), "the load returns what was saved")
	s.check(got.header.Get("ETag") == `"`+doc.version.String()+`"`, "its ETag is the version of the save")
	return nil
}

// germans is the query of two scenes.
func germans() map[string]any {
	return map[string]any{
		"from": "customers", "filter": map[string]any{"address.country": "Germany"},
		"sort": []any{map[string]any{"companyName": "asc"}}, "limit": 50, "count": true,
	}
}

func queryWithStaleness(ctx context.Context, s *stage, _ *sampleData) error {
	s.title(2, "A query, which says how old its answer may be")
	a, err := s.call(ctx, http.MethodPost, "/query", germans())
	if err != nil {
		return err
	}
	s.check(a.status == http.StatusOK, "the query is answered")
	staleness, _ := a.member("staleness").(map[string]any)
	notice, _ := staleness["notice"].(string)
	s.check(notice != "", "the answer says how old it may be: %q", notice)
	_, isBool := staleness["stale"].(bool)
	s.check(isBool, "and whether it may be stale at all")
	return nil
}

func queryWaiting(ctx context.Context, s *stage, in *sampleData) error {
	s.title(3, "The same query, waiting for the save and the import")
	q := germans()
	tokens := []any{s.saved.token}
	for _, t := range in.tokens {
		tokens = append(tokens, t)
	}
	q["wait"] = map[string]any{"tokens": tokens, "timeout": waitTimeout}
	a, err := s.call(ctx, http.MethodPost, "/query", q)
	if err != nil {
		return err
	}
	s.check(a.status == http.StatusOK, "the query is answered within %s", waitTimeout)
	found := map[string]json.Number{}
	for _, d := range a.documents() {
		found[d.ID] = d.Version
	}
	s.check(found[s.saved.id] == s.saved.version, "the document saved a moment ago is in the answer, at the saved version")
	missing := 0
	for _, id := range in.germans {
		if _, ok := found[id]; !ok {
			missing++
		}
	}
	s.check(missing == 0, "all %d imported customers in Germany are in the answer", len(in.germans))
	staleness, _ := a.member("staleness").(map[string]any)
	s.check(staleness["timedOut"] == false, "the wait did not time out")
	return nil
}

func ordersByPrefix(ctx context.Context, s *stage, in *sampleData) error {
	s.title(4, "A customer's orders, by the prefix of their ids")
	const customer = "customers/ALFKI"
	prefix := customer + "/orders/"
	a, err := s.call(ctx, http.MethodGet, "/docs?limit=100&startsWith="+url.QueryEscape(prefix), nil)
	if err != nil {
		return err
	}
	docs := a.documents()
	inside, sorted := true, true
	for i, d := range docs {
		inside = inside && strings.HasPrefix(d.ID, prefix)
		sorted = sorted && (i == 0 || docs[i-1].ID < d.ID)
	}
	s.check(a.status == http.StatusOK && len(docs) == in.ordersOf[customer], "all %d orders of %s are there", in.ordersOf[customer], customer)
	s.check(inside, "and nothing else")
	s.check(sorted, "in the order of their ids")
	return nil
}
