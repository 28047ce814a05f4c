package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
)

func newDeadLetters() *cobra.Command {
	return group(&cobra.Command{
		Use:   "dead-letters",
		Short: "Messages that were given up between the table and the index",
		Long: `Looks into the messages at which the indexer failed again and again, and those
that tell where changes were given up between the table's stream and the relay,
and sends again what is in them. No document is in a message, only ids and
versions: what was given up is missing in the index at most, and repair finds it.`,
		Example: `  holdfast dead-letters list
  holdfast dead-letters redrive`,
	}, newDeadLettersList(), newDeadLettersRedrive())
}

func newDeadLettersList() *cobra.Command {
	var at connection
	var out output
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "Look into messages that were given up; they stay where they are",
		Example: `  holdfast dead-letters list --limit 100
  holdfast dead-letters list --output json | jq -r '.signals[]?.id'`,
		Args: takes(cobra.NoArgs),
		RunE: asks(&at, &out, func(ctx context.Context, c *cobra.Command, api *client.Client, _ []string) error {
			found, err := client.Read[client.DeadLetters](ctx, api, "/dead-letters", url.Values{"limit": {strconv.Itoa(limit)}})
			if err != nil {
				return err
			}
			rows := [][]string{{"queue", "sent", "receives", "what is in it"}}
			for _, m := range found.Messages {
				if out.format == "json" {
					if err := writeJSON(c.OutOrStdout(), m); err != nil {
						return err
					}
					continue
				}
				sent := unknown
				if m.Sent != nil {
					sent = ago(m.Sent, time.Now())
				}
				rows = append(rows, []string{m.Queue, sent, strconv.Itoa(m.Receives), content(m)})
			}
			if len(rows) > 1 {
				if err := writeGrid(c.OutOrStdout(), rows); err != nil {
					return err
				}
			}
			note(c, "%d of about %d messages", len(found.Messages), found.Counts.Signals+found.Counts.Relay)
			return nil
		}),
	}
	at.register(c)
	out.register(c, "table", "json")
	c.Flags().IntVar(&limit, "limit", 25, "the most messages, up to 100")
	return c
}

// content is what is in a message, for people.
func content(m client.DeadLetter) string {
	const shown = 3
	if m.Unreadable != "" {
		return "not readable: " + m.Unreadable
	}
	var ids []string
	for _, s := range m.Signals[:min(len(m.Signals), shown)] {
		ids = append(ids, s.ID)
	}
	text := strings.Join(ids, ", ")
	if more := len(m.Signals) - len(ids); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func newDeadLettersRedrive() *cobra.Command {
	var at connection
	var discard bool
	c := &cobra.Command{
		Use:   "redrive",
		Short: "Send again what is in messages that were given up",
		Long: `Sends the signals of all dead letters to the indexer again, and removes the
letters. Those that cannot be read stay, unless --discard removes them: do that
after "holdfast jobs run repair --mode compare", which finds what they were about.`,
		Example: `  holdfast dead-letters redrive
  holdfast dead-letters redrive --discard`,
		Args: takes(cobra.NoArgs),
		RunE: runs(func(ctx context.Context, c *cobra.Command, _ []string) error {
			api, err := at.open(ctx, c, shortPatience, false)
			if err != nil {
				return err
			}
			var sum client.Redriven
			for {
				done, err := client.Post[client.Redriven](ctx, api, "/dead-letters/redrive", map[string]any{"discard": discard})
				if err != nil {
					return err
				}
				sum.Moved, sum.Discarded, sum.Remaining = sum.Moved+done.Moved, sum.Discarded+done.Discarded, done.Remaining
				if done.Remaining == 0 || done.Moved+done.Discarded == 0 {
					return writeJSON(c.OutOrStdout(), sum)
				}
			}
		}),
	}
	at.register(c)
	c.Flags().BoolVar(&discard, "discard", false, "remove messages that cannot be read")
	return c
}
