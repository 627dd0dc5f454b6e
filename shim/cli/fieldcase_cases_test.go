package cli

import (
	"strings"
	"testing"
)

const printed = `{"remove": [{"node": "b", "pods": 2}, {"node": "a", "pods": 0}], "bound": null, "now": 1.5,
  "moves": []}`

func TestAssertions(t *testing.T) {
	for _, c := range []struct {
		assertion string
		holds     bool
	}{
		{"/^2 nodes go$/", true},
		{"/^2 nodes$/", false},
		{"/warning/", true}, // of what is written to standard error
		{"no /3 nodes/", true},
		{"no /2 nodes/", false},
		{".remove[].node = a, b", true},
		{".remove[].node = a", false},
		{".remove[].node has a", true},
		{".remove[].node has a, c", false},
		{".remove[].node lacks c", true},
		{".remove[].node lacks c, a", false},
		{".remove[node=b].pods = 2", true},
		{".remove[node=c].pods = 2", false},
		{".remove[] count 2", true},
		{".remove[] count 1", false},
		{".moves[] none", true},
		{".bound none", true},
		{".now none", false},
		{".now < 1.6", true},
		{".now < 1.5", false},
		{".now >= 1.5", true},
		{".remove[].pods <= 1", false},
		{".absent < 5", false},
		{".remove[].node matches ^[bc]$", true},
		{".remove[].node matches ^c$", false},
		{"fails (a fault): .now < 1", true},
		{"fails (a fault): .now < 2", false},
	} {
		t.Run(c.assertion, func(t *testing.T) {
			parsed, err := parseField("# a comment\nloadline drain -f input.yaml\n", "== drain\n"+c.assertion+"\n")
			if err != nil {
				t.Fatal(err)
			}
			problems := parsed.Check(func(args []string) fieldOutput {
				if args[len(args)-1] == "json" {
					return fieldOutput{Out: printed}
				}
				return fieldOutput{Out: "2 nodes go\n", Errs: "a warning\n"}
			})
			if (len(problems) == 0) != c.holds {
				t.Errorf("holds: %v, want %v: %q", len(problems) == 0, c.holds, problems)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	run := func(code int) func([]string) fieldOutput {
		return func([]string) fieldOutput { return fieldOutput{Code: code} }
	}
	for _, c := range []struct {
		expected string
		code     int
		holds    bool
	}{{"== fit\n", 0, true}, {"== fit\n", 1, false}, {"== fit\nexit 1\n", 1, true}, {"== fit\nexit 1\n", 0, false}} {
		parsed, err := parseField("loadline fit a", c.expected)
		if err != nil {
			t.Fatal(err)
		}
		if problems := parsed.Check(run(c.code)); (len(problems) == 0) != c.holds {
			t.Errorf("%q, code %d: %q", c.expected, c.code, problems)
		}
	}
}

func TestCasesThatAreWrong(t *testing.T) {
	for _, c := range []struct{ script, expected, want string }{
		{"loadline fit a", "", "1 commands and 0 sections"},
		{"loadline fit a", "== drain\n", "is another one"},
		{"loadline fit a", "== fit\n== fit\n", "is another one"},
		{"loadline fit a", "/a/\n", "before the first section"},
		{"loadline fit a", "== fit\nhello\n", "neither"},
		{"loadline fit a", "== fit\n/(/\n", "missing closing"},
		{"loadline fit a", "== fit\n.a[ = 1\n", "not understood"},
		{"loadline fit a", "== fit\n.a ~ 1\n", "no operator"},
		{"loadline fit a", "== fit\n.a none 1\n", "one value"},
		{"loadline fit a", "== fit\n.a =\n", "one value"},
		{"loadline fit a", "== fit\nfails (no): exit 1\n", "cannot be marked"},
	} {
		if _, err := parseField(c.script, c.expected); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.expected, err, c.want)
		}
	}
}
