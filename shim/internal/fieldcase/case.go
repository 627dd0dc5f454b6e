// Package fieldcase reads cases of test/field and test/pairs, and holds answers against them.
package fieldcase

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Case is a situation with commands and what has to be true of what they print.
type Case struct {
	commands []command
}

// command is one line of `cmd`, with the assertions of its section of expected.txt.
type command struct {
	args       []string
	exit       int
	assertions []assertion
}

// assertion is one line of expected.txt.
type assertion struct {
	text string
	// fails says why it is known not to be true yet; empty: it has to be.
	fails string
	check func(o Output, asJSON any) string // empty: it is true
	json  bool
}

// Output is what a command printed.
type Output struct {
	Out, Errs string
	Code      int
}

// Read reads a case from its folder.
func Read(folder string) (*Case, error) {
	script, err := os.ReadFile(filepath.Join(folder, "cmd"))
	if err != nil {
		return nil, err
	}
	expected, err := os.ReadFile(filepath.Join(folder, "expected.txt"))
	if err != nil {
		return nil, err
	}
	return parse(string(script), string(expected))
}

// parse reads the commands, one in each line, and a section of assertions for each.
func parse(script, expected string) (*Case, error) {
	c := &Case{}
	for line := range lines(script) {
		c.commands = append(c.commands, command{args: strings.Fields(line)})
	}
	section := -1
	for line := range lines(expected) {
		if name, ok := strings.CutPrefix(line, "== "); ok {
			if section++; section >= len(c.commands) || c.commands[section].args[1] != name {
				return nil, fmt.Errorf("section %q: command %d of cmd is another one", name, section+1)
			}
			continue
		}
		if section < 0 {
			return nil, fmt.Errorf("%q comes before the first section", line)
		}
		if err := c.commands[section].add(line); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
	}
	if section+1 != len(c.commands) {
		return nil, fmt.Errorf("%d commands and %d sections", len(c.commands), section+1)
	}
	return c, nil
}

// lines yields the lines of a text that are neither empty nor comments.
func lines(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") && !yield(line) {
				return
			}
		}
	}
}

var failing = regexp.MustCompile(`^fails \((.+?)\): (.+)$`)

func (c *command) add(line string) error {
	a := assertion{text: line}
	if m := failing.FindStringSubmatch(line); m != nil {
		a.fails, line = m[1], m[2]
	}
	var err error
	switch {
	case strings.HasPrefix(line, "exit "):
		if a.fails != "" {
			return fmt.Errorf("an exit code cannot be marked")
		}
		_, err = fmt.Sscanf(line, "exit %d", &c.exit)
		return err
	case strings.HasPrefix(line, "/"), strings.HasPrefix(line, "no /"):
		a.check, err = ofText(line)
	case strings.HasPrefix(line, "."):
		a.json = true
		a.check, err = ofJSON(line)
	default:
		err = fmt.Errorf("neither /regular expression/, no /regular expression/, .path nor exit")
	}
	c.assertions = append(c.assertions, a)
	return err
}

// ofText reads `/regular expression/` and `no /regular expression/`: some line of what was printed matches, or none.
func ofText(line string) (func(Output, any) string, error) {
	pattern, none := strings.CutPrefix(line, "no ")
	if len(pattern) < 3 || !strings.HasSuffix(pattern, "/") {
		return nil, fmt.Errorf("a regular expression ends with /")
	}
	expression, err := regexp.Compile(pattern[1 : len(pattern)-1])
	if err != nil {
		return nil, err
	}
	return func(o Output, _ any) string {
		for text := range lines(strings.ReplaceAll(o.Out+"\n"+o.Errs, "#", "\u200b#")) {
			text = strings.ReplaceAll(text, "\u200b", "")
			if expression.MatchString(text) {
				if none {
					return "there is: " + text
				}
				return ""
			}
		}
		if none {
			return ""
		}
		return "no line matches"
	}, nil
}

// Check runs the commands, and returns what is wrong with what they print. A command with assertions about JSON runs
// once more, with `-o json`.
func (c *Case) Check(run func(args []string) Output) (problems []string) {
	for _, command := range c.commands {
		problems = append(problems, command.check(run)...)
	}
	return problems
}

func (c *command) check(run func(args []string) Output) (problems []string) {
	plain := run(slices.Clone(c.args))
	if plain.Code != c.exit {
		return []string{fmt.Sprintf("%s: exit code %d, not %d\n%s%s", strings.Join(c.args, " "), plain.Code, c.exit,
			plain.Out, plain.Errs)}
	}
	var object any
	if slices.ContainsFunc(c.assertions, func(a assertion) bool { return a.json }) {
		o := run(append(slices.Clone(c.args), "-o", "json"))
		if err := json.Unmarshal([]byte(o.Out), &object); err != nil {
			return []string{fmt.Sprintf("%s -o json: %v\n%s%s", strings.Join(c.args, " "), err, o.Out, o.Errs)}
		}
	}
	wrong := 0
	for _, a := range c.assertions {
		problem := a.check(plain, object)
		switch {
		case problem == "" && a.fails != "":
			problems = append(problems, fmt.Sprintf("%s: %s\n  is true now: take the mark away", c.args[1], a.text))
		case problem != "" && a.fails == "":
			problems = append(problems, fmt.Sprintf("%s: %s\n  %s", c.args[1], a.text, problem))
			wrong++
		}
	}
	if wrong > 0 {
		problems[len(problems)-1] += "\n" + plain.Out + plain.Errs
	}
	return problems
}
