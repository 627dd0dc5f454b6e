package e2e

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/workload"
)

// violations returns in words which bound pods fail a filter: node does not exist, is unschedulable, has a taint that
// the pod does not tolerate, is not selected, or holds more than it offers.
func violations(nodes []*v1.Node, pods []*v1.Pod) []string {
	byName := map[string]*v1.Node{}
	left := map[string]v1.ResourceList{}
	for _, node := range nodes {
		byName[node.Name], left[node.Name] = node, node.Status.Allocatable.DeepCopy()
	}
	var found []string
	for _, pod := range pods {
		if pod.Spec.NodeName == "" {
			continue
		}
		node := byName[pod.Spec.NodeName]
		if node == nil {
			found = append(found, fmt.Sprintf("%s is on %s, which does not exist", pod.Name, pod.Spec.NodeName))
			continue
		}
		for _, problem := range mismatches(pod, node) {
			found = append(found, fmt.Sprintf("%s is on %s: %s", pod.Name, node.Name, problem))
		}
		take(left[node.Name], pod)
	}
	for name, resources := range left {
		for resourceName, quantity := range resources {
			if quantity.Sign() < 0 {
				found = append(found, fmt.Sprintf("%s lacks %s of %s", name, quantity.String(), resourceName))
			}
		}
	}
	slices.Sort(found)
	return found
}

func mismatches(pod *v1.Pod, node *v1.Node) []string {
	var problems []string
	if node.Spec.Unschedulable {
		problems = append(problems, "the node is unschedulable")
	}
	decisive := func(taint *v1.Taint) bool { return taint.Effect != v1.TaintEffectPreferNoSchedule }
	if taint, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints,
		pod.Spec.Tolerations, decisive, false); untolerated {
		problems = append(problems, "untolerated taint "+taint.ToString())
	}
	if matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !matches {
		problems = append(problems, fmt.Sprintf("the node does not match its selector (error: %v)", err))
	}
	return problems
}

// take subtracts what a pod requests, and the pod itself. What a node does not offer becomes negative.
func take(left v1.ResourceList, pod *v1.Pod) {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	requests[v1.ResourcePods] = resource.MustParse("1")
	for name, quantity := range requests {
		remaining := left[name]
		remaining.Sub(quantity)
		left[name] = remaining
	}
}

// A third of the nodes is barred to most pods by a taint or a cordon, and so stays the emptiest, which the plugin
// would like best; some pods select a label. Bound pods still pass every filter.
func TestBoundPodsPassTheFilters(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf})
	w := workload.Generate(11, 60)
	pods := w.Pods[:len(w.Pods)/3] // so that none is left over for want of room
	for i, node := range w.Nodes {
		switch i % 6 {
		case 1:
			node.Spec.Taints = []v1.Taint{{Key: "dedicated", Value: "batch", Effect: v1.TaintEffectNoSchedule}}
		case 3:
			node.Labels["disk"] = "ssd"
		case 5:
			node.Spec.Unschedulable = true
		}
	}
	for i, pod := range pods {
		switch i % 10 {
		case 0:
			pod.Spec.Tolerations = []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpExists}}
		case 1:
			pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		}
	}
	if err := cluster.CreateNodes(ctx, w.Nodes); err != nil {
		t.Fatal(err)
	}
	watch, err := cluster.WatchPods(ctx)
	if err != nil {
		t.Fatal(err)
	}
	engine := startEngine(t, ctx, cluster)
	scheduler := startOurs(t, ctx, cluster, harness.ReplacementConfig, engine.Address, demo.PatientTimeout)
	if err := cluster.CreatePods(ctx, pods); err != nil {
		t.Fatal(err)
	}
	if err := watch.WaitBound(ctx, len(pods)); err != nil {
		t.Fatal(err)
	}
	for _, problem := range violations(w.Nodes, watch.Pods()) {
		t.Error(problem)
	}
	metrics := metricsOf(t, ctx, scheduler)
	if answered := metrics.Sum("loadline_scheduler_cycles_answered_total", nil); answered < float64(len(pods))*0.9 {
		t.Errorf("the engine scored %v of %d cycles: this would prove nothing", answered, len(pods))
	}
}

// The checker finds what it looks for.
func TestViolations(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("2"), v1.ResourcePods: resource.MustParse("1")}}}
	pod := func(change func(*v1.Pod)) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Spec: v1.PodSpec{NodeName: "n", Containers: []v1.Container{{
				Resources: v1.ResourceRequirements{
					Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}}}}}}
		change(p)
		return p
	}
	barred := node.DeepCopy()
	barred.Spec.Unschedulable = true
	barred.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoExecute}}
	fits := pod(func(*v1.Pod) {})
	for _, c := range []struct {
		name string
		node *v1.Node
		pods []*v1.Pod
		want []string
	}{
		{"ExactFit", node, []*v1.Pod{fits}, nil},
		{"Pending", node, []*v1.Pod{pod(func(p *v1.Pod) { p.Spec.NodeName = "" })}, nil},
		{"UnknownNode", node, []*v1.Pod{pod(func(p *v1.Pod) { p.Spec.NodeName = "x" })},
			[]string{"p is on x, which does not exist"}},
		{"OneTooMany", node, []*v1.Pod{fits, fits}, []string{"n lacks -1 of pods", "n lacks -2 of cpu"}},
		{"NotOffered", node, []*v1.Pod{pod(func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests["example.com/fpga"] = resource.MustParse("1")
		})}, []string{"n lacks -1 of example.com/fpga"}},
		{"Barred", barred, []*v1.Pod{fits},
			[]string{"p is on n: the node is unschedulable", "p is on n: untolerated taint k:NoExecute"}},
		{"NotSelected", node, []*v1.Pod{pod(func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} })},
			[]string{"p is on n: the node does not match its selector (error: <nil>)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := violations([]*v1.Node{c.node}, c.pods); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
