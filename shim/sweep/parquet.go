package sweep

import (
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// WriteParquet writes rows, which are in order, with the columns of WriteCSV in the order of their names. The same rows
// give the same bytes.
func (p *Plan) WriteParquet(w io.Writer, rows []*Row) error {
	columns := p.columns()
	slices.SortFunc(columns, func(x, y column) int { return strings.Compare(x.name, y.name) })
	group := parquet.Group{}
	for _, c := range columns {
		var node parquet.Node
		switch c.kind {
		case textColumn:
			node = parquet.String()
		case wholeColumn:
			node = parquet.Int(64)
		case numberColumn:
			node = parquet.Leaf(parquet.DoubleType)
		}
		group[c.name] = parquet.Compressed(parquet.Optional(node), &parquet.Snappy)
	}
	out := parquet.NewWriter(w, parquet.NewSchema("sweep", group), parquet.CreatedBy("loadline", "", ""))
	for _, row := range rows {
		record := make(parquet.Row, 0, len(columns))
		for i, c := range columns {
			value := parquet.ValueOf(c.value(p, row))
			defined := 1
			if value.IsNull() {
				defined = 0
			}
			record = append(record, value.Level(0, defined, i))
		}
		if _, err := out.WriteRows([]parquet.Row{record}); err != nil {
			return err
		}
	}
	return out.Close()
}
