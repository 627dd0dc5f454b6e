package docs

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"loadline.dev/test/e2e/harness"
)

// startCluster returns a control plane that holds docs/shop.yaml. Its nodes have no kubelet: pods are bound and do not
// run.
func startCluster(t *testing.T, ctx context.Context) *harness.Cluster {
	t.Helper()
	if err := harness.BuildCommands(ctx, t.Logf); err != nil {
		t.Fatal(err)
	}
	cluster, err := harness.Start(ctx, harness.Options{Log: t.Logf, ControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	content, err := os.ReadFile(filepath.Join(root(t), "docs", "shop.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lists, err := harness.Objects(content)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	items, _, err := unstructured.NestedSlice(lists[0].Object, "items")
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		objects = append(objects, &unstructured.Unstructured{Object: item.(map[string]any)})
	}
	// Namespaces first, as kubectl needs them too.
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return rank(a) - rank(b)
	})
	if err := cluster.Apply(ctx, objects); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func rank(o *unstructured.Unstructured) int {
	return slices.Index([]string{"Pod", "Node", "Namespace"}, o.GetKind()) * -1
}

// Commands that need a cluster are run on one, those of a document one after the other on the same.
func TestCluster(t *testing.T) {
	for _, file := range documents(t) {
		blocks := slices.DeleteFunc(read(t, file), func(b Block) bool { return b.Run != "cluster" })
		if len(blocks) == 0 {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
			defer cancel()
			cluster := startCluster(t, ctx)
			// Helm's files at home are removed with the control plane.
			env := environment(root(t), "KUBECONFIG="+cluster.Kubeconfig, "HOME="+cluster.Dir())
			dir := workFolder(t)
			for _, b := range blocks {
				runBlock(t, ctx, b, dir, env)
			}
			if *update {
				rewrite(t, blocks)
			}
		})
	}
}
