package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"holdfast/cmd/holdfast/internal/client"
	"holdfast/shared/value"
)

const (
	widestCell   = 40 // columns of a cell's text, unless there is room
	widestID     = 60
	narrowest    = 4
	columnGap    = "  "
	mostMembers  = 200 // columns of a table that no terminal limits
	cutOff       = "…"
	pipedColumns = 0 // no limit
)

// table writes documents as lines with columns. The columns and their widths
// come from the documents it is made with, so that later pages can be written
// without keeping the earlier ones.
type table struct {
	columns []column
	headed  bool
}

type column struct {
	title string
	path  *value.Path // nil: the id
	width int
	right bool // numbers stand at the right
}

// newTable chooses columns: the id and then the paths, or without paths the
// documents' members. On a terminal those that have no room are left out and
// named.
func newTable(c *cobra.Command, sample []client.Envelope, paths []string) *table {
	t := &table{columns: []column{{title: "id"}}}
	if paths == nil {
		paths = members(sample)
	}
	for _, text := range paths {
		p, err := value.ParsePath(text)
		if err != nil {
			continue // such a name has no path; the other outputs show it
		}
		title := text
		if strings.HasPrefix(text, "/") && len(p.Segments()) == 1 {
			title = p.Segments()[0].Name
		}
		t.columns = append(t.columns, column{title: client.Printable(title), path: &p, right: true})
	}
	rows := rowsOf(sample)
	for i := range t.columns {
		col := &t.columns[i]
		limit := widestCell
		if col.path == nil {
			limit = widestID
		}
		col.width = max(narrowest, min(uniseg.StringWidth(col.title), limit))
		numbers := false
		for _, r := range rows {
			text, number := r.cell(col.path)
			col.width = max(col.width, min(uniseg.StringWidth(text), limit))
			col.right = col.right && (number || text == "")
			numbers = numbers || number
		}
		col.right = col.right && numbers
	}
	t.fit(c, screenColumns(c.OutOrStdout()))
	return t
}

// members are pointers to the top members of the documents, in the order in
// which they come.
func members(sample []client.Envelope) []string {
	var names []string
	seen := map[string]bool{}
	for _, d := range sample {
		var data map[string]json.RawMessage
		if json.Unmarshal(d.Data, &data) != nil {
			continue
		}
		var more []string
		for name := range data {
			if !seen[name] {
				seen[name] = true
				more = append(more, value.Pointer(name))
			}
		}
		slices.Sort(more)
		names = append(names, more...)
	}
	return names
}

// screenColumns is the width of a terminal; of anything else there is no limit.
func screenColumns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return pipedColumns
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return pipedColumns
	}
	return width
}

// fit leaves out the columns that a line has no room for.
func (t *table) fit(c *cobra.Command, room int) {
	all := t.columns
	if room == pipedColumns {
		t.columns = all[:min(len(all), mostMembers)]
	} else {
		used := -len(columnGap)
		for i, col := range all {
			used += len(columnGap) + col.width
			if used > room && i > 1 { // the id and one more always stay
				t.columns = all[:i]
				break
			}
		}
	}
	if left := all[len(t.columns):]; len(left) > 0 {
		var names []string
		for _, col := range left[:min(len(left), 10)] {
			names = append(names, col.title)
		}
		note(c, "%d more columns have no room (%s); choose some with --fields, or use another --output", len(left), strings.Join(names, ", "))
	}
}

// write writes rows, and at first the titles.
func (t *table) write(w io.Writer, rows []client.Envelope) error {
	var b bytes.Buffer
	if !t.headed {
		t.headed = true
		t.line(&b, func(col column) string { return col.title })
		t.line(&b, func(col column) string { return strings.Repeat("-", col.width) })
	}
	for _, r := range rowsOf(rows) {
		t.line(&b, func(col column) string {
			text, _ := r.cell(col.path)
			return text
		})
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (t *table) line(b *bytes.Buffer, text func(column) string) {
	var line strings.Builder
	for i, col := range t.columns {
		if i > 0 {
			line.WriteString(columnGap)
		}
		s := clip(text(col), col.width)
		pad := strings.Repeat(" ", col.width-uniseg.StringWidth(s))
		if col.right {
			s = pad + s
		} else {
			s += pad
		}
		line.WriteString(s)
	}
	b.WriteString(strings.TrimRight(line.String(), " "))
	b.WriteByte('\n')
}

// clip cuts text to a width, at the border of what is seen as one character.
func clip(s string, width int) string {
	if uniseg.StringWidth(s) <= width {
		return s
	}
	var b strings.Builder
	used := 0
	for g := uniseg.NewGraphemes(s); g.Next(); {
		used += g.Width()
		if used > width-1 {
			break
		}
		b.WriteString(g.Str())
	}
	return b.String() + cutOff
}

// row is a document that was read once for all columns.
type row struct {
	id   string
	data any
}

func rowsOf(documents []client.Envelope) []row {
	rows := make([]row, len(documents))
	for i, d := range documents {
		decoder := json.NewDecoder(bytes.NewReader(d.Data))
		decoder.UseNumber()
		rows[i].id = client.Printable(d.ID)
		_ = decoder.Decode(&rows[i].data) // the answer was JSON as a whole
	}
	return rows
}

// cell is what stands at a path, for people: text as it is, null and missing
// empty, everything else as JSON.
func (r row) cell(path *value.Path) (text string, number bool) {
	if path == nil {
		return r.id, false
	}
	var texts []string
	for _, v := range path.Values(r.data) {
		switch v := v.(type) {
		case nil:
		case string:
			texts = append(texts, v)
		case json.Number:
			number = true
			texts = append(texts, v.String())
		default:
			texts = append(texts, string(value.Append(nil, v)))
		}
	}
	return client.Printable(strings.Join(texts, ", ")), number && len(texts) == 1
}

// printTable writes documents as a whole table.
func printTable(c *cobra.Command, rows []client.Envelope, paths []string) error {
	return newTable(c, rows, paths).write(c.OutOrStdout(), rows)
}
