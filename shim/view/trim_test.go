package view

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/internal/testing/randompod"
)

// reduced is what is left of a pod, made by another way than the one under test.
func reduced(pod *v1.Pod) *v1.Pod {
	out := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace}}
	container := func(c v1.Container) v1.Container {
		return v1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	for _, c := range pod.Spec.Containers {
		out.Spec.Containers = append(out.Spec.Containers, container(c))
	}
	for _, c := range pod.Spec.InitContainers {
		out.Spec.InitContainers = append(out.Spec.InitContainers, container(c))
	}
	out.Spec.Overhead, out.Spec.Resources = pod.Spec.Overhead, pod.Spec.Resources
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodResizePending {
			out.Status.Conditions = append(out.Status.Conditions,
				v1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason})
		}
	}
	statuses := func(in []v1.ContainerStatus) (out []v1.ContainerStatus, tell bool) {
		for _, s := range in {
			out = append(out,
				v1.ContainerStatus{Name: s.Name, AllocatedResources: s.AllocatedResources, Resources: s.Resources})
			tell = tell || len(s.AllocatedResources) > 0 || s.Resources != nil
		}
		return out, tell
	}
	containers, tell := statuses(pod.Status.ContainerStatuses)
	initContainers, tellInit := statuses(pod.Status.InitContainerStatuses)
	if tell || tellInit {
		out.Status.ContainerStatuses, out.Status.InitContainerStatuses = containers, initContainers
	}
	out.Status.AllocatedResources, out.Status.Resources = pod.Status.AllocatedResources, pod.Status.Resources
	return out
}

func TestTrimPodIsThePodWithLess(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		pod, _ := randompod.New(r, fmt.Sprint(i), "node")
		var got v1.Pod
		if err := got.Unmarshal(TrimPod(pod)); err != nil {
			t.Fatalf("pod %d: %v", i, err)
		}
		if want := reduced(pod); !equality.Semantic.DeepEqual(&got, want) {
			t.Fatalf("pod %d:\ngot  %v\nwant %v", i, &got, want)
		}
		got = v1.Pod{}
		if err := got.Unmarshal(TrimIncomingPod(pod)); err != nil {
			t.Fatalf("incoming pod %d: %v", i, err)
		}
		want := reduced(pod)
		want.Status = v1.PodStatus{}
		if !equality.Semantic.DeepEqual(&got, want) {
			t.Fatalf("incoming pod %d:\ngot  %v\nwant %v", i, &got, want)
		}
	}
}

func TestTrimPodOfFinishedPodsKeepsThePhase(t *testing.T) {
	for phase, want := range map[v1.PodPhase]v1.PodPhase{
		v1.PodPending: "", v1.PodRunning: "", v1.PodUnknown: "", v1.PodSucceeded: v1.PodSucceeded,
		v1.PodFailed: v1.PodFailed,
	} {
		var got v1.Pod
		if err := got.Unmarshal(TrimPod(&v1.Pod{Status: v1.PodStatus{Phase: phase}})); err != nil {
			t.Fatal(err)
		}
		if got.Status.Phase != want {
			t.Errorf("phase %s became %q, want %q", phase, got.Status.Phase, want)
		}
	}
}

