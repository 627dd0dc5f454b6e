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

// DefaultMinor is the minor version of Kubernetes that all is built from unless GOWORK says otherwise.
const DefaultMinor = "1.36"

// OtherMinor returns the minor version of Kubernetes that this build was asked for, where that is not DefaultMinor:
// GOWORK then names kubernetes/MINOR/go.work. Else it returns an empty text.
func OtherMinor() string {
	minorDir := filepath.Dir(os.Getenv("GOWORK"))
	if filepath.Base(filepath.Dir(minorDir)) != "kubernetes" {
		return ""
	}
	return filepath.Base(minorDir)
}

// Minor returns the minor version of Kubernetes that is built and run.
func Minor() string {
	if other := OtherMinor(); other != "" {
		return other
	}
	return DefaultMinor
}

// withMinor returns a name of what differs between minor versions.
func withMinor(name string) string {
	if other := OtherMinor(); other != "" {
		return name + "-" + other
	}
	return name
}

// A Program is an executable that this project builds. `make build` makes it, never the harness.
type Program string

const (
	Loadlined         Program = "loadlined"
	LoadlineCLI       Program = "loadline"
	LoadlineScheduler Program = "loadline-scheduler"
)

// Path returns where the program lies: in build/bin, or in the folder LOADLINE_PROGRAMS, so that those of images can be
// tested. LOADLINED replaces the path of loadlined, so that a sanitizer build can be tested. The scheduler of another
// minor version has it in its name.
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
	name := string(p)
	if p == LoadlineScheduler {
		name = withMinor(name)
	}
	return checkExecutable(filepath.Join(root, "build", "bin", name))
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
