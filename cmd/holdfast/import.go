package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
	"holdfast/shared/doc"
)

const (
	modeUpsert = "upsert"
	modeInsert = "insert"

	// Each bulk request is written by several writers on the server already.
	standardBulks    = 4
	standardSingles  = 16
	mostConcurrency  = 128
	shownRejects     = 5
	standardPatience = 5 * time.Minute
)

// importing are the flags of the command.
type importing struct {
	connection
	output
	collection  string
	idField     string
	mode        string
	concurrency int
	rejects     string
	resume      bool
	patience    time.Duration

	regular bool // the input is a file that can be read again

	tally importState // what was done, this run and those before it
	shown []string    // the first rejects, for people
}

func newImport() *cobra.Command {
	var im importing
	c := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Import documents from NDJSON or a JSON array",
		Long: `Reads {"id":…,"data":{…}}, one a line or as the elements of one JSON array, and
saves each document. With --collection it reads plain documents instead: their
ids are the collection and the member --id-field names, or, without --id-field,
the server assigns them. Files may be compressed with gzip or zstd. Lines may
have up to 3 MB and are not kept in memory.

--mode upsert replaces what is there; a line {"id":…,"delete":true} deletes.
--mode insert only creates: a document that exists is rejected.

A bad line does not stop the import. It goes to the rejects file as
{"line","id","error","input"}, and the exit code is 4; in an array, line counts
the elements. To try them again:
  jq -c .input movies.rejects.ndjson | holdfast import -

Lines with the same id are written in the order of the file. What the server
refuses for now, and a server that is away, is tried again for --retry-for.

Ctrl-C, or a failure, keeps a state file beside the rejects, and --resume goes on
from there: behind the lines that were all acknowledged, so that some may be
sent twice. With --mode insert, those that are there already and equal then count
as present and are not rejected. Without such a state --resume starts at the
beginning. Standard input, and ids that the server assigns, cannot be resumed.`,
		Example: `  holdfast import movies.ndjson.gz
  holdfast import people.json --collection people --id-field email --mode insert
  psql -Atc 'select row_to_json(t) from t' | holdfast import - --collection rows --rejects bad.ndjson
  holdfast import huge.ndjson.zst --concurrency 16; holdfast import huge.ndjson.zst --resume`,
		Args: takes(cobra.ExactArgs(1)),
		RunE: runs(func(ctx context.Context, c *cobra.Command, args []string) error { return im.run(ctx, c, args[0]) }),
	}
	im.connection.register(c)
	im.output.register(c, "text", "json")
	f := c.Flags()
	f.StringVar(&im.collection, "collection", "", "lines are plain documents, for this collection or collection path, such as users or users/1/account")
	f.StringVar(&im.idField, "id-field", "", "member of each document that becomes the last segment of its id")
	f.StringVar(&im.mode, "mode", modeUpsert, "upsert, or insert to create only")
	f.IntVar(&im.concurrency, "concurrency", 0, fmt.Sprintf("requests at once (default %d bulk requests, or %d documents where they travel one by one)", standardBulks, standardSingles))
	f.StringVar(&im.rejects, "rejects", "", "file for rejected lines, made when there are some (default FILE.rejects.ndjson; none for standard input)")
	f.BoolVar(&im.resume, "resume", false, "go on where an interrupted import of this file stopped")
	f.DurationVar(&im.patience, "retry-for", standardPatience, "how long to try again what is refused for now")
	complete(c, "mode", modeUpsert, modeInsert)
	return c
}

