package main

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
)

func newGet() *cobra.Command {
	var at connection
	var out output
	var fields []string
	c := &cobra.Command{
		Use:   "get ID",
		Short: "Load one document, strongly",
		Long: `Writes the data of one document as JSON. "holdfast load" shows its version and
times as well. Exit code 5 says that there is no such document.`,
		Example: `  holdfast get users/1
  holdfast get users/1 --fields name,address.city
  holdfast get 'movies/Jaws & co?' --output table`,
		Args: takes(cobra.ExactArgs(1)),
		RunE: asks(&at, &out, func(ctx context.Context, c *cobra.Command, api *client.Client, args []string) error {
			data, version, err := api.Get(ctx, args[0], fields)
			if err != nil {
				return err
			}
			if out.format == "table" {
				return printTable(c, []client.Envelope{{ID: args[0], Version: json.Number(version), Data: data}}, nil)
			}
			if out.format == "pretty" {
				var b bytes.Buffer
				if err := json.Indent(&b, data, "", "  "); err != nil {
					return err
				}
				data = b.Bytes()
			}
			_, err = c.OutOrStdout().Write(append(escapeControls(data), '\n'))
			return err
		}),
	}
	at.register(c)
	out.register(c, "json", "pretty", "table")
	c.Flags().StringSliceVar(&fields, "fields", nil, "only these paths, joined by commas, such as name,lines.price")
	return c
}
