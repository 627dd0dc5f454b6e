package view

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
)

// hugePod has so many node affinity terms that it outgrows a message. It requests 2 cpu.
func hugePod(bytes int) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "huge", UID: "u"},
		Spec: v1.PodSpec{NodeName: "node",
			Containers: []v1.Container{{Name: "a", Resources: requests("1500m")},
				{Name: "b", Resources: requests("500m")}}}}
	values := []string{}
	for size := 0; size < bytes; size += 62 {
		values = append(values, fmt.Sprintf("%060d", len(values)))
	}
	pod.Spec.Affinity = &v1.Affinity{
		NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{
				{MatchExpressions: []v1.NodeSelectorRequirement{
					{Key: "k", Operator: v1.NodeSelectorOpNotIn, Values: values}}}}}}}
	return pod
}

func requests(cpu string) v1.ResourceRequirements {
	return v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(cpu)}}
}

// A pod that no message holds counts with its requests, is named, and keeps nobody else from the engine; when it gets
// smaller, or is deleted, all is as without it.
func TestAHugePodIsTakenByItsRequests(t *testing.T) {
	conn := enginetest.Open(t)
	v := NewForPlanning(conn, "v")
	for _, name := range []string{"a", "node", "z"} {
		v.SetNode(named(name))
	}
	v.SetPod(hugePod(5 << 20))
	expectSync(t, v)
	expectHeld(t, conn, 3, 1)
	left := v.LeftOut()
	if len(left) != 1 || left[0].String() != "Pod evil/huge: takes 5.0 MiB, an object may take 1 MiB: it counts with "+
		"its requests, and keeps its node" {
		t.Errorf("left out %v", left)
	}
	states, err := States(t.Context(), loadlinev1.NewClusterStateClient(conn), "v")
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range states {
		for _, sums := range state.GetResources() {
			if want := map[string]int64{"node cpu": 2000}[state.GetName()+" "+
				sums.GetResource()]; sums.GetRequested() != want {
				t.Errorf("%s: %v is requested of %s, want %d", state.GetName(), sums.GetRequested(),
					sums.GetResource(), want)
			}
		}
	}
	v.SetPod(hugePod(100))
	expectSync(t, v)
	if left := v.LeftOut(); len(left) != 0 {
		t.Errorf("left out %v", left)
	}
	v.SetPod(hugePod(5 << 20))
	v.DeletePod(hugePod(0))
	expectSync(t, v)
	expectHeld(t, conn, 3, 0)
	if left := v.LeftOut(); len(left) != 0 {
		t.Errorf("left out %v", left)
	}
}

func TestSlimPodStaysWhereItIs(t *testing.T) {
	pod := hugePod(100)
	for i := range 100 {
		pod.Spec.Containers[0].Resources.Requests[v1.ResourceName(fmt.Sprintf("example.com/%03d", i))] =
			resource.MustParse("1")
	}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", Controller: new(true)}, {Kind: "X"}}
	slim := SlimPod(pod)
	amounts := slim.Spec.Containers[0].Resources.Requests
	if slim.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] != "false" ||
		len(slim.OwnerReferences) != 1 || slim.Spec.NodeName != "node" ||
		len(amounts) != 64 || amounts.Cpu().MilliValue() != 2000 || slim.Spec.Affinity != nil {
		t.Errorf("%+v", slim)
	}
}

// It counts as every pod on a node does: what its status says of a resize of the pod counts.
func TestSlimPodCountsItsPodLevelStatus(t *testing.T) {
	cpu := func(amount string) v1.ResourceList { return v1.ResourceList{"cpu": resource.MustParse(amount)} }
	pod := hugePod(1)
	pod.Spec.Resources = &v1.ResourceRequirements{Requests: cpu("3")}
	pod.Status.Resources = &v1.ResourceRequirements{Requests: cpu("5")}
	if got := SlimPod(pod).Spec.Containers[0].Resources.Requests.Cpu(); got.MilliValue() != 5000 {
		t.Errorf("got %s cpu, want 5", got)
	}
}

// A disruption budget that no message holds protects all pods of its namespace: nobody knows which of them it means.
func TestAHugeBudgetProtectsItsNamespace(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "b", UID: "u"},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 7}}
	for i := range 20_000 {
		budget.Spec.Selector.MatchLabels[fmt.Sprintf("k%060d", i)] = "v"
	}
	v := NewForPlanning(enginetest.Open(t), "v")
	v.SetNode(named("node"))
	if err := v.SetObject(budget); err != nil {
		t.Fatal(err)
	}
	expectSync(t, v)
	left := v.LeftOut()
	if len(left) != 1 || left[0].Kind != "PodDisruptionBudget" || left[0].Namespace != "evil" || left[0].Name != "b" {
		t.Errorf("left out %v", left)
	}
	_, trimmed, _, err := sizedObject(budget)
	if err != nil {
		t.Fatal(err)
	}
	var told policyv1.PodDisruptionBudget
	if err := told.Unmarshal(trimmed); err != nil {
		t.Fatal(err)
	}
	if told.Name != "b" || told.Namespace != "evil" || told.Spec.Selector == nil ||
		len(told.Spec.Selector.MatchLabels) != 0 || told.Status.DisruptionsAllowed != 0 {
		t.Errorf("told %+v", told)
	}
	if err := v.DeleteObject(budget); err != nil {
		t.Fatal(err)
	}
	if left := v.LeftOut(); len(left) != 0 {
		t.Errorf("left out %v", left)
	}
}

// The owner that a pod states is text of its user: it is made UTF-8 and bounded before messages, which insist on that,
// contain it.
func TestOwnersAreBoundedText(t *testing.T) {
	pod := fullPod()
	pod.Name = "p"
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1\xff", Kind: strings.Repeat("K", 1<<20), Name: "a\xc3b", UID: "\xfe", Controller: new(true)}}
	var told v1.Pod
	if err := told.Unmarshal(TrimPodForPlanning(pod)); err != nil {
		t.Fatal(err)
	}
	if o := told.OwnerReferences[0]; o.APIVersion != "v1\uFFFD" || len(o.Kind) != 253 || o.Name != "a\uFFFDb" ||
		o.UID != "\uFFFD" {
		t.Errorf("told %+v", o)
	}
	pod.Name, pod.UID, pod.Spec.NodeName = "p\xff", "u\xff", "node"
	conn := enginetest.Open(t)
	v := NewForPlanning(conn, "v")
	v.SetNode(named("node"))
	v.SetPod(pod)
	expectSync(t, v) // proto refuses to write what is no UTF-8
	expectHeld(t, conn, 1, 1)
}
