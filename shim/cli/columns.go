package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"loadline.dev/shim/report"
)

// column is a column of a table.
type column struct {
	header string
	// path leads from a row to the value, in the keys of -o json. Several values make a line each.
	path string
	// text, if set, makes the cell of a row in place of path; each makes a line of each element that path leads to.
	text, each func(r row) string
	// right aligns the column to the right, for numbers; wide shows it with -o wide only; blank leaves cells without a
	// text empty.
	right, wide, blank bool
}

// table shows lists of an answer, one row for each element.
type table struct {
	rows string // the key of the list in -o json
	// kind and name are the words of -o name: "node" and the path to its name, or to several; empty: rows have no name.
	kind, name string
	columns    []column
	order      func(x, y row) int // of the rows that are shown; nil: as they come
	most       int                // how many rows are shown; 0: all
	// aside says that rows are beside what was asked: scripts, which read names, custom columns and tables without
	// headers, do not get them.
	aside bool
	// apart says that rows have keys of those that were asked, and say something else, such as which nodes stay beside
	// which ones go: custom columns do not get them.
	apart bool
	// unseen has no place among what people see: names and custom columns alone read its rows.
	unseen bool
	// element is the key of rows that are texts in -o json; empty: "name".
	element string
	// foot has rows below those of the list, such as sums, for people alone.
	foot func(d document) []row
	// fixed, if it has a header, is the whole table, whose rows are no elements of the answer; texts are the headers of
	// its columns that hold no numbers.
	fixed report.Grid
	texts []string
}

// isList says whether rows are elements of the answer, and no further matter.
func (t table) isList() bool { return !t.aside && t.fixed.Header == nil }

// named returns tables whose rows have names of this kind, at this path.
func named(kind, path string, tables []table) []table {
	tables = slices.Clone(tables)
	for i := range tables {
		tables[i].kind, tables[i].name = kind, path
	}
	return tables
}

// subject has the document itself as its row: the answer is about one object, whose name is at this path; empty: about
// one that has no kind.
func subject(kind, name string) table { return table{kind: kind, name: name, unseen: true} }

// layout returns the columns and lines of a table in an answer; without lines there is none.
func (t table) layout(d document, wide, foot bool) (columns []column, lines [][]string, err error) {
	if t.unseen {
		return nil, nil, nil
	}
	for _, header := range t.fixed.Header {
		columns = append(columns, column{header: header, right: !slices.Contains(t.texts, header)})
	}
	if columns != nil {
		return columns, t.fixed.Rows, nil
	}
	rows := d.list(t)
	if columns, lines, err = t.grid(rows, wide); err != nil || len(lines) == 0 || t.foot == nil || !foot {
		return columns, lines, err
	}
	_, more, err := table{columns: t.columns}.grid(t.foot(d), wide)
	return columns, append(lines, more...), err
}

// row is an element of a list, as -o json has it.
type row map[string]any

// str returns a text of a row; empty: there is none.
func (r row) str(key string) string {
	text, _ := r[key].(string)
	return text
}

// whole returns a whole number of a row; 0: there is none. The largest of all is above each float64 that is an int64.
func (r row) whole(key string) int64 {
	switch n := r[key].(type) {
	case int64:
		return n
	case float64:
		if n >= math.MaxInt64 {
			return math.MaxInt64
		}
		return int64(n)
	}
	return 0
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
		text := c.text(r)
		if text == "" && c.header != "" && !c.blank {
			text = "-"
		}
		return []string{text}, nil
	}
	values, err := r.values(c.path)
	if err != nil {
		return nil, err
	}
	var cells []string
	for _, value := range values {
		text := cellOf(value)
		if element, ok := value.(map[string]any); ok && c.each != nil {
			text = c.each(element)
		}
		cells = append(cells, cmp.Or(text, "-"))
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

// amount is a column of amounts of a resource, written as people write them.
func amount(header, resource, path string) column {
	return column{header: header, right: true, text: func(r row) string {
		values, err := r.values(path)
		if err != nil || len(values) == 0 {
			return ""
		}
		return report.FormatAmount(resource, row{"": values[0]}.whole(""))
	}}
}
