package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/util/jsonpath"

	"loadline.dev/shim/report"
	"loadline.dev/shim/report/texttable"
)

// column is one of a table.
type column struct {
	header string
	// path leads from a row to the value, in the keys of -o json. Several values make a line each.
	path string
	// text, if set, makes the cell of a row in place of path.
	text func(r row) string
	// right stands numbers under each other; wide is for -o wide only.
	right, wide bool
}

// table shows lists of an answer, one row for each element.
type table struct {
	rows string // the key of the list in -o json
	// kind and name are the words of -o name: "node" and the key of its name; empty: rows have no name.
	kind, name string
	columns    []column
	order      func(x, y row) int // of the rows that are shown; nil: as they come
	most       int                // how many rows are shown; 0: all
}

// named says of which list of an answer -o name, custom-columns= and --sort-by take the rows.
func named(rows, kind, name string) []table { return []table{{rows: rows, kind: kind, name: name}} }

// row is an element of a list, as -o json has it.
type row map[string]any

// str returns a text of a row; empty: there is none.
func (r row) str(key string) string {
	text, _ := r[key].(string)
	return text
}

// num returns a number of a row; 0: there is none.
func (r row) num(key string) float64 {
	switch n := r[key].(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	}
	return 0
}

// values evaluates a path, such as "moves[*].pod", on a row. A key that is not there gives no value.
func (r row) values(path string) ([]any, error) {
	p := jsonpath.New(path).AllowMissingKeys(true)
	if err := p.Parse("{." + strings.Trim(path, "{}.") + "}"); err != nil {
		return nil, fmt.Errorf("path %q: %w", path, err)
	}
	results, err := p.FindResults(map[string]any(r))
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", path, err)
	}
	var values []any
	for _, result := range results {
		for _, value := range result {
			if value.IsValid() && value.CanInterface() && value.Interface() != nil {
				values = append(values, value.Interface())
			}
		}
	}
	return values, nil
}

// cellOf is a value as a table shows it.
func cellOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		parts := make([]string, len(v))
		for i, element := range v {
			parts[i] = cellOf(element)
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		text, _ := json.Marshal(v)
		return string(text)
	}
	return fmt.Sprint(value)
}

// cells are what a column shows of a row, one for each line.
func (c column) cells(r row) ([]string, error) {
	if c.text != nil {
		return []string{cmp.Or(c.text(r), "-")}, nil
	}
	values, err := r.values(c.path)
	if err != nil {
		return nil, err
	}
	var cells []string
	for _, value := range values {
		cells = append(cells, cmp.Or(cellOf(value), "-"))
	}
	if len(cells) == 0 {
		return []string{"-"}, nil
	}
	return cells, nil
}

// grid lays out rows: a line for each, or as many as the column with most values needs.
func (t table) grid(rows []row, wide bool) (columns []column, lines [][]string, err error) {
	for _, c := range t.columns {
		if !c.wide || wide {
			columns = append(columns, c)
		}
	}
	if t.order != nil {
		slices.SortStableFunc(rows, t.order)
	}
	if t.most > 0 && len(rows) > t.most {
		rows = rows[:t.most]
	}
	for _, r := range rows {
		cells, height := make([][]string, len(columns)), 1
		for i, c := range columns {
			if cells[i], err = c.cells(r); err != nil {
				return nil, nil, err
			}
			height = max(height, len(cells[i]))
		}
		for line := range height {
			texts := make([]string, len(columns))
			for i := range columns {
				if line < len(cells[i]) {
					texts[i] = cells[i][line]
				}
			}
			lines = append(lines, texts)
		}
	}
	return columns, lines, nil
}

// document is an answer as -o json has it, for what looks into it.
type document map[string]any

func documentOf(data any) (document, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	d := document{}
	if !bytes.HasPrefix(text, []byte("{")) {
		return d, nil // nothing looks into it
	}
	return d, utiljson.Unmarshal(text, (*map[string]any)(&d))
}

// elements returns the list at a key, or below several, as in "remove.moves".
func (d document) elements(key string) []any {
	first, rest, deeper := strings.Cut(key, ".")
	if deeper {
		below, _ := d[first].(map[string]any)
		return document(below).elements(rest)
	}
	elements, _ := d[key].([]any)
	return elements
}

// list returns the rows at a key.
func (d document) list(key string) []row {
	elements := d.elements(key)
	rows := make([]row, len(elements))
	for i, element := range elements {
		if fields, ok := element.(map[string]any); ok {
			rows[i] = fields
		} else {
			rows[i] = row{"name": element}
		}
	}
	return rows
}

// sortBy sorts the lists of tables by the value at a path. An element without one comes last.
func (d document) sortBy(path string, tables []table) error {
	found := false
	for _, t := range tables {
		elements, rows := d.elements(t.rows), d.list(t.rows)
		keys, order := make([]any, len(rows)), make([]int, len(rows))
		for i, r := range rows {
			values, err := r.values(path)
			if err != nil {
				return usageError{fmt.Errorf("--sort-by %w", err)}
			}
			if order[i] = i; len(values) > 0 {
				keys[i], found = values[0], true
			}
		}
		slices.SortStableFunc(order, func(x, y int) int { return compareValues(keys[x], keys[y]) })
		before := slices.Clone(elements)
		for i, from := range order {
			elements[i] = before[from]
		}
	}
	if !found {
		return usagef("--sort-by %q: no row of the answer has it; -o json shows what rows have", path)
	}
	return nil
}

func compareValues(x, y any) int {
	if x == nil || y == nil {
		return cmp.Compare(boolOf(x == nil), boolOf(y == nil))
	}
	_, xText := x.(string)
	_, yText := y.(string)
	if !xText && !yText {
		return cmp.Compare(row{"": x}.num(""), row{"": y}.num(""))
	}
	return cmp.Compare(cellOf(x), cellOf(y))
}

func boolOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// renderTables writes an answer for a terminal: verdict, tables that have rows, lines.
func (o *outputFlag) renderTables(w io.Writer, a answer, d document) error {
	if a.verdict != "" {
		fmt.Fprintf(w, "%s\n\n", texttable.Escape(a.verdict))
	}
	for _, t := range a.tables {
		rows := d.list(t.rows)
		if o.sortBy != "" {
			t.order = nil
		}
		if len(rows) == 0 {
			continue
		}
		columns, lines, err := t.grid(rows, o.form == formWide)
		if err != nil {
			return err
		}
		if err := writeGrid(w, columns, lines); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, line := range a.lines {
		if _, err := fmt.Fprintln(w, texttable.Escape(line)); err != nil {
			return err
		}
	}
	return nil
}

// writeTables writes the tables of an answer within those of another.
func writeTables(w io.Writer, a answer) error {
	d, err := documentOf(a.data)
	if err != nil {
		return err
	}
	return (&outputFlag{form: formTable}).renderTables(w, a, d)
}

func writeGrid(w io.Writer, columns []column, lines [][]string) error {
	out := make([]texttable.Column, len(columns))
	for i, c := range columns {
		out[i].Header = c.header
		if c.right {
			out[i].Align = texttable.Right
		}
	}
	text := texttable.New(out...)
	for _, line := range lines {
		text.Row(line...)
	}
	return text.Write(w)
}

// renderNames writes KIND/NAME of each row.
func renderNames(w io.Writer, a answer, d document) error {
	named := false
	for _, t := range a.tables {
		if t.kind == "" {
			continue
		}
		named = true
		for _, r := range d.list(t.rows) {
			fmt.Fprintf(w, "%s/%s\n", t.kind, texttable.Escape(r.str(t.name)))
		}
	}
	if !named {
		return usagef("-o name: the rows of this answer have no names")
	}
	return nil
}

// renderCustom writes the columns HEADER:PATH,... of all rows, as kubectl does.
func (o *outputFlag) renderCustom(w io.Writer, a answer, d document) error {
	var columns []column
	for _, part := range strings.Split(strings.TrimPrefix(o.form, formCustom), ",") {
		header, path, ok := strings.Cut(part, ":")
		if !ok || header == "" || path == "" {
			return usagef("-o %q: must be %sHEADER:PATH,...", o.form, formCustom)
		}
		if _, err := (row{}).values(path); err != nil {
			return usageError{fmt.Errorf("-o %w", err)}
		}
		columns = append(columns, column{header: header, text: func(r row) string {
			values, _ := r.values(path)
			if len(values) == 0 {
				return "<none>"
			}
			return strings.ReplaceAll(cellOf(values), ", ", ",")
		}})
	}
	var lines [][]string
	for _, t := range a.tables {
		_, more, err := table{columns: columns}.grid(d.list(t.rows), true)
		if err != nil {
			return err
		}
		lines = append(lines, more...)
	}
	return writeGrid(w, columns, lines)
}

// renderTemplate writes what a template of kubectl makes of the answer. Texts in it steer no terminal.
func (o *outputFlag) renderTemplate(w io.Writer, d document) error {
	printer, err := genericclioptions.NewKubeTemplatePrintFlags().ToPrinter(o.form)
	if err != nil {
		return usageError{fmt.Errorf("-o %q: %w", o.form, err)}
	}
	var out bytes.Buffer
	if err := printer.PrintObj(&unstructured.Unstructured{Object: d}, &out); err != nil {
		return err
	}
	lines := strings.Split(out.String(), "\n")
	for i, line := range lines {
		parts := strings.Split(line, "\t")
		for j := range parts {
			parts[j] = texttable.Escape(parts[j])
		}
		lines[i] = strings.Join(parts, "\t")
	}
	_, err = io.WriteString(w, strings.Join(lines, "\n"))
	return err
}

// renderPage writes the page of an answer that has no picture: verdict, lines and tables.
func renderPage(w io.Writer, a answer, d document) error {
	sections := []report.Section{{Verdict: a.verdict, Lines: append(slices.Clone(a.lines), leftOutLines(a.leftOut)...)}}
	for _, t := range a.tables {
		columns, lines, err := t.grid(d.list(t.rows), true)
		if err != nil {
			return err
		}
		grid := report.Grid{Rows: lines}
		for _, c := range columns {
			grid.Header = append(grid.Header, c.header)
		}
		sections = append(sections, report.Section{Grid: grid})
	}
	return report.Sections(w, "loadline "+a.title, sections...)
}
