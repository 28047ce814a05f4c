package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"holdfast/cmd/holdfast/internal/client"
)

func newCollections() *cobra.Command {
	return group(&cobra.Command{
		Use:   "collections",
		Short: "What is declared of collections",
		Long: `Lists collections, and shows, puts and deletes their definitions. Collections
need no definition to be used. One that changes how documents are indexed has
those that are there indexed anew, while queries read the index as it was;
"holdfast status" tells how far that is.`,
	}, newCollectionsList(), newCollectionsGet(), newCollectionsPut(), newCollectionsDelete())
}

// collectionPath is the route of a definition; the client encodes it.
func collectionPath(name string) string { return "/collections/" + name }

// collectionPage is a page of the list.
type collectionPage struct {
	Collections []struct {
		Name       string          `json:"name"`
		Revision   *json.Number    `json:"revision"`
		Definition json.RawMessage `json:"definition"`
	} `json:"collections"`
	Next string `json:"next"`
}

func newCollectionsList() *cobra.Command {
	var at connection
	var out output
	c := &cobra.Command{
		Use:   "list",
		Short: "List all collections that have documents or a definition",
		Args:  takes(cobra.NoArgs),
		RunE: asks(&at, &out, func(ctx context.Context, c *cobra.Command, api *client.Client, _ []string) error {
			for after := ""; ; {
				q := url.Values{}
				if after != "" {
					q.Set("after", after)
				}
				res, err := api.Do(ctx, client.Request{Method: http.MethodGet, Path: "/collections", Query: q, Repeatable: true})
				if err != nil {
					return err
				}
				var page collectionPage
				if err := json.Unmarshal(res.Body, &page); err != nil {
					return fmt.Errorf("%s answers with something that is no list of collections: %w", api.Endpoint(), err)
				}
				for _, one := range page.Collections {
					if out.format == "json" {
						err = writeJSON(c.OutOrStdout(), one)
					} else {
						_, err = fmt.Fprintln(c.OutOrStdout(), strings.TrimRight(client.Printable(one.Name+"  "+summary(one.Definition)), " "))
					}
					if err != nil {
						return err
					}
				}
				if after = page.Next; after == "" {
					return nil
				}
			}
		}),
	}
	at.register(c)
	out.register(c, "table", "json")
	return c
}

// summary is a definition on one line; nothing where there is none.
func summary(definition json.RawMessage) string {
	if len(definition) == 0 || string(definition) == "null" {
		return ""
	}
	return string(definition)
}

