package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/providers/clusterapi"
	"loadline.dev/test/e2e/harness"
)

var (
	machineDeployments = schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2",
		Resource: "machinedeployments"}
	capiMachines = schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "machines"}
	testMachines = schema.GroupVersionResource{Group: infrastructureGroup, Version: "v1", Resource: "testmachines"}
	testClusters = schema.GroupVersionResource{Group: infrastructureGroup, Version: "v1", Resource: "testclusters"}
	testControls = schema.GroupVersionResource{Group: infrastructureGroup, Version: "v1", Resource: "testcontrolplanes"}
)

// capi is a control plane with Cluster API's core controllers; the test makes the machines.
type capi struct {
	*testing.T
	ctx     context.Context
	cluster *harness.Cluster
	rest    *rest.Config
	objects dynamic.Interface
	manager *harness.Controller
	outage  atomic.Bool // no machine becomes a node meanwhile
	groupID string      // of the node group that is tested

	poolWithoutMachines bool // Cluster API makes no Machines for the instances of the MachinePool
	poolStock           int  // how many instances the MachinePool can have, whatever it asks for
}

func startClusterAPI(t *testing.T) *capi {
	t.Helper()
	if !harness.ClusterAPIIsBuilt() && os.Getenv("BUILD_CLUSTER_API") == "" {
		skipFor(t, "Cluster API is not built", "test-cluster-api")
	}
	c := &capi{T: t, ctx: deadline(t), groupID: mdGroup, poolStock: math.MaxInt}
	built, err := harness.BuildClusterAPI(c.ctx, t.Logf)
	c.must(err)
	c.cluster = startCluster(t, c.ctx, harness.Options{ControllerManager: true, Kubelet: true, Audit: true})
	c.rest, err = clientcmd.BuildConfigFromFlags("", c.cluster.Kubeconfig)
	c.must(err)
	c.rest.QPS, c.rest.Burst = 1000, 1000
	c.objects, err = dynamic.NewForConfig(c.rest)
	c.must(err)
	definitions := append(slices.Clone(built.Definitions), infrastructureKind("TestCluster"),
		infrastructureKind("TestControlPlane"), infrastructureKind("TestMachine"),
		infrastructureKind("TestMachineTemplate"), infrastructureKind("TestMachinePool"))
	c.must(c.cluster.Apply(c.ctx, definitions))
	c.wait("the definitions", func() bool { return served(c.cluster, definitions...) }) // the manager ends without one
	c.manager, err = c.cluster.StartClusterAPI(c.ctx, built)
	c.must(err)
	kubeconfig, err := os.ReadFile(c.cluster.Kubeconfig)
	c.must(err)
	_, err = c.cluster.Client.CoreV1().Secrets("default").Create(c.ctx, &v1.Secret{Type: "cluster.x-k8s.io/secret",
		ObjectMeta: metav1.ObjectMeta{Name: "c-kubeconfig", Labels: map[string]string{"cluster.x-k8s.io/cluster-name": "c"}},
		Data:       map[string][]byte{"value": kubeconfig}}, metav1.CreateOptions{})
	c.must(err)
	c.apply("testdata/clusterapi.yaml")
	go c.provision()
	return c
}