// check refuses what contradicts itself and fills in what was left open.
func (im *importing) check(c *cobra.Command, path string) error {
	if err := errors.Join(im.output.check(c), notEmpty(c, "collection", "id-field", "rejects")); err != nil {
		return err
	}
	if im.mode != modeUpsert && im.mode != modeInsert {
		return misuse(c, "--mode is upsert or insert, not %q", im.mode)
	}
	assigned := im.collection != "" && im.idField == ""
	if path != "-" {
		info, err := os.Stat(path)
		if err != nil {
			return failed(err)
		}
		im.regular = info.Mode().IsRegular()
	}
	switch {
	case im.idField != "" && im.collection == "":
		return misuse(c, "--id-field says nothing without --collection")
	case assigned && c.Flags().Changed("mode") && im.mode == modeUpsert:
		return misuse(c, "ids that the server assigns are new, so --mode upsert contradicts --collection without --id-field")
	case im.resume && !im.regular:
		return misuse(c, "only an import of a file can be resumed, not one of standard input or a pipe")
	case im.resume && assigned:
		return misuse(c, "an import with ids that the server assigns cannot be resumed: lines that are sent twice would be two documents")
	case c.Flags().Changed("concurrency") && (im.concurrency < 1 || im.concurrency > mostConcurrency):
		return misuse(c, "--concurrency is from 1 to %d", mostConcurrency)
	case im.patience < 0:
		return misuse(c, "--retry-for is not negative")
	}
	if im.collection != "" {
		im.collection = strings.TrimSuffix(im.collection, "/")
		if _, err := doc.ParseParent(im.collection + "/"); err != nil {
			return misuse(c, "--collection: %s", detailOf(err))
		}
	}
	if im.rejects == "" && im.regular {
		im.rejects = path + ".rejects.ndjson"
	}
	if im.regular && sameFile(im.rejects, path) {
		return misuse(c, "--rejects names the file that is imported")
	}
	if im.concurrency == 0 {
		im.concurrency = standardBulks
		if assigned || im.mode == modeInsert {
			im.concurrency = standardSingles
		}
	}
	return nil
}

func sameFile(a, b string) bool {
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	return errX == nil && errY == nil && x == y
}

func (im *importing) run(ctx context.Context, c *cobra.Command, path string) error {
	if err := im.check(c, path); err != nil {
		return err
	}
	api, err := im.reach(ctx, c, im.patience, true)
	if err != nil {
		return err
	}
	shape := shape{collection: im.collection, idField: im.idField, insert: im.mode == modeInsert}
	statePath := ""
	im.tally = importState{Request: importAsked{api.Endpoint(), im.mode, im.collection, im.idField}}
	if im.regular && !shape.assigned() {
		statePath = im.rejects + ".state"
		if im.tally.File, err = fingerprintOf(path); err != nil {
			return err
		}
	}
	resumed, err := im.takeUp(c, path, statePath)
	if err != nil {
		return err
	}
	in, err := awaiting(ctx, func() (*input, error) { return openInput(path, c.InOrStdin(), im.tally.At, im.tally.Array) })
	if err != nil {
		return err
	}
	defer in.close()
	im.tally.Array = in.array
	rejects := &rejectsFile{path: im.rejects}
	if err := rejects.begin(im.tally.Rejects); err != nil {
		return err
	}
	before := im.tally
	bar := newProgress(c.ErrOrStderr(), "importing", in.size)
	begun, saved := time.Now(), time.Time{} // so that the first batch is kept at once
	work := &importer{
		api: api, shape: shape, concurrency: im.concurrency, resumed: resumed,
		sleep: interruptible(ctx), patience: im.patience,
		commit: func(b *batch) error {
			if err := im.account(b, rejects); err != nil {
				return err
			}
			bar.at(im.tally.Imported, in.position(b.end))
			if statePath != "" && time.Since(saved) > saveEvery {
				saved = time.Now()
				return writeState(statePath, im.tally)
			}
			return nil
		},
	}
	if statePath != "" { // while there is still nothing to lose: where it cannot be kept, say so now
		if err := writeState(statePath, im.tally); err != nil {
			return errors.Join(fmt.Errorf("%w; --rejects names another place", err), rejects.close())
		}
	}
	err = work.run(ctx, in)
	bar.end()
	err = errors.Join(err, rejects.close())
	if statePath != "" {
		if err != nil {
			err = errors.Join(err, writeState(statePath, im.tally))
		} else {
			err = removeState(statePath)
		}
	}
	return im.report(c, before, work.sent, time.Since(begun), err, statePath != "")
}

