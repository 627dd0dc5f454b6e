package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"aead.dev/minisign"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"loadline.dev/tools/release/bundle"
	"loadline.dev/tools/release/dist"
	"loadline.dev/tools/release/elf"
	"loadline.dev/tools/release/image"
)

var versionForm = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// release makes a signed release of what images has made.
func release(flags *flag.FlagSet, args []string) error {
	images := flags.String("images", "build/images", "`folder` with the images")
	var built builds
	built.flags(flags, "build/images/programs")
	source := flags.String("source", ".", "top `folder` of the sources")
	out := flags.String("out", "build/release", "`folder` in which the release gets one of its own")
	version := flags.String("version", "", "`version`, such as v0.1.0")
	keyFile := flags.String("key", "", "secret key of minisign, a `file`; its password is MINISIGN_PASSWORD")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !versionForm.MatchString(*version) {
		return fmt.Errorf("--version=%q is not like v0.1.0", *version)
	}
	key, err := privateKey(*keyFile)
	if err != nil {
		return err
	}
	when, err := sourceDate()
	if err != nil {
		return err
	}
	r, err := filesOfRelease(*images, built, *source, *version, when)
	if err != nil {
		return err
	}
	if err := r.AddProvenance(sourceOf(*source, *version)); err != nil {
		return err
	}
	folder := filepath.Join(*out, *version)
	if err := r.Write(folder, *version, key); err != nil {
		return err
	}
	fmt.Printf("%s: %d files, signed by key %X\n", folder, len(r), key.ID())
	return nil
}

// privateKey reads a key, with or without a password.
func privateKey(file string) (key minisign.PrivateKey, err error) {
	if file == "" {
		return key, errors.New("--key is missing: minisign -G makes one")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return key, err
	}
	if minisign.IsEncrypted(text) {
		return minisign.DecryptKey(os.Getenv("MINISIGN_PASSWORD"), text)
	}
	return key, key.UnmarshalText(text)
}

func filesOfRelease(images string, built builds, source, version string, when time.Time) (dist.Release, error) {
	r := dist.Release{}
	programs, err := layouts(images)
	if err != nil {
		return nil, err
	}
	copies := map[string]string{"symbols.tar.gz": "loadline-" + version + "-symbols.tar.gz"}
	for _, p := range programs {
		copies[p+".tar"] = p + "-" + version + ".oci.tar"
	}
	for architecture, build := range built.folders() {
		suffix := "-linux-" + architecture
		if r["loadline-"+version+suffix+".tar.gz"], err = archiveOfPrograms(build, source, version, when); err != nil {
			return nil, err
		}
		for _, p := range programs {
			copies[p+"-"+architecture+".cdx.json"] = billName(p, version, architecture)
		}
	}
	chart, err := archiveOfChart(filepath.Join(source, "charts", "loadline"), version, when)
	if err != nil {
		return nil, err
	}
	r["loadline-chart-"+version+".tgz"] = chart
	if r["loadline-"+version+"-proto.tar.gz"], err = archiveOfMessages(source, version, when); err != nil {
		return nil, err
	}
	for from, to := range copies {
		if r[to], err = os.ReadFile(filepath.Join(images, from)); err != nil {
			return nil, fmt.Errorf("%w: make images first", err)
		}
	}
	return r, nil
}

func billName(program, version, architecture string) string {
	return program + "-" + version + "-linux-" + architecture + ".cdx.json"
}

// archiveOfPrograms returns the stripped programs with the engine's library and the license.
func archiveOfPrograms(build, source, version string, when time.Time) ([]byte, error) {
	tree := image.Tree{}
	top := "/loadline-" + version
	programs, err := bundle.Programs(build)
	if err != nil {
		return nil, err
	}
	files := []string{"lib/libloadline.so"}
	for _, p := range programs {
		files = append(files, "bin/"+p.Name)
	}
	for _, file := range files {
		stripped, err := elf.Strip(filepath.Join(build, file))
		if err != nil {
			return nil, err
		}
		tree[top+"/"+file] = image.File{Content: stripped.Content, Executable: true}
	}
	license, err := os.ReadFile(filepath.Join(source, "LICENSE"))
	if err != nil {
		return nil, err
	}
	tree[top+"/LICENSE"] = image.File{Content: license}
	return tree.Archive(when)
}

// forOurEngine is a choice of the engine alone: with it, C++ and Java have neither JSON nor reflection of messages.
var forOurEngine = regexp.MustCompile(`(?m)^option optimize_for = LITE_RUNTIME;\n`)

// archiveOfMessages returns the files of the API for other languages, with the license and an example.
func archiveOfMessages(source, version string, when time.Time) ([]byte, error) {
	tree := image.Tree{}
	files, err := filepath.Glob(filepath.Join(source, "proto", "loadline", "*", "*.proto"))
	if err != nil {
		return nil, err
	}
	objects, err := filepath.Glob(filepath.Join(source, "proto", "loadline", "*", "*", "*.proto"))
	if err != nil {
		return nil, err
	}
	files = append(append(files, objects...), filepath.Join(source, "LICENSE"),
		filepath.Join(source, "docs", "api", "score_pod.py"))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(source, file)
		if err != nil {
			return nil, err
		}
		content = forOurEngine.ReplaceAll(content, nil)
		tree["/loadline-"+version+"-proto/"+filepath.ToSlash(name)] = image.File{Content: content}
	}
	return tree.Archive(when)
}

