package harness

import (
	"fmt"
	"os"
	"path/filepath"
)

// Root returns the top folder of the source tree: the nearest folder above the working directory that holds
// go.work.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.work in the working directory or above it: run this inside the source tree")
		}
		dir = parent
	}
}

// A Program is an executable that this project builds. It comes out of `make build`, never out of the harness.
type Program string

const (
	Loadlined         Program = "loadlined"
	LoadlineCLI       Program = "loadline"
	LoadlineScheduler Program = "loadline-scheduler"
)

// Path returns where the program lies: in build/bin, or in the folder LOADLINE_PROGRAMS, so that those of images can be
// tested. LOADLINED replaces the path of loadlined, so that a sanitizer build can be tested.
func (p Program) Path() (string, error) {
	if override := os.Getenv("LOADLINED"); p == Loadlined && override != "" {
		return checkExecutable(override)
	}
	if folder := os.Getenv("LOADLINE_PROGRAMS"); folder != "" {
		return checkExecutable(filepath.Join(folder, string(p)))
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	return checkExecutable(filepath.Join(root, "build", "bin", string(p)))
}

func checkExecutable(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%s is not there: run make build first", path)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s is not an executable file", path)
	}
	return path, nil
}
