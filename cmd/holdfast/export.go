package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/value"
)

// checkpointEvery is how often an export that goes to a file can be resumed
// from.
const checkpointEvery = 5 * time.Second

// exporting are the flags of the command.
type exporting struct {
	connection
	collection string
	prefix     string
	filter     string
	envelope   bool
	strong     bool
	out        string
	force      bool
	resume     bool
	patience   time.Duration
}

// exportState is what an interrupted export needs to go on.
type exportState struct {
	Request   exportAsked `json:"request"`
	After     string      `json:"after"` // the cursor of the next page
	Documents int64       `json:"documents"`
	Left      int64       `json:"left"` // found, but gone or changed when they were read
	Bytes     int64       `json:"bytes"`
}

// exportAsked is what has to be the same for an export to go on.
type exportAsked struct {
	Endpoint   string `json:"endpoint"`
	Collection string `json:"collection,omitempty"`
	Prefix     string `json:"prefix,omitempty"`
	Filter     string `json:"filter,omitempty"`
	Envelope   bool   `json:"envelope"`
	Strong     bool   `json:"strong"`
}

func newExport() *cobra.Command {
	var ex exporting
	c := &cobra.Command{
		Use:   "export",
		Short: "Export documents as NDJSON",
		Long: `Writes {"id","data"}, one document a line in the order of ids, which is what
import reads.

--prefix reads the table: one root, or a part of it, strongly.
--collection finds the ids in the index and then reads each document strongly
from the table (unless --strong=false), so that every line is as the table has
it; with --filter only what still matches. A document that the index does not
show yet is missing; standard error says how current the index was.

With --out the file has its name only when it is complete; until then there is
FILE.part with a state file, and --resume goes on after Ctrl-C or a failure.`,
		Example: `  holdfast export --collection movies --out movies.ndjson.zst
  holdfast export --collection movies --filter '{"Major Genre":"Drama"}' | jq .data.Title
  holdfast export --prefix users/1/ > everything-below-users-1.ndjson
  holdfast export --collection huge --out huge.ndjson.gz --resume`,
		Args: takes(cobra.NoArgs),
		RunE: runs(func(ctx context.Context, c *cobra.Command, _ []string) error { return ex.run(ctx, c) }),
	}
	ex.connection.register(c)
	f := c.Flags()
	f.StringVar(&ex.collection, "collection", "", "all documents of this collection")
	f.StringVar(&ex.prefix, "prefix", "", "all documents whose ids begin so; at least a collection and a key, such as users/1/")
	f.StringVar(&ex.filter, "filter", "", "with --collection: only documents that match this filter, as JSON")
	f.BoolVar(&ex.envelope, "envelope", false, "also version, createdAt and updatedAt, which import passes over")
	f.BoolVar(&ex.strong, "strong", true, "read each document strongly from the table, instead of taking the index's copy")
	f.StringVar(&ex.out, "out", "", "file to write to, compressed if it ends in .gz or .zst (default standard output)")
	f.BoolVar(&ex.force, "force", false, "replace the file if there is one")
	f.BoolVar(&ex.resume, "resume", false, "go on where an interrupted export to this file stopped")
	f.DurationVar(&ex.patience, "retry-for", standardPatience, "how long to try again what is refused for now")
	return c
}

