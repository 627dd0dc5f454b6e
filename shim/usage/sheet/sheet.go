// Package sheet reads CSV as spreadsheets, databases and shells write it: gzipped or not, in UTF-8 with or without a
// byte order mark or in UTF-16, separated by commas, semicolons or tabs.
package sheet

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"loadline.dev/shim/internal/unwrap"
)

const (
	// mostHead bounds the first line, in bytes.
	mostHead = 64 << 10
	// mostRecord bounds a record, in bytes: without it, a quote that is not closed takes the whole file into memory.
	mostRecord = 1 << 20
)

// separators are those between columns. The first one is taken where none splits the first line into known names.
var separators = []rune{',', ';', '\t'}

// Separated names the separators, for errors.
const Separated = "separated by commas, semicolons or tabs"

var errLongRecord = fmt.Errorf("a record is longer than %d bytes: is a quote not closed?", mostRecord)

// Reader reads the records of a table, of which the first line names the columns.
type Reader struct {
	// Head are the names of the columns, without spaces around them.
	Head  []string
	csv   *csv.Reader
	bound *bound
}

// New reads the first line. The separator is the one that splits it into most of the names that are known.
func New(in io.Reader, known []string) (*Reader, error) {
	unwrapped, err := unwrap.Text(in)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReaderSize(unwrapped, mostHead)
	if mark, _ := buffered.Peek(3); string(mark) == "\ufeff" {
		_, _ = buffered.Discard(3)
	}
	line, err := firstLine(buffered)
	if err != nil {
		return nil, err
	}
	r := &Reader{bound: &bound{Reader: buffered, left: mostRecord}}
	r.csv = csv.NewReader(r.bound)
	r.csv.ReuseRecord = true
	r.csv.Comma = separatorOf(line, known)
	head, err := r.Read() // the number of its fields holds for all records
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty")
	}
	if err != nil {
		return nil, err
	}
	for _, name := range head {
		r.Head = append(r.Head, strings.TrimSpace(name))
	}
	return r, nil
}

// firstLine returns the first line that is not empty, and reads nothing.
func firstLine(in *bufio.Reader) (string, error) {
	start, err := in.Peek(mostHead)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	line, _, ended := bytes.Cut(bytes.TrimLeft(start, "\r\n"), []byte("\n"))
	if !ended && len(start) == mostHead {
		return "", fmt.Errorf("its first line is longer than %d bytes", mostHead)
	}
	return string(line), nil
}

// separatorOf returns the separator that splits a line into most of the names that are known.
func separatorOf(line string, known []string) rune {
	best, most := separators[0], 0
	for _, separator := range separators {
		r := csv.NewReader(strings.NewReader(line))
		r.Comma = separator
		fields, _ := r.Read() // an error returns when all is read
		found := 0
		for _, field := range fields {
			if slices.Contains(known, strings.TrimSpace(field)) {
				found++
			}
		}
		if found > most {
			best, most = separator, found
		}
	}
	return best
}

// Read returns the next record, which is valid until the next call; io.EOF: there is none.
func (r *Reader) Read() ([]string, error) {
	r.bound.left = mostRecord
	return r.csv.Read()
}

// Line returns the line at which the last record begins, from 1.
func (r *Reader) Line() int {
	line, _ := r.csv.FieldPos(0)
	return line
}

// bound ends with an error after so many bytes.
type bound struct {
	io.Reader
	left int
}

func (b *bound) Read(into []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongRecord
	}
	n, err := b.Reader.Read(into[:min(len(into), b.left)])
	b.left -= n
	return n, err
}
