package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Component is a part of a Kubernetes control plane that the harness builds from its Go module, at the version
// that the workspace requires: that of test/e2e/go.mod, or a newer one of kubernetes/MINOR (see OtherMinor).
type Component string

const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	StockScheduler    Component = "kube-scheduler"
	ControllerManager Component = "kube-controller-manager"
	Kubectl           Component = "kubectl" // for commands of documents
)

var mainPackages = map[Component]string{
	Etcd:              "go.etcd.io/etcd/server/v3",
	APIServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
	StockScheduler:    "k8s.io/kubernetes/cmd/kube-scheduler",
	ControllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
	Kubectl:           "k8s.io/kubernetes/cmd/kubectl",
}

// versionFlags returns the linker flags by which the components report the release that they were built from. A
// build from modules otherwise calls itself v0.0.0-master, which API clients and feature gates would believe.
func versionFlags(version string) (string, error) {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) < 3 {
		return "", fmt.Errorf("version %q of k8s.io/kubernetes is not of the form v1.2.3", version)
	}
	const pkg = "k8s.io/component-base/version"
	return fmt.Sprintf("-X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s",
		pkg, version, pkg, parts[0], pkg, parts[1]), nil
}

// Build makes sure that the components lie in a folder below build/e2e and returns that folder. What a component is
// built from is settled by the go.mod files of the workspace, the Go toolchain and the flags; a stamp beside the
// executable remembers them, so that a second call costs milliseconds. Several processes may call it at once.
func Build(ctx context.Context, log Logf, components ...Component) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(root, "build", "e2e", withMinor("bin"))
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(filepath.Join(bin, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	stamp, flags, err := buildInputs(ctx, root)
	if err != nil {
		return "", err
	}
	for _, component := range components {
		if err := buildOne(ctx, log, root, bin, component, stamp, flags); err != nil {
			return "", err
		}
	}
	return bin, nil
}

func buildOne(ctx context.Context, log Logf, root, bin string, component Component, stamp, flags string) error {
	target := filepath.Join(bin, string(component))
	stampFile := filepath.Join(bin, "."+string(component)+".stamp")
	if old, err := os.ReadFile(stampFile); err == nil && string(old) == stamp {
		if _, err := checkExecutable(target); err == nil {
			return nil
		}
	}
	log.printf("building %s from %s (minutes the first time, seconds after that)", component, mainPackages[component])
	start := time.Now()
	defer everySoOften(func() { log.printf("still building %s", component) })()
	if _, err := goTool(ctx, filepath.Join(root, "test", "e2e"), "build", "-ldflags", flags, "-o", target,
		mainPackages[component]); err != nil {
		return fmt.Errorf("building %s: %w", component, err)
	}
	log.printf("built %s in %.0f s", component, time.Since(start).Seconds())
	return os.WriteFile(stampFile, []byte(stamp), 0o644)
}

// everySoOften calls f every 20 seconds until it is stopped.
func everySoOften(f func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(20 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				f()
			}
		}
	}()
	return func() { close(done) }
}

// buildInputs returns a hash of all that settles the content of a component, and the linker flags.
func buildInputs(ctx context.Context, root string) (stamp, flags string, err error) {
	dir := filepath.Join(root, "test", "e2e")
	version, err := goTool(ctx, dir, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return "", "", err
	}
	if flags, err = versionFlags(strings.TrimSpace(version)); err != nil {
		return "", "", err
	}
	environment, err := goTool(ctx, dir, "env", "GOVERSION", "GOFLAGS", "CGO_ENABLED", "GOARCH", "GOEXPERIMENT")
	if err != nil {
		return "", "", err
	}
	modules, err := goTool(ctx, dir, "list", "-m", "-f", "{{.GoMod}}")
	if err != nil {
		return "", "", err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n", flags, environment)
	for _, goMod := range strings.Fields(modules) {
		content, err := os.ReadFile(goMod)
		if err != nil {
			return "", "", err
		}
		fmt.Fprintf(hash, "%d\n%s", len(content), content)
	}
	return hex.EncodeToString(hash.Sum(nil)), flags, nil
}

// goTool runs the go command and returns what it prints. An error carries the end of its complaints.
func goTool(ctx context.Context, dir string, args ...string) (string, error) {
	return goIn(ctx, dir, nil, args...)
}

func goIn(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := fork(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", args[0], dir, err, lastLines(stderr.String(), 20))
	}
	return stdout.String(), nil
}

// goApart runs the go command in a module that is none of the workspace, and returns what it prints, trimmed.
func goApart(ctx context.Context, module string, args ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	out, err := goIn(ctx, filepath.Join(root, module), []string{"GOWORK=off"}, args...)
	return strings.TrimSpace(out), err
}

// isBuilt says whether a program is there, by its path below the root.
func isBuilt(executable string) bool {
	root, err := Root()
	if err == nil {
		_, err = os.Stat(filepath.Join(root, executable))
	}
	return err == nil
}

// buildApart builds a package of a module that is none of the workspace, and returns where the program is. The first
// time it downloads what that is made of.
func buildApart(ctx context.Context, log Logf, module, pkg, executable string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	target := filepath.Join(root, executable)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", err
	}
	log.printf("building %s (minutes the first time, seconds after that)", pkg)
	start := time.Now()
	defer everySoOften(func() { log.printf("still building %s", pkg) })()
	if _, err := goApart(ctx, module, "build", "-o", target, pkg); err != nil {
		return "", err
	}
	log.printf("built %s in %.0f s", pkg, time.Since(start).Seconds())
	return target, nil
}

// lockFile takes an exclusive lock that the kernel releases when this process ends, however it ends.
func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

// BuildHelm builds Helm's own command line beside the components, from the module of the chart's tests.
func BuildHelm(ctx context.Context) error {
	_, err := buildApart(ctx, nil, "test/chart", "helm.sh/helm/v3/cmd/helm", "build/e2e/bin/helm")
	return err
}
