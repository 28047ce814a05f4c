package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
)

// mostInput is more than any gateway takes of one document.
const mostInput = 8 << 20

// body is where a command finds the document that it writes.
type body struct{ data string }

func (b *body) register(c *cobra.Command) {
	c.Flags().StringVar(&b.data, "data", "", "the document itself, as JSON, instead of a file")
}

// check demands exactly one source; file is the argument, "" for none.
func (b *body) check(c *cobra.Command, file string) error {
	given := c.Flags().Changed("data")
	switch {
	case given && file != "":
		return misuse(c, "the document comes from %s or from --data, not both", file)
	case !given && file == "":
		return misuse(c, "the document comes from a file, from standard input (-), or from --data")
	}
	return nil
}

func (b *body) read(ctx context.Context, c *cobra.Command, file string) ([]byte, error) {
	if file == "" {
		return []byte(b.data), nil
	}
	in := c.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := awaiting(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(in, mostInput+1)) })
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if len(data) > mostInput {
		return nil, fmt.Errorf("%s has more than %d bytes; a document has at most 400 KB", file, mostInput)
	}
	return bytes.TrimPrefix(data, byteOrderMark), nil
}

// at is args[i], or "".
func at(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

func newPut() *cobra.Command {
	var to connection
	var out output
	var b body
	var cond client.Condition
	c := &cobra.Command{
		Use:   "put ID [FILE|-]",
		Short: "Create or replace one document",
		Long: `Saves a document and writes its new version, with a token that lets a query
wait for it. Exit code 6 says that the condition did not hold; then nothing was
written.`,
		Example: `  holdfast put users/1 user.json
  holdfast put users/1 --data '{"name":"Ada"}' --if-absent
  jq '.age += 1' user.json | holdfast put users/1 - --if-match 1796029203123456`,
		Args: takes(cobra.RangeArgs(1, 2)),
		RunE: runs(func(ctx context.Context, c *cobra.Command, args []string) error {
			err := errors.Join(out.check(c), b.check(c, at(args, 1)), exclude(c, [2]string{"if-match", "if-absent"}), checkVersion(c, cond.Version))
			if err != nil {
				return err
			}
			data, err := b.read(ctx, c, at(args, 1))
			if err != nil {
				return err
			}
			api, err := to.open(ctx, c, shortPatience, false)
			if err != nil {
				return err
			}
			w, err := api.Put(ctx, args[0], data, cond, false)
			if err != nil {
				return err
			}
			return printWritten(c, out, w)
		}),
	}
	to.register(c)
	out.register(c, "json", "table")
	b.register(c)
	c.Flags().StringVar(&cond.Version, "if-match", "", `only if the document is at this version; "*": only if there is one`)
	c.Flags().BoolVar(&cond.Absent, "if-absent", false, "only if there is no such document")
	return c
}

// checkVersion refuses an --if-match that is given but empty: as no condition it
// would overwrite what somebody else wrote.
func checkVersion(c *cobra.Command, version string) error {
	if !c.Flags().Changed("if-match") || version == "*" {
		return nil
	}
	if version == "" || strings.Trim(version, "0123456789") != "" {
		return misuse(c, "--if-match is a version, all digits, or *; not %q", version)
	}
	return nil
}

func printWritten(c *cobra.Command, out output, w client.Written) error {
	if out.format == "table" {
		return writePairs(c.OutOrStdout(), [][2]string{
			{"id", client.Printable(w.ID)}, {"version", w.Version.String()}, {"created", fmt.Sprint(w.Created)}, {"token", w.Token},
		})
	}
	return writeJSON(c.OutOrStdout(), w)
}

func newCreate() *cobra.Command {
	var to connection
	var out output
	var b body
	c := &cobra.Command{
		Use:   "create COLLECTION-PATH/ [FILE|-]",
		Short: "Create one document under an id that the server assigns",
		Long: `Stores a document below a collection's path, which ends in a slash, and writes
the id that it was given.`,
		Example: `  holdfast create users/ --data '{"name":"Ada"}'
  holdfast create users/1/account/ account.json`,
		Args: takes(cobra.RangeArgs(1, 2), func(args []string) error {
			if !strings.HasSuffix(args[0], "/") {
				return fmt.Errorf("the path of a collection ends in /, such as %s/; to write to an id use put", args[0])
			}
			return nil
		}),
		RunE: runs(func(ctx context.Context, c *cobra.Command, args []string) error {
			if err := errors.Join(out.check(c), b.check(c, at(args, 1))); err != nil {
				return err
			}
			data, err := b.read(ctx, c, at(args, 1))
			if err != nil {
				return err
			}
			api, err := to.open(ctx, c, shortPatience, false)
			if err != nil {
				return err
			}
			w, err := api.Create(ctx, args[0], data)
			if err != nil {
				return err
			}
			return printWritten(c, out, w)
		}),
	}
	to.register(c)
	out.register(c, "json", "table")
	b.register(c)
	return c
}

func newDelete() *cobra.Command {
	var to connection
	var out output
	var cond client.Condition
	c := &cobra.Command{
		Use:   "delete ID",
		Short: "Delete one document",
		Long: `Deletes a document. That there is none is no error: the answer says so with
"deleted": false. With --if-match it is one, exit code 6.`,
		Example: `  holdfast delete users/1
  holdfast delete users/1 --if-match 1796029203123456`,
		Args: takes(cobra.ExactArgs(1)),
		RunE: runs(func(ctx context.Context, c *cobra.Command, args []string) error {
			if err := errors.Join(out.check(c), checkVersion(c, cond.Version)); err != nil {
				return err
			}
			api, err := to.open(ctx, c, shortPatience, false)
			if err != nil {
				return err
			}
			token, existed, err := api.Delete(ctx, args[0], cond)
			if err != nil {
				return err
			}
			if out.format == "table" {
				return writePairs(c.OutOrStdout(), [][2]string{{"id", client.Printable(args[0])}, {"deleted", fmt.Sprint(existed)}, {"token", token}})
			}
			answer := struct {
				ID      string `json:"id"`
				Deleted bool   `json:"deleted"`
				Token   string `json:"token,omitempty"`
			}{args[0], existed, token}
			return writeJSON(c.OutOrStdout(), answer)
		}),
	}
	to.register(c)
	out.register(c, "json", "table")
	c.Flags().StringVar(&cond.Version, "if-match", "", `only if the document is at this version; "*": only if there is one`)
	return c
}