func (ex *exporting) check(c *cobra.Command) (filter.Expr, error) {
	err := errors.Join(exclude(c, [2]string{"collection", "prefix"}, [2]string{"prefix", "filter"}, [2]string{"resume", "force"}),
		notEmpty(c, "collection", "prefix", "filter", "out"))
	if err != nil {
		return nil, err
	}
	switch {
	case ex.collection == "" && ex.prefix == "":
		return nil, misuse(c, "name what to export: --collection, or --prefix")
	case ex.prefix != "" && !ex.strong:
		return nil, misuse(c, "--prefix always reads strongly; --strong=false contradicts it")
	case ex.out == "" && (ex.resume || ex.force):
		return nil, misuse(c, "--resume and --force are about --out")
	case ex.patience < 0:
		return nil, misuse(c, "--retry-for is not negative")
	}
	if ex.filter == "" {
		return filter.And{}, nil
	}
	tree, err := value.Decode([]byte(ex.filter), value.MaxDepth)
	if err != nil {
		return nil, misuse(c, "--filter: %s", detailOf(err))
	}
	match, err := filter.Parse(tree, filter.ParseOptions{})
	if err != nil && doc.KindOf(err) == doc.InvalidQuery && !ex.strong {
		return filter.And{}, nil // the server may know more of the language; it is not matched here
	}
	if err != nil {
		return nil, misuse(c, "--filter: %s", detailOf(err))
	}
	return match, nil
}

func (ex *exporting) run(ctx context.Context, c *cobra.Command) error {
	match, err := ex.check(c)
	if err != nil {
		return err
	}
	api, err := ex.reach(ctx, c, ex.patience, true)
	if err != nil {
		return err
	}
	state := exportState{Request: exportAsked{api.Endpoint(), ex.collection, ex.prefix, ex.filter, ex.envelope, ex.strong}}
	if err := ex.takeUp(c, &state); err != nil {
		return err
	}
	e := &exporter{
		exporting: ex, api: api, match: match, state: state,
		bar: newProgress(c.ErrOrStderr(), "exporting", 0), begun: time.Now(), saved: time.Now(),
	}
	if ex.out == "" {
		w := bufio.NewWriterSize(c.OutOrStdout(), 64<<10)
		e.w, e.page = w, w.Flush
	} else {
		if e.file, err = openExport(ex.out, state.Bytes); err != nil {
			return err
		}
		e.w = e.file
		e.page = func() error {
			if time.Since(e.saved) < checkpointEvery {
				return nil
			}
			e.saved = time.Now()
			return e.save()
		}
	}
	err = e.all(ctx)
	e.bar.end()
	return ex.end(c, e, err)
}

func (ex *exporting) statePath() string { return partOf(ex.out) + ".state" }

// takeUp finds out where to begin.
func (ex *exporting) takeUp(c *cobra.Command, state *exportState) error {
	if ex.out == "" {
		return nil
	}
	if _, err := os.Stat(ex.out); err == nil && !ex.force {
		return fmt.Errorf("%s exists; --force replaces it", ex.out)
	}
	if !ex.resume {
		return removeState(ex.statePath())
	}
	var old exportState
	err := readState(ex.statePath(), &old)
	switch {
	case errors.Is(err, errNoState):
		note(c, "holdfast: %v; starting at the beginning", err)
		return nil
	case err != nil:
		return err
	case old.Request != state.Request:
		return fmt.Errorf("the interrupted export was another one (%+v); give the same flags, or start again without --resume", old.Request)
	}
	*state = old
	note(c, "holdfast: going on after %d documents", old.Documents)
	return nil
}

// end closes what was opened and tells how it ended.
func (ex *exporting) end(c *cobra.Command, e *exporter, err error) error {
	if e.file != nil {
		if err == nil {
			err = e.file.finish()
			if err == nil {
				err = removeState(ex.statePath())
			}
		} else {
			// Since the last page nothing was written, so this is a good place.
			err = errors.Join(err, e.save(), e.file.file.Close())
		}
	}
	line := fmt.Sprintf("%d documents exported in %.1f s", e.state.Documents, time.Since(e.begun).Seconds())
	if e.state.Left > 0 {
		line += fmt.Sprintf("; %d that the index showed were deleted or changed meanwhile and are left out", e.state.Left)
	}
	if e.staleness != "" {
		line += ". " + e.staleness
	}
	note(c, "%s", line)
	if err == nil {
		return nil
	}
	where := "stopped before the end"
	if e.file != nil {
		where += "; --resume goes on from there"
	}
	if errors.Is(err, context.Canceled) {
		return &codedError{code: exitInterrupted, err: errors.New(where)}
	}
	return failed(fmt.Errorf("%w\n%s", err, where))
}