// changes lists what may happen to a pod, and whether a decision may depend on it.
var changes = []struct {
	name    string
	matters bool
	apply   func(*v1.Pod)
}{
	{"Name", false, func(p *v1.Pod) { p.Name = "other" }},
	{"UID", false, func(p *v1.Pod) { p.UID = "other" }},
	{"Node", false, func(p *v1.Pod) { p.Spec.NodeName = "other" }},
	{"ResourceVersion", false, func(p *v1.Pod) { p.ResourceVersion = "2" }},
	{"Image", false, func(p *v1.Pod) { p.Spec.Containers[0].Image = "other" }},
	{"Restarts", false, func(p *v1.Pod) { p.Status.ContainerStatuses[0].RestartCount++ }},
	{"Ready", false, func(p *v1.Pod) { p.Status.Conditions[0].Status = v1.ConditionFalse }},
	{"Namespace", true, func(p *v1.Pod) { p.Namespace = "other" }},
	{"ContainerName", true, func(p *v1.Pod) { p.Spec.Containers[0].Name = "other" }},
	{"Request", true, func(p *v1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2") }},
	{"Limit", true, func(p *v1.Pod) { p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2") }},
	{"InitLimit", true, func(p *v1.Pod) { p.Spec.InitContainers[0].Resources.Limits["cpu"] = resource.MustParse("2") }},
	{"Sidecar", true, func(p *v1.Pod) { p.Spec.InitContainers[0].RestartPolicy = nil }},
	{"Overhead", true, func(p *v1.Pod) { p.Spec.Overhead["cpu"] = resource.MustParse("2") }},
	{"PodLevelLimit", true, func(p *v1.Pod) { p.Spec.Resources.Limits["cpu"] = resource.MustParse("2") }},
	{"PodLevelRequest", true, func(p *v1.Pod) { p.Spec.Resources.Requests["cpu"] = resource.MustParse("2") }},
	{"StatusLimit", true,
		func(p *v1.Pod) { p.Status.ContainerStatuses[0].Resources.Limits["cpu"] = resource.MustParse("2") }},
	{"StatusGone", true, func(p *v1.Pod) { p.Status.ContainerStatuses[0].Resources = nil }},
	{"Allocated", true,
		func(p *v1.Pod) { p.Status.ContainerStatuses[0].AllocatedResources["cpu"] = resource.MustParse("2") }},
	{"InitStatusLimit", true,
		func(p *v1.Pod) { p.Status.InitContainerStatuses[0].Resources.Limits["cpu"] = resource.MustParse("2") }},
	{"PodStatusLimit", true, func(p *v1.Pod) { p.Status.Resources.Limits["cpu"] = resource.MustParse("2") }},
	{"PodAllocated", true, func(p *v1.Pod) { p.Status.AllocatedResources["cpu"] = resource.MustParse("2") }},
	{"Infeasible", true, func(p *v1.Pod) { p.Status.Conditions[1].Reason = v1.PodReasonInfeasible }},
	{"Finished", true, func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded }},
}

func fullPod() *v1.Pod {
	one := func() v1.ResourceList { return v1.ResourceList{"cpu": resource.MustParse("1")} }
	both := func() v1.ResourceRequirements { return v1.ResourceRequirements{Requests: one(), Limits: one()} }
	status, podStatus, podLevel, initStatus := both(), both(), both(), both()
	always := v1.ContainerRestartPolicyAlways
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid", ResourceVersion: "1"},
		Spec: v1.PodSpec{
			NodeName: "node", Overhead: one(), Resources: &podLevel,
			Containers:     []v1.Container{{Name: "c", Image: "image", Resources: both()}},
			InitContainers: []v1.Container{{Name: "i", Resources: both(), RestartPolicy: &always}},
		},
		Status: v1.PodStatus{
			Phase: v1.PodRunning,
			Conditions: []v1.PodCondition{
				{Type: v1.PodReady, Status: v1.ConditionTrue},
				{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: v1.PodReasonDeferred},
			},
			ContainerStatuses:     []v1.ContainerStatus{{Name: "c", AllocatedResources: one(), Resources: &status}},
			InitContainerStatuses: []v1.ContainerStatus{{Name: "i", Resources: &initStatus}},
			AllocatedResources:    one(), Resources: &podStatus,
		},
	}
}

func TestTrimPodTellsApartWhatMatters(t *testing.T) {
	before := string(TrimPod(fullPod()))
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			pod := fullPod()
			c.apply(pod)
			if changed := string(TrimPod(pod)) != before; changed != c.matters {
				t.Errorf("bytes changed: %v, want %v", changed, c.matters)
			}
		})
	}
}

// The engine counts a placeholder as what it requests, in scores and lines too.
func TestTrimPodTellsPlaceholders(t *testing.T) {
	pod := fullPod()
	before := TrimPod(pod)
	pod.Labels = map[string]string{"loadline.dev/placeholder": "true", "app": "a"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "u",
		Controller: new(true)}}
	if !bytes.Equal(before, TrimPod(pod)) {
		t.Error("a pod of priority 0 with the label is told apart")
	}
	pod.Spec.Priority = new(int32(-10))
	for name, trim := range map[string]func(*v1.Pod) []byte{"TrimPod": TrimPod, "TrimPodForFilters": TrimPodForFilters} {
		var got v1.Pod
		if err := got.Unmarshal(trim(pod)); err != nil {
			t.Fatal(err)
		}
		if _, labelled := got.Labels["loadline.dev/placeholder"]; !labelled || got.Spec.Priority == nil ||
			*got.Spec.Priority != -10 || len(got.OwnerReferences) != 1 || got.OwnerReferences[0].Kind != "ReplicaSet" {
			t.Errorf("%s: got %v", name, &got)
		}
	}
}

func TestTrimNodeKeepsNameAndResources(t *testing.T) {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Labels: map[string]string{"a": "b"}},
		Status: v1.NodeStatus{
			Capacity:    v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi")},
			Allocatable: v1.ResourceList{"cpu": resource.MustParse("3900m"), "memory": resource.MustParse("7Gi")},
			NodeInfo:    v1.NodeSystemInfo{KernelVersion: "6"},
		},
	}
	var got v1.Node
	if err := got.Unmarshal(TrimNode(node)); err != nil {
		t.Fatal(err)
	}
	want := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"},
		Status:     v1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}
	if !equality.Semantic.DeepEqual(&got, want) {
		t.Errorf("got %v, want %v", &got, want)
	}
}

// A message longer than 127 bytes needs a longer length; its content moves.
func TestAppendMessageOfAnyLength(t *testing.T) {
	for _, length := range []int{0, 1, 126, 127, 128, 129, 16383, 16384, 70000} {
		name := string(make([]byte, length))
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name},
			Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
		var got v1.Pod
		if err := got.Unmarshal(TrimPod(pod)); err != nil {
			t.Fatalf("%d bytes: %v", length, err)
		}
		if got.Namespace != name || len(got.Spec.Containers) != 1 || got.Spec.Containers[0].Name != "c" {
			t.Errorf("%d bytes: got a namespace of %d bytes and containers %v", length, len(got.Namespace),
				got.Spec.Containers)
		}
	}
}

func BenchmarkTrimPod(b *testing.B) {
	pod := fullPod()
	b.ReportAllocs()
	for b.Loop() {
		TrimPod(pod)
	}
}
