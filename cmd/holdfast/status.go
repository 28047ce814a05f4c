package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
)

// watchEvery is how often a watched status is asked for unless told otherwise.
const watchEvery = 5 * time.Second

func newStatus() *cobra.Command {
	var at connection
	var out output
	var every time.Duration
	c := &cobra.Command{
		Use:   "status",
		Short: "See whether all is well, and what to do where it is not",
		Long: `Shows whether the index follows the table as it should: problems first, each with
what can be done about it, then each collection, the way from the table to the
index, and the jobs.

Exit code 3 says that something is not as it should be. --watch shows it again
and again until Ctrl-C, which is its regular end: exit code 0.`,
		Example: `  holdfast status
  holdfast status --watch            # every five seconds; --watch=1m every minute
  holdfast status --output json | jq .problems`,
		Args: takes(cobra.NoArgs),
		RunE: runs(func(ctx context.Context, c *cobra.Command, _ []string) error {
			if err := out.check(c); err != nil {
				return err
			}
			watched := c.Flags().Changed("watch")
			if watched && every <= 0 {
				return misuse(c, "--watch is a length of time such as 5s")
			}
			api, err := at.open(ctx, c, shortPatience, watched)
			if err != nil {
				return err
			}
			for {
				s, err := readStatus(ctx, api)
				if err == nil {
					err = showStatus(c.OutOrStdout(), s, out.format, watched)
				}
				switch {
				case !watched && err == nil && !s.Healthy:
					return &codedError{code: exitNotAsPromised, err: errors.New("not all is as it should be")}
				case !watched:
					return err
				case ctx.Err() != nil:
					return nil
				case err != nil:
					note(c, "holdfast: %v", err)
				}
				if interruptible(ctx)(ctx, every) != nil {
					return nil
				}
			}
		}),
	}
	at.register(c)
	out.register(c, "table", "json")
	c.Flags().DurationVar(&every, "watch", 0, "show it again every so often, until Ctrl-C")
	c.Flags().Lookup("watch").NoOptDefVal = watchEvery.String()
	return c
}

// readStatus asks for the status with all collections.
func readStatus(ctx context.Context, api *client.Client) (client.Status, error) {
	all, err := client.Read[client.Status](ctx, api, "/status", nil)
	for err == nil && all.Next != "" {
		var more client.Status
		more, err = client.Read[client.Status](ctx, api, "/status", url.Values{"after": {all.Next}})
		all.Collections, all.Next = append(all.Collections, more.Collections...), more.Next
	}
	return all, err
}

// clearScreen puts what follows at the top of a terminal.
const clearScreen = "\x1b[2J\x1b[H"

func showStatus(w io.Writer, s client.Status, format string, again bool) error {
	if format == "json" {
		return writeJSON(w, s)
	}
	var b strings.Builder
	if again {
		if isTerminal(w) {
			b.WriteString(clearScreen)
		}
		fmt.Fprintf(&b, "%s\n", time.Now().UTC().Format("2006-01-02 15:04:05 MST"))
	}
	if s.Healthy {
		b.WriteString("All is well.\n")
	} else {
		b.WriteString("Not all is as it should be.\n")
	}
	for _, p := range s.Problems {
		fmt.Fprintf(&b, "\n! %s\n  %s\n", client.Printable(p.Detail), client.Printable(p.Action))
	}
	b.WriteByte('\n')
	if err := statusTables(&b, s, time.Now()); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func statusTables(w io.Writer, s client.Status, now time.Time) error {
	rows := [][]string{{"collection", "documents", "indexed", "proven", "quarantined", "generation"}}
	for _, c := range s.Collections {
		generation := number(c.Generation)
		if c.Reindexing {
			generation += ", being indexed anew"
		}
		rows = append(rows, []string{c.Name, number(c.Documents), number(c.Indexed), ago(c.ProvenThrough, now), strconv.Itoa(c.Quarantined), generation})
	}
	if len(s.Collections) > 0 {
		if err := writeGrid(w, append(rows, []string{})); err != nil {
			return err
		}
	}
	if err := writePairs(w, [][2]string{
		{"lag", span(s.Pipeline.LagSeconds)}, {"lag of the feed", span(s.Pipeline.FeedLagSeconds)},
		{"messages pending", number(s.Pipeline.Pending)}, {"dead letters", number(s.Pipeline.DeadLetters)},
		{"changes given up", number(s.Pipeline.GivenUp)}, {"version", client.Printable(s.Version)},
	}); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return writeGrid(w, jobRows(s.Jobs, now))
}

// unknown is shown where something is not known.
const unknown = "?"

func number(n *int) string {
	if n == nil {
		return unknown
	}
	return strconv.Itoa(*n)
}

func span(seconds *float64) string {
	if seconds == nil {
		return unknown
	}
	return strconv.FormatFloat(*seconds, 'f', -1, 64) + " s"
}

// ago is how long ago a moment of an answer was.
func ago(moment *string, now time.Time) string {
	if moment == nil {
		return "never"
	}
	t, err := time.Parse(time.RFC3339Nano, *moment)
	if err != nil {
		return client.Printable(*moment)
	}
	switch d := now.Sub(t); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s ago", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min ago", d.Minutes())
	}
	return t.UTC().Format("2006-01-02 15:04 MST")
}
