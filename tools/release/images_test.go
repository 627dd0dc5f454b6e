package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"loadline.dev/tools/release/bundle"
	"loadline.dev/tools/release/image"
)

const testVersion = "v0.0.1-test"

var testTime = time.Unix(1_700_000_000, 0).UTC()

// buildFolder is what `make build` leaves, or what LOADLINE_BUILD names: the tests make images of it.
var buildFolder = cmp.Or(os.Getenv("LOADLINE_BUILD"), "../../build")

// testBuilds has linux/arm64 as well where LOADLINE_BUILD_ARM64 names what `make arm64` has built.
func testBuilds() builds {
	b := builds{amd64: buildFolder}
	if folder := os.Getenv("LOADLINE_BUILD_ARM64"); folder != "" {
		b.arm64, b.arm64Root = folder, "../../build/arm64/sysroot"
	}
	return b
}

var made = sync.OnceValues(func() ([][]bundle.Bundle, error) { return makeImages(testBuilds(), testVersion, testTime) })

// outFolder holds the images of this run, written once.
var outFolder = sync.OnceValues(func() (string, error) {
	all, err := made()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "images-")
	if err != nil {
		return "", err
	}
	return dir, writeImages(all, dir, "registry.test/loadline", testVersion, testTime)
})

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "run" { // a script of unpack runs this test as the tool
		if err := run(os.Args[1:]); err != nil {
			println("release:", err.Error())
		}
		os.Exit(1)
	}
	code := m.Run()
	if dir, err := outFolder(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

func images0(t *testing.T) []bundle.Bundle {
	t.Helper()
	all, err := made()
	if err != nil {
		t.Fatalf("%v: make build first", err)
	}
	return all[0]
}

// everyImage returns the bundles of all platforms.
func everyImage(t *testing.T) []bundle.Bundle {
	t.Helper()
	images0(t)
	all, _ := made()
	return slices.Concat(all...)
}

// architecture returns that of an image, with the names of its folder of libraries and of its dynamic linker.
func architecture(t *testing.T, b bundle.Bundle) (name, libraries, linker string) {
	t.Helper()
	config, err := b.Image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	switch config.Architecture {
	case "amd64":
		return config.Architecture, "usr/lib/x86_64-linux-gnu", "lib64/ld-linux-x86-64.so.2"
	case "arm64":
		return config.Architecture, "usr/lib/aarch64-linux-gnu", "lib/ld-linux-aarch64.so.1"
	}
	t.Fatalf("%s is for %q", b.Program.Name, config.Architecture)
	return "", "", ""
}

func folder(t *testing.T) string {
	t.Helper()
	dir, err := outFolder()
	if err != nil {
		t.Fatalf("%v: make build first", err)
	}
	return dir
}

// Two builds of the same programs have the same digests, in whatever order files were found.
func TestImagesAreReproducible(t *testing.T) {
	again, err := makeImages(testBuilds(), testVersion, testTime)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range images0(t) {
		first, err1 := b.Image.Digest()
		second, err2 := again[0][i].Image.Digest()
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if first != second {
			t.Errorf("%s: %v, and %v when built again", b.Program.Name, first, second)
		}
	}
}

// Compressed images have to be small: an engine and a command line of at most 60 MiB, and nobody is root. The scheduler
// of each minor runs by the same name.
func TestImagesAreSmallAndNotRoot(t *testing.T) {
	sizes := map[string]int64{}
	for _, b := range everyImage(t) {
		on, _, _ := architecture(t, b)
		size, err := image.Size(b.Image)
		if err != nil {
			t.Fatal(err)
		}
		sizes[b.Program.Name+"/"+on] = size
		config, err := b.Image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		program := []string{"/usr/bin/" + b.Program.File}
		if c := config.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, program) {
			t.Errorf("%s runs %q as %q", b.Program.Name, c.Entrypoint, c.User)
		}
	}
	t.Logf("bytes: %v", sizes)
	for _, on := range []string{"amd64", "arm64"} {
		if both := sizes["loadlined/"+on] + sizes["loadline/"+on]; both > 60<<20 {
			t.Errorf("engine and command line for %s have %d bytes, want at most 60 MiB", on, both)
		}
	}
	checkTable(t, sizes)
}

// checkTable holds the table of sizes in docs/benchmarks.md against the images for linux/amd64.
func checkTable(t *testing.T, sizes map[string]int64) {
	t.Helper()
	page, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, size := range sizes {
		program, found := strings.CutSuffix(name, "/amd64")
		if !found {
			continue
		}
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(program) + "` \\| ([0-9.]+) \\|$").FindSubmatch(page)
		if row == nil {
			t.Errorf("docs/benchmarks.md does not tell the size of %s", program)
			continue
		}
		told, err := strconv.ParseFloat(string(row[1]), 64)
		if mib := float64(size) / (1 << 20); err != nil || math.Abs(told-mib) > mib/10 {
			t.Errorf("docs/benchmarks.md says %s MiB of %s, which has %.1f", row[1], program, mib)
		}
	}
}

