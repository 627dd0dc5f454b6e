package e2e

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/test/e2e/harness"
)

// Cluster API's manager ends before it has made the machines that were asked for, and before it has deleted those that
// are not needed any more, and the autoscaler ends too. Started again, each continues: no machine is made twice, and
// none is deleted whose node has a pod.
func TestClusterAPIManagerIsKilled(t *testing.T) {
	t.Parallel()
	c := startClusterAPI(t)
	startPlainScheduler(t, c.ctx, c.cluster)
	autoscaler := c.startAutoscaler()
	waitLoops := func(count int) {
		t.Helper()
		c.waitLoops(autoscaler, count)
	}
	kill := func() {
		t.Helper()
		autoscaler.Kill()
		c.must(autoscaler.Restart(c.ctx))
	}

	c.manager.Kill()
	pods := c.createPods(3)
	c.wait("the request for machines", func() bool { return c.replicas() == 3 })
	waitLoops(5)
	kill()
	waitLoops(5)
	if c.replicas() != 3 || len(c.names(capiMachines)) != 0 {
		t.Errorf("without the manager: %d replicas, machines %v", c.replicas(), c.names(capiMachines))
	}
	c.must(c.manager.Restart(c.ctx))
	c.wait("nodes for the pods", func() bool { return len(c.running()) == 3 })

	c.manager.Kill()
	stays := c.running()["p2"]
	for _, pod := range pods[:2] {
		c.must(c.cluster.DeletePod(c.ctx, pod.Namespace, pod.Name))
	}
	c.wait("the request to delete machines", func() bool { return c.replicas() == 1 })
	waitLoops(5)
	kill()
	waitLoops(5)
	if c.replicas() != 1 || len(c.nodes()) != 3 {
		t.Errorf("without the manager: %d replicas, nodes %v", c.replicas(), c.nodes())
	}
	c.must(c.manager.Restart(c.ctx))
	c.wait("two nodes to go", func() bool { return len(c.nodes()) == 1 && len(c.names(capiMachines)) == 1 })
	waitLoops(5)
	if left := c.nodes(); c.replicas() != 1 || left[0] != stays || c.running()["p2"] != stays {
		t.Errorf("%d replicas, nodes %v; the pod that stays ran on %s", c.replicas(), left, stays)
	}
	if made := c.made(); made != 3 {
		t.Errorf("%d machines were made for 3 pods", made)
	}
}

// A process ends after it has marked a machine and before it has lowered the target. When another node is to be
// deleted, Cluster API deletes that one, and not the marked one, which it would delete first.
func TestClusterAPIMarkIsLeftBehind(t *testing.T) {
	t.Parallel()
	c := startClusterAPI(t)
	p := c.provider()
	c.group(p)
	c.must(p.IncreaseSize(c.ctx, mdGroup, 0, 2))
	c.wait("two nodes", func() bool { return c.states(c.provider()) == "2 RUNNING" })
	machines := c.group(p).Instances // by name, which is Cluster API's order among those that are marked
	marked, leaves := strings.TrimPrefix(machines[0].GetId(), "test://"), machines[1].GetId()
	_, err := c.objects.Resource(capiMachines).Namespace("default").Patch(c.ctx, marked, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"cluster.x-k8s.io/delete-machine":"loadline.dev 2026-11-30T00:00:00Z"}}}`),
		metav1.PatchOptions{})
	c.must(err)
	p = c.provider()
	c.group(p)
	c.must(p.DeleteNodes(c.ctx, mdGroup, []*v1.Node{{Spec: v1.NodeSpec{ProviderID: leaves}}}))
	c.wait("a node less", func() bool { return c.states(p) == "1 RUNNING" && len(c.nodes()) == 1 })
	if left := c.nodes(); left[0] != marked {
		t.Errorf("%s was to go, and %v stays", leaves, left)
	}
}

// made counts the Machines that Cluster API has ever created.
func (c *capi) made() (count int) {
	c.Helper()
	changes, err := c.cluster.Changes("admin")
	c.must(err)
	for _, change := range changes {
		if change.Resource == "machines" && change.Code == 201 {
			count++
		}
	}
	return count
}

// waitLoops waits for further loops of the autoscaler.
func (c *capi) waitLoops(autoscaler *harness.Autoscaler, count int) {
	c.Helper()
	loops := func() float64 {
		return metricsOf(c.T, c.ctx, autoscaler).Sum("loadline_autoscaler_decision_total", harness.Labels{"kind": "drain"})
	}
	begin := loops()
	c.wait("further loops", func() bool { return loops() >= begin+float64(count) })
}

// createPods creates pods of which a node takes one each.
func (c *capi) createPods(count int) []*v1.Pod {
	c.Helper()
	return c.createPodsOn(count, nil)
}

// createPodsOn does so with pods that ask for nodes with labels.
func (c *capi) createPodsOn(count int, nodeSelector map[string]string) (pods []*v1.Pod) {
	c.Helper()
	for i := range count {
		pods = append(pods, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%d", i)},
			Spec: waitingPod("").Spec})
		pods[i].Spec.NodeSelector = nodeSelector
	}
	c.must(c.cluster.CreatePods(c.ctx, pods))
	return pods
}
