package main

import (
	"io"
	"strings"

	"github.com/rivo/uniseg"

	"holdfast/cmd/holdfast/internal/client"
)

// grid writes rows of texts in columns that are as wide as the widest so far.
// The last column is not padded.
type grid struct{ widths []int }

func (g *grid) write(w io.Writer, rows [][]string) error {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(g.widths) {
				g.widths = append(g.widths, 0)
			}
			g.widths[i] = max(g.widths[i], uniseg.StringWidth(client.Printable(cell)))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString(columnGap)
			}
			cell = client.Printable(cell)
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", g.widths[i]-uniseg.StringWidth(cell)))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeGrid writes a whole grid.
func writeGrid(w io.Writer, rows [][]string) error { return new(grid).write(w, rows) }
