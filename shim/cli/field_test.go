package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each folder of test/field is a situation that users of autoscalers have reported, with the right answer: see its
// README.
func TestField(t *testing.T) { runCases(t, "field") }

// Each folder of test/pairs has two families of rules act on a small cluster, with numbers worked out by hand.
func TestPairs(t *testing.T) { runCases(t, "pairs") }

// runCases runs all cases of a folder below test.
func runCases(t *testing.T, of string) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "test", of, "*/expected.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no cases: %v", err)
	}
	for _, file := range files {
		folder := filepath.Dir(file)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			c, err := readField(folder)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(folder)
			for _, problem := range c.Check(func(args []string) fieldOutput {
				for i, arg := range args {
					args[i] = strings.ReplaceAll(arg, "$ROOT", root)
				}
				out, errs, code := run(t, args[0], "", args[1:]...)
				return fieldOutput{Out: out, Errs: errs, Code: code}
			}) {
				t.Error(problem)
			}
		})
	}
}

// A case that nobody finds is no case.
func TestFieldCasesAreListed(t *testing.T) {
	for _, of := range []string{"field", "pairs"} {
		readme, err := os.ReadFile("../../test/" + of + "/README.md")
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir("../../test/" + of)
		if err != nil {
			t.Fatal(err)
		}
		var missing []string
		for _, entry := range entries {
			if entry.IsDir() && !strings.Contains(string(readme), "`"+entry.Name()+"`") {
				missing = append(missing, entry.Name())
			}
		}
		slices.Sort(missing)
		if len(missing) > 0 {
			t.Errorf("test/%s/README.md lacks %s", of, strings.Join(missing, ", "))
		}
	}
}

// The matrix of test/pairs says of each pair which test shows it, or why there is nothing to test.
func TestAllPairsAreListed(t *testing.T) {
	readme, err := os.ReadFile("../../test/pairs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	families := []string{"score", "load line", "slack", "drains", "consolidation", "sizing", "ranking", "DaemonSets",
		"startup taints", "priorities", "volumes"}
	for i, a := range families {
		for _, b := range families[i+1:] {
			line := "\n| " + a + ", " + b + " | `"
			if count := strings.Count(string(readme), line); count != 1 {
				t.Errorf("%d lines begin with %q, want one", count, line[1:])
			}
		}
	}
}
