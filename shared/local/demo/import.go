package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
)

// sampleData is what the scenes know of the imported data.
type sampleData struct {
	documents int
	tokens    []string
	germans   []string       // ids of the customers in Germany
	ordersOf  map[string]int // number of orders by customer id
}

// linesPerRequest keeps a request far below every limit.
const linesPerRequest = 100

// importAll sends the data through the API and demands that every document is
// accepted.
func (d *Demo) importAll(ctx context.Context, c *client) (*sampleData, error) {
	lines := bytes.Split(bytes.TrimSpace(d.Data), []byte("\n"))
	in, err := survey(lines)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(d.Out, "\nImporting %d documents through POST /bulk\n", len(lines))
	bar := newProgress(d.Progress, d.Terminal, len(lines))
	begun := time.Now()
	for begin := 0; begin < len(lines); begin += linesPerRequest {
		part := lines[begin:min(begin+linesPerRequest, len(lines))]
		token, err := importPart(ctx, c, part)
		if err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
		in.tokens = append(in.tokens, token)
		bar.add(len(part))
	}
	bar.end()
	took := time.Since(begun)
	fmt.Fprintf(d.Out, "  ✓ all %d documents were acknowledged in %.1f s (%.0f a second)\n", len(lines), took.Seconds(), float64(len(lines))/took.Seconds())
	return in, nil
}

// survey reads what the scenes want to know out of the data.
func survey(lines [][]byte) (*sampleData, error) {
	in := &sampleData{documents: len(lines), ordersOf: map[string]int{}}
	for i, line := range lines {
		var d struct {
			ID   string `json:"id"`
			Data struct {
				Address struct {
					Country any `json:"country"`
				} `json:"address"`
			} `json:"data"`
		}
		if err := json.Unmarshal(line, &d); err != nil {
			return nil, fmt.Errorf("line %d of the data: %w", i+1, err)
		}
		segments := strings.Split(d.ID, "/")
		switch {
		case segments[0] == "customers" && len(segments) == 2 && d.Data.Address.Country == "Germany":
			in.germans = append(in.germans, d.ID)
		case segments[0] == "customers" && len(segments) == 4 && segments[2] == "orders":
			in.ordersOf[strings.Join(segments[:2], "/")]++
		}
	}
	return in, nil
}

// importPart makes one request and reads the outcome of every line.
func importPart(ctx context.Context, c *client, lines [][]byte) (token string, err error) {
	a, err := c.do(ctx, http.MethodPost, "/bulk", "application/x-ndjson", bytes.Join(lines, []byte("\n")))
	if err != nil {
		return "", err
	}
	if a.status != http.StatusOK {
		return "", fmt.Errorf("/bulk answers %d: %s", a.status, a.body)
	}
	outcomes := json.NewDecoder(bytes.NewReader(a.body))
	for range lines {
		var o struct {
			ID      string          `json:"id"`
			Version json.Number     `json:"version"`
			Error   json.RawMessage `json:"error"`
		}
		if err := outcomes.Decode(&o); err != nil {
			return "", fmt.Errorf("/bulk does not answer for every line: %w", err)
		}
		if o.Error != nil || o.Version == "" {
			return "", fmt.Errorf("%s was not accepted: %s", o.ID, o.Error)
		}
	}
	var last struct {
		Token string `json:"token"`
	}
	if err := outcomes.Decode(&last); err != nil || last.Token == "" {
		return "", fmt.Errorf("/bulk gave no token (%v)", err)
	}
	return last.Token, nil
}

// progress is a bar on a terminal and a few lines elsewhere.
type progress struct {
	bar    *progressbar.ProgressBar // nil: lines
	w      io.Writer
	all    int
	done   int
	spoken int // quarters told so far
}

func newProgress(w io.Writer, terminal bool, all int) *progress {
	p := &progress{w: w, all: all}
	if terminal {
		p.bar = progressbar.NewOptions(all, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription("  importing"),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("documents"),
			progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond))
	}
	return p
}

func (p *progress) add(n int) {
	p.done += n
	if p.bar != nil {
		_ = p.bar.Add(n) // a bar that cannot be drawn is no reason to stop
		return
	}
	if quarters := 4 * p.done / p.all; quarters > p.spoken {
		p.spoken = quarters
		fmt.Fprintf(p.w, "  importing: %d of %d\n", p.done, p.all)
	}
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
		fmt.Fprintln(p.w)
	}
}
