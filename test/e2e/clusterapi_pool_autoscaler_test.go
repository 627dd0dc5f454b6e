package e2e

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/test/e2e/harness"
)

// A MachinePool whose infrastructure provider makes Machines grows for pods that wait, from none. When one of its nodes
// is no longer needed, the autoscaler drains it and has exactly the machine of that node deleted.
func TestAutoscalerWithClusterAPIMachinePool(t *testing.T) {
	t.Parallel()
	c := startPool(t)
	startPlainScheduler(t, c.ctx, c.cluster)
	autoscaler := c.startAutoscaler()
	c.createPods(3)
	c.wait("nodes for the pods", func() bool { return len(c.running()) == 3 })
	if c.replicas() != 3 || c.made() != 3 {
		t.Errorf("%d replicas and %d machines for 3 pods", c.replicas(), c.made())
	}
	c.drainsExactlyOne(autoscaler)
}

// A MachinePool whose infrastructure provider makes no Machines grows for pods that wait, and what it asked for in vain
// is taken back. None of its nodes is removed when no pod needs it, as nobody could say which one.
func TestAutoscalerWithClusterAPIMachinePoolWithoutMachines(t *testing.T) {
	t.Parallel()
	c := startPool(t, func(c *capi) { c.poolWithoutMachines, c.poolStock = true, 2 })
	startPlainScheduler(t, c.ctx, c.cluster)
	autoscaler := c.startAutoscaler()
	pods := c.createPods(4)
	c.wait("the two nodes that there are", func() bool { return len(c.running()) == 2 && c.replicas() == 4 })
	nodes := c.nodes()
	_, err := c.objects.Resource(machinePools).Namespace("default").Patch(c.ctx, "mp", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"cluster.x-k8s.io/autoscaling-options-maxnodeprovisiontime":"5s"}}}`),
		metav1.PatchOptions{})
	c.must(err)
	c.wait("the request to be taken back", func() bool { return c.replicas() == 2 })

	c.keepOnePod(pods)
	c.waitLoops(autoscaler, 8) // longer than an unneeded node stays elsewhere
	stay := metricsOf(t, c.ctx, autoscaler).Sum("loadline_autoscaler_unremovable_nodes",
		harness.Labels{"reason": "NodeGroupMinSizeReached"})
	if c.replicas() != 2 || !slices.Equal(c.nodes(), nodes) || stay != 2 {
		t.Errorf("%d replicas, nodes %v, of which %v stay because of the minimum; want 2 and %v", c.replicas(), c.nodes(),
			stay, nodes)
	}
	for _, verb := range []string{"update", "patch"} {
		if changes := accepted(t, c.cluster, verb, "nodes"); len(changes) > 0 {
			t.Errorf("nodes that cannot be removed were marked: %v", changes)
		}
	}
	if machines := c.names(capiMachines); len(machines) > 0 {
		t.Errorf("machines %v of a pool without Machines", machines)
	}
}

// keepOnePod deletes all pods but one that runs: the autoscaler plans nothing for a cluster with nodes and not one pod.
// The waiting pods are deleted first, so that none of them begins to run.
func (c *capi) keepOnePod(pods []*v1.Pod) {
	c.Helper()
	on := c.running()
	slices.SortStableFunc(pods, func(a, b *v1.Pod) int { return strings.Compare(on[a.Name], on[b.Name]) })
	for _, pod := range pods[:len(pods)-1] {
		c.must(c.cluster.DeletePod(c.ctx, pod.Namespace, pod.Name))
	}
}
