package source

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// parquetStart begins each Parquet file.
const parquetStart = "PAR1"

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
	wanted, err := wantedOf(opened.Schema(), path, at)
	if err != nil {
		return err
	}
	return eachRow(opened, path, wanted, take)
}

// eachRow reads the wanted columns of each row.
func eachRow(opened *parquet.File, path string, wanted map[int]wantedColumn,
	take func(place int, r *record) error) error {
	reader := parquet.NewReader(opened)
	defer reader.Close()
	rows := make([]parquet.Row, 256)
	for place := 1; ; {
		n, err := reader.ReadRows(rows)
		for _, row := range rows[:n] {
			var r record
			for _, value := range row {
				if w, found := wanted[value.Column()]; found && !value.IsNull() {
					r[w.column] = w.text(value)
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

// wantedColumn is a column that is read, and what makes of its values what CSV would have.
type wantedColumn struct {
	column int
	text   func(parquet.Value) string
}

// wantedOf returns the columns that are read, by their position.
func wantedOf(schema *parquet.Schema, path string, at [columns]int) (map[int]wantedColumn, error) {
	wanted := map[int]wantedColumn{}
	for column, position := range at {
		if position < 0 {
			continue
		}
		leaf, _ := schema.Lookup(columnNames[column])
		text, err := textOf(leaf, column == columnTime)
		if err != nil {
			return nil, fmt.Errorf("%s: column %s: %w", path, columnNames[column], err)
		}
		wanted[position] = wantedColumn{column, text}
	}
	return wanted, nil
}

// textOf returns what makes text of the values of a column. A type that would be read as another number is refused.
func textOf(leaf parquet.LeafColumn, isTime bool) (func(parquet.Value) string, error) {
	if leaf.MaxRepetitionLevel > 0 {
		return nil, errors.New("it is repeated, and a record has one value")
	}
	kind := leaf.Node.Type().Kind()
	if logical := leaf.Node.Type().LogicalType(); logical != nil {
		switch of := logical.Value.(type) {
		case *format.DecimalType:
			return func(v parquet.Value) string { return decimalText(v, of.Scale) }, nil
		case *format.TimestampType:
			if !isTime || of.Unit.Value == nil {
				return nil, errors.New("it is a TIMESTAMP")
			}
			perSecond := int64(time.Second / of.Unit.Value.Duration())
			return func(v parquet.Value) string { return strconv.FormatInt(v.Int64()/perSecond, 10) }, nil
		case *format.DateType, *format.TimeType:
			return nil, fmt.Errorf("it is a %v: TIMESTAMP, a number or text is needed", logical)
		}
	}
	if kind == parquet.Int96 || kind == parquet.Boolean {
		return nil, fmt.Errorf("it is of type %v", kind)
	}
	return parquet.Value.String, nil
}

// decimalText returns a DECIMAL as a number with an exponent: its digits are an integer, or the bytes of one.
func decimalText(v parquet.Value, scale int32) string {
	digits := ""
	switch v.Kind() {
	case parquet.Int32, parquet.Int64:
		digits = v.String()
	default:
		bytes := v.ByteArray()
		whole := new(big.Int).SetBytes(bytes)
		if len(bytes) > 0 && bytes[0] >= 0x80 { // two's complement
			whole.Sub(whole, new(big.Int).Lsh(big.NewInt(1), uint(8*len(bytes))))
		}
		digits = whole.String()
	}
	return fmt.Sprintf("%se-%d", digits, scale)
}
