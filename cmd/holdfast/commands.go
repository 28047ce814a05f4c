package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
)

// More exit codes, as --help states them.
const (
	exitRejected    = 4
	exitNotFound    = 5
	exitConflict    = 6
	exitInterrupted = 130 // 128 and the number of SIGINT, as shells count
)

const rootHelp = `Holdfast keeps JSON documents: loaded by id with strong consistency, queried
through an index that says how far it is behind.

Results go to standard output, everything else to standard error. Commands talk
to --endpoint, else to $HOLDFAST_ENDPOINT, else to http://127.0.0.1:8787, which
is where "holdfast local" serves. Requests to https endpoints are signed with
AWS credentials (--profile, --region, or what AWS's tools find), or carry a
bearer token (--token-file or $HOLDFAST_TOKEN). Plain http to this machine needs
neither, and plain http to others is never given either.

Exit codes of all commands:
    0  done
    1  failed; the message says what. chaos: not all is as it should be
    2  the command line was not understood; nothing was done
    3  local --demo, doctor, status: something is not as it should be
    4  import: finished, but some lines were rejected
    5  get, load, collections get, jobs, reindex: there is no such document,
       definition, job or collection
    6  put, delete, also of collections: it is not as --if-match or --if-absent demands
  130  interrupted; import and export go on with --resume`

// addCommands adds the commands that talk to an endpoint.
func addCommands(root *cobra.Command) {
	root.Long = rootHelp
	root.Example = `  holdfast local                                     # a Holdfast on this machine
  holdfast import movies.ndjson.gz                   # lines {"id":…,"data":…}
  holdfast query movies 'Major Genre=Drama' 'US Gross>1000000' --sort 'US Gross:desc'
  holdfast get movies/1
  holdfast status                                    # is all well, and what to do where it is not
  holdfast export --collection movies --out movies.ndjson.zst`
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(
		newGet(), newPut(), newCreate(), newDelete(), newLoad(), newQuery(), newChanges(), newIDs(),
		newCollections(), newImport(), newExport(), newDoctor(), newVersion(),
		newStatus(), newQuarantine(), newJobs(), newDeadLetters(), newReindex(),
		newChaos(), newStackProcess(),
	)
}

// failure gives an error the exit code that it deserves. Errors that have one
// keep it.
func failure(err error) error {
	var coded *codedError
	var usage *usageError
	switch {
	case err == nil || errors.As(err, &coded) || errors.As(err, &usage):
		return err
	case errors.Is(err, context.Canceled):
		return &codedError{code: exitInterrupted, err: errors.New("interrupted")}
	case client.IsSlug(err, "not-found"):
		return &codedError{code: exitNotFound, err: err}
	case client.IsSlug(err, "version-conflict"):
		return &codedError{code: exitConflict, err: err}
	}
	return failed(err)
}

// runs adapts a command's work: Ctrl-C cancels its context, and its errors get
// exit codes.
func runs(work func(ctx context.Context, c *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		ctx, stop := endings(c.Context(), c.ErrOrStderr())
		defer stop()
		return failure(work(ctx, c, args))
	}
}

// asks adapts the work of a command that asks an endpoint and shows the answer.
// Whether that can be shown is found out before anybody is asked.
func asks(at *connection, out *output, work func(ctx context.Context, c *cobra.Command, api *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return runs(func(ctx context.Context, c *cobra.Command, args []string) error {
		if err := out.check(c); err != nil {
			return err
		}
		api, err := at.open(ctx, c, shortPatience, false)
		if err != nil {
			return err
		}
		return work(ctx, c, api, args)
	})
}

// awaiting runs what may wait for input for ever, but no longer than ctx.
func awaiting[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type outcome struct {
		v   T
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := read()
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.v, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// takes makes usage errors of what is wrong with the arguments: check counts
// them, and more looks at them.
func takes(check cobra.PositionalArgs, more ...func(args []string) error) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check(c, args) != nil {
			wanted := strings.TrimSpace(strings.TrimPrefix(c.Use, c.Name()))
			if wanted == "" {
				return misuse(c, "%s takes no arguments; %q is one", c.CommandPath(), args[0])
			}
			return misuse(c, "%s takes %s; arguments given: %d", c.CommandPath(), wanted, len(args))
		}
		for _, f := range more {
			if err := f(args); err != nil {
				return misuse(c, "%w", err)
			}
		}
		return nil
	}
}

// misuse is a command line that says nothing sensible.
func misuse(c *cobra.Command, format string, args ...any) error {
	return &usageError{command: c.CommandPath(), err: fmt.Errorf(format, args...)}
}

// group makes a command that does nothing but hold others.
func group(c *cobra.Command, others ...*cobra.Command) *cobra.Command {
	c.AddCommand(others...)
	c.DisableFlagsInUseLine = true
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return misuse(c, "%s has no command %q", c.CommandPath(), args[0])
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return c
}

// helpOnCommands lets help about something that is no command be a usage error.
func helpOnCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() != "help" {
			continue
		}
		c.Args = func(c *cobra.Command, args []string) error {
			if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
				return misuse(c, "there is no command %q", strings.Join(args, " "))
			}
			return nil
		}
	}
}

// notEmpty refuses flags that are given without a text, as from a variable that
// is not set: that is not the same as not given.
func notEmpty(c *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := c.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return misuse(c, "--%s is empty", name)
		}
	}
	return nil
}

// exclude refuses two flags that contradict each other.
func exclude(c *cobra.Command, pairs ...[2]string) error {
	for _, p := range pairs {
		if c.Flags().Changed(p[0]) && c.Flags().Changed(p[1]) {
			return misuse(c, "--%s and --%s contradict each other", p[0], p[1])
		}
	}
	return nil
}

// note tells people something that is no result.
func note(c *cobra.Command, format string, args ...any) {
	fmt.Fprintf(c.ErrOrStderr(), format+"\n", args...)
}
