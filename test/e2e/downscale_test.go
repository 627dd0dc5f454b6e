package e2e

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/view"
	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/simcloud"
)

const ownCost = "5"

// A Deployment that shrinks by as many pods as the node of the lowest cost has gives up these and no others, without an
// eviction. Pods whose own cost somebody has set keep it.
func TestShrinkingDeploymentEmptiesANode(t *testing.T) {
	t.Parallel()
	const nodes, pods = 4, 8
	s := startGrowing(t, time.Second, []simcloud.Group{pool("many", 1, nodes, 4, 1)},
		"--decisions=scale-down,downscale-order", "--scale-down-unneeded-time=1h", "--scale-down-delay-after-add=1s")
	if err := s.cloud.Grow("many", nodes); err != nil {
		t.Fatal(err)
	}
	s.wait("the nodes", func() bool { return len(s.nodes()) == nodes+1 })
	selector := map[string]string{"pool": "many"}
	s.deployWithCost("own", nodes, selector)
	s.waitRunning("own", nodes)
	s.deployOn("web", pods, "1", selector)
	s.waitRunning("web", pods)

	costs := s.settledCosts("web")
	lowest := slices.MinFunc(slices.Collect(maps.Keys(costs)), func(a, b string) int { return costs[a] - costs[b] })
	before := s.podsOf("web")
	goes := func(pod v1.Pod) bool { return pod.Spec.NodeName == lowest }
	first := slices.DeleteFunc(slices.Clone(before), func(pod v1.Pod) bool { return !goes(pod) })
	t.Logf("costs of nodes %v; %d pods are on %s", costs, len(first), lowest)
	s.deployOn("web", int32(pods-len(first)), "1", selector)
	s.wait("the Deployment to shrink", func() bool { return len(s.podsOf("web")) == pods-len(first) })
	after := map[string]bool{}
	for _, pod := range s.podsOf("web") {
		after[pod.Name] = true
	}
	for _, pod := range before {
		if after[pod.Name] == goes(pod) {
			t.Errorf("pod %s of node %s is still there: %v; the node that is to be empty is %s", pod.Name,
				pod.Spec.NodeName, after[pod.Name], lowest)
		}
	}
	for _, pod := range s.podsOf("own") {
		if _, marked := pod.Annotations[view.DeletionCostMark]; marked || pod.Annotations[v1.PodDeletionCost] != ownCost {
			t.Errorf("a pod whose own cost is %s has annotations %v", ownCost, pod.Annotations)
		}
	}
	s.checkCostWrites()
}

// checkCostWrites sees that pods were annotated, all writes succeeded, and no pod was evicted.
func (s *scaled) checkCostWrites() {
	s.t.Helper()
	for _, act := range s.acts() {
		if act.Resource == "pods/eviction" {
			s.t.Errorf("a pod was evicted: %v", act)
		}
	}
	written := func(result string) float64 {
		return metricsOf(s.t, s.ctx, s.autoscaler).Sum("loadline_autoscaler_pod_deletion_cost_writes_total",
			harness.Labels{"result": result})
	}
	if written("set") == 0 || written("failed") > 0 {
		s.t.Errorf("%v pods were annotated, and %v could not be", written("set"), written("failed"))
	}
	expectNothingForbidden(s.t, s.autoscaler.Process)
}

// deployWithCost creates a Deployment whose pods state a cost of their own.
func (s *scaled) deployWithCost(name string, replicas int32, nodeSelector map[string]string) {
	s.t.Helper()
	labels := map[string]string{"app": name}
	container := v1.Container{Name: "c", Image: "web",
		Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("100m")}}}
	template := v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{v1.PodDeletionCost: ownCost}},
		Spec:       v1.PodSpec{NodeSelector: nodeSelector, Containers: []v1.Container{container}}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: template}}
	if _, err := s.cluster.Client.AppsV1().Deployments("default").Create(s.ctx, deployment,
		metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// podsOf returns the pods of a Deployment that do not end.
func (s *scaled) podsOf(app string) []v1.Pod {
	return slices.DeleteFunc(s.pods(), func(pod v1.Pod) bool {
		return pod.Labels["app"] != app || pod.DeletionTimestamp != nil
	})
}

// settledCosts waits until nodes have a cost that all their pods of a Deployment state, and that stays as it is.
func (s *scaled) settledCosts(app string) map[string]int {
	s.t.Helper()
	var costs map[string]int
	var since time.Time
	s.wait("deletion costs", func() bool {
		now, whole := s.costsOf(app)
		if !whole || len(now) == 0 || !maps.Equal(now, costs) {
			costs, since = now, time.Now()
			return false
		}
		return time.Since(since) > 2*time.Second // clock: waits, and asserts nothing
	})
	return costs
}

// costsOf returns the costs of nodes by the marks of ours on the pods of a Deployment; whole says that all pods of a
// node state the same.
func (s *scaled) costsOf(app string) (costs map[string]int, whole bool) {
	s.t.Helper()
	costs, stated := map[string]int{}, map[string]string{}
	whole = true
	for _, pod := range s.podsOf(app) {
		node, text := pod.Spec.NodeName, ""
		if view.HasOurDeletionCost(pod.Annotations) {
			text = pod.Annotations[v1.PodDeletionCost]
		}
		if other, known := stated[node]; known && other != text {
			whole = false
		}
		stated[node] = text
		if text == "" {
			continue
		}
		cost, err := strconv.Atoi(text)
		if err != nil || cost >= 0 {
			s.t.Fatalf("pod %s states the cost %q, error %v", pod.Name, text, err)
		}
		costs[node] = cost
	}
	return costs, whole
}
