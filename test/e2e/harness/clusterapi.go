package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"loadline.dev/shim/certificates"
	"loadline.dev/shim/freeport"
)

// clusterAPIModule is where the version of Cluster API is settled, apart from all that Loadline depends on.
const clusterAPIModule = "test/e2e/clusterapi"

const clusterAPIExecutable = "build/e2e/bin/cluster-api"

// ClusterAPIBuilt is Cluster API with its core controllers.
type ClusterAPIBuilt struct {
	// Executable is the manager, Definitions its custom resource definitions, without their webhooks.
	Executable  string
	Definitions []*unstructured.Unstructured
}

// ClusterAPIIsBuilt says whether BuildClusterAPI has built it before.
func ClusterAPIIsBuilt() bool { return isBuilt(clusterAPIExecutable) }

// BuildClusterAPI builds the core controllers into build/e2e/bin. The first time it downloads what they are made of.
func BuildClusterAPI(ctx context.Context, log Logf) (*ClusterAPIBuilt, error) {
	executable, err := buildApart(ctx, log, clusterAPIModule, "sigs.k8s.io/cluster-api/core", clusterAPIExecutable)
	if err != nil {
		return nil, err
	}
	dir, err := goApart(ctx, clusterAPIModule, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api")
	if err != nil {
		return nil, err
	}
	definitions, err := clusterAPIDefinitions(dir)
	return &ClusterAPIBuilt{Executable: executable, Definitions: definitions}, err
}

// clusterAPIDefinitions reads the custom resource definitions. The versions of an object differ in more than their
// names, but no test writes one version and reads another: they need no conversion.
func clusterAPIDefinitions(dir string) (all []*unstructured.Unstructured, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "core/config/crd/bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("Cluster API has no definitions in %s: %v", dir, err)
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
		for _, object := range objects { // as its kustomization labels them
			object.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"})
		}
		all = append(all, objects...)
	}
	return all, nil
}

// StartClusterAPI starts the core controllers, whose definitions are there.
func (c *Cluster) StartClusterAPI(ctx context.Context, built *ClusterAPIBuilt) (*Controller, error) {
	var ports [3]int
	for i := range ports {
		var err error
		if ports[i], err = freeport.Port(); err != nil {
			return nil, err
		}
	}
	cert, key, err := certificates.SelfSigned([]string{"localhost"}, time.Now(), 24*time.Hour)
	if err != nil {
		return nil, err
	}
	folder := c.path("cluster-api-webhooks")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return c.startController(ctx, processSpec{
		name: "cluster-api",
		path: built.Executable,
		args: []string{"--leader-elect=false", "--webhook-cert-dir=" + folder, fmt.Sprintf("--webhook-port=%d", ports[0]),
			fmt.Sprintf("--health-addr=127.0.0.1:%d", ports[1]), "--insecure-diagnostics",
			fmt.Sprintf("--diagnostics-address=127.0.0.1:%d", ports[2]),
			"--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields"},
		env: []string{"KUBECONFIG=" + c.Kubeconfig, "POD_NAMESPACE=default"},
		ready: func(ctx context.Context) error {
			return c.getOK(ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[1]))
		},
	})
}
