package main

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
)

func newQuarantine() *cobra.Command {
	return group(&cobra.Command{
		Use:   "quarantine",
		Short: "Documents that are not indexed in full",
		Long: `Lists the documents that the index did not take in full, each with the reason,
and tries them again. They are kept in the table as they are, and loaded and saved
as always; of those marked partial the index has a reduced form, which queries
find. An entry goes by itself when the document is indexed in full.`,
		Example: `  holdfast quarantine list
  holdfast quarantine retry orders/830`,
	}, newQuarantineList(), newQuarantineRetry())
}

func newQuarantineList() *cobra.Command {
	var at connection
	var out output
	var collection string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the documents that are not indexed in full, with the reasons",
		Example: `  holdfast quarantine list --collection orders
  holdfast quarantine list --output json | jq -r .id`,
		Args: takes(cobra.NoArgs),
		RunE: asks(&at, &out, func(ctx context.Context, c *cobra.Command, api *client.Client, _ []string) error {
			if err := notEmpty(c, "collection"); err != nil {
				return err
			}
			table, headed := new(grid), false
			return eachEntry(ctx, api, collection, func(page []client.QuarantineEntry) error {
				var rows [][]string
				for _, e := range page {
					if out.format == "json" {
						if err := writeJSON(c.OutOrStdout(), e); err != nil {
							return err
						}
						continue
					}
					partial := ""
					if e.Partial {
						partial = "partial"
					}
					rows = append(rows, []string{e.ID, e.Version.String(), ago(&e.Since, time.Now()), strconv.Itoa(e.Attempts), partial, e.Reason})
				}
				if len(rows) == 0 {
					return nil
				}
				if !headed {
					headed = true
					rows = append([][]string{{"id", "version", "since", "attempts", "", "reason"}}, rows...)
				}
				return table.write(c.OutOrStdout(), rows)
			})
		}),
	}
	at.register(c)
	out.register(c, "table", "json")
	c.Flags().StringVar(&collection, "collection", "", "only of this collection")
	return c
}

// eachEntry reads the quarantine, page by page.
func eachEntry(ctx context.Context, api *client.Client, collection string, visit func([]client.QuarantineEntry) error) error {
	q := url.Values{}
	if collection != "" {
		q.Set("collection", collection)
	}
	for {
		page, err := client.Read[client.QuarantinePage](ctx, api, "/quarantine", q)
		if err == nil {
			err = visit(page.Entries)
		}
		if err != nil || page.Next == "" {
			return err
		}
		q.Set("after", page.Next)
	}
}

// mostRetried is how many ids one request names.
const mostRetried = 100

func newQuarantineRetry() *cobra.Command {
	var at connection
	var collection string
	var all bool
	c := &cobra.Command{
		Use:   "retry [ID…]",
		Short: "Try again to index documents",
		Long: `Sends the signals of entries again: of the ids, of a collection, or of all. What
comes of it shows in the list a moment later. Ids without an entry are passed over.`,
		Example: `  holdfast quarantine retry orders/830 orders/831
  holdfast quarantine retry --collection orders
  holdfast quarantine retry --all`,
		Args: takes(cobra.ArbitraryArgs, func(args []string) error {
			ways := 0
			for _, given := range []bool{len(args) > 0, collection != "", all} {
				if given {
					ways++
				}
			}
			if ways != 1 {
				return errors.New("name ids, or use --collection, or --all")
			}
			return nil
		}),
		RunE: runs(func(ctx context.Context, c *cobra.Command, args []string) error {
			api, err := at.open(ctx, c, shortPatience, false)
			if err != nil {
				return err
			}
			sum := 0
			retry := func(ids []string) error {
				for chunk := range slices.Chunk(ids, mostRetried) {
					done, err := client.Post[client.Retried](ctx, api, "/quarantine/retry", map[string]any{"ids": chunk})
					if err != nil {
						return err
					}
					sum += done.Signalled
				}
				return nil
			}
			switch {
			case collection != "":
				err = retryCollection(ctx, api, collection, &sum)
			case all:
				err = eachEntry(ctx, api, "", func(page []client.QuarantineEntry) error {
					ids := make([]string, len(page))
					for i, e := range page {
						ids[i] = e.ID
					}
					return retry(ids)
				})
			default:
				err = retry(args)
			}
			if err != nil {
				return err
			}
			return writeJSON(c.OutOrStdout(), client.Retried{Signalled: sum})
		}),
	}
	at.register(c)
	c.Flags().StringVar(&collection, "collection", "", "all entries of this collection")
	c.Flags().BoolVar(&all, "all", false, "all entries")
	return c
}

func retryCollection(ctx context.Context, api *client.Client, collection string, sum *int) error {
	body := map[string]string{"collection": collection}
	for {
		done, err := client.Post[client.Retried](ctx, api, "/quarantine/retry", body)
		if err != nil {
			return err
		}
		*sum += done.Signalled
		if done.Next == "" {
			return nil
		}
		body["after"] = done.Next
	}
}