var chartVersion = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// archiveOfChart returns the chart as Helm packs it, of this version and for images of it.
func archiveOfChart(folder, version string, when time.Time) ([]byte, error) {
	tree := image.Tree{}
	ignored, err := os.ReadFile(filepath.Join(folder, ".helmignore"))
	if err != nil {
		return nil, err
	}
	var add func(dir, prefix string) error
	add = func(dir, prefix string) error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			path, name := filepath.Join(dir, e.Name()), prefix+e.Name()
			info, err := os.Stat(path) // follows the link to manifests/
			if err != nil {
				return err
			}
			if isIgnored(string(ignored), name, info.IsDir()) {
				continue
			}
			if info.IsDir() {
				if err := add(path, name+"/"); err != nil {
					return err
				}
				continue
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if name == "Chart.yaml" {
				content = chartVersion.ReplaceAll(content, []byte("${1}: "+strings.TrimPrefix(version, "v")))
			}
			tree["/loadline/"+name] = image.File{Content: content}
		}
		return nil
	}
	if err := add(folder, ""); err != nil {
		return nil, err
	}
	return tree.Archive(when)
}

// isIgnored tells whether a line of .helmignore names the path; ours has whole paths, and no patterns.
func isIgnored(ignored, name string, isFolder bool) bool {
	if isFolder {
		name += "/"
	}
	return slices.Contains(strings.Split(ignored, "\n"), name)
}

// sourceOf asks git, and the tools that build, who they are. Where there is no git the commit is not known.
func sourceOf(folder, version string) dist.Source {
	first := func(command string, args ...string) string {
		cmd := exec.Command(command, args...)
		cmd.Dir = folder
		out, err := cmd.Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(strings.SplitN(string(out), "\n", 2)[0])
	}
	s := dist.Source{Version: version, Commit: cmp.Or(first("git", "rev-parse", "HEAD"), "unknown"),
		Tools: map[string]string{}}
	out, err := exec.Command("git", "-C", folder, "status", "--porcelain").Output()
	s.Clean = err == nil && len(out) == 0
	s.Tools["go"] = first("go", "env", "GOVERSION")
	s.Tools["cmake"] = first("cmake", "--version")
	for _, p := range []string{"g++", "g++-aarch64-linux-gnu", "libgrpc++-dev", "libprotobuf-dev", "libabsl-dev",
		"libmimalloc-dev", "nlohmann-json3-dev"} {
		s.Tools["debian:"+p] = first("dpkg-query", "--show", "--showformat=${Version}", p)
	}
	return s
}

// verify checks a release as who has it and the public key can.
func verify(flags *flag.FlagSet, args []string) error {
	from := flags.String("from", "build/release", "`folder` in which the release has one of its own")
	version := flags.String("version", "", "`version`, such as v0.1.0")
	keyFile := flags.String("key", "", "public key of minisign, a `file`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	key, err := minisign.PublicKeyFromFile(*keyFile)
	if err != nil {
		return err
	}
	folder := filepath.Join(*from, *version)
	r, err := dist.Read(folder, key)
	if err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	if err := r.CheckProvenance(*version); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	checked := 0
	for file := range r {
		program, isImage := strings.CutSuffix(file, "-"+*version+".oci.tar")
		if !isImage {
			continue
		}
		if err := verifyImage(r, program, *version); err != nil {
			return fmt.Errorf("%s: image of %s: %w", folder, program, err)
		}
		checked++
	}
	if checked == 0 {
		return fmt.Errorf("%s has no images", folder)
	}
	fmt.Printf("%s: %d files are those that key %X signed\n", folder, len(r), key.ID())
	return nil
}

// verifyImage checks that the archive is a whole image, and that there is a bill of materials about it for each of its
// architectures.
func verifyImage(r dist.Release, name, version string) error {
	dir, err := os.MkdirTemp("", "verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := image.Unpack(bytes.NewReader(r[name+"-"+version+".oci.tar"]), dir); err != nil {
		return err
	}
	index, err := image.Read(dir)
	if err != nil {
		return err
	}
	if err := validate.Index(index); err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) == 0 {
		return errors.New("it is for no architecture")
	}
	for _, one := range manifest.Manifests {
		if one.Platform == nil {
			return fmt.Errorf("%s does not say for which architecture it is", one.Digest)
		}
		if err := checkBill(r[billName(name, version, one.Platform.Architecture)], one.Digest.Hex); err != nil {
			return fmt.Errorf("linux/%s: %w", one.Platform.Architecture, err)
		}
	}
	return nil
}

func checkBill(content []byte, digest string) error {
	var bill struct {
		Metadata struct {
			Component struct{ Hashes []struct{ Content string } }
		}
	}
	if err := json.Unmarshal(content, &bill); err != nil {
		return fmt.Errorf("the bill of materials: %w", err)
	}
	if hashes := bill.Metadata.Component.Hashes; len(hashes) != 1 || hashes[0].Content != digest {
		return errors.New("the bill of materials is about another image")
	}
	return nil
}
