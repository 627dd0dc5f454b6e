// Package text makes texts that users wrote safe for messages, objects and logs: valid UTF-8, which protobuf and the
// API server insist on, printable and bounded.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const replacement = "\uFFFD"

// Valid returns a text as UTF-8.
func Valid(text string) string { return strings.ToValidUTF8(text, replacement) }

// Name returns the name of an object as printable ASCII, as nearly all are anyway.
func Name(text string) string {
	if plain(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

// Bound returns a text as UTF-8 of at most so many bytes, of which 3 are always granted. Each character that does not
// print becomes U+FFFD, which takes 3 bytes. A longer text is cut: its beginning and "..." remain.
func Bound(text string, most int) string {
	if len(text) <= most && plain(text) {
		return text // as nearly all are
	}
	cut := len(text) > most
	if cut {
		text = text[:most] // before anything reads all of it
	}
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
	if len(text) <= most && !cut {
		return text
	}
	const dots = "..."
	end := min(len(text), max(0, most-len(dots)))
	for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}

func plain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
