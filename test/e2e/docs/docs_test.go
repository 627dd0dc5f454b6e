package docs

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"loadline.dev/test/e2e/harness"
)

var update = flag.Bool("update", false, "write what commands print into the documents")

func root(t testing.TB) string {
	t.Helper()
	dir, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// documents are all that git knows or would, but for those that are about the inside of a folder.
func documents(t testing.TB) (files []string) {
	t.Helper()
	top := root(t)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "manifests/*.md", "charts/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 10 {
		t.Fatalf("only %d documents: %q", len(files), files)
	}
	return files
}

func read(t testing.TB, file string) []Block {
	t.Helper()
	blocks, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// environment lets a command find what `make build` has built, and nothing of whoever runs the test.
func environment(top string, more ...string) []string {
	path := filepath.Join(top, "build", "bin") + ":" + filepath.Join(top, "build", "e2e", "bin") + ":" + os.Getenv("PATH")
	env := []string{"PATH=" + path, "HOME=" + os.Getenv("HOME"), "LC_ALL=C", "KUBECONFIG=/nonexistent"}
	if library := os.Getenv("LOADLINE_LIBRARY"); library != "" {
		env = append(env, "LOADLINE_LIBRARY="+library)
	}
	return append(env, more...)
}

// workFolder returns a folder in which all of the tree has its path, and files that commands write do not stay.
func workFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := os.ReadDir(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Symlink(filepath.Join(root(t), e.Name()), filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runBlock runs the commands of a block in a folder and reports what they print otherwise than is shown.
func runBlock(t *testing.T, ctx context.Context, b Block, dir string, env []string) {
	t.Helper()
	for i := range b.Commands {
		command := &b.Commands[i]
		cmd := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", command.Text)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		printed := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
		if err != nil {
			t.Errorf("%s:%d: %s: %v\n%s", b.File, b.Line, command.Text, err, out)
			continue
		}
		if !command.Shown {
			continue
		}
		if len(out) == 0 {
			printed = nil
		}
		if *update && !slices.Contains(command.Output, "...") {
			command.Output = printed
			continue
		}
		if missing, ok := Match(command.Output, printed); !ok {
			t.Errorf("%s:%d: %s does not print %q, but\n%s", b.File, b.Line, command.Text, missing, out)
		}
	}
}

// rewrite puts the outputs of commands into their document.
func rewrite(t *testing.T, blocks []Block) {
	t.Helper()
	content, err := os.ReadFile(blocks[0].File)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(content), "\n")
	for _, b := range slices.Backward(blocks) {
		for _, c := range slices.Backward(b.Commands) {
			if c.Shown {
				lines = slices.Replace(lines, c.From, c.To, c.Output...)
			}
		}
	}
	if err := os.WriteFile(blocks[0].File, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every block of commands says where it runs, and the reason if it does not, or the test that runs it, which is there.
func TestEveryCommandIsRun(t *testing.T) {
	tests := testNames(t)
	kinds := map[string]int{}
	for _, file := range documents(t) {
		for _, b := range read(t, file) {
			kind, rest, _ := strings.Cut(b.Run, " ")
			kinds[kind]++
			switch {
			case b.Run == "" && b.Commands[0].Shown, b.Run == "cluster":
			case kind == "never:" && len(rest) > 15:
			case kind == "by" && tests[rest]:
			default:
				t.Errorf("%s:%d: %q is not run: %q is none of (console alone), cluster, by TEST, never: REASON",
					b.File, b.Line, b.Commands[0].Text, b.Run)
			}
		}
	}
	t.Logf("blocks: %v", kinds)
	if kinds[""] < 5 || kinds["cluster"] < 2 {
		t.Errorf("few blocks are run: %v", kinds)
	}
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, dir := range []string{"test/e2e", "test/e2e/docs", "test/chart", "tools/release", "shim/cli"} {
		files, err := filepath.Glob(filepath.Join(root(t), dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range testFunction.FindAllStringSubmatch(string(content), -1) {
				names[found[1]] = true
			}
		}
	}
	return names
}

// The documents show, without a cluster, what the commands print.
func TestConsole(t *testing.T) {
	for _, file := range documents(t) {
		blocks := slices.DeleteFunc(read(t, file), func(b Block) bool { return b.Run != "" })
		if len(blocks) == 0 {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
			defer cancel()
			dir := workFolder(t)
			for _, b := range blocks {
				runBlock(t, ctx, b, dir, environment(root(t)))
			}
			if *update {
				rewrite(t, blocks)
			}
		})
	}
}

// Matching allows for what is left out, and for nothing else.
func TestMatch(t *testing.T) {
	for _, c := range []struct {
		shown, printed string
		want           bool
	}{
		{"a|b", "a|b", true}, {"a", "a|b", false}, {"a|b", "a", false}, {"a|...", "a|b|c", true}, {"a|...", "a", true},
		{"...|c", "a|b|c", true}, {"...|c", "c|b", false}, {"a|...|d", "a|b|c|d", true}, {"a|...|d|...", "a|d|d|e", true},
		{"a|...|d", "b|d", false}, {"...|b|...|b", "a|b", false}, {"a ", "a", true}, {"...", "a", true},
	} {
		if missing, got := Match(strings.Split(c.shown, "|"), strings.Split(c.printed, "|")); got != c.want {
			t.Errorf("%q shown, %q printed: %v (%s), want %v", c.shown, c.printed, got, missing, c.want)
		}
	}
}

func TestCommandsOfScripts(t *testing.T) {
	for _, c := range []struct {
		name, script string
		want         []string
	}{
		{"lines", "a b\n\nc", []string{"a b", "c"}},
		{"comments", "# it's none\na # it's one\nb", []string{"a # it's one", "b"}},
		{"backslash", "a \\\n  b\nc", []string{"a \\\n  b", "c"}},
		{"single quotes", "a '{\n \"b\": 1}'\nc", []string{"a '{\n \"b\": 1}'", "c"}},
		{"double quotes", "a \"b\\\"\n#'\" c\nd", []string{"a \"b\\\"\n#'\" c", "d"}},
		{"both on one line", `a '"' "'" x#'y'`, []string{`a '"' "'" x#'y'`}},
	} {
		var got []string
		for _, command := range ofScript(strings.Split(c.script, "\n")) {
			got = append(got, command.Text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A section ends with the next heading of its level, and not with one below it.
func TestSection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	const page = "## A\n```sh\na\n```\n### B\n```sh\nb\n```\n## C\n```sh\nc\n```\n"
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	for heading, want := range map[string]int{"## A": 2, "## C": 1} {
		if blocks, err := Section(file, heading); err != nil || len(blocks) != want {
			t.Errorf("%s: %d blocks, error %v, want %d", heading, len(blocks), err, want)
		}
	}
	if _, err := Section(file, "## D"); err == nil {
		t.Error("a section was found that there is not")
	}
}

var link = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)

// Links lead to files that are there, and to headings that are there.
func TestLinks(t *testing.T) {
	for _, file := range documents(t) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(content), -1) {
			target, anchor := found[1], strings.TrimPrefix(found[2], "#")
			if strings.Contains(target, ":") {
				continue // elsewhere
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
			}
			there, err := os.ReadFile(path)
			if info, e := os.Stat(path); e == nil && info.IsDir() {
				err = nil
			}
			if err != nil {
				t.Errorf("%s: %s leads nowhere", file, found[0])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(string(there)), anchor) {
				t.Errorf("%s: %s: there is no such heading", file, found[0])
			}
		}
	}
}

var dropped = regexp.MustCompile("[^a-z0-9 _-]")

// anchors returns the names of a document's headings, as links know them.
func anchors(content string) (names []string) {
	for line := range strings.Lines(content) {
		if title := strings.TrimLeft(line, "#"); len(title) < len(line) && strings.HasPrefix(title, " ") {
			name := dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			names = append(names, strings.ReplaceAll(name, " ", "-"))
		}
	}
	return names
}

// The README can be read in one go.
func TestReadmeIsShort(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(content), "\n"); lines > 150 {
		t.Errorf("the README has %d lines, want at most 150", lines)
	}
}
