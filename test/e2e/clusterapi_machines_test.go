package e2e

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const infrastructureGroup = "infrastructure.cluster.x-k8s.io"

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

// provision is the infrastructure provider: each TestMachine becomes a node at once, unless there is an outage. A node
// without its TestMachine is removed, as where a cloud's controller looks after nodes. The control plane is there
// already: no machine is available before it is.
func (c *capi) provision() {
	provisioned := `"status":{"initialization":{"provisioned":true}}`
	of := c.objects.Resource(testMachines).Namespace("default")
	nodes := c.cluster.Client.CoreV1().Nodes()
	for ; c.ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		_, _ = c.objects.Resource(testClusters).Namespace("default").Patch(c.ctx, "c", types.MergePatchType,
			[]byte("{"+provisioned+"}"), metav1.PatchOptions{}, "status")
		_, _ = c.objects.Resource(testControls).Namespace("default").Patch(c.ctx, "c", types.MergePatchType,
			[]byte(`{"status":{"initialization":{"controlPlaneInitialized":true}}}`), metav1.PatchOptions{}, "status")
		there, err := nodes.List(c.ctx, metav1.ListOptions{}) // before the machines: a node has come after its machine
		if err != nil {
			continue
		}
		list, err := of.List(c.ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for _, node := range there.Items {
			if !slices.ContainsFunc(list.Items, func(m unstructured.Unstructured) bool { return m.GetName() == node.Name }) {
				_ = nodes.Delete(c.ctx, node.Name, metav1.DeleteOptions{})
			}
		}
		for _, machine := range list.Items {
			name := machine.GetName()
			if id, _, _ := unstructured.NestedString(machine.Object, "spec", "providerID"); id != "" || c.outage.Load() {
				continue
			}
			_, _ = nodes.Create(c.ctx, healthyNode(name), metav1.CreateOptions{})
			_, _ = of.Patch(c.ctx, name, types.MergePatchType, []byte("{"+provisioned+"}"), metav1.PatchOptions{}, "status")
			_, _ = of.Patch(c.ctx, name, types.MergePatchType, []byte(`{"spec":{"providerID":"test://`+name+`"}}`),
				metav1.PatchOptions{})
		}
	}
}

// healthyNode is a node of which Cluster API says that it is available: it asks for all four conditions. The taint is
// that of its bootstrap providers, which Cluster API removes once it has written the labels of the Machine to the node.
func healthyNode(name string) *v1.Node {
	capacity := v1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"),
		"pods": resource.MustParse("110")}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.NodeSpec{ProviderID: "test://" + name, Taints: []v1.Taint{{Key: "node.cluster.x-k8s.io/uninitialized",
			Effect: v1.TaintEffectNoSchedule}}},
		Status: v1.NodeStatus{Capacity: capacity, Allocatable: capacity}}
	for kind, holds := range map[v1.NodeConditionType]v1.ConditionStatus{v1.NodeReady: v1.ConditionTrue,
		v1.NodeMemoryPressure: v1.ConditionFalse, v1.NodeDiskPressure: v1.ConditionFalse,
		v1.NodePIDPressure: v1.ConditionFalse} {
		node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{Type: kind, Status: holds, Reason: "Test"})
	}
	return node
}
