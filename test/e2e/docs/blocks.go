// Package docs runs the commands that the documents show, and compares what they print with what is shown.
//
// A block of commands is fenced. In a `console` block, lines that begin with "$ " are commands, and what follows is
// what they print; a line "..." means any number of lines. In a `sh` block every line is a command. A line that
// ends with \ or inside quotes is one command with the next line. The output of these commands is not shown. Both run
// in the top folder of the tree. A comment on the line before the block says where:
//
//	(none)                      console: as it is. sh: not allowed, it has to say
//	<!-- run: cluster -->       on a control plane that holds docs/shop.yaml, with kubectl, helm and loadline
//	<!-- run: by TestX -->      a test of this name runs it
//	<!-- run: never: WHY -->    not at all, for this reason
//
// The same comment in the first five lines of a document, and not right before a block, is about all of its blocks that
// say nothing else. Commands in blocks that are only indented are found too: they have to be in a document that says
// so.
package docs

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A Block is a block of commands of a document.
type Block struct {
	File string
	Line int // of its first line
	// Run is what the comment says after "run: ", or else "".
	Run      string
	Commands []Command
}

// A Command is one command with what the document says that it prints.
type Command struct {
	Text   string
	Output []string
	// Shown: the document says what it prints.
	Shown bool
	// From and To are the lines, counted from 0, that hold the output.
	From, To int
}

var (
	mark     = regexp.MustCompile(`^<!-- run: (.*\S) -->$`)
	programs = regexp.MustCompile(`^    (\$ )?(build/bin/)?` +
		`(loadline|loadlined|loadline-scheduler|kubectl|helm|make|go|git)\b`)
)

// Read returns the blocks of a document.
func Read(file string) ([]Block, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	ofAll := ""
	for i, line := range lines[:min(5, len(lines))] {
		found := mark.FindStringSubmatch(line)
		if found != nil && (i+1 == len(lines) || !strings.HasPrefix(lines[i+1], "```")) {
			ofAll = found[1]
		}
	}
	var blocks []Block
	for i := 0; i < len(lines); i++ {
		language, fenced := strings.CutPrefix(lines[i], "```")
		if !fenced {
			if programs.MatchString(lines[i]) {
				blocks = append(blocks, Block{File: file, Line: i + 1, Run: cmp.Or(ofAll, "(indented)"),
					Commands: []Command{{Text: strings.TrimSpace(lines[i])}}})
			}
			continue
		}
		end := i + 1
		for end < len(lines) && lines[end] != "```" {
			end++
		}
		if end == len(lines) {
			return nil, fmt.Errorf("%s:%d: the block does not end", file, i+1)
		}
		block := Block{File: file, Line: i + 1, Run: ofAll}
		if i > 0 {
			if found := mark.FindStringSubmatch(lines[i-1]); found != nil {
				block.Run = found[1]
			}
		}
		switch language {
		case "console":
			block.Commands, err = ofConsole(lines, i+1, end)
		case "sh":
			block.Commands = ofScript(lines[i+1 : end])
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		if len(block.Commands) > 0 {
			blocks = append(blocks, block)
		}
		i = end
	}
	return blocks, nil
}

// Section returns the blocks of one section of a document. It begins with a heading, such as "## Karpenter", and ends
// with the next heading of the same level.
func Section(file, heading string) ([]Block, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(content), "\n")
	from := slices.Index(lines, heading)
	if from < 0 {
		return nil, fmt.Errorf("%s has no line %q", file, heading)
	}
	level, _, _ := strings.Cut(heading, " ")
	to := from + 1
	for to < len(lines) && !strings.HasPrefix(lines[to], level+" ") {
		to++
	}
	all, err := Read(file)
	return slices.DeleteFunc(all, func(b Block) bool { return b.Line < from || b.Line > to }), err
}

func ofConsole(lines []string, from, to int) (commands []Command, err error) {
	for i := from; i < to; i++ {
		if text, ok := strings.CutPrefix(lines[i], "$ "); ok {
			commands = append(commands, Command{Text: text, Shown: true, From: i + 1, To: i + 1})
			continue
		}
		if len(commands) == 0 {
			return nil, fmt.Errorf("a console block begins with $ and a command, not with %q", lines[i])
		}
		last := &commands[len(commands)-1]
		last.Output, last.To = append(last.Output, lines[i]), i+1
	}
	return commands, nil
}

// ofScript returns the commands of a script: its lines, with the next one if they end with \ or inside quotes.
func ofScript(lines []string) (commands []Command) {
	whole := ""
	for _, line := range lines {
		if whole += line; strings.HasSuffix(line, "\\") || quoted(whole) {
			whole += "\n"
			continue
		}
		if text := strings.TrimSpace(whole); text != "" && !strings.HasPrefix(text, "#") {
			commands = append(commands, Command{Text: text})
		}
		whole = ""
	}
	return commands
}

// quoted returns whether a script ends inside quotes. Quotes in comments do not count.
func quoted(script string) bool {
	open, before := rune(0), ' '
	for _, r := range script {
		switch {
		case open == '#':
			if r == '\n' {
				open = 0
			}
		case open != 0:
			if r == open && (open == '\'' || before != '\\') {
				open = 0
			}
		case r == '\'' || r == '"', r == '#' && unicode.IsSpace(before):
			open = r
		}
		before = r
	}
	return open == '\'' || open == '"'
}

// Match returns the first line of the shown output that was not printed, or "" and true. Spaces at the ends of lines do
// not count.
func Match(shown, printed []string) (missing string, ok bool) {
	// Lines that stand for any number of lines make this the question of a pattern with stars.
	at, star, next := 0, -1, 0
	for i := 0; i < len(printed); {
		switch {
		case at < len(shown) && shown[at] == "...":
			star, next = at, i
			at++
		case at < len(shown) && strings.TrimRight(shown[at], " ") == strings.TrimRight(printed[i], " "):
			at++
			i++
		case star >= 0:
			next++
			at, i = star+1, next
		case at < len(shown):
			return shown[at], false
		default:
			return fmt.Sprintf("(the end, instead of %q)", printed[i]), false
		}
	}
	for at < len(shown) && shown[at] == "..." {
		at++
	}
	if at < len(shown) {
		return shown[at], false
	}
	return "", true
}
