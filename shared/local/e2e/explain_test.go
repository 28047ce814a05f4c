package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// explainedCommand is a command of the README and what it shows.
var explainedCommand = regexp.MustCompile("(?s)```console\n\\$ (holdfast query [^\n]* --explain[^\n]*)\n([^`]*)```\n")

// theMoment is when a query was asked, which decides about what has expired.
var theMoment = regexp.MustCompile(`(\{"\$expiresAt":\{"lte":)\d{16}(\}\})`)

// The queries that the README explains become what stands there.
func TestQueriesExplainedByExample(t *testing.T) {
	samples(t)
	bin := buildCommand(t)
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	text = explainedCommand.ReplaceAllFunc(text, func(part []byte) []byte {
		found++
		m := explainedCommand.FindSubmatch(part)
		cmd := exec.Command("sh", "-c", string(m[1]))
		cmd.Env = append(os.Environ(), "HOLDFAST_ENDPOINT="+base, "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"))
		var messages bytes.Buffer
		cmd.Stderr = &messages
		out, err := cmd.Output()
		if err != nil || messages.Len() > 0 {
			t.Errorf("%s: %v\n%s", m[1], err, &messages)
		}
		got := theMoment.ReplaceAll(out, []byte("${1}…$2"))
		if !*update && string(got) != string(m[2]) {
			t.Errorf("%s\nshows\n%s\nREADME:\n%s", m[1], got, m[2])
		}
		return fmt.Appendf(nil, "```console\n$ %s\n%s```\n", m[1], got)
	})
	if found != 1 {
		t.Errorf("%d examples are in the README", found)
	}
	if *update {
		if err := os.WriteFile(readme, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Behind the gateway a query is explained as it is anywhere, cursors included,
// and what it becomes finds in the stack's OpenSearch what the query finds.
func TestAnExplainedQueryFindsTheSame(t *testing.T) {
	samples(t)
	first := query(t, `{"from":"customers/orders","filter":{"$root":{"$prefix":"customers/B"}},"limit":5}`)
	next, _ := first.JSON("next").(string)
	second := fmt.Sprintf(`"from":"customers/orders","filter":{"$root":{"$prefix":"customers/B"}},"limit":5,"after":%q`, next)
	e := query(t, "{"+second+`,"explain":true,"wait":{"asOfNow":true,"timeout":"1ms"}}`) // which nobody waits for
	if e.JSON("documents") != nil || e.JSON("staleness") != nil || e.JSON("explain", "filter", "decidedBy") != "index" {
		t.Fatalf("%s", e)
	}
	var told struct {
		Explain struct {
			Search struct {
				Indexes []string
				Body    json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(e.Body, &told); err != nil {
		t.Fatal(err)
	}
	asked := told.Explain.Search
	answered := openSearch(t, "POST", "/"+strings.Join(asked.Indexes, ",")+"/_search", string(asked.Body))
	var hits struct {
		Hits struct {
			Hits []struct {
				Source struct {
					ID string `json:"$id"`
				} `json:"_source"`
			}
		}
	}
	if err := json.Unmarshal([]byte(answered), &hits); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range hits.Hits.Hits {
		got = append(got, h.Source.ID)
	}
	// One more is asked for than the page has, to know whether there is another page.
	want := query(t, "{"+second+"}")
	if _, more := want.JSON("next").(string); more && len(got) == 6 {
		got = got[:5]
	}
	sameIDs(t, "what is explained", got, want.ids())
}
