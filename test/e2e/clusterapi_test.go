package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"loadline.dev/test/e2e/harness"
)

const infrastructureGroup = "infrastructure.cluster.x-k8s.io"

var (
	machineDeployments = schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2",
		Resource: "machinedeployments"}
	capiMachines = schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "machines"}
	testMachines = schema.GroupVersionResource{Group: infrastructureGroup, Version: "v1", Resource: "testmachines"}
	testClusters = schema.GroupVersionResource{Group: infrastructureGroup, Version: "v1", Resource: "testclusters"}
)

// infrastructureKind is the definition of one kind of the test's infrastructure provider.
func infrastructureKind(kind string) *unstructured.Unstructured {
	plural := strings.ToLower(kind) + "s"
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1",
		"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + infrastructureGroup,
			"labels": map[string]any{"cluster.x-k8s.io/v1beta2": "v1"}},
		"spec": map[string]any{"group": infrastructureGroup, "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
					"properties": map[string]any{"spec": anything, "status": anything}}}}}}}}
}

// capi is a control plane with Cluster API's core controllers; the test makes the machines.
type capi struct {
	*testing.T
	ctx     context.Context
	cluster *harness.Cluster
	objects dynamic.Interface
}

func startClusterAPI(t *testing.T) *capi {
	t.Helper()
	if !harness.ClusterAPIIsBuilt() && os.Getenv("BUILD_CLUSTER_API") == "" {
		t.Skip("Cluster API is not built: make test-cluster-api takes some minutes for it")
	}
	c := &capi{T: t, ctx: deadline(t)}
	built, err := harness.BuildClusterAPI(c.ctx, t.Logf)
	c.must(err)
	c.cluster = startCluster(t, c.ctx, harness.Options{ControllerManager: true, Kubelet: true})
	rest, err := clientcmd.BuildConfigFromFlags("", c.cluster.Kubeconfig)
	c.must(err)
	c.objects, err = dynamic.NewForConfig(rest)
	c.must(err)
	c.must(c.cluster.Apply(c.ctx, append(built.Definitions, infrastructureKind("TestCluster"),
		infrastructureKind("TestMachine"), infrastructureKind("TestMachineTemplate"))))
	_, err = c.cluster.StartClusterAPI(c.ctx, built)
	c.must(err)
	kubeconfig, err := os.ReadFile(c.cluster.Kubeconfig)
	c.must(err)
	_, err = c.cluster.Client.CoreV1().Secrets("default").Create(c.ctx, &v1.Secret{Type: "cluster.x-k8s.io/secret",
		ObjectMeta: metav1.ObjectMeta{Name: "c-kubeconfig", Labels: map[string]string{"cluster.x-k8s.io/cluster-name": "c"}},
		Data:       map[string][]byte{"value": kubeconfig}}, metav1.CreateOptions{})
	c.must(err)
	content, err := os.ReadFile("testdata/clusterapi.yaml")
	c.must(err)
	objects, err := harness.Objects(content)
	c.must(err)
	c.wait("the definitions", func() bool { return c.cluster.Apply(c.ctx, objects) == nil })
	go c.provision()
	return c
}

func (c *capi) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *capi) wait(what string, holds func() bool) {
	c.Helper()
	for end := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) || c.ctx.Err() != nil {
			c.Fatalf("waited in vain for %s; machines %v, nodes %v", what, c.names(capiMachines), c.nodes())
		}
	}
}

// provision is the infrastructure provider: each TestMachine becomes a node at once.
func (c *capi) provision() {
	provisioned := `"status":{"initialization":{"provisioned":true}}`
	for ; c.ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		_, _ = c.objects.Resource(testClusters).Namespace("default").Patch(c.ctx, "c", types.MergePatchType,
			[]byte("{"+provisioned+"}"), metav1.PatchOptions{}, "status")
		list, err := c.objects.Resource(testMachines).Namespace("default").List(c.ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for _, machine := range list.Items {
			name := machine.GetName()
			if id, _, _ := unstructured.NestedString(machine.Object, "spec", "providerID"); id != "" {
				continue
			}
			capacity := v1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"),
				"pods": resource.MustParse("110")}
			_, _ = c.cluster.Client.CoreV1().Nodes().Create(c.ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: v1.NodeSpec{ProviderID: "test://" + name}, Status: v1.NodeStatus{Capacity: capacity,
					Allocatable: capacity, Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue,
						Reason: "KubeletReady"}}}}, metav1.CreateOptions{})
			of := c.objects.Resource(testMachines).Namespace("default")
			_, _ = of.Patch(c.ctx, name, types.MergePatchType, []byte("{"+provisioned+"}"), metav1.PatchOptions{}, "status")
			_, _ = of.Patch(c.ctx, name, types.MergePatchType, []byte(`{"spec":{"providerID":"test://`+name+`"}}`),
				metav1.PatchOptions{})
		}
	}
}

