package plan

import (
	"strings"
	"testing"
)

// Ids are told as they are where that is possible, and else by a hash: different ones stay different.
func TestToldID(t *testing.T) {
	long := strings.Repeat("x", mostIDBytes)
	for _, id := range []string{"", "aws:///us-east-1a/i-0123456789abcdef0", long} {
		if got := ToldID(id); got != id {
			t.Errorf("%q is told as %q", id, got)
		}
	}
	seen := map[string]string{}
	for _, id := range []string{long + "y", long + "z", "a b", "a\tb", "m\u00e4chine"} {
		got := ToldID(id)
		if !strings.HasPrefix(got, "sha256:") || len(got) != len("sha256:")+32 || seen[got] != "" {
			t.Errorf("%q is told as %q, %q too", id, got, seen[got])
		}
		seen[got] = id
	}
}