// apply creates the objects of a file, as soon as the API server serves their definitions.
func (c *capi) apply(file string) {
	c.Helper()
	content, err := os.ReadFile(file)
	c.must(err)
	objects, err := harness.Objects(content)
	c.must(err)
	c.wait("the definitions", func() bool { return c.cluster.Apply(c.ctx, objects) == nil })
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

// replicas returns the target of the node group that is tested.
func (c *capi) replicas() int64 { return c.replicasOf(c.groupID) }

// replicasOf returns the target of a node group, "MachineSet/default/ms".
func (c *capi) replicasOf(group string) int64 {
	parts := strings.Split(group, "/")
	resource := machineDeployments
	resource.Resource = strings.ToLower(parts[0]) + "s"
	object, err := c.objects.Resource(resource).Namespace(parts[1]).Get(c.ctx, parts[2], metav1.GetOptions{})
	c.must(err)
	count, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return count
}

// patch changes the MachineDeployment.
func (c *capi) patch(change string) {
	c.Helper()
	_, err := c.objects.Resource(machineDeployments).Namespace("default").Patch(c.ctx, "md", types.MergePatchType,
		[]byte(change), metav1.PatchOptions{})
	c.must(err)
}

// finalize changes the finalizers of the MachineDeployment.
func (c *capi) finalize(change func([]string) []string) {
	c.Helper()
	of := c.objects.Resource(machineDeployments).Namespace("default")
	c.wait("the finalizers", func() bool {
		md, err := of.Get(c.ctx, "md", metav1.GetOptions{})
		c.must(err)
		md.SetFinalizers(change(md.GetFinalizers()))
		_, err = of.Update(c.ctx, md, metav1.UpdateOptions{})
		return err == nil
	})
}

// provider returns Loadline's hands, as a process that has just begun.
func (c *capi) provider() *clusterapi.Provider {
	c.Helper()
	p, err := clusterapi.Open(&clusterapi.Options{}, c.rest, c.cluster.Client)
	c.must(err)
	return p
}

const mdGroup = "MachineDeployment/default/md"

// group reads the group as a loop does; nil: it is not listed.
func (c *capi) group(p *clusterapi.Provider) *cloud.Group {
	c.Helper()
	c.must(p.Refresh(c.ctx))
	groups, err := p.Groups(c.ctx, nil)
	c.must(err)
	if len(groups) == 0 {
		return nil
	}
	if len(groups) != 1 || groups[0].ID != c.groupID {
		c.Fatalf("groups %+v, want %s alone", groups, c.groupID)
	}
	return &groups[0]
}

// states returns the machines of the group by their states, "2 RUNNING".
func (c *capi) states(p *clusterapi.Provider) string {
	counts := map[string]int{}
	for _, machine := range c.group(p).Instances {
		counts[strings.TrimPrefix(machine.GetStatus().GetInstanceState().String(), "INSTANCE_")]++
	}
	var all []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%d %s", counts[state], state))
	}
	return strings.Join(all, ", ")
}

// expectProblem waits until the group is left as it is, and why.
func (c *capi) expectProblem(p *clusterapi.Provider, why string) {
	c.Helper()
	c.wait(why, func() bool {
		g := c.group(p)
		return g != nil && g.Problem != nil && strings.Contains(g.Problem.Error(), why)
	})
}

// Cluster API's own controllers make machines from none, one of two owners hears that it is too late, and the machine
// is deleted that is marked, whichever it is. One that is deleted by hand is replaced, and no other is bought.
func TestClusterAPIMakesAndDeletesMachines(t *testing.T) {
	t.Parallel()
	c := startClusterAPI(t)
	p, other := c.provider(), c.provider()
	if g := c.group(p); g.Target != 0 || g.Max != 5 || g.Problem != nil || len(g.Instances) != 0 {
		t.Fatalf("group %+v", g)
	}
	node, err := p.TemplateNode(c.ctx, mdGroup)
	if err != nil || node.Status.Allocatable.Cpu().Value() != 2 || node.Status.Allocatable.Memory().Value() != 4<<30 {
		t.Errorf("template %v, error %v", node, err)
	}
	c.group(other)
	c.must(p.IncreaseSize(c.ctx, mdGroup, 0, 3))
	if err := other.IncreaseSize(c.ctx, mdGroup, 0, 3); !errors.Is(err, cloud.ErrChanged) {
		t.Errorf("the second owner is told %v, want that the target has changed", err)
	}
	c.wait("three nodes", func() bool { return c.states(c.provider()) == "3 RUNNING" })
	for i, going := range []int{1, 0} { // neither the oldest nor the newest is deleted by itself: the one that is named is
		machine := c.group(p).Instances[going].GetId()
		c.must(p.DeleteNodes(c.ctx, mdGroup, []*v1.Node{{Spec: v1.NodeSpec{ProviderID: machine}}}))
		c.wait("a node less", func() bool {
			return c.states(p) == fmt.Sprintf("%d RUNNING", 2-i) && len(c.nodes()) == 2-i
		})
		if left := c.nodes(); slices.Contains(left, strings.TrimPrefix(machine, "test://")) {
			t.Errorf("%s was to go, nodes %v stay", machine, left)
		}
	}
	last := c.names(capiMachines)[0]
	c.must(c.objects.Resource(capiMachines).Namespace("default").Delete(c.ctx, last, metav1.DeleteOptions{}))
	c.wait("a new machine", func() bool { return c.states(p) == "1 RUNNING" && c.names(capiMachines)[0] != last })
	if g := c.group(p); g.Target != 1 {
		t.Errorf("the target is %d after a machine was deleted by hand, want 1", g.Target)
	}
	if err := p.DeleteNodes(c.ctx, mdGroup, []*v1.Node{{Spec: v1.NodeSpec{ProviderID: "test://" + last}}}); err == nil {
		t.Error("a machine that is gone was deleted once more, and the target is smaller")
	}
}

