package e2e

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"loadline.dev/test/e2e/harness"
)

var machineSets = schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "machinesets"}

const setGroup = "MachineSet/default/ms"

// A MachineSet that belongs to no MachineDeployment grows for pods that wait, from none. When one of its nodes is no
// longer needed, the autoscaler drains it, and Cluster API deletes exactly the machine of that node. A MachineSet of a
// MachineDeployment is no group beside it, although it has inherited the annotations.
func TestAutoscalerWithClusterAPIMachineSets(t *testing.T) {
	t.Parallel()
	c := startClusterAPI(t)
	c.groupID = setGroup
	c.apply("testdata/clusterapi-set.yaml")
	c.patch(`{"metadata":{"annotations":{"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size":"1"}},
		"spec":{"replicas":1}}`)
	c.wait("the node of the MachineDeployment", func() bool { return len(c.nodes()) == 1 })
	owned := c.inheritor()
	p := c.provider()
	c.must(p.Refresh(c.ctx))
	groups, err := p.Groups(c.ctx, nil)
	c.must(err)
	if len(groups) != 2 || groups[0].ID != mdGroup || len(groups[0].Instances) != 1 || groups[1].ID != setGroup ||
		len(groups[1].Instances) != 0 {
		t.Errorf("groups %+v, want %s with its machine and %s without one", groups, mdGroup, setGroup)
	}

	startPlainScheduler(t, c.ctx, c.cluster)
	c.createPodsOn(3, map[string]string{"node.cluster.x-k8s.io/set": "ms"})
	autoscaler := c.startAutoscaler() // after the pods: it plans nothing for a cluster with nodes and not one pod
	c.wait("nodes for the pods", func() bool { return len(c.running()) == 3 })
	if c.replicas() != 3 || c.replicasOf(mdGroup) != 1 || c.made() != 4 {
		t.Errorf("%d replicas of %s, %d of %s, and %d machines were made for 3 pods", c.replicas(), setGroup,
			c.replicasOf(mdGroup), mdGroup, c.made())
	}
	status := (&scaled{t: t, ctx: c.ctx, cluster: c.cluster}).status()
	if !strings.Contains(status, setGroup) || strings.Contains(status, "MachineSet/default/"+owned) {
		t.Errorf("the status has a group for MachineSet %s, or none for %s:\n%s", owned, setGroup, status)
	}
	c.drainsExactlyOne(autoscaler)
	if c.replicasOf(mdGroup) != 1 {
		t.Errorf("%d replicas of %s, want its minimum", c.replicasOf(mdGroup), mdGroup)
	}
}

// inheritor returns the MachineSet of the MachineDeployment. It has the annotations of a node group.
func (c *capi) inheritor() string {
	c.Helper()
	sets, err := c.objects.Resource(machineSets).Namespace("default").List(c.ctx, metav1.ListOptions{
		LabelSelector: "cluster.x-k8s.io/deployment-name=md"})
	c.must(err)
	if len(sets.Items) != 1 ||
		sets.Items[0].GetAnnotations()["cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"] != "5" {
		c.Fatalf("MachineSets %+v, want one of the MachineDeployment with its annotations", sets.Items)
	}
	return sets.Items[0].GetName()
}

// drainsExactlyOne deletes the pod that keeps one of three nodes. A smaller pod beside it has to move before this node
// is removed. The node is the last by name: if no machine is marked, Cluster API and the test's provider delete the
// first.
func (c *capi) drainsExactlyOne(autoscaler *harness.Autoscaler) {
	c.Helper()
	on := c.running()
	var nodes []string
	for _, node := range on {
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	leaves := nodes[2]
	c.deployBeside("web", leaves)
	for pod, node := range on {
		if node == leaves {
			c.must(c.cluster.DeletePod(c.ctx, "default", pod))
		}
	}
	begin := len(c.nodes())
	c.wait("a node less", func() bool { return len(c.nodes()) == begin-1 && c.replicas() == 2 })
	if left := c.nodes(); slices.Contains(left, leaves) {
		c.Fatalf("nodes %v stay, want all but %s", left, leaves)
	}
	c.wait("the pod of the node to run elsewhere", func() bool { return len(c.running()) == 3 })
	c.waitLoops(autoscaler, 3)
	if left := c.nodes(); len(left) != begin-1 || c.replicas() != 2 {
		c.Errorf("nodes %v, %d replicas, want %d and 2", left, c.replicas(), begin-1)
	}
	for pod, node := range on {
		if node != leaves && c.running()[pod] != node {
			c.Errorf("pod %s has left node %s, which stays", pod, node)
		}
	}
	c.checkRequests(leaves)
}

// deployBeside runs a small pod of a Deployment on a node that it prefers. It may run on each of the others too.
func (c *capi) deployBeside(name, node string) {
	c.Helper()
	labels := map[string]string{"app": name}
	prefers := v1.PreferredSchedulingTerm{Weight: 100, Preference: v1.NodeSelectorTerm{MatchFields: []v1.
		NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{node}}}}}
	pod := waitingPod("").Spec
	pod.NodeSelector = nil
	pod.Containers[0].Resources.Requests = v1.ResourceList{"cpu": resource.MustParse("100m")}
	pod.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{prefers}}}
	_, err := c.cluster.Client.AppsV1().Deployments("default").Create(c.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod}}}, metav1.CreateOptions{})
	c.must(err)
	c.wait("a pod beside another one", func() bool {
		for pod, on := range c.running() {
			if strings.HasPrefix(pod, name+"-") {
				return on == node
			}
		}
		return false
	})
}

// checkRequests looks through the record of the API server: the autoscaler evicted one pod, and then marked the machine
// of that node and no other.
func (c *capi) checkRequests(node string) {
	c.Helper()
	evictions := accepted(c.T, c.cluster, "create", "pods/eviction")
	marks := accepted(c.T, c.cluster, "update", "machines")
	if len(evictions) != 1 || len(marks) != 1 || marks[0].Name != node || !evictions[0].At.Before(marks[0].At) {
		c.Errorf("the autoscaler evicted %v and marked %v, want a pod and then machine %s", evictions, marks, node)
	}
}
