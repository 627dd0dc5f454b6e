package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"loadline.dev/tools/release/contain"
	"loadline.dev/tools/release/image"
)

// unpack writes the files of each image into a folder, beside a script for each that runs its program from there.
func unpack(flags *flag.FlagSet, args []string) error {
	from := flags.String("from", "build/images", "`folder` with the images")
	out := flags.String("out", "build/images/roots", "`folder` to unpack them into, made anew")
	uid := flags.Int("uid", 65532, "`number` of the user that the scripts run programs as")
	var binds list
	flags.Var(&binds, "bind", "`folder` of this machine that the programs see and may write to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	folder, err := filepath.Abs(*out)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(filepath.Join(folder, "bin"), 0o755)); err != nil {
		return err
	}
	programs, err := layouts(*from)
	if err != nil {
		return err
	}
	for _, program := range programs {
		index, err := image.Read(filepath.Join(*from, program))
		if err != nil {
			return err
		}
		ours, err := forThisMachine(index)
		if err != nil {
			return err
		}
		root := filepath.Join(folder, program)
		files := mutate.Extract(ours)
		if err := errors.Join(image.Unpack(files, root), files.Close()); err != nil {
			return fmt.Errorf("image of %s: %w", program, err)
		}
		script := fmt.Sprintf("#!/bin/sh\nexec '%s' run --root='%s' --uid=%d", self, root, *uid)
		for _, bind := range binds {
			script += fmt.Sprintf(" --bind='%s'", bind)
		}
		script += " -- \"$@\"\n"
		if err := os.WriteFile(filepath.Join(folder, "bin", program), []byte(script), 0o755); err != nil {
			return err
		}
	}
	return nil
}

func forThisMachine(index v1.ImageIndex) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, one := range manifest.Manifests {
		if one.Platform != nil && one.Platform.Architecture == runtime.GOARCH {
			return index.Image(one.Digest)
		}
	}
	return nil, fmt.Errorf("there is no image for %s", runtime.GOARCH)
}

// A list collects the values of a flag that may be given several times.
type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(v string) error { *l = append(*l, v); return nil }

// runImage runs the program of an unpacked image with further arguments, by default as whom the manifests say.
func runImage(flags *flag.FlagSet, args []string) error {
	var container contain.Container
	flags.StringVar(&container.Root, "root", "", "`folder` that unpack has made of an image")
	flags.IntVar(&container.UID, "uid", 65532, "`number` of the user that it runs as")
	flags.Var((*list)(&container.Binds), "bind", "`folder` of this machine that it sees and may write to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if container.Root == "" {
		return errors.New("--root is missing")
	}
	program, err := programOf(container.Root)
	if err != nil {
		return err
	}
	container.Args = append([]string{program}, flags.Args()...)
	container.Env = append(contain.Environment("GOMEMLIMIT", "HOME", "TMPDIR", "NO_PROXY", "KUBECONFIG"), "PATH=/usr/bin")
	return container.Exec()
}

// programOf returns the path of the program of an unpacked image: each holds one.
func programOf(root string) (string, error) {
	found, err := filepath.Glob(filepath.Join(root, "usr", "bin", "*"))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%s has %d programs, want 1", root, len(found))
	}
	return "/usr/bin/" + filepath.Base(found[0]), nil
}
