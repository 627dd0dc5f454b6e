package view

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelpers "k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/kuberelease"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/internal/testing/nodeinfo"
)

// swapping is a pod whose two containers swap 1 and 3 cpu: 6 by the rule of 1.36, 4 by that of 1.37.
func swapping() *v1.Pod {
	pod := &v1.Pod{}
	cpu := func(amount string) v1.ResourceRequirements {
		return v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(amount)}}
	}
	for name, amounts := range map[string][2]string{"a": {"1", "3"}, "b": {"3", "1"}} {
		on := cpu(amounts[1])
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name, Resources: cpu(amounts[0])})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
			v1.ContainerStatus{Name: name, Resources: &on})
	}
	return pod
}

// Cycles count as the scheduler that they are compiled into.
func TestCyclesCountResizedPodsAsTheirScheduler(t *testing.T) {
	requests := resourcehelpers.PodRequests(swapping(), resourcehelpers.PodResourcesOptions{UseStatusResources: true})
	byMinor := map[int32]int64{36: 6000, 37: 4000}
	if got := requests.Cpu().MilliValue(); got != byMinor[kuberelease.Compiled()] {
		t.Fatalf("compiled with 1.%d, which counts %d", kuberelease.Compiled(), got)
	}
	conn := enginetest.Open(t)
	c := newCycles(conn, "v", Events{})
	defer c.Close()
	nodes := []fwk.NodeInfo{nodeinfo.New(1, named("a"), swapping())}
	for _, lose := range []func(){c.restart, c.reset, c.Wait} { // the view, the books, nothing
		err := c.Ask(cycleOf(nodes, nodes), func(changes *loadlinev1.Changes, slots []int32) error {
			_, err := score(t.Context(), conn, changes, slots)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		client := loadlinev1.NewClusterStateClient(conn)
		answer, err := client.Describe(t.Context(), &loadlinev1.DescribeRequest{View: "v"})
		if err != nil {
			t.Fatal(err)
		}
		if got := answer.GetNodes()[0].GetResources()[0].GetRequested(); got != requests.Cpu().MilliValue() {
			t.Errorf("got %d, want %d", got, requests.Cpu().MilliValue())
		}
		lose()
	}
}

// A new full list has the rule of the one before.
func TestAViewKeepsItsRule(t *testing.T) {
	conn := enginetest.Open(t)
	v := New(conn, "v")
	v.CountAs(37)
	for range 2 {
		v.SetNode(named("a"))
		pod := swapping()
		pod.Name, pod.Spec.NodeName = "p", "a"
		v.SetPod(pod)
		expectSync(t, v)
		client := loadlinev1.NewClusterStateClient(conn)
		answer, err := client.Describe(t.Context(), &loadlinev1.DescribeRequest{View: "v"})
		if err != nil {
			t.Fatal(err)
		}
		if got := answer.GetNodes()[0].GetResources()[0].GetRequested(); got != 4000 {
			t.Errorf("got %d, want 4000", got)
		}
		if err := v.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
