package texttable

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Escape returns s with everything that could steer a terminal or hide text written out: control characters,
// format characters (among them those that reverse the direction of text) and bytes that are not UTF-8.
// Names come from whoever may create an object, so nothing of a name is printed unescaped.
func Escape(s string) string {
	clean := true
	for i, r := range s {
		if !visible(r) || (r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD")) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case visible(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

// EscapeJSON returns a document of JSON with the same characters written out as JSON writes them, so that whoever reads
// it gets the names as they are. Line breaks and spaces between its parts stay.
func EscapeJSON(document []byte) []byte {
	if !bytes.ContainsFunc(document, hidden) {
		return document
	}
	var b bytes.Buffer
	for _, r := range string(document) {
		switch first, second := utf16.EncodeRune(r); {
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x\u%04x`, first, second)
		}
	}
	return b.Bytes()
}

func hidden(r rune) bool { return r != '\n' && !visible(r) }

func visible(r rune) bool {
	return r == ' ' || unicode.IsGraphic(r) && !unicode.Is(unicode.Zs, r) && !unicode.Is(unicode.Cf, r)
}

// Width returns the number of columns that s takes on a terminal.
func Width(s string) int {
	columns := 0
	for _, r := range s {
		columns += runeWidth(r)
	}
	return columns
}

func runeWidth(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
