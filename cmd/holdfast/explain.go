package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
)

// explainQuery shows what becomes of a query.
func explainQuery(ctx context.Context, c *cobra.Command, api *client.Client, ask client.Query, format string) error {
	e, err := api.Explain(ctx, ask)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if format == "json" {
		err = json.Indent(&b, e.Text, "", "  ")
		b.WriteByte('\n')
	} else {
		err = describe(&b, e)
	}
	if err != nil {
		return err
	}
	_, err = c.OutOrStdout().Write(b.Bytes())
	return err
}

// describe writes an explanation for people: where is read, who decides within
// which limits, and what OpenSearch is asked.
func describe(b *bytes.Buffer, e client.Explanation) error {
	x := e.Explain
	indexes := [][]string{{"collection", "generation", "index"}}
	for _, i := range x.Indexes {
		if i.Index == "" {
			i.Generation, i.Index = "none", "no index yet"
		}
		indexes = append(indexes, []string{i.Collection, i.Generation.String(), i.Index})
	}
	if err := writeGrid(b, indexes); err != nil {
		return err
	}
	pairs := [][2]string{{"decided by", client.Printable(x.Filter.DecidedBy)}}
	if w := x.Where; w != nil {
		pairs = append(pairs, [2]string{"where", client.Printable(fmt.Sprintf("%s, evaluated on %s, %s at most", w.Expression, w.EvaluatedOn, w.Budget))})
	}
	pairs = append(pairs,
		[2]string{"examined", "at most " + x.Limits.Examined.String() + " documents"},
		[2]string{"time", "at most " + x.Limits.TimeMs.String() + " ms"},
		[2]string{"clauses", x.Limits.Clauses.Used.String() + " of " + x.Limits.Clauses.Allowed.String()})
	b.WriteByte('\n')
	if err := writePairs(b, pairs); err != nil {
		return err
	}
	if len(x.Filter.Undecided) > 0 {
		undecided := [][]string{{"undecided", "why"}}
		for _, u := range x.Filter.Undecided {
			if u.Path == "" {
				u.Path = "the whole filter"
			}
			undecided = append(undecided, []string{u.Path, u.Why})
		}
		b.WriteByte('\n')
		if err := writeGrid(b, undecided); err != nil {
			return err
		}
	}
	for _, asked := range []struct {
		what string
		of   *client.AskedOfIndex
	}{{"count", x.Count}, {"search", x.Search}} {
		if asked.of == nil {
			continue
		}
		fmt.Fprintf(b, "\n%s in %s\n", asked.what, client.Printable(strings.Join(asked.of.Indexes, ", ")))
		if err := writeDSL(b, asked.of.Body); err != nil {
			return err
		}
		for _, beside := range asked.of.Beside {
			fmt.Fprintf(b, "beside it: %s\n", client.Printable(beside.Why))
			if err := writeDSL(b, beside.Body); err != nil {
				return err
			}
		}
	}
	if x.Notice != "" {
		fmt.Fprintf(b, "\n%s\n", client.Printable(x.Notice))
	}
	return nil
}

// widestDSL is how long a line of a query may be before it is broken up.
const widestDSL = 100

// writeDSL writes a query for people. What fits a line stands on one, and what
// has one member only does not make a level of its own, because a query indented
// to its last scalar has hundreds of lines.
func writeDSL(b *bytes.Buffer, body json.RawMessage) error {
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		return fmt.Errorf("read what the query becomes: %w", err)
	}
	lines, err := appendDSLLines(nil, compact.Bytes(), "", "")
	for _, line := range lines {
		b.WriteString(client.Printable(line))
		b.WriteByte('\n')
	}
	return err
}

// appendDSLLines writes a value behind what its first line begins with; the
// other lines begin with the indent.
func appendDSLLines(lines []string, v jsontext.Value, first, indent string) ([]string, error) {
	whole := first + string(v)
	if utf8.RuneCountInString(whole) <= widestDSL || v.Kind() != '{' && v.Kind() != '[' {
		return append(lines, whole), nil
	}
	names, members, err := partsOf(v)
	if err != nil {
		return lines, err
	}
	opens, closes := string(v[:1]), string(v[len(v)-1:])
	if len(members) == 1 {
		if lines, err = appendDSLLines(lines, members[0], first+opens+names[0], indent); err == nil {
			lines[len(lines)-1] += closes
		}
		return lines, err
	}
	lines = append(lines, first+opens)
	for i, member := range members {
		inner := indent + "  "
		if lines, err = appendDSLLines(lines, member, inner+names[i], inner); err != nil {
			return lines, err
		}
		if i < len(members)-1 {
			lines[len(lines)-1] += ","
		}
	}
	return append(lines, indent+closes), nil
}

// partsOf are the values inside an object or array, each with what stands before
// it.
func partsOf(v jsontext.Value) (names []string, members []jsontext.Value, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if _, err := d.ReadToken(); err != nil {
		return nil, nil, err
	}
	for d.PeekKind() != '}' && d.PeekKind() != ']' {
		name := ""
		if v.Kind() == '{' {
			text, err := d.ReadValue()
			if err != nil {
				return nil, nil, err
			}
			name = string(text) + ": "
		}
		member, err := d.ReadValue()
		if err != nil {
			return nil, nil, err
		}
		names, members = append(names, name), append(members, member.Clone())
	}
	return names, members, nil
}
