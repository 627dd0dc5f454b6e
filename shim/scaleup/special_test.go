package scaleup

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Three of six pods make groups grow; a pod of a gang whose delay of an hour has passed is one of them.
func TestRemarksNameWhatIsSpecialAndWhatGroupsDoNotGrowFor(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	r := Remarks{Rules: DefaultRules(now)}
	waits := 0
	for name, change := range map[string]func(*v1.Pod){
		"plain": func(*v1.Pod) {},
		"gated": func(p *v1.Pod) {
			p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "example.com/a"}, {Name: "b"}}
			p.Labels = map[string]string{"kueue.x-k8s.io/pod-group-name": "train"} // no group grows for it
		},
		"low": func(p *v1.Pod) { p.Spec.Priority = new(int32(-11)) },
		"border": func(p *v1.Pod) {
			p.Spec.Priority = new(int32(-10))
			p.Annotations = map[string]string{"autoscaling.x-k8s.io/consume-provisioning-request": "later"}
		},
		"young": func(p *v1.Pod) { p.Annotations = map[string]string{DelayAnnotation: "61m"} },
		"old": func(p *v1.Pod) {
			p.Annotations = map[string]string{DelayAnnotation: "60m", "scheduling.k8s.io/group-name": "train"}
		},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
			CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
		change(pod)
		if r.Add(pod) {
			waits++
		}
	}
	want := []string{
		"Pod shop/gated is gated and waits for no node: example.com/a, b have to be taken off first.",
		"Pod shop/low is of a priority below -10 (-11): no group grows for such pods.",
		"Pod shop/young is younger than the delay that it states (1h1m0s): no group grows for such pods.",
		"Pod shop/border is of a ProvisioningRequest (later), which is not read: it counts as any other pod.",
		"Pod shop/old is of a gang (train): it is not planned as a whole, so nodes may come on which none of its pods is " +
			"bound.",
	}
	if lines := r.Lines(); !slices.Equal(lines, want) || waits != 3 {
		t.Errorf("%d wait, %q", waits, lines)
	}
}

// A pod that no scheduler has tried makes no group grow, but where that does not count, or its scheduler is passed over.
func TestRemarksNamePodsThatNobodyHasTried(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new"}, Spec: v1.PodSpec{SchedulerName: "own"}}
	r := Remarks{Rules: DefaultRules(time.Time{})}
	if !r.AddWaiting(pod) || r.Lines() != nil {
		t.Errorf("without the rule: %q", r.Lines())
	}
	r.Bypassed = func(scheduler string) bool { return scheduler == "other" }
	other, tried, bound, second := pod.DeepCopy(), pod.DeepCopy(), pod.DeepCopy(), pod.DeepCopy()
	other.Spec.SchedulerName, bound.Spec.NodeName = "other", "n"
	tried.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse,
		Reason: v1.PodReasonUnschedulable}}
	for _, p := range []*v1.Pod{other, tried, bound} {
		if !r.AddWaiting(p) {
			t.Errorf("%v does not wait", p)
		}
	}
	want := []string{"Pod shop/new is not tried yet by its scheduler (own): no group grows for it before."}
	if r.AddWaiting(pod) || !slices.Equal(r.Lines(), want) {
		t.Errorf("got %q", r.Lines())
	}
	want = []string{"2 pods, such as shop/new, are not tried yet by their scheduler (own): no group grows for them before."}
	if r.AddWaiting(second) || !slices.Equal(r.Lines(), want) {
		t.Errorf("got %q", r.Lines())
	}
}

// A line about several pods counts the names that it leaves out, each once.
func TestRemarksCountTheNamesOfSeveralPods(t *testing.T) {
	r := Remarks{Rules: DefaultRules(time.Time{})}
	r.Allows = func(scheduler string) bool { return scheduler == "" }
	for i, change := range []func(*v1.Pod){
		func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "x/one"}} },
		func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "y/two"}} },
		func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "x/one"}} },
		func(p *v1.Pod) { p.Spec.Priority = new(int32(-20)) },
		func(p *v1.Pod) { p.Spec.Priority = new(int32(-20)) },
		func(p *v1.Pod) { p.Spec.SchedulerName = "a" },
		func(p *v1.Pod) { p.Spec.SchedulerName = "b" },
		func(p *v1.Pod) {
			p.Annotations = map[string]string{"autoscaling.x-k8s.io/consume-provisioning-request": "v"}
		},
		func(p *v1.Pod) {
			p.Annotations = map[string]string{"autoscaling.x-k8s.io/consume-provisioning-request": "w"}
		},
		func(p *v1.Pod) { p.Labels = map[string]string{"pod-group-name": "pg"} },
		func(p *v1.Pod) { p.Labels = map[string]string{"pod-group-name": "vg"} },
		func(p *v1.Pod) { p.Labels = map[string]string{"pod-group-name": "kg"} },
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: string(rune('a' + i))}}
		change(pod)
		r.Add(pod)
	}
	want := []string{
		"3 pods, such as shop/a, are gated and wait for no node: x/one and 1 other have to be taken off first.",
		"2 pods, such as shop/d, are of a priority below -10 (-20): no group grows for such pods.",
		"2 pods, such as shop/f, are of schedulers for whose pods no group grows (a and 1 other).",
		"2 pods, such as shop/h, are of ProvisioningRequests (v and 1 other), which are not read: they count as any " +
			"other pods.",
		"3 pods, such as shop/j, are of gangs (pg and 2 others): none is planned as a whole, so nodes may come on " +
			"which none of their pods is bound.",
	}
	if lines := r.Lines(); !slices.Equal(lines, want) {
		t.Errorf("got %q", lines)
	}
}

// A gang is known by the label or annotation of each scheduler of gangs.
func TestGangsOfManySchedulersAreNoticed(t *testing.T) {
	for _, key := range []string{"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io/name",
		"kueue.x-k8s.io/pod-group-name", "scheduling.k8s.io/group-name", "pod-group-name",
		"yunikorn.apache.org/task-group-name", "leaderworkerset.sigs.k8s.io/name"} {
		named := map[string]string{key: "train"}
		for _, meta := range []metav1.ObjectMeta{{Labels: named}, {Annotations: named}} {
			if got := gang(&v1.Pod{ObjectMeta: meta}, nil); got != "train" {
				t.Errorf("%s: got %q", key, got)
			}
		}
	}
	if got := gang(&v1.Pod{}, nil); got != "" {
		t.Errorf("got %q of a plain pod", got)
	}
}
