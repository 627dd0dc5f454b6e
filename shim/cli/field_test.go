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
func TestField(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "test/field/*/expected.txt"))
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
	readme, err := os.ReadFile("../../test/field/README.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("../../test/field")
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
		t.Errorf("test/field/README.md lacks %s", strings.Join(missing, ", "))
	}
}
