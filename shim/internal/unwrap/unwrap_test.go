package unwrap

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"
)

func zipped(t *testing.T, content []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A file of the largest size is read, whatever it is wrapped in, and one byte more is not.
func TestFileIsBounded(t *testing.T) {
	const most = 1 << 20
	for size, want := range map[int]string{most: "", most + 1: ": is larger than the limit of 1 MiB"} {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, zipped(t, bytes.Repeat([]byte("a"), size)), 0o600); err != nil {
			t.Fatal(err)
		}
		data, err := File(name, most)
		if want == "" && (err != nil || len(data) != size) || want != "" && (err == nil || err.Error() != name+want) {
			t.Errorf("%d bytes: got %d, %v", size, len(data), err)
		}
	}
	if _, err := File(filepath.Join(t.TempDir(), "none"), most); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestText(t *testing.T) {
	const want = "time,name\n1,wéb\n"
	encoded := func(order unicode.Endianness, mark unicode.BOMPolicy) []byte {
		out, err := unicode.UTF16(order, mark).NewEncoder().Bytes([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, content := range map[string][]byte{
		"Plain":         []byte(want),
		"Gzip":          zipped(t, []byte(want)),
		"GzipTwice":     zipped(t, zipped(t, []byte(want))),
		"LittleWith":    encoded(unicode.LittleEndian, unicode.UseBOM),
		"BigWith":       encoded(unicode.BigEndian, unicode.UseBOM),
		"LittleWithout": encoded(unicode.LittleEndian, unicode.IgnoreBOM),
		"BigWithout":    encoded(unicode.BigEndian, unicode.IgnoreBOM),
		"GzipOfUTF16":   zipped(t, encoded(unicode.LittleEndian, unicode.UseBOM)),
	} {
		r, err := Text(bytes.NewReader(content))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	deep := []byte(want)
	for range mostWrapped + 1 {
		deep = zipped(t, deep)
	}
	for content, want := range map[string]string{string(deep): "more than 4 times", "\x1f\x8bx": "starts as gzip does"} {
		if _, err := Text(strings.NewReader(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
