package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

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
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeControls(b.Bytes()))
	return err
}

// escapeControls escapes in JSON the control characters that it may hold as they
// are, and that a terminal may obey: U+007F to U+009F. The value stays the same,
// since they can only stand inside strings.
func escapeControls(text []byte) []byte {
	found := func(r rune) bool { return r >= 0x7f && r <= 0x9f }
	if bytes.IndexFunc(text, found) < 0 {
		return text
	}
	var b bytes.Buffer
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if found(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.Write(text[:n])
		}
		text = text[n:]
	}
	return b.Bytes()
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
