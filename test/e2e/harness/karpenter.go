package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// karpenterModule is where the version of Karpenter is settled, apart from all that Loadline depends on.
const karpenterModule = "test/e2e/race/karpenter"

const karpenterExecutable = "build/e2e/bin/karpenter"

// KarpenterBuilt is Karpenter with its provider of nodes without machines.
type KarpenterBuilt struct {
	// Executable is the controller, Definitions its custom resource definitions.
	Executable  string
	Definitions []*unstructured.Unstructured
	// Version is that of the module.
	Version string
}

// KarpenterIsBuilt says whether BuildKarpenter has built it before.
func KarpenterIsBuilt() bool {
	root, err := Root()
	if err == nil {
		_, err = os.Stat(filepath.Join(root, karpenterExecutable))
	}
	return err == nil
}

// BuildKarpenter builds Karpenter into build/e2e/bin. The first time it downloads what it is made of.
func BuildKarpenter(ctx context.Context, log Logf) (*KarpenterBuilt, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	goApart := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Env = filepath.Join(root, karpenterModule), append(os.Environ(), "GOWORK=off")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("go %s in %s: %w\n%s", args[0], karpenterModule, err, lastLines(stderr.String(), 20))
		}
		return strings.TrimSpace(stdout.String()), nil
	}
	built := &KarpenterBuilt{Executable: filepath.Join(root, karpenterExecutable)}
	if err := os.MkdirAll(filepath.Dir(built.Executable), 0o755); err != nil {
		return nil, err
	}
	log.printf("building Karpenter (minutes the first time, seconds after that)")
	start := time.Now()
	defer everySoOften(func() { log.printf("still building Karpenter") })()
	if _, err := goApart("build", "-o", built.Executable, "sigs.k8s.io/karpenter/kwok"); err != nil {
		return nil, err
	}
	log.printf("built Karpenter in %.0f s", time.Since(start).Seconds())
	found, err := goApart("list", "-m", "-f", "{{.Version}} {{.Dir}}", "sigs.k8s.io/karpenter")
	if err != nil {
		return nil, err
	}
	version, dir, _ := strings.Cut(found, " ")
	built.Version = version
	for _, folder := range []string{"pkg/apis/crds", "kwok/apis/crds"} {
		files, err := filepath.Glob(filepath.Join(dir, folder, "*.yaml"))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("Karpenter %s has no definitions in %s: %v", version, folder, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			objects, err := Objects(content)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			built.Definitions = append(built.Definitions, objects...)
		}
	}
	return built, nil
}

// StartKarpenter starts Karpenter, whose definitions are there, with a file of instance types.
func (c *Cluster) StartKarpenter(ctx context.Context, built *KarpenterBuilt, instanceTypes string) (*Process, error) {
	var ports [2]int
	for i := range ports {
		var err error
		if ports[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	return c.sandbox.start(ctx, processSpec{
		name: "karpenter",
		path: built.Executable,
		args: []string{"--instance-types-file-path=" + instanceTypes, fmt.Sprintf("--metrics-port=%d", ports[0]),
			fmt.Sprintf("--health-probe-port=%d", ports[1]), "--disable-leader-election=true"},
		env: []string{"KUBECONFIG=" + c.Kubeconfig, "SYSTEM_NAMESPACE=kube-system", "KUBERNETES_MIN_VERSION=1.19.0-0"},
		ready: func(ctx context.Context) error {
			return c.getOK(ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[1]))
		},
	})
}
