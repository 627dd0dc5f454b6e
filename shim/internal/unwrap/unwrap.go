// Package unwrap undoes what a file of text was wrapped in by the programs that people copy files with.
package unwrap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// mostWrapped bounds how often a file may be gzipped.
const mostWrapped = 4

// MostBytes bounds a file that people write by hand. Chosen: far more than any, and little of the memory.
const MostBytes = 16 << 20

// File reads a file of text of at most so many bytes, and undoes what Text undoes. Errors name the file.
func File(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unwrapped, err := Text(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	data, err := io.ReadAll(io.LimitReader(unwrapped, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s: is larger than the limit of %d MiB", name, most>>20)
	}
	return data, nil
}

// Text undoes gzip, also twice, as where a gzipped download was gzipped again, and the UTF-16 of PowerShell. A mark of
// UTF-8 stays. Bounds count the result.
func Text(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	for wrapped := 0; ; wrapped++ {
		start, _ := in.Peek(2)
		if !bytes.Equal(start, []byte{0x1f, 0x8b}) {
			break
		}
		if wrapped == mostWrapped {
			return nil, fmt.Errorf("it is gzipped more than %d times", mostWrapped)
		}
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("it starts as gzip does: %w", err)
		}
		in = bufio.NewReader(unzipped)
	}
	start, err := in.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if order, mark, is := utf16Of(start); is {
		return transform.NewReader(in, unicode.UTF16(order, mark).NewDecoder()), nil
	}
	return in, nil
}

// utf16Of tells UTF-16 by its byte order mark or, without one, by the empty half of its first letter, which is ASCII in
// each file that is read.
func utf16Of(start []byte) (unicode.Endianness, unicode.BOMPolicy, bool) {
	letter := func(b byte) bool { return b >= ' ' && b <= '~' || b == '\n' || b == '\r' }
	switch {
	case len(start) < 2:
		return unicode.BigEndian, unicode.IgnoreBOM, false
	case bytes.Equal(start, []byte{0xff, 0xfe}) || bytes.Equal(start, []byte{0xfe, 0xff}):
		return unicode.LittleEndian, unicode.ExpectBOM, true
	case letter(start[0]) && start[1] == 0:
		return unicode.LittleEndian, unicode.IgnoreBOM, true
	case start[0] == 0 && letter(start[1]):
		return unicode.BigEndian, unicode.IgnoreBOM, true
	}
	return unicode.BigEndian, unicode.IgnoreBOM, false
}
