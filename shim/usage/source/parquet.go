package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// eachOfParquet reads the records of a Parquet file. A file that is broken is an error, even where the library panics.
func eachOfParquet(file *os.File, path string, take func(place int, r *record) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s cannot be read: %v", path, r)
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	opened, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var head []string
	for _, column := range opened.Schema().Columns() {
		name := ""
		if len(column) == 1 {
			name = column[0]
		}
		head = append(head, name)
	}
	at, err := columnsIn(path, head)
	if err != nil {
		return err
	}
	wanted := map[int]int{} // the column by position
	for column, position := range at {
		if position >= 0 {
			wanted[position] = column
		}
	}
	tick := tickOf(opened, columnNames[columnTime])
	reader := parquet.NewReader(opened)
	defer reader.Close()
	rows := make([]parquet.Row, 256)
	for place := 1; ; {
		n, err := reader.ReadRows(rows)
		for _, row := range rows[:n] {
			var r record
			for _, value := range row {
				if column, found := wanted[value.Column()]; found && !value.IsNull() {
					r[column] = textOf(value, column == columnTime, tick)
				}
			}
			if err := take(place, &r); err != nil {
				return err
			}
			place++
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: record %d: %w", path, place, err)
		}
	}
}

// tickOf returns the unit of a column of timestamps; a second where it has none.
func tickOf(file *parquet.File, name string) time.Duration {
	leaf, found := file.Schema().Lookup(name)
	if !found || leaf.Node.Type().LogicalType() == nil {
		return time.Second
	}
	if stamp, ok := leaf.Node.Type().LogicalType().Value.(*format.TimestampType); ok && stamp.Unit.Value != nil {
		return stamp.Unit.Value.Duration()
	}
	return time.Second
}

// textOf returns a value as CSV would have it.
func textOf(value parquet.Value, isTime bool, tick time.Duration) string {
	if isTime && value.Kind() == parquet.Int64 {
		return strconv.FormatInt(value.Int64()/int64(time.Second/tick), 10)
	}
	return value.String()
}
