// Package debian tells which packages of a Debian system the shared libraries of a program come from.
package debian

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Package is a binary package that is installed.
type Package struct {
	Name, Version, Architecture string
	// Source and SourceVersion name the source package that it was built from.
	Source, SourceVersion string
	// Status is its paragraph of the status file, which scanners of images read.
	Status string
	// Copyright is the text of /usr/share/doc/NAME/copyright, which has to be shipped with the library.
	Copyright []byte
}

// PURL returns the package URL by which databases of vulnerabilities know the package.
func (p Package) PURL() string {
	return fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", p.Name, strings.ReplaceAll(p.Version, "+", "%2B"), p.Architecture)
}

// A System is a Debian system under a root folder: this machine ("/"), or what packages of another architecture were
// unpacked into.
type System struct{ Root string }

// Owner returns the package that a file belongs to. Debian has /lib as a link to /usr/lib, and packages that name their
// files by either.
func (s System) Owner(file string) (Package, error) {
	for _, path := range []string{file, strings.TrimPrefix(file, "/usr"), "/usr" + file} {
		out, err := s.query("--search", path)
		if err != nil {
			continue
		}
		names, _, _ := strings.Cut(out, ": ")
		return s.describe(strings.Split(names, ", ")[0])
	}
	return Package{}, fmt.Errorf("%s belongs to no Debian package", file)
}

const fields = "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}"

func (s System) describe(name string) (Package, error) {
	out, err := s.query("--show", "--showformat="+fields, name)
	if err != nil {
		return Package{}, err
	}
	f := strings.Split(out, "\t")
	if len(f) != 5 {
		return Package{}, fmt.Errorf("dpkg-query describes %s by %q", name, out)
	}
	p := Package{Name: f[0], Version: f[1], Architecture: f[2], Source: f[3], SourceVersion: f[4]}
	if p.Status, err = s.query("--status", name); err != nil {
		return Package{}, err
	}
	if p.Copyright, err = os.ReadFile(filepath.Join(s.Root, "usr/share/doc", p.Name, "copyright")); err != nil {
		return Package{}, fmt.Errorf("the copyright of package %s: %w", p.Name, err)
	}
	return p, nil
}

func (s System) query(args ...string) (string, error) {
	cmd := exec.Command("dpkg-query", append([]string{"--admindir=" + filepath.Join(s.Root, "var/lib/dpkg")}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("dpkg-query %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}
