package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"loadline.dev/shim/freeport"
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
func KarpenterIsBuilt() bool { return isBuilt(karpenterExecutable) }

// BuildKarpenter builds Karpenter into build/e2e/bin. The first time it downloads what it is made of.
func BuildKarpenter(ctx context.Context, log Logf) (*KarpenterBuilt, error) {
	executable, err := buildApart(ctx, log, karpenterModule, "sigs.k8s.io/karpenter/kwok", karpenterExecutable)
	if err != nil {
		return nil, err
	}
	found, err := goApart(ctx, karpenterModule, "list", "-m", "-f", "{{.Version}} {{.Dir}}", "sigs.k8s.io/karpenter")
	if err != nil {
		return nil, err
	}
	built := &KarpenterBuilt{Executable: executable}
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
func (c *Cluster) StartKarpenter(ctx context.Context, built *KarpenterBuilt,
	instanceTypes string) (*Controller, error) {
	var ports [2]int
	for i := range ports {
		var err error
		if ports[i], err = freeport.Port(); err != nil {
			return nil, err
		}
	}
	return c.startController(ctx, processSpec{
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
