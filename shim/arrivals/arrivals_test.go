package arrivals

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/filterconfig"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/policy"
)

func node(name, cpu, memory string) *v1.Node {
	list := v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory),
		"pods": resource.MustParse("110")}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: list, Capacity: list}}
}

// pod was created `age` seconds after the first one. Amounts are cpu, memory.
func pod(name string, age int, requests, limits [2]string) *v1.Pod {
	list := func(amounts [2]string) v1.ResourceList {
		out := v1.ResourceList{}
		for i, resourceName := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			if amounts[i] != "" {
				out[resourceName] = resource.MustParse(amounts[i])
			}
		}
		return out
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, age, 0, time.UTC))},
		Spec: v1.PodSpec{Containers: []v1.Container{
			{Name: "c", Resources: v1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}}}},
	}
}

func on(node string, p *v1.Pod) *v1.Pod {
	p.Spec.NodeName = node
	return p
}

func TestSplitTakesArrivalsInOrderOfCreation(t *testing.T) {
	controller := true
	daemon := on("a", pod("daemon", 9, [2]string{}, [2]string{}))
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: &controller}}
	waitingDaemon := pod("waiting-daemon", 8, [2]string{}, [2]string{})
	waitingDaemon.OwnerReferences = daemon.OwnerReferences
	mirror := on("a", pod("mirror", 0, [2]string{}, [2]string{}))
	mirror.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"}
	ending := on("a", pod("ending", 0, [2]string{}, [2]string{}))
	ending.DeletionTimestamp = &metav1.Time{}
	given := pod("given-up", 0, [2]string{}, [2]string{})
	given.DeletionTimestamp = &metav1.Time{}
	done := on("a", pod("done", 0, [2]string{}, [2]string{}))
	done.Status.Phase = v1.PodSucceeded
	later, b, a := pod("later", 5, [2]string{}, [2]string{}), on("a", pod("b", 1, [2]string{}, [2]string{})), pod("a",
		1, [2]string{}, [2]string{})
	fixed, arrivals := Split([]*v1.Pod{daemon, later, mirror, b, ending, given, a, done, waitingDaemon})
	names := func(pods []*v1.Pod) (out []string) {
		for _, p := range pods {
			out = append(out, p.Name)
		}
		return out
	}
	if got := names(fixed); !slices.Equal(got, []string{"daemon", "mirror", "ending"}) {
		t.Errorf("fixed: %v", got)
	}
	if got := names(arrivals); !slices.Equal(got, []string{"a", "b", "later", "waiting-daemon"}) {
		t.Errorf("arrivals: %v", got)
	}
}

// Counted by hand, on a node of 4 cpu and 8Gi.
func TestDefaultScores(t *testing.T) {
	there := on("n", pod("there", 0, [2]string{"1", "2Gi"}, [2]string{}))
	silent := on("n", pod("silent", 0, [2]string{}, [2]string{}))
	podLevel := pod("pod-level", 0, [2]string{"1", "2Gi"}, [2]string{})
	podLevel.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("3"),
		"memory": resource.MustParse("2Gi")}}
	defaults, err := filterconfig.Read(filterconfig.Request{})
	if err != nil {
		t.Fatal(err)
	}
	scorer := NewScorer(defaults)
	for _, c := range []struct {
		name            string
		there           []*v1.Pod
		pod             *v1.Pod
		least, balanced int64
	}{
		// cpu 1 of 4 left free 75, memory 2 of 8 left free 75. As even as before.
		{"Empty", nil, pod("p", 0, [2]string{"1", "2Gi"}, [2]string{}), 75, 75},
		// cpu 2 + 1 of 4: 25, memory 2 + 2 of 8: 50; mean 37. Shares 3/4 and 1/2: deviation 12.5 %, 0 before: 50 + (50
		// + 87 - 100)/2.
		{"Uneven", []*v1.Pod{there}, pod("p", 0, [2]string{"2", "2Gi"}, [2]string{}), 37, 68},
		// 100m and 200Mi are assumed of each: cpu 3800/4000 = 95, memory 7792/8192 = 95. BestEffort: no opinion on
		// balance.
		{"NothingStated", []*v1.Pod{silent}, pod("p", 0, [2]string{}, [2]string{}), 95, 0},
		// Scores of NodeResourcesFit leave pod-level resources out: cpu 1 of 4, memory 2 of 8. Balance has cpu 3/4,
		// memory 1/4.
		{"PodLevel", nil, podLevel, 75, 62},
	} {
		least, balanced := scorer.Scores(node("n", "4", "8Gi"), c.there, c.pod)
		if least != c.least || balanced != c.balanced {
			t.Errorf("%s: got %d and %d, want %d and %d", c.name, least, balanced, c.least, c.balanced)
		}
	}
}

// Requests fill both nodes alike, but the limits of the first pod are four times its requests: the default scheduler
// does not see that, so that the third pod is placed on the first node by name.
func TestRunPlacesByRequestsOrByLimitsToo(t *testing.T) {
	c := &Cluster{Nodes: []*v1.Node{node("a", "8", "32Gi"), node("b", "8", "32Gi")}}
	requests := [2]string{"1", "4Gi"}
	c.Arrivals = []*v1.Pod{
		pod("hungry", 0, requests, [2]string{"8", "32Gi"}),
		pod("modest", 1, requests, requests),
		pod("third", 2, requests, requests),
		pod("giant", 3, [2]string{"9", "1Gi"}, [2]string{}),
	}
	gated := pod("gated", 4, requests, requests)
	gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "wait"}}
	stateful := pod("stateful", 5, requests, requests)
	stateful.Spec.Volumes = []v1.Volume{
		{Name: "v",
			VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "unknown"}}}}
	c.Arrivals = append(c.Arrivals, gated, stateful)
	conn := enginetest.Open(t)
	p := policy.Policy{}
	p.Default()
	packing, err := filterconfig.Read(filterconfig.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if err := packing.SetStrategy(filterconfig.MostAllocated); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		scheduler Scheduler
		nodes     string
		limits    [2]int64 // of cpu on a and b
	}{
		{Scheduler{Name: "default"}, "map[ns/gated: ns/giant: ns/hungry:a ns/modest:b ns/stateful: ns/third:a]",
			[2]int64{9000, 1000}},
		{Scheduler{Name: "packing", Config: packing},
			"map[ns/gated: ns/giant: ns/hungry:a ns/modest:a ns/stateful: ns/third:a]", [2]int64{10000, 0}},
		{Scheduler{Name: "ours", Weight: 2, Policy: p.Proto()},
			"map[ns/gated: ns/giant: ns/hungry:a ns/modest:b ns/stateful: ns/third:b]", [2]int64{8000, 2000}},
	} {
		got, err := Run(t.Context(), conn, fmt.Sprint("view-", i), c, want.scheduler)
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(got.Nodes); text != want.nodes {
			t.Errorf("%s: got %s, want %s", want.scheduler.Name, text, want.nodes)
		}
		if got.Placement.PendingPods != 3 || got.NotJudged != 1 || got.Placement.Name != want.scheduler.Name {
			t.Errorf("%s: %d pending, %d not judged", want.scheduler.Name, got.Placement.PendingPods, got.NotJudged)
		}
		for j, limits := range want.limits {
			if sum := got.Placement.Nodes[j].Resources["cpu"].Limits; sum != limits {
				t.Errorf("%s: limits of %d on node %d, want %d", want.scheduler.Name, sum, j, limits)
			}
		}
	}
	for _, p := range c.Arrivals {
		if p.Spec.NodeName != "" {
			t.Errorf("%s was changed", p.Name)
		}
	}
}
