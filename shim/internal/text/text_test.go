package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBound(t *testing.T) {
	for text, want := range map[string]string{"": "", "abcdef": "abcdef", "abcdefg": "abc...", "äöü": "äöü",
		"äöüx": "ä...", "a\xffb": "a\uFFFDb", "\xff\xff\xff": "\uFFFD...",
		"a\x1bb": "a\uFFFDb", strings.Repeat("\xff", 100): "\uFFFD..."} {
		if got := Bound(text, 6); got != want || len(got) > 6 || !utf8.ValidString(got) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if Valid("a\xff") != "a\uFFFD" || Name("web-0") != "web-0" || Name("a\xffä\n") != "a???" {
		t.Errorf("%q, %q", Valid("a\xff"), Name("a\xffä\n"))
	}
}

// Each text is bounded wherever it is, and lists of them in number; all else stays.
func TestBoundAll(t *testing.T) {
	type inner struct {
		Text  string
		Count int
		Some  []string
	}
	type outer struct {
		Inner  inner
		Many   []inner
		Other  *inner
		Notes  map[string]string
		Rows   [][]string
		hidden string
	}
	long := strings.Repeat("x", 1<<20)
	v := outer{Inner: inner{long, 7, []string{"a", long, "c", "d"}}, Many: make([]inner, 9),
		Other: &inner{Text: "a\nb"}, Notes: map[string]string{"k": long}, Rows: [][]string{{long}}, hidden: long}
	v.Many[8].Text = "\xff"
	BoundAll(&v, 8, 3)
	if v.Inner.Text != "xxxxx..." || v.Inner.Count != 7 || strings.Join(v.Inner.Some, " ") != "a xxxxx... c" ||
		len(v.Many) != 9 || v.Many[8].Text != "\uFFFD" ||
		v.Other.Text != "a; b" || v.Notes["k"] != "xxxxx..." || v.Rows[0][0] != "xxxxx..." || len(v.hidden) != 1<<20 {
		t.Errorf("%.200v", v)
	}
}
