package harness

import (
	"fmt"
	"os"
)

// NoteSkipped notes a test that is skipped in the file SKIPPED_TESTS, if it is set, with the target of make that runs
// it: a line for each test, the target first.
func NoteSkipped(test, target string) error {
	name := os.Getenv("SKIPPED_TESTS")
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(file, "%s\t%s\n", target, test); err != nil {
		return err
	}
	return file.Close()
}
