package main

import (
	"bufio"
	"context"

	"github.com/spf13/cobra"

	"holdfast/shared/guid"
)

// mostGUIDs is the most that one request asks for, a limit of the server.
const mostGUIDs = 1000

func newIDs() *cobra.Command {
	var at connection
	layout, count := string(guid.Text), 1
	c := &cobra.Command{
		Use:   "ids",
		Short: "Make ordered GUIDs for rows of other databases",
		Long: `Writes new GUIDs, one a line, in their order. A database that sorts its rows by
them is fast, because new ones come last: in the order of

  text        the text, from left to right: .NET, MySQL char(36), PostgreSQL uuid
  binary      the bytes that .NET makes of them: Oracle raw(16)
  sqlserver   SQL Server's uniqueidentifier

They hold the time, a count and 58 random bits, and tell nothing of any machine.`,
		Example: `  holdfast ids
  holdfast ids --layout sqlserver --count 100`,
		Args: takes(cobra.NoArgs),
		RunE: runs(func(ctx context.Context, c *cobra.Command, _ []string) error {
			if !guid.Layout(layout).Known() {
				return misuse(c, "--layout is one of text, binary and sqlserver")
			}
			if count < 1 || count > mostGUIDs {
				return misuse(c, "--count is a number from 1 to %d", mostGUIDs)
			}
			api, err := at.open(ctx, c, shortPatience, false)
			if err != nil {
				return err
			}
			ids, err := api.IDs(ctx, layout, count)
			if err != nil {
				return err
			}
			w := bufio.NewWriter(c.OutOrStdout())
			for _, id := range ids {
				_, _ = w.WriteString(id + "\n") // w keeps the error until Flush
			}
			return w.Flush()
		}),
	}
	at.register(c)
	f := c.Flags()
	f.StringVar(&layout, "layout", layout, "the order in which later ones come later: text, binary or sqlserver")
	f.IntVar(&count, "count", count, "how many, at most 1000")
	return c
}