// takeUp reads the state of an interrupted import.
func (im *importing) takeUp(c *cobra.Command, path, statePath string) (resumed bool, _ error) {
	if statePath == "" {
		return false, nil
	}
	var old importState
	switch err := readState(statePath, &old); {
	case !im.resume && err == nil && old.File == im.tally.File && old.At.Line > 0:
		note(c, "holdfast: an earlier import of this file stopped after line %d; this one starts at the beginning (--resume goes on)", old.At.Line)
		return false, nil
	case !im.resume:
		return false, nil
	case errors.Is(err, errNoState):
		note(c, "holdfast: %v; starting at the beginning", err)
		return false, nil
	case err != nil:
		return false, err
	}
	if old.File != im.tally.File {
		return false, fmt.Errorf("%s is not the file whose import was interrupted: its size or beginning is another; start again without --resume", path)
	}
	if old.Request != im.tally.Request {
		return false, fmt.Errorf("the interrupted import was another one (to %s, mode %s, collection %q, id-field %q); give the same flags, or start again without --resume",
			old.Request.Endpoint, old.Request.Mode, old.Request.Collection, old.Request.IDField)
	}
	im.tally = old
	note(c, "holdfast: going on after line %d", old.At.Line)
	return true, nil
}

// account counts a batch that was carried through and keeps its rejects.
func (im *importing) account(b *batch, rejects *rejectsFile) error {
	for i, e := range b.entries {
		switch problem := b.problems[i]; {
		case problem == nil && b.present[i]:
			im.tally.Present++
		case problem == nil:
			im.tally.Imported++
		default:
			r, err := rejectOf(e, problem)
			if err != nil {
				return err
			}
			if err := rejects.add(r); err != nil {
				return err
			}
			im.tally.Rejected++
			if len(im.shown) < shownRejects {
				im.shown = append(im.shown, fmt.Sprintf("line %d: %v", e.line, client.ParseProblem(problem)))
			}
		}
	}
	if err := rejects.flush(); err != nil {
		return err
	}
	im.tally.At, im.tally.Rejects = b.end, rejects.bytes
	return nil
}

// report tells how it ended and gives the error for the exit code.
func (im *importing) report(c *cobra.Command, before importState, sent int64, took time.Duration, err error, resumable bool) error {
	for _, line := range im.shown {
		note(c, "rejected, %s", line)
	}
	t := im.tally
	if n := t.Rejected - before.Rejected - int64(len(im.shown)); n > 0 {
		note(c, "and %d more", n)
	}
	if im.format == "json" {
		summary := struct {
			Complete bool    `json:"complete"`
			Lines    int64   `json:"lines"` // acknowledged, from the beginning of the input on
			Imported int64   `json:"imported"`
			Present  int64   `json:"present"`
			Rejected int64   `json:"rejected"`
			Rejects  string  `json:"rejects,omitempty"`
			Seconds  float64 `json:"seconds"` // of this run
		}{err == nil, t.At.Line, t.Imported, t.Present, t.Rejected, "", math.Round(took.Seconds()*1000) / 1000}
		if t.Rejected > 0 {
			summary.Rejects = im.rejects
		}
		if err := writeJSON(c.OutOrStdout(), summary); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("%d documents imported in %.1f s (%.0f a second)", t.Imported, took.Seconds(), float64(t.Imported-before.Imported)/max(took.Seconds(), 0.001))
	if t.Present > 0 {
		line += fmt.Sprintf(", %d were there already", t.Present)
	}
	if t.Rejected > 0 {
		line += fmt.Sprintf(", %d rejected", t.Rejected)
		if im.rejects != "" {
			line += ", see " + im.rejects
		}
	}
	note(c, "%s", line)
	if err != nil {
		where := fmt.Sprintf("stopped; everything up to line %d is acknowledged", t.At.Line)
		if sent > t.At.Line {
			where += fmt.Sprintf(", and some up to line %d may have been sent as well", sent)
		}
		if resumable {
			where += "; --resume goes on from there"
		}
		if errors.Is(err, context.Canceled) {
			return &codedError{code: exitInterrupted, err: errors.New(where)}
		}
		return failed(fmt.Errorf("%w\n%s", err, where))
	}
	if t.Rejected > 0 {
		return &codedError{code: exitRejected, err: fmt.Errorf("%d lines were rejected", t.Rejected)}
	}
	return nil
}
