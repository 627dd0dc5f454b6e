// Package enginetest gives tests the engine that was built beside them, in this process or as a daemon.
package enginetest

import (
	"os"
	"path/filepath"
	"testing"

	"loadline.dev/shim/engine"
)

// Library returns the path of libloadline.so: LOADLINE_LIBRARY, or where the build puts it.
func Library(t testing.TB) string {
	t.Helper()
	return built(t, "LOADLINE_LIBRARY", "lib/libloadline.so")
}

// Program returns the path of loadlined: LOADLINED, or where the build puts it.
func Program(t testing.TB) string {
	t.Helper()
	return built(t, "LOADLINED", "bin/loadlined")
}

// Address returns the address of an engine in this process.
func Address(t testing.TB) string {
	t.Helper()
	return "inprocess://" + Library(t)
}

// Open returns an engine in this process, which ends with the test.
func Open(t testing.TB) engine.Conn {
	t.Helper()
	return open(t, Address(t))
}

func open(t testing.TB, address string) engine.Conn {
	t.Helper()
	conn, err := engine.Open(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func built(t testing.TB, variable, file string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		path = filepath.Join(root(t), "build", file)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("run make build first: %v", err)
	}
	return path
}

// root returns the folder of the project: the one with go.work.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("go.work is in no folder above")
		}
		dir = parent
	}
}