// exporter writes page after page.
type exporter struct {
	*exporting
	api   *client.Client
	match filter.Expr
	state exportState

	w     io.Writer
	page  func() error // after each page
	file  *exportFile  // nil: standard output
	bar   *progress
	begun time.Time
	saved time.Time

	staleness string
}

// save makes a checkpoint.
func (e *exporter) save() error {
	n, err := e.file.checkpoint()
	if err != nil {
		return err
	}
	e.state.Bytes = n
	return writeState(e.statePath(), e.state)
}

func (e *exporter) all(ctx context.Context) error {
	for {
		page, err := e.next(ctx)
		if err != nil {
			return err
		}
		var text strings.Builder
		for _, d := range page.Documents {
			if err := e.line(&text, d); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err // before the page, so that all of it is written or nothing
		}
		if _, err := io.WriteString(e.w, text.String()); err != nil {
			return err
		}
		e.state.Documents += int64(len(page.Documents))
		e.state.After = page.Next
		if err := e.page(); err != nil || page.Next == "" {
			return err
		}
		e.bar.at(e.state.Documents, 0)
	}
}

func (e *exporter) line(w io.Writer, d client.Envelope) error {
	if e.envelope {
		return writeJSON(w, d)
	}
	return writeJSON(w, struct {
		ID   string          `json:"id"`
		Data json.RawMessage `json:"data"`
	}{d.ID, d.Data})
}

// next reads the next page.
func (e *exporter) next(ctx context.Context) (client.Page, error) {
	if e.prefix != "" {
		return e.api.Prefix(ctx, e.prefix, e.state.After, pageSize)
	}
	size := pageSize
	q := client.Query{From: e.collection, After: e.state.After, Limit: &size}
	if e.filter != "" {
		q.Filter = json.RawMessage(e.filter)
	}
	found, err := e.api.Query(ctx, q)
	if err != nil {
		return client.Page{}, err
	}
	if e.state.After == "" || e.staleness == "" {
		e.staleness = found.Notice()
	}
	if e.strong {
		return e.reread(ctx, found.Page)
	}
	return found.Page, nil
}

// reread replaces the index's copies by what the table has.
func (e *exporter) reread(ctx context.Context, page client.Page) (client.Page, error) {
	kept, left := page.Documents[:0], int64(0)
	for rest := page.Documents; len(rest) > 0; {
		some := rest[:min(len(rest), client.MostIDs)]
		rest = rest[len(some):]
		ids := make([]string, len(some))
		for i, d := range some {
			ids[i] = d.ID
		}
		now, err := e.api.Load(ctx, ids)
		if err != nil {
			return page, err
		}
		for _, id := range ids {
			d := now[id]
			if d == nil {
				left++
				continue
			}
			matches, err := e.matches(d)
			if err != nil {
				return page, err
			}
			if !matches {
				left++
				continue
			}
			kept = append(kept, *d)
		}
	}
	page.Documents = kept
	e.state.Left += left // only now: a page that fails is read again
	return page, nil
}

// matches reports whether a document still matches the filter.
func (e *exporter) matches(d *client.Envelope) (bool, error) {
	if e.filter == "" {
		return true, nil
	}
	data, err := value.DecodeDocument(d.Data)
	if err != nil {
		return false, fmt.Errorf("%s cannot be read: %w", client.Printable(d.ID), err)
	}
	version, _ := doc.ParseVersion(d.Version.String())
	whole := &doc.Document{ID: doc.ID(d.ID), Version: version, Data: data}
	whole.CreatedAt, err = time.Parse(time.RFC3339Nano, d.CreatedAt)
	if err == nil {
		whole.UpdatedAt, err = time.Parse(time.RFC3339Nano, d.UpdatedAt)
	}
	if err != nil {
		return false, fmt.Errorf("the times of %s cannot be read: %w", client.Printable(d.ID), err)
	}
	return filter.Match(e.match, whole), nil
}
