package dump

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// downloadTimeout bounds how long a dump at a URL may take.
const downloadTimeout = 10 * time.Minute

// dumpNames are the ends of the names that a folder is searched for.
var dumpNames = []string{".json", ".yaml", ".yml", ".json.gz", ".yaml.gz", ".yml.gz"}

// ReadFiles reads the dumps of these names as one: files, folders of such files, http and https URLs, and "-" for
// stdin. Errors name the file. See Read.
func ReadFiles(ctx context.Context, names []string, stdin io.Reader, handler Handler) (Counts, error) {
	names, err := withoutFolders(names)
	if err != nil {
		return Counts{}, err
	}
	d := newReader(handler)
	for _, name := range names {
		if err := d.readNamed(ctx, name, stdin); err != nil {
			return Counts{}, err
		}
	}
	return d.counts, nil
}

// withoutFolders puts the dumps in folders, by name, in the places of these.
func withoutFolders(names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		if name == "-" || isURL(name) {
			out = append(out, name)
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			out = append(out, name)
			continue
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			return nil, err
		}
		before := len(out)
		for _, entry := range entries {
			isDump := func(end string) bool { return strings.HasSuffix(entry.Name(), end) }
			if !entry.IsDir() && slices.ContainsFunc(dumpNames, isDump) {
				out = append(out, filepath.Join(name, entry.Name()))
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("%s holds no dump: no file whose name ends with one of %s", name,
				strings.Join(dumpNames, ", "))
		}
	}
	return out, nil
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

func (d *reader) readNamed(ctx context.Context, name string, stdin io.Reader) error {
	switch {
	case name == "-":
		return d.readAs(stdin, "standard input")
	case isURL(name):
		return d.download(ctx, name)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return d.readAs(f, name)
}

func (d *reader) download(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err // it names the URL
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return d.readAs(response.Body, url)
}

// mostWrapped bounds how often a dump may be gzipped.
const mostWrapped = 4

// asText undoes what a dump was wrapped in: gzip, also twice, as where a gzipped download was gzipped again, and the
// UTF-16 of PowerShell. Bounds count the result.
func asText(r io.Reader) (io.Reader, error) {
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
// each dump.
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