func newCollectionsGet() *cobra.Command {
	var at connection
	var out output
	c := &cobra.Command{
		Use:   "get NAME",
		Short: "Show the definition of a collection",
		Long: `Writes the definition as YAML or JSON, as "collections put" takes it. Exit code 5
says that nothing is declared.`,
		Example: `  holdfast collections get customers/orders > orders.yaml`,
		Args:    takes(cobra.ExactArgs(1), oneCollection),
		RunE: asks(&at, &out, func(ctx context.Context, c *cobra.Command, api *client.Client, args []string) error {
			res, err := api.Do(ctx, client.Request{Method: http.MethodGet, Path: collectionPath(args[0]), Repeatable: true})
			if err != nil {
				return err
			}
			text := append(escapeControls(bytes.TrimSpace(res.Body)), '\n')
			if out.format == "yaml" {
				if text, err = toYAML(text); err != nil {
					return err
				}
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		}),
	}
	at.register(c)
	out.register(c, "yaml", "json")
	return c
}

func newCollectionsPut() *cobra.Command {
	var at connection
	var revision string
	var absent bool
	c := &cobra.Command{
		Use:   "put NAME FILE|-",
		Short: "Define a collection by a YAML or JSON file",
		Long: `Creates or replaces the definition of a collection:

  nested: [lines]            arrays whose elements are matched one by one
  text: [title, notes]       paths with full-text search
  index: own                 an index of its own; what is above has one anyway
  indexed:
    exclude: [log]           what is not indexed; or include: what is

The answer says whether documents that are there have to be indexed anew, and in
which generation of the index they are, or will be. Queries read the index as it
was until the new one is complete. Exit code 6 says that --if-match or --if-absent
did not hold; then nothing was changed.`,
		Example: `  holdfast collections put customers/orders orders.yaml
  echo 'text: [title]' | holdfast collections put movies -`,
		Args: takes(cobra.ExactArgs(2), oneCollection),
		RunE: runs(func(ctx context.Context, c *cobra.Command, args []string) error {
			if err := exclude(c, [2]string{"if-match", "if-absent"}); err != nil {
				return err
			}
			if err := checkVersion(c, revision); err != nil {
				return err
			}
			var source body
			text, err := source.read(ctx, c, args[1])
			if err != nil {
				return err
			}
			definition, err := toJSON(text)
			if err != nil {
				return failed(fmt.Errorf("%s: %w", args[1], err))
			}
			api, err := at.open(ctx, c, shortPatience, false)
			if err != nil {
				return err
			}
			h := http.Header{"Content-Type": {"application/json"}}
			condition(h, revision)
			if absent {
				h.Set("If-None-Match", "*")
			}
			res, err := api.Do(ctx, client.Request{Method: http.MethodPut, Path: collectionPath(args[0]), Header: h, Body: definition, Repeatable: len(h) == 1})
			if err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(append(bytes.TrimSpace(res.Body), '\n'))
			return err
		}),
	}
	at.register(c)
	c.Flags().StringVar(&revision, "if-match", "", `only if the definition is at this revision; "*": only if there is one`)
	c.Flags().BoolVar(&absent, "if-absent", false, "only if there is no definition")
	return c
}

func newCollectionsDelete() *cobra.Command {
	var at connection
	var revision string
	c := &cobra.Command{
		Use:   "delete NAME",
		Short: "Remove the definition of a collection; its documents stay",
		Args:  takes(cobra.ExactArgs(1), oneCollection),
		RunE: runs(func(ctx context.Context, c *cobra.Command, args []string) error {
			if err := checkVersion(c, revision); err != nil {
				return err
			}
			api, err := at.open(ctx, c, shortPatience, false)
			if err != nil {
				return err
			}
			h := http.Header{}
			condition(h, revision)
			_, err = api.Do(ctx, client.Request{Method: http.MethodDelete, Path: collectionPath(args[0]), Header: h, Repeatable: len(h) == 0})
			return err
		}),
	}
	at.register(c)
	c.Flags().StringVar(&revision, "if-match", "", `only if the definition is at this revision; "*": only if there is one`)
	return c
}

// oneCollection refuses a name that would be another route.
func oneCollection(args []string) error {
	if args[0] == "" || strings.HasPrefix(args[0], "/") || strings.HasSuffix(args[0], "/") {
		return fmt.Errorf("%q is no name of a collection, such as orders or customers/orders", args[0])
	}
	return nil
}

// condition adds the header of --if-match.
func condition(h http.Header, revision string) {
	switch revision {
	case "":
	case "*":
		h.Set("If-Match", "*")
	default:
		h.Set("If-Match", `"`+revision+`"`)
	}
}

// toJSON makes JSON of one YAML document, of which JSON is a part. A member that
// comes twice is an error.
func toJSON(text []byte) ([]byte, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var v any
	switch err := decoder.Decode(&v); {
	case err == io.EOF:
		return nil, errors.New("there is nothing in it; a definition that declares nothing is {}")
	case err != nil:
		return nil, fmt.Errorf("this is neither YAML nor JSON: %w", err)
	}
	if err := decoder.Decode(new(any)); err != io.EOF {
		return nil, fmt.Errorf("there is more than one document")
	}
	out, err := json.Marshal(v)
	if err != nil { // such as a map with numbers as names, or .nan
		return nil, errors.New("JSON cannot say this: names are texts, and numbers are finite")
	}
	return out, nil
}

// toYAML makes YAML of JSON. Numbers stay as they are written.
func toYAML(text []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, fmt.Errorf("the answer is no JSON: %w", err)
	}
	out, err := yaml.Marshal(withNumbers(v))
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return out, nil
}

// withNumbers replaces the numbers in a tree of JSON by what YAML writes as it
// is.
func withNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = withNumbers(member)
		}
	case []any:
		for i, e := range v {
			v[i] = withNumbers(e)
		}
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}
	}
	return v
}
