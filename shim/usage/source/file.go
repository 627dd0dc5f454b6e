package source

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"loadline.dev/shim/internal/text"
	"loadline.dev/shim/usage/profile"
)

// Columns of a file, by their position in a record. The first four are required, and one of the others.
const (
	columnTime = iota
	columnNamespace
	columnKind
	columnName
	columnCPU
	columnMemory
	columnCPULimit
	columnMemoryLimit
	columns
)

var columnNames = [columns]string{"time", "namespace", "kind", "name", "cpu_milli", "memory_bytes",
	"cpu_limit_milli", "memory_limit_bytes"}

// File reads samples from a file, each of one pod of a workload: CSV with a head, or Parquet where its name ends in
// .parquet, with the columns of columnNames in any order and others beside them. A time is in seconds since 1970, of
// RFC 3339, or a timestamp of Parquet. An empty amount is none, and a limit that is none is not known.
type File struct{ Path string }

// Span is without end: a file is read once.
func (f File) Span() int64 { return math.MaxInt64 }

// record is a row of a file, of which each value is text.
type record [columns]string

// Collect reads all samples of [from, to). A record that cannot be read is an error that names its place: a file is
// written on purpose.
func (f File) Collect(_ context.Context, from, to int64, sink Sink) (out Outcome, err error) {
	type sample struct {
		w               profile.Workload
		of              profile.Resource
		seconds, amount int64
	}
	var samples []sample
	err = f.each(func(place int, r *record) error {
		seconds, err := timeOf(r[columnTime])
		if err != nil {
			return fmt.Errorf("%s: record %d: time: %w", f.Path, place, err)
		}
		w, found := workloadOf(r[columnNamespace], r[columnKind], r[columnName], "")
		if !found || !named(r[columnNamespace]) || w.Kind != r[columnKind] {
			return fmt.Errorf("%s: record %d: %q, %q, %q name no workload", f.Path, place,
				text.Bound(r[columnNamespace], 64), text.Bound(r[columnKind], 64), text.Bound(r[columnName], 64))
		}
		for of, column := range [profile.Resources]int{columnCPU, columnMemory} {
			if r[column] == "" {
				continue
			}
			amount, why := amountIn(r[column], profile.Resource(of))
			if seconds < from || seconds >= to {
				why = OutsideWindow
			}
			if why != "" {
				out.drop(why, 1)
				continue
			}
			samples = append(samples, sample{w, profile.Resource(of), seconds, amount})
			if limit, why := amountIn(r[column+columnCPULimit-columnCPU], profile.Resource(of)); why == "" {
				samples = append(samples, sample{w, profile.Resource(of).Limit(), seconds, limit})
			}
		}
		return nil
	})
	if err != nil {
		return Outcome{}, err
	}
	for _, s := range samples {
		if s.of >= profile.Resources {
			sink(s.w, s.of, s.seconds, s.amount)
		} else {
			out.give(sink, s.w, s.of, s.seconds, s.amount)
		}
	}
	return out, nil
}

// Newest returns the newest time of the file, in seconds since 1970.
func (f File) Newest() (newest int64, err error) {
	newest = math.MinInt64
	err = f.each(func(place int, r *record) error {
		seconds, err := timeOf(r[columnTime])
		if err != nil {
			return fmt.Errorf("%s: record %d: time: %w", f.Path, place, err)
		}
		newest = max(newest, seconds)
		return nil
	})
	if err == nil && newest == math.MinInt64 {
		err = fmt.Errorf("%s holds no sample", f.Path)
	}
	return newest, err
}

// amountIn reads an amount in the unit of profiles.
func amountIn(text string, of profile.Resource) (int64, Reason) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, Unreadable
	}
	if of == profile.CPU {
		value /= 1000
	}
	return amountOf(value, of)
}

// timeOf reads a time in seconds since 1970.
func timeOf(value string) (int64, error) {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return seconds, nil
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return 0, fmt.Errorf("%q is neither a number of seconds since 1970 nor of RFC 3339", text.Bound(value, 64))
	}
	return at.Unix(), nil
}

// each reads the records of the file, in their order.
func (f File) each(take func(place int, r *record) error) error {
	file, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	if strings.HasSuffix(f.Path, ".parquet") {
		return eachOfParquet(file, f.Path, take)
	}
	reader := csv.NewReader(file)
	reader.ReuseRecord = true
	head, err := reader.Read()
	if err != nil {
		return fmt.Errorf("%s: its first line: %w", f.Path, err)
	}
	at, err := columnsIn(f.Path, head)
	if err != nil {
		return err
	}
	for place := 1; ; place++ {
		fields, err := reader.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		var r record
		for column, position := range at {
			if position >= 0 {
				r[column] = fields[position]
			}
		}
		if err := take(place, &r); err != nil {
			return err
		}
	}
}

// columnsIn returns the positions of the columns; -1: there is none.
func columnsIn(path string, head []string) (at [columns]int, err error) {
	for column, name := range columnNames {
		at[column] = slices.Index(head, name)
		if at[column] < 0 && column < columnCPU {
			return at, fmt.Errorf("%s has no column %q; needed are %s, and one of cpu_milli, memory_bytes", path, name,
				strings.Join(columnNames[:columnCPU], ", "))
		}
	}
	if at[columnCPU] < 0 && at[columnMemory] < 0 {
		return at, fmt.Errorf("%s has neither a column cpu_milli nor memory_bytes", path)
	}
	return at, nil
}
