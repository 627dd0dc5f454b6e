package dump

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	unpack  = "unpack it and give the folder or the files in it"
	another = "expected a dump of a cluster: what `kubectl get nodes,pods -A -o json` prints"
)

// formats are those that dumps come packed in or are taken for, by the bytes that a file of the format has at a place.
var formats = []struct {
	at                int
	magic, name, help string
}{
	{0, "PK\x03\x04", "a ZIP archive", unpack},
	{0, "PK\x05\x06", "an empty ZIP archive", unpack},
	{257, "ustar", "a tar archive", unpack},
	{0, "7z\xbc\xaf\x27\x1c", "a 7-Zip archive", unpack},
	{0, "Rar!\x1a\x07", "a RAR archive", unpack},
	{0, "\x28\xb5\x2f\xfd", "compressed by zstd", "decompress it first: zstd -d"},
	{0, "\xfd7zXZ\x00", "compressed by xz", "decompress it first: xz -d"},
	{4, "1AY&SY", "compressed by bzip2", "decompress it first: bzip2 -d"},
	{0, "\x04\x22\x4d\x18", "compressed by lz4", "decompress it first: lz4 -d"},
	{0, "PAR1", "a Parquet file", another},
	{0, "SQLite format 3\x00", "an SQLite database", another},
	{0, "%PDF-", "a PDF", another},
	{0, "k8s\x00", "protobuf of the API server", another},
	{0, "\x1b[", "coloured for a terminal", another + ", without colours"},
}

// checkFormat refuses what is packed in a way that is not read, and what is no text.
func checkFormat(in *bufio.Reader) error {
	start, _ := in.Peek(512)
	for _, format := range formats {
		if len(start) > format.at && bytes.HasPrefix(start[format.at:], []byte(format.magic)) {
			return fmt.Errorf("it is %s: %s", format.name, format.help)
		}
	}
	return nil
}

// hints say what else a text is that is no dump, by its start.
var hints = []struct {
	start *regexp.Regexp
	help  string
}{
	{regexp.MustCompile(`^(NAMESPACE|NAME)\s+[A-Z]`), "it is a table: add -o json to kubectl get"},
	{regexp.MustCompile(`^Name: {2,}`), "it is what kubectl describe prints: use kubectl get with -o json"},
	{regexp.MustCompile(`^<[a-zA-Z!?/]`), "it is a page of HTML or XML, as a proxy or a page to sign in sends"},
	{regexp.MustCompile(`^\[`), "it is an array, as `jq .items` prints: print the whole List, or `jq '.items[]'`"},
	{regexp.MustCompile(`^- `), "it is a list of items: print the whole List, as kubectl does"},
	{regexp.MustCompile(`^"`), "it is a text in quotes: print it with `jq -r`"},
	{regexp.MustCompile(`^[A-Za-z0-9+/]{60,}[A-Za-z0-9+/=\s]*$`), "it is encoded: decode it first: base64 -d"},
	{regexp.MustCompile(`^[a-z.]+/[^\s/]+\s+([a-z.]+/|$)`), "it is a list of names: add -o json to kubectl get"},
	{regexp.MustCompile(`^map\[`), "it is printed by a template of Go: use kubectl get with -o json"},
	{regexp.MustCompile(`^-----BEGIN `), "it is encrypted or encoded: decode it first"},
}

// objectAhead finds a line that an object starts with.
var objectAhead = regexp.MustCompile(`\n(\{|apiVersion:|kind:)`)

// isText says whether the start of a file, which may end within a letter, is UTF-8 without control characters.
func isText(start []byte) bool {
	for i := 0; i < len(start); {
		r, size := utf8.DecodeRune(start[i:])
		if r == utf8.RuneError && size == 1 {
			return !utf8.FullRune(start[i:])
		}
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' {
			return false
		}
		i += size
	}
	return true
}

// hint says what can be done about a text that is no dump, as "; ...", or nothing.
func hint(start []byte) string {
	if !isText(start) {
		return "; it is no text: give what kubectl printed"
	}
	start = bytes.TrimLeft(start, " \t\r\n")
	for _, h := range hints {
		if h.start.Match(start) {
			return "; " + h.help
		}
	}
	if first, rest, more := strings.Cut(string(start), "\n"); more && objectAhead.MatchString("\n"+rest) &&
		!objectAhead.MatchString("\n"+first) && !strings.HasPrefix(first, "#") {
		return fmt.Sprintf("; its first line, %s, is neither: was something else written to the file?",
			abbreviate([]byte(strings.TrimSpace(first))))
	}
	return ""
}
