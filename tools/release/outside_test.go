package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// proxy writes a module as a proxy serves it, into a folder.
func proxy(t *testing.T, folder, path, version, source string) {
	t.Helper()
	dir := filepath.Join(folder, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := zip.CreateFromDir(file, module.Version{Path: path, Version: version}, source); err != nil {
		t.Fatal(err)
	}
	goMod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{version + ".mod": goMod, "list": []byte(version + "\n"),
		version + ".info": []byte(`{"Version": "` + version + `"}`)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// outside returns the environment of a user who has nothing of this tree, and gets modules from a folder and from
// what this machine has downloaded.
func outside(t *testing.T, served string) []string {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	// A cache of its own: the one of the machine is not to hold what the test has made.
	downloads := "file://" + filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	return append(os.Environ(), "GOWORK=off", "GOFLAGS=-modcacherw", "GONOSUMDB=*", "GOMODCACHE="+t.TempDir(),
		"GOPROXY=file://"+served+","+downloads)
}

// `go install` refuses a module that replaces or excludes another: ours does neither, and requires the plugin by the
// version that is released with it. The commands are printed and not run: that they compile, `make build` shows.
func TestProgramsAreInstalledFromOutside(t *testing.T) {
	source, err := os.ReadFile("../../shim/engine/version.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^const Version = "(.*)"$`).FindSubmatch(source)
	if found == nil {
		t.Fatal("shim/engine/version.go has no version")
	}
	version, served := "v"+string(found[1]), t.TempDir()
	proxy(t, served, "loadline.dev/shim", version, "../../shim")
	proxy(t, served, "loadline.dev/shim/cmd/loadline-scheduler", version, "../../shim/cmd/loadline-scheduler")
	for _, program := range []string{"loadline", "loadline-scheduler"} {
		cmd := exec.Command("go", "install", "-n", "loadline.dev/shim/cmd/"+program+"@"+version)
		cmd.Dir, cmd.Env = t.TempDir(), outside(t, served)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
}

// A scheduler of one's own gets the plugin like any other module: `go get`, without a replace.
func TestPluginFromOutside(t *testing.T) {
	const version = "v0.1.0"
	served, own := t.TempDir(), t.TempDir()
	proxy(t, served, "loadline.dev/shim", version, "../../shim")
	files := map[string]string{
		"go.mod": "module example.com/scheduler\n\ngo 1.26.0\n",
		"plugin.go": `package scheduler

import (
	framework "k8s.io/kube-scheduler/framework"
	"loadline.dev/shim/scheduler"
)

// The plugin has a name, and what makes it.
var (
	Name         = scheduler.Name
	_    framework.PreScorePlugin = (*scheduler.Plugin)(nil)
	New          = scheduler.New
)
`}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(own, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := outside(t, served)
	for _, args := range [][]string{
		{"get", "loadline.dev/shim@" + version}, {"mod", "tidy", "-e"}, {"list", "-deps", "./..."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = own, append(env, "GOFLAGS=-mod=mod -modcacherw")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		if args[0] == "list" && (!strings.Contains(string(out), "loadline.dev/shim/scheduler\n") ||
			strings.Contains(string(out), "k8s.io/kubernetes/")) {
			t.Errorf("what the plugin is built from: %s", out)
		}
	}
	goMod, err := os.ReadFile(filepath.Join(own, "go.mod"))
	if err != nil || strings.Contains(string(goMod), "replace") {
		t.Errorf("go.mod: %s, error %v", goMod, err)
	}
}