// While a MachineDeployment replaces its machines it may grow, and no node of it is removed. One that is paused is left
// as it is, and so is one that is being deleted, until it is not listed any more.
func TestClusterAPIReplacesMachinesItself(t *testing.T) {
	t.Parallel()
	c := startClusterAPI(t)
	p := c.provider()
	c.group(p)
	c.must(p.IncreaseSize(c.ctx, mdGroup, 0, 2))
	c.wait("two nodes", func() bool { return c.states(p) == "2 RUNNING" })
	before := c.nodes()
	c.outage.Store(true)
	c.patch(`{"spec":{"template":{"metadata":{"labels":{"generation":"2"}},"spec":{"version":"v1.36.0"}}}}`)
	c.wait("a machine of the new template", func() bool { return c.states(p) == "1 CREATING, 2 RUNNING" })
	g := c.group(p)
	if g.Problem != nil || g.Target != 2 || g.Min != 2 {
		t.Errorf("group %+v while its machines are replaced, want one of at least its 2 nodes", g)
	}
	err := p.DeleteNodes(c.ctx, mdGroup, []*v1.Node{{Spec: v1.NodeSpec{ProviderID: "test://" + before[0]}}})
	if err == nil || !strings.Contains(err.Error(), "are being replaced") {
		t.Errorf("a node was deleted while machines are replaced: error %v", err)
	}
	c.must(p.IncreaseSize(c.ctx, mdGroup, 2, 1))
	c.outage.Store(false)
	c.wait("the new machines", func() bool {
		g := c.group(p)
		return g.Min == 0 && g.Target == 3 && c.states(p) == "3 RUNNING"
	})
	for _, node := range before {
		if slices.Contains(c.nodes(), node) {
			t.Errorf("node %s of the old template stays", node)
		}
	}

	c.patch(`{"spec":{"paused":true}}`)
	c.expectProblem(p, "is paused")
	c.patch(`{"spec":{"paused":false}}`)
	c.wait("the end of the pause", func() bool { return c.group(p).Problem == nil })

	c.finalize(func(all []string) []string { return append(all, "test.example/kept") })
	c.must(c.objects.Resource(machineDeployments).Namespace("default").Delete(c.ctx, "md", metav1.DeleteOptions{}))
	c.expectProblem(p, "is being deleted")
	c.finalize(func(all []string) []string {
		return slices.DeleteFunc(all, func(name string) bool { return name == "test.example/kept" })
	})
	c.wait("the end of the group", func() bool { return c.group(p) == nil && len(c.nodes()) == 0 })
}

// startAutoscaler starts the autoscaler with the rights of the manifests alone, by the command line of Cluster
// Autoscaler's own example.
func (c *capi) startAutoscaler(args ...string) *harness.Autoscaler {
	c.Helper()
	for _, folder := range []string{"autoscaler", "autoscaler/act", "autoscaler/act-nodes", "autoscaler/cluster-api",
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
	autoscaler, err := c.cluster.StartAutoscaler(c.ctx, "autoscaler", kubeconfig, file, append([]string{"--mode=act",
		"--engine=" + engine.Address, "--cloud-provider=clusterapi",
		"--node-group-auto-discovery=clusterapi:clusterName=c", "--scan-interval=1s", "--decisions=scale-up,scale-down",
		"--scale-down-delay-after-add=1s", "--scale-down-unneeded-time=3s", "--node-delete-delay-after-taint=1s",
		"--poll-interval=500ms"}, args...)...)
	c.must(err)
	return autoscaler
}

// Cluster API's own controllers make machines for pods that wait, from none, and delete those that are not needed any
// more and no others. A MachineDeployment that is paused is left as it is.
func TestAutoscalerWithClusterAPI(t *testing.T) {
	t.Parallel()
	c := startClusterAPI(t)
	startPlainScheduler(t, c.ctx, c.cluster)
	autoscaler := c.startAutoscaler()
	pods := c.createPods(3)
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
	c.patch(`{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`)
	c.wait("the warning", func() bool {
		page, err := autoscaler.Get(c.ctx, "/statusz")
		return err == nil && strings.Contains(page, "is paused")
	})
}
