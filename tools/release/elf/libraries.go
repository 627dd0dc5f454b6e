// Package elf finds the shared libraries that programs are linked with.
package elf

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A System is where libraries are looked for: a root folder and the name of its folder for one architecture, such as
// x86_64-linux-gnu.
type System struct{ Root, Triplet string }

// Interpreters are the dynamic linkers that programs name, by triplet.
var Interpreters = map[string]string{
	"x86_64-linux-gnu":  "/lib64/ld-linux-x86-64.so.2",
	"aarch64-linux-gnu": "/lib/ld-linux-aarch64.so.1",
}

// Libraries returns the paths below Root, by name, of all libraries that the files need, and that those need in turn,
// with the dynamic linker; without those in `own`, which the caller brings along.
func (s System) Libraries(files []string, own map[string]string) (map[string]string, error) {
	found := map[string]string{}
	queue := slices.Clone(files)
	for len(queue) > 0 {
		file := queue[0]
		queue = queue[1:]
		needed, err := neededBy(file)
		if err != nil {
			return nil, err
		}
		for _, name := range needed {
			if found[name] != "" {
				continue
			}
			if path, ok := own[name]; ok {
				found[name] = path
				queue = append(queue, path)
				continue
			}
			path, err := s.find(name)
			if err != nil {
				return nil, fmt.Errorf("%s needs %w", file, err)
			}
			found[name] = path
			queue = append(queue, filepath.Join(s.Root, path))
		}
	}
	for name := range own {
		delete(found, name)
	}
	found[filepath.Base(Interpreters[s.Triplet])] = Interpreters[s.Triplet]
	return found, nil
}

func neededBy(file string) ([]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close()
	return f.ImportedLibraries()
}

func (s System) find(name string) (string, error) {
	if strings.Contains(name, "/") {
		return "", fmt.Errorf("%q, which is a path and no name", name)
	}
	for _, dir := range []string{"/usr/lib/" + s.Triplet, "/lib/" + s.Triplet} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(filepath.Join(s.Root, path)); err == nil {
			return path, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("%s, which is not in the folders of %s", name, s.Triplet)
}
