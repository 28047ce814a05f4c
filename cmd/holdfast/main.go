// Command holdfast is the command line of Holdfast.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"holdfast/shared/local/engines"
	"holdfast/shared/obs"
)

// Exit codes, as --help states them.
const (
	exitOK            = 0
	exitFailed        = 1
	exitUsage         = 2
	exitNotAsPromised = 3
)

func main() {
	engines.Guard()
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run executes the command line and answers with the exit code.
func run(ctx context.Context, args []string, out, progress io.Writer) int {
	root := &cobra.Command{
		Use:           "holdfast",
		Short:         "A document store with strong loads and honest queries",
		Version:       obs.Version(),
		SilenceErrors: true, SilenceUsage: true,
	}
	root.AddCommand(newLocal())
	addCommands(root)
	helpOnCommands(root)
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(progress)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &usageError{command: c.CommandPath(), err: err} })
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(progress, "holdfast: %v\n", err)
	var coded *codedError
	if errors.As(err, &coded) {
		return coded.code
	}
	var usage *usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(progress, "See %s --help.\n", usage.command)
		return exitUsage
	}
	fmt.Fprintln(progress, "See holdfast --help.") // cobra found no command to run
	return exitUsage
}

// usageError is a command line that says nothing sensible.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// codedError is the failure of a command that was understood.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }
