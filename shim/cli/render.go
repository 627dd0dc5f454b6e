package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"loadline.dev/shim/report"
	"loadline.dev/shim/report/texttable"
)

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
	if one, ok := d[key].(map[string]any); ok {
		return []any{one}
	}
	elements, _ := d[key].([]any)
	return elements
}

// list returns the rows of a table; one without a key has the document itself as the only row.
func (d document) list(t table) []row {
	if t.rows == "" {
		return []row{row(d)}
	}
	elements := d.elements(t.rows)
	rows := make([]row, len(elements))
	for i, element := range elements {
		if fields, ok := element.(map[string]any); ok {
			rows[i] = fields
		} else {
			rows[i] = row{cmp.Or(t.element, "name"): element}
		}
	}
	return rows
}

// sortBy sorts the lists of tables by the value at a path. An element without a value is last.
func (d document) sortBy(path string, tables []table) error {
	found := false
	for _, t := range tables {
		if !t.isList() || t.rows == "" {
			continue
		}
		elements, rows := d.elements(t.rows), d.list(t)
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

// below returns what is at a key.
func (d document) below(key string) document {
	if key == "" {
		return d
	}
	below, _ := d[key].(map[string]any)
	return below
}

// renderTables writes an answer for a terminal: verdict, tables that have rows, lines, and its parts, with an empty
// line between them.
func (o *outputFlag) renderTables(w io.Writer, a answer, d document) error {
	blocks, err := o.blocks(a, d)
	if err == nil {
		_, err = io.WriteString(w, strings.Join(blocks, "\n"))
	}
	return err
}

func (o *outputFlag) blocks(a answer, d document) (blocks []string, err error) {
	d = d.below(a.at)
	if a.verdict != "" {
		blocks = append(blocks, texttable.Escape(a.verdict)+"\n")
	}
	for _, t := range a.tables {
		if t.aside && o.noHeaders {
			continue
		}
		if o.sortBy != "" {
			t.order = nil
		}
		columns, lines, err := t.layout(d, o.form == formWide, !o.noHeaders)
		if err != nil {
			return nil, err
		}
		if len(lines) == 0 {
			continue
		}
		var text strings.Builder
		if err := o.writeGrid(&text, columns, lines); err != nil {
			return nil, err
		}
		blocks = append(blocks, text.String())
	}
	if len(a.lines) > 0 {
		var text strings.Builder
		for _, line := range a.lines {
			text.WriteString(texttable.Escape(line) + "\n")
		}
		blocks = append(blocks, text.String())
	}
	for _, part := range a.parts {
		more, err := o.blocks(part, d)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, more...)
	}
	return blocks, nil
}

func (o *outputFlag) writeGrid(w io.Writer, columns []column, lines [][]string) error {
	if o.noHeaders {
		w = texttable.WithoutHeaders(w)
	}
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

// renderNames writes KIND/NAME of each row that is an element of the answer, or of each name that a row has.
func renderNames(w io.Writer, a answer, d document) error {
	named := false
	for _, t := range a.allTables() {
		if t.kind == "" || t.aside || t.apart {
			continue
		}
		named = true
		for _, r := range d.list(t) {
			names, err := r.values(t.name)
			if err != nil {
				return err
			}
			for _, name := range names {
				fmt.Fprintf(w, "%s/%s\n", t.kind, texttable.Escape(cellOf(name)))
			}
		}
	}
	if !named {
		return errNameless
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
	for _, t := range a.allTables() {
		if !t.isList() || t.apart {
			continue
		}
		_, more, err := table{columns: columns}.grid(d.list(t), true)
		if err != nil {
			return err
		}
		for _, line := range more { // lists of other things have none of these paths
			if slices.ContainsFunc(line, func(cell string) bool { return cell != "<none>" }) {
				lines = append(lines, line)
			}
		}
	}
	return o.writeGrid(w, columns, lines)
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
	sections, err := sectionsOf(a, d)
	if err != nil {
		return err
	}
	sections[0].Lines = append(sections[0].Lines, leftOutLines(a.leftOut)...)
	return report.Sections(w, a.title, sections...)
}

func sectionsOf(a answer, d document) ([]report.Section, error) {
	d = d.below(a.at)
	sections := []report.Section{{Verdict: a.verdict, Lines: slices.Clone(a.lines), Cards: a.cards}}
	if len(a.cards) > 0 {
		a.tables = nil
	}
	for _, t := range a.tables {
		if t.unseen {
			continue
		}
		grid, err := t.gridOf(d)
		if err != nil {
			return nil, err
		}
		sections = append(sections, report.Section{Grid: grid})
	}
	for _, part := range a.parts {
		more, err := sectionsOf(part, d)
		if err != nil {
			return nil, err
		}
		sections = append(sections, more...)
	}
	return sections, nil
}

// gridOf is a table as a page shows it.
func (t table) gridOf(d document) (report.Grid, error) {
	columns, lines, err := t.layout(d, true, true)
	grid := report.Grid{Rows: lines}
	for _, c := range columns {
		grid.Header = append(grid.Header, c.header)
	}
	return grid, err
}