func (c *capi) names(of schema.GroupVersionResource) (names []string) {
	list, err := c.objects.Resource(of).Namespace("default").List(c.ctx, metav1.ListOptions{})
	c.must(err)
	for _, object := range list.Items {
		names = append(names, object.GetName())
	}
	return names
}

func (c *capi) nodes() (names []string) {
	list, err := c.cluster.Client.CoreV1().Nodes().List(c.ctx, metav1.ListOptions{})
	c.must(err)
	for _, node := range list.Items {
		names = append(names, node.Name)
	}
	return names
}

// running returns the nodes of pods that run.
func (c *capi) running() map[string]string {
	list, err := c.cluster.Client.CoreV1().Pods("default").List(c.ctx, metav1.ListOptions{})
	c.must(err)
	on := map[string]string{}
	for _, pod := range list.Items {
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			on[pod.Name] = pod.Spec.NodeName
		}
	}
	return on
}

func (c *capi) replicas() int64 {
	md, err := c.objects.Resource(machineDeployments).Namespace("default").Get(c.ctx, "md", metav1.GetOptions{})
	c.must(err)
	count, _, _ := unstructured.NestedInt64(md.Object, "spec", "replicas")
	return count
}

// startAutoscaler starts the autoscaler with the rights of the manifests alone, by the command line of Cluster
// Autoscaler's own example.
func (c *capi) startAutoscaler() *harness.Autoscaler {
	c.Helper()
	for _, folder := range []string{"autoscaler", "autoscaler/act", "autoscaler/cluster-api",
		"autoscaler/act-cluster-api"} {
		apply(c.T, c.ctx, c.cluster, folder)
	}
	c.must(c.cluster.Client.AppsV1().Deployments("kube-system").Delete(c.ctx, "loadline-autoscaler",
		metav1.DeleteOptions{}))
	kubeconfig, err := c.cluster.ServiceAccountKubeconfig(c.ctx, "kube-system", "loadline-autoscaler")
	c.must(err)
	file := filepath.Join(c.cluster.Dir(), "autoscaler.yaml")
	c.must(os.WriteFile(file, []byte("apiVersion: loadline.dev/v1alpha1\nkind: AutoscalerConfiguration\n"), 0o600))
	engine := startEngine(c.T, c.ctx, c.cluster)
	autoscaler, err := c.cluster.StartAutoscaler(c.ctx, "autoscaler", kubeconfig, file, "--mode=act",
		"--engine="+engine.Address, "--cloud-provider=clusterapi", "--node-group-auto-discovery=clusterapi:clusterName=c",
		"--scan-interval=1s", "--decisions=scale-up,scale-down", "--scale-down-delay-after-add=1s",
		"--scale-down-unneeded-time=3s", "--node-delete-delay-after-taint=1s", "--poll-interval=500ms")
	c.must(err)
	return autoscaler
}

// Cluster API's own controllers make machines for pods that wait, from none, and delete those that are not needed any
// more and no others. A MachineDeployment that is paused is left as it is.
func TestAutoscalerWithClusterAPI(t *testing.T) {
	t.Parallel()
	c := startClusterAPI(t)
	_, err := c.cluster.StartScheduler(c.ctx, harness.SchedulerOptions{Name: "stock",
		Config: []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"),
		Site:   harness.Site{Kubeconfig: c.cluster.Kubeconfig, QPS: 1000, NoLeaderElection: true}})
	c.must(err)
	autoscaler := c.startAutoscaler()
	var pods []*v1.Pod
	for i := range 3 {
		pods = append(pods, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%d", i)},
			Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "registry.example/c:1",
				Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("1500m"),
					"memory": resource.MustParse("1Gi")}}}}}})
	}
	c.must(c.cluster.CreatePods(c.ctx, pods))
	c.wait("nodes for the pods", func() bool { return len(c.running()) == 3 })
	if c.replicas() != 3 || len(c.names(capiMachines)) != 3 { // 2 cpus take one pod of 1500m each
		t.Errorf("%d replicas, machines %v for 3 pods", c.replicas(), c.names(capiMachines))
	}
	stays := c.running()["p2"]
	for _, pod := range pods[:2] {
		c.must(c.cluster.DeletePod(c.ctx, pod.Namespace, pod.Name))
	}
	c.wait("two nodes to go", func() bool { return len(c.nodes()) == 1 && len(c.names(capiMachines)) == 1 })
	if left := c.nodes(); c.replicas() != 1 || left[0] != stays || c.running()["p2"] != stays {
		t.Errorf("%d replicas, nodes %v; the pod that stays ran on %s", c.replicas(), left, stays)
	}
	_, err = c.objects.Resource(machineDeployments).Namespace("default").Patch(c.ctx, "md", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`), metav1.PatchOptions{})
	c.must(err)
	c.wait("the warning", func() bool {
		page, err := autoscaler.Get(c.ctx, "/statusz")
		return err == nil && strings.Contains(page, "is paused")
	})
}
