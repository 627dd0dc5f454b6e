package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"loadline.dev/shim/internal/text"
	"loadline.dev/shim/usage/profile"
	"loadline.dev/shim/usage/sheet"
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

// File reads samples from a file, each of one pod of a workload: CSV with a head, see package sheet, or Parquet where
// the file begins as such, with the columns of columnNames in any order and others beside them. See timeOf and amountIn
// for their values. An empty amount is none, and a limit that is none is not known.
type File struct {
	// Path is its name.
	Path string
	// Now is the clock: records that are later than it by more than an hour are left out. Zero: the clock of the system.
	Now time.Time
	// content is a copy of what can be read only once; nil: the file is opened by its name.
	content *os.File
}

// slackOfFile is by how many seconds a record may be later than the clock: clocks differ.
const slackOfFile = 3600

// oldest is the first time, in seconds since 1970, that profiles can count.
const oldest = 3600

// OpenFile returns the file of a path, - for stdin. A pipe, which can be read only once, is copied to a temporary file
// without a name, which is gone with the process.
func OpenFile(path string, stdin io.Reader, now time.Time) (File, error) {
	if path == "-" {
		return copyOf(stdin, "standard input", now)
	}
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	if info.Mode().IsRegular() {
		return File{Path: path, Now: now}, nil
	}
	in, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer in.Close()
	return copyOf(in, path, now)
}

func copyOf(in io.Reader, name string, now time.Time) (File, error) {
	content, err := os.CreateTemp("", "loadline-usage-*")
	if err != nil {
		return File{}, err
	}
	_, err = io.Copy(content, in)
	if err := errors.Join(err, os.Remove(content.Name())); err != nil {
		content.Close()
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	return File{Path: name, Now: now, content: content}, nil
}

// Span is without end: a file is read once.
func (f File) Span() int64 { return math.MaxInt64 }

// latest is the latest time that a record may have.
func (f File) latest() int64 {
	if f.Now.IsZero() {
		return time.Now().Unix() + slackOfFile
	}
	return f.Now.Unix() + slackOfFile
}

// record is a row of a file, of which each value is text.
type record [columns]string

// Collect hands on the samples of [from, to) while it reads, so that its memory does not grow with the file. A record
// that names no workload or no time is an error that names its place: a file is written on purpose. After an error the
// sink has the samples of the records before.
func (f File) Collect(ctx context.Context, from, to int64, sink Sink) (out Outcome, err error) {
	latest := f.latest()
	err = f.each(func(place int, r *record) error {
		seconds, err := timeOf(r[columnTime])
		if err != nil {
			return f.fault(place, fmt.Errorf("time: %w", err))
		}
		w, found := workloadOf(r[columnNamespace], r[columnKind], r[columnName], "")
		if !found || !named(r[columnNamespace]) {
			return f.fault(place, fmt.Errorf("%q, %q, %q name no workload", text.Bound(r[columnNamespace], 64),
				text.Bound(r[columnKind], 64), text.Bound(r[columnName], 64)))
		}
		why := Reason("")
		switch {
		case seconds > latest:
			why = Future
		case seconds < max(from, oldest) || seconds >= to:
			why = OutsideWindow
		}
		r.give(w, seconds, why, sink, &out, func(column int) string { return r.describe(place, column, latest) })
		return ctx.Err()
	})
	return out, err
}

// fault names the place of an error.
func (f File) fault(place int, err error) error {
	return fmt.Errorf("%s: record %d: %w", f.Path, place, err)
}

// give hands on the amounts of a record, or counts them where there is a reason not to.
func (r *record) give(w profile.Workload, seconds int64, why Reason, sink Sink, out *Outcome,
	describe func(column int) string) {
	for of, column := range [profile.Resources]int{columnCPU, columnMemory} {
		if r[column] == "" {
			continue
		}
		if why != "" {
			out.drop(why, 1, func() string { return describe(columnTime) })
			continue
		}
		amount, bad := amountIn(r[column], profile.Resource(of))
		if bad != "" {
			out.drop(bad, 1, func() string { return describe(column) })
			continue
		}
		out.give(sink, w, profile.Resource(of), seconds, amount)
		if limit, bad := amountIn(r[column+columnCPULimit-columnCPU], profile.Resource(of)); bad == "" {
			sink(w, profile.Resource(of).Limit(), seconds, limit)
		}
	}
}

// describe quotes a value.
func (r *record) describe(place, column int, latest int64) string {
	quoted := fmt.Sprintf("record %d: %s %q", place, columnNames[column], text.Bound(r[column], 64))
	if seconds, err := timeOf(r[column]); column == columnTime && err == nil {
		quoted += unitOf(seconds, latest)
	}
	return quoted
}

// Newest returns the newest time of the file that is not later than the clock, in seconds since 1970. Where all times
// are later, it is an error that says why that may be.
func (f File) Newest() (newest int64, err error) {
	latest, later, example := f.latest(), 0, ""
	newest = math.MinInt64
	err = f.each(func(place int, r *record) error {
		seconds, err := timeOf(r[columnTime])
		if err != nil {
			return f.fault(place, fmt.Errorf("time: %w", err))
		}
		if seconds <= latest {
			newest = max(newest, seconds)
			return nil
		}
		if later++; later == 1 {
			example = r.describe(place, columnTime, latest)
		}
		return nil
	})
	if err == nil && later > 0 && newest == math.MinInt64 {
		err = fmt.Errorf("%s: all %d records are later than now, where seconds since 1970 are expected: %s", f.Path, later,
			example)
	}
	if err == nil && newest == math.MinInt64 {
		err = fmt.Errorf("%s holds no sample", f.Path)
	}
	return newest, err
}

// each reads the records of the file, in their order.
func (f File) each(take func(place int, r *record) error) error {
	file := f.content
	if file == nil {
		opened, err := os.Open(f.Path)
		if err != nil {
			return err
		}
		defer opened.Close()
		file = opened
	} else if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	start := make([]byte, len(parquetStart))
	if n, _ := file.ReadAt(start, 0); string(start[:n]) == parquetStart || strings.HasSuffix(f.Path, ".parquet") {
		return eachOfParquet(file, f.Path, take)
	}
	if strings.HasSuffix(f.Path, ".parquet.gz") {
		return fmt.Errorf("%s: Parquet is not read from gzip: unzip it first", f.Path)
	}
	return eachOfSheet(file, f.Path, take)
}

// eachOfSheet reads the records of a CSV file.
func eachOfSheet(file io.Reader, path string, take func(place int, r *record) error) error {
	reader, err := sheet.New(file, columnNames[:])
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	at, err := columnsIn(path, reader.Head)
	if err != nil {
		return fmt.Errorf("%w, %s", err, sheet.Separated)
	}
	for place := 1; ; place++ {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
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
		if at[column] >= 0 && slices.Contains(head[at[column]+1:], name) {
			return at, fmt.Errorf("%s has two columns %q", path, name)
		}
	}
	if at[columnCPU] < 0 && at[columnMemory] < 0 {
		return at, fmt.Errorf("%s has neither a column cpu_milli nor memory_bytes", path)
	}
	return at, nil
}
