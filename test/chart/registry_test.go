package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"loadline.dev/test/e2e/docs"
)

// No images are published, so a release without a registry is refused. The error says how to get images.
func TestRegistryIsRequired(t *testing.T) {
	c := load(t)
	for _, component := range []string{"scheduler", "extender", "expander", "autoscaler", "usage"} {
		_, err := render(c, "anywhere", setter{on(component)}.with("image.registry", "").values)
		if err == nil || !strings.Contains(err.Error(), "image.registry is empty") ||
			!strings.Contains(err.Error(), "make push REGISTRY=") {
			t.Errorf("%s: without a registry the error is %v", component, err)
		}
	}
	if _, err := render(c, "anywhere", values{}); err == nil || !strings.Contains(err.Error(), "image.registry is empty") {
		t.Errorf("without values the error is %v", err)
	}
}

// A trailing slash, a scheme or a tag would give names of images that no registry has.
func TestRegistryIsAName(t *testing.T) {
	c := load(t)
	for registry, good := range map[string]bool{"registry.example": true, "registry.example:5000": true,
		"10.0.0.1:5000/team/loadline": true, "registry.example/a-b/c_d": true, "localhost": true,
		"registry.example/": false, "https://registry.example": false, "registry.example/a:v1": false,
		"registry.example/Team": false, "registry.example/a b": false} {
		_, err := render(c, "anywhere", setter{on("scheduler")}.with("image.registry", registry).values)
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "registry") {
			t.Errorf("%q: %v", registry, err)
		}
	}
}

// The manifests name no registry that exists, and the command of docs/install.md puts one in the place of each.
func TestManifestsTakeARegistry(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS("../../manifests")); err != nil {
		t.Fatal(err)
	}
	if n := checkManifestImages(t, dir, "registry.invalid/"); n != 11 { // six workloads; all but usage have the engine
		t.Errorf("manifests/ have %d images, want 11", n)
	}
	blocks, err := docs.Section("../../docs/install.md", "## The images")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks {
		for _, command := range block.Commands {
			if !strings.HasPrefix(command.Text, "sed ") {
				continue
			}
			sed := exec.CommandContext(t.Context(), "sh", "-c", command.Text)
			sed.Dir = dir
			if out, err := sed.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", command.Text, err, out)
			}
		}
	}
	checkManifestImages(t, dir, "registry.example/loadline/")
}

var imageField = regexp.MustCompile(`(?m)^\s*(?:- )?image: (.*)$`)

// checkManifestImages reports images of manifests/ that do not begin with registry, and returns how many there are.
func checkManifestImages(t *testing.T, dir, registry string) (found int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "manifests"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		for _, match := range imageField.FindAllStringSubmatch(string(content), -1) {
			found++
			if !strings.HasPrefix(match[1], registry+"loadline") {
				t.Errorf("%s: image %s, want one of %s", path, match[1], registry)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
