package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
	"holdfast/shared/doc"
)

func newLoad() *cobra.Command {
	var from connection
	var out output
	c := &cobra.Command{
		Use:   "load [ID…]",
		Short: "Load many documents by their ids, strongly",
		Long: `Writes documents with their version and times. Without arguments the ids come
from standard input, one a line; any number of them. Exit code 5 says that some
do not exist; standard error names them.

Outputs: ndjson (one document a line, in the order asked for), json (one object
{"documents":{id: document or null}}), table.`,
		Example: `  holdfast load users/1 users/2
  holdfast load --output json < ids.txt
  holdfast changes --collection users | jq -r .id | holdfast load`,
		RunE: asks(&from, &out, func(ctx context.Context, c *cobra.Command, api *client.Client, args []string) error {
			l := loading{command: c, api: api, format: out.format, written: map[string]bool{}}
			if err := l.all(ctx, args); err != nil {
				return err
			}
			if l.absent > 0 {
				return &codedError{code: exitNotFound, err: fmt.Errorf("%d of %d documents do not exist", l.absent, l.asked)}
			}
			return nil
		}),
	}
	from.register(c)
	out.register(c, "ndjson", "json", "table")
	return c
}

// loading writes documents as they come, a request's worth at a time.
type loading struct {
	command *cobra.Command
	api     *client.Client
	format  string
	asked   int
	absent  int
	table   *table
	written map[string]bool // ids of the one object of the format json
}

func (l *loading) all(ctx context.Context, args []string) error {
	w := bufio.NewWriter(l.command.OutOrStdout())
	next := eachArgument(args)
	if len(args) == 0 {
		next = eachLine(ctx, l.command.InOrStdin())
	}
	if l.format == "json" {
		_, _ = w.WriteString(`{"documents":{`) // w keeps the error until Flush
	}
	for {
		var ids []string
		var end error
		for len(ids) < client.MostIDs && end == nil {
			var id string
			if id, end = next(); end == nil {
				ids = append(ids, id)
			}
		}
		if end != nil && end != io.EOF {
			return fmt.Errorf("reading ids: %w", end)
		}
		if err := l.some(ctx, w, ids); err != nil {
			return errors.Join(err, w.Flush())
		}
		if end == io.EOF {
			break
		}
	}
	if l.format == "json" {
		_, _ = w.WriteString("}}\n")
	}
	return w.Flush()
}

func (l *loading) some(ctx context.Context, w *bufio.Writer, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	for _, id := range ids {
		// The server would name its place in a request that nobody sees. And of
		// what is not UTF-8 JSON would make another id.
		if _, err := doc.ParseID(id); err != nil {
			return fmt.Errorf("%q: %s", id, detailOf(err))
		}
	}
	found, err := l.api.Load(ctx, ids)
	if err != nil {
		return err
	}
	var rows []client.Envelope
	for _, id := range ids {
		d := found[id]
		if l.format == "json" && l.written[id] {
			continue // an object has each name once
		}
		first := l.asked == 0
		l.asked++
		if d == nil {
			l.absent++
			note(l.command, "holdfast: there is no document %s", client.Printable(id))
		}
		switch {
		case l.format == "json":
			l.written[id] = true
			if !first {
				_ = w.WriteByte(',')
			}
			if err := writeMember(w, id, d); err != nil {
				return err
			}
		case d == nil:
		case l.format == "table":
			rows = append(rows, *d)
		default:
			if err := writeJSON(w, d); err != nil {
				return err
			}
		}
	}
	if len(rows) > 0 {
		if l.table == nil {
			l.table = newTable(l.command, rows, nil)
		}
		return l.table.write(w, rows)
	}
	return nil
}

// writeMember writes a name and a value of an object; nil becomes null.
func writeMember(w *bufio.Writer, name string, v any) error {
	var b strings.Builder
	if err := writeJSON(&b, name); err != nil {
		return err
	}
	_, _ = w.WriteString(strings.TrimSuffix(b.String(), "\n") + ":")
	b.Reset()
	if err := writeJSON(&b, v); err != nil {
		return err
	}
	_, err := w.WriteString(strings.TrimSuffix(b.String(), "\n"))
	return err
}

// eachArgument gives the arguments one by one.
func eachArgument(args []string) func() (string, error) {
	args = slices.Clone(args)
	return func() (string, error) {
		if len(args) == 0 {
			return "", io.EOF
		}
		id := args[0]
		args = args[1:]
		return id, nil
	}
}

// mostIDLine is far more than an id has (512 bytes); the server refuses what is
// in between.
const mostIDLine = 64 << 10

// eachLine gives the lines that are not empty. An id may begin or end with a
// space, so only the line's end is cut off. It does not wait for a line that is
// not there yet when ctx ends.
func eachLine(ctx context.Context, r io.Reader) func() (string, error) {
	lines, first := bufio.NewScanner(r), true
	lines.Buffer(nil, mostIDLine)
	read := func() (string, error) {
		for lines.Scan() {
			line := lines.Bytes()
			if first {
				line, first = bytes.TrimPrefix(line, byteOrderMark), false
			}
			if id := strings.TrimSuffix(string(line), "\r"); id != "" {
				return id, nil
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			return "", fmt.Errorf("a line has more than %d bytes; an id has at most %d", mostIDLine, doc.MaxIDBytes)
		case err != nil:
			return "", err
		}
		return "", io.EOF
	}
	return func() (string, error) { return awaiting(ctx, read) }
}
