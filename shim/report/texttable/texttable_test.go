package texttable

import (
	"strings"
	"testing"
)

func TestColumnsLineUp(t *testing.T) {
	table := New(Column{Header: "NODE"}, Column{Header: "RATIO", Align: Right}, Column{Header: "RULE"})
	table.Row("n", "1.75", "")
	table.Row("世界", "12.00", "Request")
	table.Row("e\u0301", "0.10", "x")
	table.Row("a\x1b[31m")
	var got strings.Builder
	if err := table.Write(&got); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"NODE        RATIO   RULE",
		"n            1.75",
		"世界        12.00   Request",
		"e\u0301            0.10   x",
		`a\x1b[31m`,
		"",
	}, "\n")
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}

func TestHeaderLineIsLeftOutWhenEmpty(t *testing.T) {
	table := New(Column{}, Column{})
	table.Row("a", "b")
	var got strings.Builder
	if err := table.Write(&got); err != nil || got.String() != "a   b\n" {
		t.Errorf("got %q, %v", got.String(), err)
	}
}

func TestEscape(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"node-1", "node-1"}, {"", ""}, {"a b", "a b"}, {"世界é", "世界é"},
		{"a\x00b", `a\x00b`}, {"\x1b[31mred", `\x1b[31mred`}, {"a\nb\tc\r", `a\x0ab\x09c\x0d`}, {"\x7f", `\x7f`},
		{"\u0085", `\u0085`}, {"\u202efdp.exe", `\u202efdp.exe`}, {"\u200b", `\u200b`}, {"a\u00a0b", `a\u00a0b`},
		{"\U000e0041", `\U000e0041`}, {"a\xffb", `a\xffb`}, {"\ufffd", "\ufffd"}, {"\u2028", `\u2028`},
	} {
		if got := Escape(c.in); got != c.want {
			t.Errorf("Escape(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{"": 0, "node": 4, "世界": 4, "e\u0301": 1, "ﬀ": 1, "Ａ": 2, "🚢": 2} {
		if got := Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}
