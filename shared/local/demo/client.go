package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// client speaks to a Holdfast.
type client struct{ base string }

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration
}

func (c *client) do(ctx context.Context, method, target, mediaType string, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+target, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", mediaType)
	}
	begun := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", method, target, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", method, target, err)
	}
	return answer{status: res.StatusCode, header: res.Header, body: text, took: time.Since(begun)}, nil
}

// json is the body as a tree; numbers are json.Number. Nil when it is no JSON.
func (a answer) json() any {
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

func (a answer) member(name string) any {
	m, _ := a.json().(map[string]any)
	return m[name]
}

func (a answer) number(name string) json.Number {
	n, _ := a.member(name).(json.Number)
	return n
}

// envelope is what the demo looks at in a returned document.
type envelope struct {
	ID      string      `json:"id"`
	Version json.Number `json:"version"`
}

func (a answer) documents() []envelope {
	var page struct {
		Documents []envelope `json:"documents"`
	}
	if json.Unmarshal(a.body, &page) != nil {
		return nil
	}
	return page.Documents
}

// How much of an answer a person is shown.
const (
	shownDocuments = 2
	shownBytes     = 2500
)

// shown is the body for reading: indented, long lists of documents and long
// text cut.
func (a answer) shown() string {
	v := a.json()
	if v == nil {
		return string(a.body[:min(len(a.body), shownBytes)])
	}
	more := ""
	if m, ok := v.(map[string]any); ok {
		if docs, ok := m["documents"].([]any); ok && len(docs) > shownDocuments {
			more = fmt.Sprintf("\n    (and %d more documents)", len(docs)-shownDocuments)
			m["documents"] = docs[:shownDocuments]
		}
	}
	text, err := json.MarshalIndent(v, "    ", "  ")
	if err != nil {
		return string(a.body[:min(len(a.body), shownBytes)])
	}
	if len(text) > shownBytes {
		return string(bytes.ToValidUTF8(text[:shownBytes], nil)) + " …" + more
	}
	return string(text) + more
}
