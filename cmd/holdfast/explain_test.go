package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"holdfast/cmd/holdfast/internal/client"
)

// explains makes the fake explain queries by a text, and gives what it was asked.
func explains(f *fake, text string) *[]string {
	var asked []string
	f.before = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.URL.Path != "/query" {
			return false
		}
		asked = append(asked, string(body))
		_, _ = io.WriteString(w, text)
		return true
	}
	return &asked
}

const explainedText = `{"explain":{"indexes":[{"collection":"customers/orders","generation":12,"index":"holdfast-shared-1"},{"collection":"b\u001b","generation":null,"index":null}],` +
	`"filter":{"decidedBy":"index and documents","undecided":[{"path":"/a.b/\"\u0007","why":"It has only a part."},{"why":"Too many."}]},` +
	`"search":{"indexes":["holdfast-shared-1","holdfast-b-1"],"body":{"_source":["$id","$raw"],"query":{"bool":{"filter":[{"term":{"$collection":"customers/orders"}},{"terms":{"doc.s.$str":["\u001b[31m < é","another text that takes the line beyond its end"]}}],"should":[{"term":{"doc.s.$str":"\u001b[31m < é \u202e\\\"` + "\u202e" + `"}}],"minimum_should_match":1}},"size":26},` +
	`"beside":[{"why":"How many.","body":{"size":0}}]},"count":{"indexes":["holdfast-shared-1"],"body":{"size":0}},` +
	`"where":{"expression":"doc.a > doc.b","language":"CEL","evaluatedOn":"every document that the filter leaves","budget":10000},` +
	`"limits":{"examined":10000,"timeMs":25000,"clauses":{"used":5,"allowed":900}}}}`

func TestAnExplainedQuery(t *testing.T) {
	f := newFake(t)
	asked := explains(f, explainedText)
	r := f.holdfast("query", "customers/orders", "n>=1", "--explain", "--count", "--limit", "7", "--sort", "n:desc", "--after", "abc").expect(t, exitOK)
	if want := `{"from":"customers/orders","filter":{"n":{"$gte":1}},"sort":[{"n":"desc"}],"limit":7,"after":"abc","count":true,"explain":true}`; len(*asked) != 1 || (*asked)[0] != want {
		t.Errorf("asked %s, want %s", *asked, want)
	}
	want := `collection        generation  index
customers/orders  12          holdfast-shared-1
b?                none        no index yet

decided by  index and documents
where       doc.a > doc.b, evaluated on every document that the filter leaves, 10000 at most
examined    at most 10000 documents
time        at most 25000 ms
clauses     5 of 900

undecided         why
/a.b/"?           It has only a part.
the whole filter  Too many.

count in holdfast-shared-1
{"size":0}

search in holdfast-shared-1, holdfast-b-1
{
  "_source": ["$id","$raw"],
  "query": {"bool": {
    "filter": [
      {"term":{"$collection":"customers/orders"}},
      {"terms":{"doc.s.$str":["\u001b[31m < é","another text that takes the line beyond its end"]}}
    ],
    "should": [{"term":{"doc.s.$str":"\u001b[31m < é \u202e\\\"?"}}],
    "minimum_should_match": 1
  }},
  "size": 26
}
beside it: How many.
{"size":0}
`
	if got := strings.ReplaceAll(r.out, "\ufffd", "?"); got != want || r.messages != "" {
		t.Errorf("%s%s\nwant\n%s", got, r.messages, want)
	}

	r = f.holdfast("query", "c", "--explain", "--output", "json").expect(t, exitOK)
	if !strings.HasPrefix(r.out, "{\n  \"explain\": {\n    \"indexes\": [\n") || !sameJSON([]byte(r.out), explainedText) || !strings.HasSuffix(r.out, "}\n") {
		t.Errorf("%s", r.out)
	}

	explains(f, `{"explain":{"indexes":[{"collection":"c","generation":null,"index":null}],"filter":{"decidedBy":"index","undecided":[]},"limits":{"examined":1,"timeMs":2,"clauses":{"used":3,"allowed":4}},"notice":"Nothing is asked."}}`)
	if r = f.holdfast("query", "c", "--explain").expect(t, exitOK); !strings.HasSuffix(r.out, "\nclauses     3 of 4\n\nNothing is asked.\n") || strings.Contains(r.out, "undecided") {
		t.Errorf("%s", r.out)
	}
	for _, none := range []string{`{"explain":{"search":{}}}`, `{"explain":{"search":{"indexes":[],"body":""}}}`, `[]`, `{"explain":1}`} {
		explains(f, none)
		if r := f.holdfast("query", "c", "--explain"); strings.Contains(r.out+r.messages, "panic") || r.code != exitOK && r.messages == "" {
			t.Errorf("%s: %d %s%s", none, r.code, r.out, r.messages)
		}
	}
	f.before = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		tellProblem(w, 400, "cursor-mismatch")
		return true
	}
	if r := f.holdfast("query", "c", "--explain", "--after", "x").expect(t, exitFailed); r.out != "" || !strings.Contains(r.messages, "cursor-mismatch") {
		t.Errorf("%s%s", r.out, r.messages)
	}
}

// Who explains a query does not wait, and gets no documents.
func TestWhatExplainContradicts(t *testing.T) {
	f := newFake(t)
	asked := explains(f, explainedText)
	for _, wrong := range [][]string{{"--all"}, {"--wait", "token"}, {"--as-of-now"}, {"--output", "ndjson"}, {"--timeout", "2s"}, {"--on-timeout", "stale"}, {"--scan"}, {"--fields", "a..b"}, {"--explain=maybe"}} {
		if r := f.holdfast(append([]string{"query", "c", "--explain"}, wrong...)...).expect(t, exitUsage); r.out != "" {
			t.Errorf("%v: %s", wrong, r.out)
		}
	}
	if len(*asked) > 0 {
		t.Errorf("asked %v", *asked)
	}
	for _, right := range [][]string{{"--verified"}, {"--fields", "a,b"}, {"--scan", "--where", "doc.a > 1"}, {"--limit", "0"}} {
		f.holdfast(append([]string{"query", "c", "--explain"}, right...)...).expect(t, exitOK)
	}
	if len(*asked) != 4 || !strings.Contains((*asked)[2], `"scan":true`) {
		t.Errorf("asked %v", *asked)
	}
	var out, messages strings.Builder
	if code := run(t.Context(), []string{"__complete", "query", "c", "--exp"}, &out, &messages); code != exitOK || !strings.Contains(out.String(), "--explain\tshow what the query becomes") {
		t.Errorf("%d %s%s", code, out.String(), messages.String())
	}
	if r := f.holdfast("query", "--help"); !strings.Contains(r.out, "holdfast query users 'age>=30' --explain") {
		t.Errorf("%s", r.out)
	}
}

// A query is broken into lines that fit, at any depth, and stays the same JSON.
func TestQueriesAreBrokenIntoLines(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, text := range []string{
		`{}`, `[]`, `"` + long + `"`, `{"` + long + `":{}}`, `[[[["` + long + `",1],true],null],{"a":"` + long + `","b":[]}]`,
		`[` + strings.Repeat(`{"term":{"doc.a.$str":"x"}},`, 50) + `1.50e-7]`, strings.Repeat("[", 300) + strings.Repeat("]", 300),
	} {
		lines, err := appendDSLLines(nil, []byte(text), "", "")
		joined := strings.Join(lines, "\n")
		if err != nil || !json.Valid([]byte(joined)) || strings.Join(strings.Fields(strings.ReplaceAll(joined, ": ", ":")), "") != text {
			t.Errorf("%v\n%s\n%s", err, joined, text)
		}
		for _, line := range lines {
			if len(line) > widestDSL+1 && strings.Contains(text, "term") { // with a comma
				t.Errorf("a line of %d: %s", len(line), line)
			}
		}
	}
	var e client.Explanation
	if err := json.Unmarshal([]byte(explainedText), &e); err != nil || fmt.Sprint(e.Explain.Limits.Clauses.Used) != "5" {
		t.Errorf("%v %+v", err, e)
	}
}
