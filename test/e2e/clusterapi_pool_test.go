package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/autoscaler/cloud"
)

var (
	machinePools = schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "machinepools"}
	testPools    = schema.GroupVersionResource{Group: infrastructureGroup, Version: "v1", Resource: "testmachinepools"}
)

const (
	poolGroup    = "MachinePool/default/mp"
	poolSelector = "cluster.x-k8s.io/pool-name=mp"
)

// startPool replaces the MachineDeployment by a MachinePool. The options are set before its provider begins.
func startPool(t *testing.T, options ...func(*capi)) *capi {
	t.Helper()
	c := startClusterAPI(t)
	for _, set := range options {
		set(c)
	}
	c.must(c.objects.Resource(machineDeployments).Namespace("default").Delete(c.ctx, "md", metav1.DeleteOptions{}))
	c.wait("the MachineDeployment to go", func() bool { return len(c.names(machineDeployments)) == 0 })
	c.apply("testdata/clusterapi-pool.yaml")
	c.groupID = poolGroup
	go c.providePool()
	return c
}

// providePool is the infrastructure provider of the MachinePool: it keeps one TestMachine for each replica of the pool.
// If there are too many, it deletes the Machines that are marked for it first, as providers with Machines have to.
func (c *capi) providePool() {
	for made := 0; c.ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		mp, err := c.objects.Resource(machinePools).Namespace("default").Get(c.ctx, "mp", metav1.GetOptions{})
		if err != nil {
			continue
		}
		machines, err := c.listPool(capiMachines)
		if err != nil {
			continue
		}
		instances, err := c.listPool(testMachines)
		if err != nil {
			continue
		}
		staying := slices.DeleteFunc(slices.Clone(instances), func(i unstructured.Unstructured) bool {
			return i.GetDeletionTimestamp() != nil || slices.ContainsFunc(machines, func(m unstructured.Unstructured) bool {
				return m.GetName() == i.GetName() && m.GetDeletionTimestamp() != nil
			})
		})
		replicas, _, _ := unstructured.NestedInt64(mp.Object, "spec", "replicas")
		switch {
		case len(staying) < min(int(replicas), c.poolStock):
			made++
			c.makeInstance(fmt.Sprintf("mp-%d", made))
		case len(staying) > int(replicas) && c.poolWithoutMachines:
			_ = c.objects.Resource(testMachines).Namespace("default").Delete(c.ctx, staying[0].GetName(),
				metav1.DeleteOptions{})
		case len(staying) > int(replicas):
			name := staying[0].GetName()
			for _, m := range machines {
				if _, marked := m.GetAnnotations()["cluster.x-k8s.io/delete-machine"]; marked && m.GetDeletionTimestamp() == nil {
					name = m.GetName()
				}
			}
			_ = c.objects.Resource(capiMachines).Namespace("default").Delete(c.ctx, name, metav1.DeleteOptions{})
		}
		c.reportPool(staying)
	}
}

func (c *capi) listPool(of schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	list, err := c.objects.Resource(of).Namespace("default").List(c.ctx, metav1.ListOptions{LabelSelector: poolSelector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (c *capi) makeInstance(name string) {
	_, _ = c.objects.Resource(testMachines).Namespace("default").Create(c.ctx, &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": infrastructureGroup + "/v1", "kind": "TestMachine",
			"metadata": map[string]any{"name": name, "labels": map[string]any{"cluster.x-k8s.io/cluster-name": "c",
				"cluster.x-k8s.io/pool-name": "mp"}}, "spec": map[string]any{}}}, metav1.CreateOptions{})
}

// reportPool writes what Cluster API reads of the pool.
func (c *capi) reportPool(instances []unstructured.Unstructured) {
	ids := []string{}
	for _, i := range instances {
		if id, _, _ := unstructured.NestedString(i.Object, "spec", "providerID"); id != "" {
			ids = append(ids, id)
		}
	}
	status := map[string]any{"ready": true, "replicas": len(instances)}
	if !c.poolWithoutMachines {
		status["infrastructureMachineKind"] = "TestMachine"
	}
	for subresource, change := range map[string]any{"": map[string]any{"spec": map[string]any{"providerIDList": ids}},
		"status": map[string]any{"status": status}} {
		if content, err := json.Marshal(change); err == nil {
			_, _ = c.objects.Resource(testPools).Namespace("default").Patch(c.ctx, "mp", types.MergePatchType, content,
				metav1.PatchOptions{}, strings.Fields(subresource)...)
		}
	}
}

// A MachinePool whose infrastructure provider makes Machines grows from none, one of two owners hears that it is too
// late, the node that is named is deleted and no other, and a machine that never becomes a node is taken back.
func TestClusterAPIMachinePool(t *testing.T) {
	t.Parallel()
	c := startPool(t)
	p, other := c.provider(), c.provider()
	c.wait("the group", func() bool { return c.group(p) != nil })
	if g := c.group(p); g.Target != 0 || g.Max != 5 || g.Problem != nil || len(g.Instances) != 0 {
		t.Fatalf("group %+v", g)
	}
	node, err := p.TemplateNode(c.ctx, poolGroup)
	if err != nil || node.Status.Allocatable.Cpu().Value() != 2 {
		t.Errorf("template %v, error %v", node, err)
	}
	c.group(other)
	c.must(p.IncreaseSize(c.ctx, poolGroup, 0, 3))
	if err := other.IncreaseSize(c.ctx, poolGroup, 0, 3); !errors.Is(err, cloud.ErrChanged) {
		t.Errorf("the second owner gets error %v, want that the target has changed", err)
	}
	c.wait("three nodes", func() bool { return c.states(c.provider()) == "3 RUNNING" })
	before := c.nodes()
	machine := c.group(p).Instances[1].GetId()
	c.must(p.DeleteNodes(c.ctx, poolGroup, []*v1.Node{{Spec: v1.NodeSpec{ProviderID: machine}}}))
	stays := slices.DeleteFunc(before, func(name string) bool { return "test://"+name == machine })
	c.wait("a node less", func() bool { return c.states(p) == "2 RUNNING" && slices.Equal(c.nodes(), stays) })

	c.outage.Store(true)
	c.must(p.IncreaseSize(c.ctx, poolGroup, 2, 1))
	c.wait("a machine without a node", func() bool { return c.states(p) == "1 CREATING, 2 RUNNING" })
	if err := p.DecreaseTargetSize(c.ctx, poolGroup, 3, 2); err == nil ||
		!strings.Contains(err.Error(), "1 of the 2 nodes that are to be taken back are there already") {
		t.Errorf("a node that is there was taken back: error %v", err)
	}
	c.must(p.DecreaseTargetSize(c.ctx, poolGroup, 3, 1))
	c.wait("two machines", func() bool { return c.states(p) == "2 RUNNING" && len(c.names(capiMachines)) == 2 })
	if g := c.group(p); g.Target != 2 || !slices.Equal(c.nodes(), stays) {
		t.Errorf("target %d, nodes %v, want 2 and %v", g.Target, c.nodes(), stays)
	}
}
