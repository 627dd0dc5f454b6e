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

// fenced returns the only block of this language in the last section of docs/install.md.
func fenced(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## A scheduler of your own\n")
	blocks := regexp.MustCompile("(?ms)^```"+regexp.QuoteMeta(language)+"\n(.*?)^```$").FindAllStringSubmatch(section, -1)
	if len(blocks) != 1 {
		t.Fatalf("docs/install.md has %d blocks of %s, not one", len(blocks), language)
	}
	return blocks[0][1]
}

// The page names the versions that our own scheduler is built from. Its files and its command build kube-scheduler
// with the plugin in an empty folder, from what this machine has downloaded. The build takes minutes, unless the parts
// of Kubernetes are in the build cache.
func TestSchedulerOfYourOwn(t *testing.T) {
	own, err := os.ReadFile("../../shim/cmd/loadline-scheduler/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	goMod := fenced(t, "go.mod")
	for _, require := range regexp.MustCompile(`(?m)^\t\S+ v\S+$`).FindAllString(goMod, -1) {
		if pattern := `(?m)^(\t|require )` + regexp.QuoteMeta(require[1:]) + `( // indirect)?$`; !regexp.MustCompile(
			pattern).Match(own) {
			t.Errorf("the page requires %s, and our scheduler does not", require[1:])
		}
	}
	shim, err := filepath.Abs("../../shim")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, content := range map[string]string{"main.go": fenced(t, "go"),
		"go.mod": goMod + "\nreplace loadline.dev/shim => " + shim + "\n"} { // it is not published yet
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{fenced(t, "sh"), "go version -m scheduler", "./scheduler --help"} {
		cmd := exec.Command("bash", "-euc", command)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOPROXY=off", "GOSUMDB=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		if strings.HasPrefix(command, "go version") && !regexp.MustCompile(`(?m)^\tdep\tloadline\.dev/shim\t`).Match(out) {
			t.Errorf("the program has no plugin: %s", out)
		}
	}
}