// The image of the command line has the program where Cluster Autoscaler's images have theirs, relative to the working
// directory too, as its manifests name it.
func TestProgramIsWhereClusterAutoscalerIs(t *testing.T) {
	for _, b := range everyImage(t) {
		if b.Program.Name != "loadline" {
			continue
		}
		config, err := b.Image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		link := filesOf(t, b.Image)["cluster-autoscaler"]
		if link.Typeflag != tar.TypeSymlink || link.Linkname != "/usr/bin/loadline" || config.Config.WorkingDir != "/" {
			t.Errorf("link %+v, working directory %s", link, config.Config.WorkingDir)
		}
	}
}

// An image holds its program, the engine, libraries, and what the packages of these say of themselves: no shell, no
// tool, nothing else that runs.
func TestImagesHoldNothingElse(t *testing.T) {
	for _, b := range everyImage(t) {
		_, libraries, linker := architecture(t, b)
		packages := map[string]bool{}
		for _, p := range b.Packages {
			packages[p.Name] = true
		}
		for path, header := range filesOf(t, b.Image) {
			base := filepath.Base(path)
			switch dir := filepath.Dir(path); {
			case header.Typeflag == tar.TypeDir:
			case path == "usr/bin/"+b.Program.File, path == "usr/lib/libloadline.so", path == linker:
			case "/"+path == b.Program.Link && header.Linkname == "/usr/bin/"+b.Program.File:
			case dir == libraries && strings.HasPrefix(base, "lib") && strings.Contains(base, ".so"):
			case dir == "var/lib/dpkg/status.d" && packages[base]:
			case strings.HasPrefix(path, "usr/share/doc/") && base == "copyright":
			case slices.Contains([]string{"etc/passwd", "etc/group", "etc/nsswitch.conf", "etc/os-release"}, path):
			default:
				t.Errorf("%s holds %s", b.Program.Name, path)
			}
			if header.Uid != 0 || header.Gid != 0 || header.Mode&0o022 != 0 || !header.ModTime.Equal(testTime) {
				t.Errorf("%s: %s has owner %d:%d, mode %o, time %v", b.Program.Name, path, header.Uid, header.Gid,
					header.Mode, header.ModTime)
			}
		}
	}
}

func filesOf(t *testing.T, of v1.Image) map[string]tar.Header {
	t.Helper()
	reader := mutate.Extract(of)
	defer reader.Close()
	files := map[string]tar.Header{}
	for archive := tar.NewReader(reader); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(header.Name, "/")] = *header
	}
}

// The bills name Debian packages as dpkg knows them and, of Go programs, the modules; each library of an image
// belongs to a package of its bill.
func TestBillsOfMaterials(t *testing.T) {
	for _, b := range everyImage(t) {
		on, _, _ := architecture(t, b)
		content, err := os.ReadFile(filepath.Join(folder(t), b.Program.Name+"-"+on+".cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		var bill struct {
			BOMFormat  string
			Components []struct{ Name, Version, PURL string }
		}
		if err := json.Unmarshal(content, &bill); err != nil {
			t.Fatal(err)
		}
		versions := map[string]string{}
		for _, c := range bill.Components {
			versions[c.Name] = c.Version
		}
		for _, p := range []string{"libc6", "libstdc++6", "libprotobuf32"} {
			query := []string{"-W", "-f=${Version}", p}
			if on == "arm64" {
				query = append([]string{"--admindir=../../build/arm64/sysroot/var/lib/dpkg"}, "-W", "-f=${Version}", p+":arm64")
			}
			out, err := exec.Command("dpkg-query", query...).Output()
			if err != nil || versions[p] != string(out) || len(out) == 0 {
				t.Errorf("%s: %s has version %q, dpkg says %q, error %v", b.Program.Name, p, versions[p], out, err)
			}
		}
		if module := versions["google.golang.org/grpc"]; (module != "") != (b.Program.Name != "loadlined") {
			t.Errorf("%s: version %q of a Go module", b.Program.Name, module)
		}
		if b.Program.Name == "loadlined" && versions["libgrpc++1.51"] == "" {
			t.Errorf("the bill of loadlined lacks gRPC: %v", slices.Sorted(maps.Keys(versions)))
		}
	}
}

// An image that `make push` sends to a registry can be pulled unchanged.
func TestPushAndPull(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	if err := run([]string{"push", "--from=" + folder(t), "--version=" + testVersion, "--registry=" + host + "/loadline/",
		"--insecure"}); err != nil {
		t.Fatal(err)
	}
	for _, b := range everyImage(t) {
		on, _, _ := architecture(t, b)
		tag, err := name.NewTag(host+"/loadline/"+b.Program.Name+":"+testVersion, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		pulled, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: on}))
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(pulled); err != nil {
			t.Errorf("%s: %v", b.Program.Name, err)
		}
		got, err1 := pulled.Digest()
		want, err2 := b.Image.Digest()
		if err := errors.Join(err1, err2); err != nil || got != want {
			t.Errorf("%s: pulled %v, pushed %v, error %v", b.Program.Name, got, want, err)
		}
	}
}

// The archive is an OCI layout: what is in the folder, in one file.
func TestArchivesAreLayouts(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(folder(t), "loadlined.tar"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for archive := tar.NewReader(bytes.NewReader(content)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names[header.Name] = true
	}
	digest, err := images0(t)[0].Image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"oci-layout", "index.json", "blobs/sha256/" + digest.Hex} {
		if !names[want] {
			t.Errorf("the archive lacks %s", want)
		}
	}
}
