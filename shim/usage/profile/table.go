package profile

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"loadline.dev/shim/usage/sheet"
)

// columnOf are the names of the resources in a table.
var columnOf = [Resources]string{CPU: "cpu_milli", Memory: "memory_bytes"}

// columnLimit ends a line; tables without it are read as well.
const columnLimit = "limit"

func tableHead() []string {
	head := []string{"namespace", "kind", "name", "resource", "samples", "days", "first", "last"}
	for hour := range Hours {
		head = append(head, fmt.Sprintf("h%02d", hour))
	}
	return append(head, columnLimit)
}

// WriteTable writes profiles as CSV, a line for each workload and resource: CPU in millicores, memory in bytes, nothing
// where it is not known.
func WriteTable(out io.Writer, profiles []Profile) error {
	w := csv.NewWriter(out)
	_ = w.Write(tableHead()) // Error tells below
	for i := range profiles {
		p := &profiles[i]
		for of, resource := range columnOf {
			line := []string{p.Workload.Namespace, p.Workload.Kind, p.Workload.Name, resource,
				strconv.FormatInt(p.Samples, 10), strconv.FormatInt(p.Days, 10),
				time.Unix(p.First, 0).UTC().Format(time.RFC3339), time.Unix(p.Last, 0).UTC().Format(time.RFC3339)}
			for _, amount := range p.Day[of] {
				if amount == Unknown {
					line = append(line, "")
				} else {
					line = append(line, strconv.FormatInt(amount, 10))
				}
			}
			_ = w.Write(append(line, limitText(p.Limits[of])))
		}
	}
	w.Flush()
	return w.Error()
}

func limitText(amount int64) string {
	if amount == 0 {
		return ""
	}
	return strconv.FormatInt(amount, 10)
}

// ReadTable reads what WriteTable writes, also where a spreadsheet has saved it again: see package sheet. Errors name
// line and column. Two rows of one workload and resource are an error.
func ReadTable(in io.Reader) ([]Profile, error) {
	head := tableHead()
	r, err := sheet.New(in, head)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(r.Head, head) && !slices.Equal(append(slices.Clone(r.Head), columnLimit), head) {
		return nil, fmt.Errorf("line 1: must be %s, %s", strings.Join(head, ","), sheet.Separated)
	}
	var out []Profile
	at, lines := map[Workload]int{}, map[rowKey]int{}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		line := r.Line()
		row, err := readRow(record)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		key := rowKey{row.Workload, row.of}
		if before := lines[key]; before > 0 {
			return nil, fmt.Errorf("line %d: %s of %v is in line %d already", line, columnOf[row.of], row.Workload, before)
		}
		lines[key] = line
		place, known := at[row.Workload]
		if !known {
			place = len(out)
			at[row.Workload] = place
			out = append(out, Profile{Workload: row.Workload, Samples: row.Samples, Days: row.Days, First: row.First,
				Last: row.Last, Day: [Resources]Day{allUnknown(), allUnknown()}})
		}
		out[place].Day[row.of], out[place].Limits[row.of] = row.day, row.limit
		out[place].Days = min(out[place].Days, row.Days)
	}
}

// rowKey is a row of which a table has one.
type rowKey struct {
	Workload
	of Resource
}

// tableRow is a line of a table.
type tableRow struct {
	Profile
	of    Resource
	day   Day
	limit int64
}

func allUnknown() (day Day) {
	for hour := range day {
		day[hour] = Unknown
	}
	return day
}

func readRow(record []string) (row tableRow, err error) {
	row.Workload = Workload{Namespace: record[0], Kind: record[1], Name: record[2]}
	for i, part := range record[:3] {
		if part == "" || strings.ContainsAny(part, "/@") {
			return row, fmt.Errorf("%s: %q is empty or has a / or @", tableHead()[i], part)
		}
	}
	switch record[3] {
	case columnOf[CPU]:
		row.of = CPU
	case columnOf[Memory]:
		row.of = Memory
	default:
		return row, fmt.Errorf("resource: %q is neither %s nor %s", record[3], columnOf[CPU], columnOf[Memory])
	}
	if row.Samples, err = readAmount("samples", record[4]); err != nil {
		return row, err
	}
	if row.Days, err = readAmount("days", record[5]); err != nil {
		return row, err
	}
	for i, to := range []*int64{&row.First, &row.Last} {
		when, err := time.Parse(time.RFC3339, record[6+i])
		if err != nil {
			return row, fmt.Errorf("%s: %q is no time such as 2026-05-01T12:00:00Z", tableHead()[6+i], record[6+i])
		}
		*to = when.Unix()
	}
	for hour := range row.day {
		row.day[hour] = Unknown
		if text := record[8+hour]; text != "" {
			if row.day[hour], err = readAmount(fmt.Sprintf("h%02d", hour), text); err != nil {
				return row, err
			}
		}
	}
	if limits := record[8+Hours:]; len(limits) > 0 && limits[0] != "" {
		row.limit, err = readAmount(columnLimit, limits[0])
	}
	return row, err
}

func readAmount(column, text string) (int64, error) {
	amount, err := strconv.ParseInt(text, 10, 64)
	if err != nil || amount < 0 || amount > mostAmount {
		return 0, fmt.Errorf("%s: %q is no whole number from 0 to 2^62", column, text)
	}
	return amount, nil
}
