// Package texttable writes tables for a terminal. Columns line up whatever the cells hold: letters that
// take two columns, marks that take none, and control characters, which are shown escaped.
package texttable

import (
	"io"
	"slices"
	"strings"
)

// Align says on which side of its column a cell is aligned.
type Align int

// Left suits words, Right suits numbers.
const (
	Left Align = iota
	Right
)

// gap separates columns, as in the tables of kubectl.
const gap = "   "

// Column is one column of a table.
type Column struct {
	// Header is escaped like a cell; when all headers are empty, the header line is left out.
	Header string
	Align  Align
}

// Table collects rows until it is written. The zero value has no columns; see New. Not safe for concurrent use.
type Table struct {
	columns []Column
	rows    [][]string
}

// New returns an empty table with these columns.
func New(columns ...Column) *Table {
	t := &Table{columns: slices.Clone(columns)}
	for i := range t.columns {
		t.columns[i].Header = Escape(t.columns[i].Header)
	}
	return t
}

// Row adds a row. Cells are escaped here; missing cells are empty, surplus ones are dropped.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(t.columns))
	for i := range row {
		if i < len(cells) {
			row[i] = Escape(cells[i])
		}
	}
	t.rows = append(t.rows, row)
}

// withoutHeaders is a writer to which tables write no line of headers.
type withoutHeaders struct{ io.Writer }

// WithoutHeaders returns a writer to which tables write their rows alone.
func WithoutHeaders(w io.Writer) io.Writer { return withoutHeaders{w} }

// Write writes header and rows, one line each, without spaces at the end of a line.
func (t *Table) Write(w io.Writer) error {
	header := make([]string, len(t.columns))
	widths := make([]int, len(t.columns))
	named := false
	for i, column := range t.columns {
		header[i] = column.Header
		widths[i] = Width(column.Header)
		named = named || column.Header != ""
	}
	if _, rowsOnly := w.(withoutHeaders); rowsOnly {
		named = false
		clear(widths)
	}
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], Width(cell))
		}
	}
	var text strings.Builder
	if named {
		t.line(&text, header, widths)
	}
	for _, row := range t.rows {
		t.line(&text, row, widths)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (t *Table) line(text *strings.Builder, cells []string, widths []int) {
	var line strings.Builder
	for i, cell := range cells {
		if i > 0 {
			line.WriteString(gap)
		}
		padding := strings.Repeat(" ", widths[i]-Width(cell))
		if t.columns[i].Align == Right {
			line.WriteString(padding + cell)
		} else {
			line.WriteString(cell + padding)
		}
	}
	text.WriteString(strings.TrimRight(line.String(), " "))
	text.WriteByte('\n')
}
