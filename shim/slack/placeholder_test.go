package slack

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod is a placeholder if all of label, namespace, owner and priority are ours. Anybody can write the first, or have
// a priority below zero.
func TestIsPlaceholder(t *testing.T) {
	owner := func(apiVersion, kind string, controller bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: kind, Name: "slack-1", UID: "rs", Controller: &controller}}
	}
	for _, c := range []struct {
		name   string
		change func(*v1.Pod)
		want   bool
	}{
		{"Ours", func(*v1.Pod) {}, true},
		{"AnyValueOfTheLabel", func(p *v1.Pod) { p.Labels[PlaceholderLabel] = "" }, true},
		{"LowerThanOurs", func(p *v1.Pod) { *p.Spec.Priority = -11 }, true},
		{"WithoutTheLabel", func(p *v1.Pod) { p.Labels = nil }, false},
		{"InAnotherNamespace", func(p *v1.Pod) { p.Namespace = "shop" }, false},
		{"WithoutAnOwner", func(p *v1.Pod) { p.OwnerReferences = nil }, false},
		{"OwnerThatDoesNotControl", func(p *v1.Pod) { p.OwnerReferences = owner("apps/v1", "ReplicaSet", false) },
			false},
		{"OfAJob", func(p *v1.Pod) { p.OwnerReferences = owner("batch/v1", "Job", true) }, false},
		{"OfAnotherKindOfReplicaSet",
			func(p *v1.Pod) { p.OwnerReferences = owner("example.com/v1", "ReplicaSet", true) }, false},
		{"OnePriorityAboveOurs", func(p *v1.Pod) { *p.Spec.Priority = -9 }, false},
		{"WithoutAPriority", func(p *v1.Pod) { p.Spec.Priority = nil }, false},
	} {
		priority := int32(-10)
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "room",
			Labels:          map[string]string{PlaceholderLabel: "true"},
			OwnerReferences: owner("apps/v1", "ReplicaSet", true)}, Spec: v1.PodSpec{Priority: &priority}}
		c.change(pod)
		if got := IsPlaceholder(pod, "room"); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
