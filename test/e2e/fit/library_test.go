package fit

import (
	"os"
	"path/filepath"
	"testing"
)

// library returns the path of libloadline.so: LOADLINE_LIBRARY, or where the build puts it.
func library(t testing.TB) string {
	t.Helper()
	path := os.Getenv("LOADLINE_LIBRARY")
	if path == "" {
		path = filepath.Join("..", "..", "..", "build", "lib", "libloadline.so")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("run make build first: %v", err)
	}
	return path
}
