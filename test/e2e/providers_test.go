package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/providers/clusterapi"
	"loadline.dev/shim/providers/karpenter"
	"loadline.dev/test/e2e/harness"
)

// A real API server answers to providers without definitions, with definitions of another version, without rights, and
// without the webhook that converts between versions. Each answer is an error that says what is missing, also to a
// group that grows, and never an empty cluster.
func TestProvidersWithoutDefinitionsOrRights(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster := startCluster(t, ctx, harness.Options{})
	admin, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	nobody := rest.CopyConfig(admin)
	nobody.Impersonate = rest.ImpersonationConfig{UserName: "nobody"}
	expect := func(kind string, config *rest.Config, want string) {
		t.Helper()
		p := openProvider(t, kind, config, cluster.Client)
		if err := p.Refresh(ctx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", kind, err, want)
		}
		if err := p.IncreaseSize(ctx, mdGroup, 0, 1); err == nil || cloud.OutcomeUnknown(err) {
			t.Errorf("%s: growth after that: error %v", kind, err)
		}
	}
	expect("karpenter", admin, "the API server has no nodepools of karpenter.sh/v1: install Karpenter 1.0 or newer")
	expect("cluster-api", admin, "has no API group cluster.x-k8s.io: is Cluster API installed there?")

	define(t, ctx, cluster, "karpenter.sh", "NodePool", "Cluster", "v1beta1")
	define(t, ctx, cluster, "karpenter.sh", "NodeClaim", "Cluster", "v1beta1")
	expect("karpenter", admin, "the API server has no nodepools of karpenter.sh/v1")
	for _, kind := range []string{"Machine", "MachineSet", "MachinePool", "MachineDeployment"} {
		define(t, ctx, cluster, "cluster.x-k8s.io", kind, "Namespaced", "v1beta1", "v1beta2")
	}
	expect("cluster-api", nobody, "no right to list machinedeployments")
	old := schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta1", Resource: "machinedeployments"}
	objects, err := dynamic.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := objects.Resource(old).Namespace("default").Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment", "metadata": map[string]any{"name": "md"},
		"spec": map[string]any{"replicas": int64(1)}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("cluster-api", admin, "conversion webhook for cluster.x-k8s.io/v1beta1, Kind=MachineDeployment failed")
	define(t, ctx, cluster, "karpenter.sh", "NodePool", "Cluster", "v1beta1", "v1")
	expect("karpenter", nobody, "rights are missing, see manifests/autoscaler/karpenter")
}

func openProvider(t *testing.T, kind string, config *rest.Config, nodes kubernetes.Interface) cloud.Provider {
	t.Helper()
	if kind == "cluster-api" {
		p, err := clusterapi.Open(&clusterapi.Options{}, config, nodes)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	p, err := karpenter.New(karpenter.DefaultOptions(), objects, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// define has the API server know a kind in some versions, of which the first is stored, and waits until it does. A
// webhook that there is not converts between them.
func define(t *testing.T, ctx context.Context, cluster *harness.Cluster, group, kind, scope string,
	versions ...string) {
	t.Helper()
	plural := strings.ToLower(kind) + "s"
	var all []any
	for i, version := range versions {
		all = append(all, map[string]any{"name": version, "served": true, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
				"x-kubernetes-preserve-unknown-fields": true}}})
	}
	spec := map[string]any{"group": group, "scope": scope, "versions": all, "names": map[string]any{"kind": kind,
		"plural": plural, "singular": strings.ToLower(kind)}}
	if len(versions) > 1 {
		spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{
				"service": map[string]any{"namespace": "none", "name": "none"}}}}
	}
	definition := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1",
		"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + group}, "spec": spec}}
	if err := cluster.Apply(ctx, []*unstructured.Unstructured{definition}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !served(cluster, definition); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s of %s is not served", plural, group)
		}
	}
}

// served says whether the API server serves kinds, in all versions that it is to serve.
func served(cluster *harness.Cluster, definitions ...*unstructured.Unstructured) bool {
	for _, definition := range definitions {
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		for _, one := range versions {
			version, _ := one.(map[string]any)
			if version["served"] != true {
				continue
			}
			list, err := cluster.Client.Discovery().ServerResourcesForGroupVersion(fmt.Sprint(group, "/", version["name"]))
			if err != nil || !slices.ContainsFunc(list.APIResources,
				func(r metav1.APIResource) bool { return r.Name == plural }) {
				return false
			}
		}
	}
	return true
}
