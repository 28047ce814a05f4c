package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// output is the flag that chooses how results are written.
type output struct {
	format  string
	allowed []string
}

// register adds the flag; the first format is the default.
func (o *output) register(c *cobra.Command, formats ...string) {
	o.allowed = formats
	c.Flags().StringVarP(&o.format, "output", "o", formats[0], "how results are written: "+strings.Join(formats, ", "))
	complete(c, "output", formats...)
}

// complete offers the values of a flag to the shell.
func complete(c *cobra.Command, flag string, values ...string) {
	// The error says that there is no such flag, which tests of --help would show.
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func (o *output) check(c *cobra.Command) error {
	if !slices.Contains(o.allowed, o.format) {
		return misuse(c, "--output is %s, not %q", strings.Join(o.allowed, ", "), o.format)
	}
	return nil
}

// writeJSON writes one value on one line. Text stays readable: nothing is
// escaped for HTML.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// writePairs writes names and values for people.
func writePairs(w io.Writer, pairs [][2]string) error {
	width := 0
	for _, p := range pairs {
		width = max(width, len(p[0]))
	}
	for _, p := range pairs {
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, p[0], p[1]); err != nil {
			return err
		}
	}
	return nil
}
