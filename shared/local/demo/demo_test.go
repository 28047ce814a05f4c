package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

var data = []byte(`{"id":"customers/ALFKI","data":{"address":{"country":"Germany"}}}
{"id":"customers/ALFKI/orders/1","data":{}}
{"id":"customers/ALFKI/orders/2","data":{}}
{"id":"customers/BONAP","data":{"address":{"country":"France"}}}
{"id":"customers/DRACD","data":{"address":{"country":"Germany"}}}
`)

// pretended is a Holdfast in memory, as far as the demo looks, with a fault.
type pretended struct {
	fault string
	docs  map[string]string
}

func (p *pretended) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id := strings.TrimPrefix(r.URL.Path, "/docs/")
	switch {
	case r.URL.Path == "/bulk":
		lines := bufio.NewScanner(bytes.NewReader(body))
		for n := 1; lines.Scan(); n++ {
			var d struct {
				ID   string
				Data json.RawMessage
			}
			if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			p.docs[d.ID] = string(d.Data)
			if p.fault == "refused" && n == 3 {
				fmt.Fprintf(w, `{"line":%d,"id":%q,"error":{"type":"/problems/throttled"}}`+"\n", n, d.ID)
				continue
			}
			if p.fault == "unanswered" && n == 3 {
				continue
			}
			fmt.Fprintf(w, `{"line":%d,"id":%q,"version":1}`+"\n", n, d.ID)
		}
		fmt.Fprintln(w, `{"token":"t"}`)
	case r.Method == http.MethodPut:
		p.docs[id] = string(body)
		w.Header().Set("Holdfast-Token", "t")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id":%q,"version":1}`, id)
	case r.URL.Path == "/query":
		p.query(w, bytes.Contains(body, []byte(`"wait"`)))
	case r.URL.Path == "/docs":
		p.prefix(w, r.FormValue("startsWith"))
	default:
		w.Header().Set("ETag", `"1"`)
		if p.fault == "stale load" {
			fmt.Fprint(w, `{"companyName":"before"}`)
			return
		}
		fmt.Fprint(w, p.docs[id])
	}
}

func (p *pretended) query(w http.ResponseWriter, waits bool) {
	var docs []string
	for _, id := range p.ids() {
		if strings.Contains(p.docs[id], "Germany") && (p.fault != "write not waited for" || id != "customers/DEMO") && (p.fault != "import not waited for" || id != "customers/DRACD") {
			docs = append(docs, fmt.Sprintf(`{"id":%q,"version":1}`, id))
		}
	}
	notice := "Results may be up to 3 s old."
	if p.fault == "no notice" {
		notice = ""
	}
	fmt.Fprintf(w, `{"documents":[%s],"staleness":{"stale":true,"notice":%q,"timedOut":%v}}`, strings.Join(docs, ","), notice, waits && p.fault == "timeout")
}

func (p *pretended) prefix(w http.ResponseWriter, prefix string) {
	var docs []string
	for _, id := range p.ids() {
		if strings.HasPrefix(id, prefix) || p.fault == "more than the prefix" {
			docs = append(docs, fmt.Sprintf(`{"id":%q,"version":1}`, id))
		}
	}
	switch p.fault {
	case "an order missing":
		docs = docs[1:]
	case "no order":
		slices.Reverse(docs)
	}
	fmt.Fprintf(w, `{"documents":[%s]}`, strings.Join(docs, ","))
}

func (p *pretended) ids() (ids []string) {
	for id := range p.docs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func runAgainst(t *testing.T, fault string) (string, error) {
	t.Helper()
	server := httptest.NewServer(&pretended{fault: fault, docs: map[string]string{}})
	defer server.Close()
	var out, progress bytes.Buffer
	err := (&Demo{URL: server.URL, Data: data, Out: &out, Progress: &progress}).Run(t.Context())
	return out.String(), err
}

func TestKeptPromises(t *testing.T) {
	out, err := runAgainst(t, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, part := range []string{"PUT /docs/customers/DEMO", "POST /query", `"tokens"`, "startsWith=customers%2FALFKI%2Forders%2F", "Everything was as promised"} {
		if !strings.Contains(out, part) {
			t.Errorf("the output lacks %q:\n%s", part, out)
		}
	}
}

// A demo that finds everything well, whatever it meets, would show nothing.
func TestEveryBrokenPromiseIsFound(t *testing.T) {
	for fault, says := range map[string]string{
		"stale load":            "the load returns what was saved",
		"no notice":             "how old it may be",
		"write not waited for":  "saved a moment ago",
		"import not waited for": "imported customers in Germany",
		"timeout":               "did not time out",
		"an order missing":      "all 2 orders",
		"more than the prefix":  "nothing else",
		"no order":              "in the order of their ids",
	} {
		out, err := runAgainst(t, fault)
		var broken *NotAsPromised
		if !errors.As(err, &broken) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: the error is %v\n%s", fault, err, out)
		}
	}
}

func TestAnImportThatIsNotAcknowledgedInFullFails(t *testing.T) {
	for _, fault := range []string{"refused", "unanswered"} {
		if _, err := runAgainst(t, fault); err == nil || !strings.Contains(err.Error(), "import") {
			t.Errorf("%s: the error is %v", fault, err)
		}
	}
}
