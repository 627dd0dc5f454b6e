package sheet

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"
)

// encoded returns a text in UTF-16, as PowerShell writes it.
func encoded(t *testing.T, text string) string {
	out, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func zipped(t *testing.T, text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write([]byte(text))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestFormsOfATable(t *testing.T) {
	const plain = "time,name\n1,web\n"
	for name, text := range map[string]string{
		"Commas": plain, "Semicolons": strings.ReplaceAll(plain, ",", ";"), "Tabs": strings.ReplaceAll(plain, ",", "\t"),
		"Mark": "\ufeff" + plain, "MarkAndSemicolons": "\ufeff" + strings.ReplaceAll(plain, ",", ";"),
		"UTF16": encoded(t, plain), "Gzip": zipped(t, plain), "GzipOfMark": zipped(t, "\ufeff"+plain),
		"CarriageReturns": strings.ReplaceAll(plain, "\n", "\r\n"), "NoEnd": strings.TrimSuffix(plain, "\n"),
		"Quoted": "\"time\";\"name\"\n\"1\";\"web\"\n", "SpacesInTheHead": "time , name\n1,web\n",
		"AnEmptyLineFirst": "\n" + plain,
	} {
		r, err := New(strings.NewReader(text), []string{"time", "name"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		record, err := r.Read()
		if err != nil || !slices.Equal(r.Head, []string{"time", "name"}) || !slices.Equal(record, []string{"1", "web"}) {
			t.Errorf("%s: head %q, record %q, %v", name, r.Head, record, err)
		}
		if _, err := r.Read(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: after the last record: %v", name, err)
		}
	}
}

func TestWhatIsNoTable(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"Empty": {"", "it is empty"}, "AMarkAlone": {"\ufeff", "it is empty"}, "EmptyLines": {"\n\n", "it is empty"},
		"ALongHead":     {strings.Repeat("x", mostHead+1), "first line is longer"},
		"ShorterRecord": {"time,name\n1\n", "line 2: wrong number of fields"},
		"AnOpenQuote":   {"time,name\n\"" + strings.Repeat("x\n", mostRecord), "longer than 1048576 bytes"},
		"BrokenGzip":    {"\x1f\x8bx", "starts as gzip does"},
	} {
		r, err := New(strings.NewReader(c.text), []string{"time", "name"})
		if err == nil {
			_, err = r.Read()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestManyRecordsPassTheBoundOfOne(t *testing.T) {
	text := "time,name\n" + strings.Repeat("1,"+strings.Repeat("x", 1000)+"\n", 3*mostRecord/1000)
	r, err := New(strings.NewReader(text), []string{"time", "name"})
	records := 0
	for ; err == nil; records++ {
		_, err = r.Read()
	}
	if !errors.Is(err, io.EOF) || records != 3*mostRecord/1000+1 {
		t.Errorf("%d records, %v", records, err)
	}
}
