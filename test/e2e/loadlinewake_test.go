package e2e

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/harness"
)

// A pod that the line keeps off is placed soon after the limit of another one is lowered in place: eventually() gives
// up after 2 minutes, long before kube-scheduler looks at all pods again, which is after 5. A pod of high priority
// preempts as many pods as the line asks for.
func TestLoadLineLetsPodsInOnAControlPlane(t *testing.T) {
	ctx := deadline(t)
	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf, Kubelet: true})
	options, err := demo.OurOptions(harness.ReplacementConfig, startEngine(t, ctx, cluster).Address)
	if err != nil {
		t.Fatal(err)
	}
	options.Site.EngineTimeout = demo.PatientTimeout
	options.Site.MaxLimitsOverAllocatable = map[string]float64{"memory": 1}
	if _, err := cluster.StartScheduler(ctx, options); err != nil {
		t.Fatal(err)
	}
	amounts := func(cpu, memory string) v1.ResourceList {
		return v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Status: v1.NodeStatus{Allocatable: amounts("8", "8Gi")}}
	node.Status.Allocatable[v1.ResourcePods] = resource.MustParse("110")
	node.Status.Capacity = node.Status.Allocatable
	if err := cluster.CreateNodes(ctx, []*v1.Node{node}); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := cluster.Client.CoreV1().Pods(metav1.NamespaceDefault)
	create := func(name, limit, priorityClass string) {
		t.Helper()
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
			Spec: v1.PodSpec{PriorityClassName: priorityClass, TerminationGracePeriodSeconds: new(int64),
				Containers: []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{
					Requests: amounts("100m", "64Mi"), Limits: amounts("1", limit)}}}}}
		if err := cluster.CreatePods(ctx, []*v1.Pod{pod}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what, name string, holds func(*v1.Pod) bool) {
		t.Helper()
		eventually(t, ctx, what, func() (bool, error) {
			pod, err := pods.Get(ctx, name, metav1.GetOptions{})
			return err == nil && holds(pod), err
		})
	}
	bound := func(pod *v1.Pod) bool { return pod.Spec.NodeName != "" }
	create("large", "6Gi", "")
	expect("the first pod is placed", "large", bound)
	create("waits", "4Gi", "")
	expect("the line keeps a pod off", "waits", func(pod *v1.Pod) bool {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == v1.PodScheduled && strings.Contains(condition.Message, "load line: memory") {
				return true
			}
		}
		return false
	})
	large, err := pods.Get(ctx, "large", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	large.Spec.Containers[0].Resources.Limits["memory"] = resource.MustParse("3Gi")
	if _, err := pods.UpdateResize(ctx, "large", large, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("it is placed once a limit is lowered", "waits", bound)

	// 3 and 4 of 8 Gi are taken: 5 find room where the one of 4 is removed.
	create("high", "5Gi", "high")
	expect("a pod of high priority is placed", "high", bound)
	left, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pod := range left.Items {
		names = append(names, pod.Name)
	}
	if got := fmt.Sprint(names); got != "[high large]" {
		t.Errorf("the pods %s are left, want high and large", got)
	}
}
