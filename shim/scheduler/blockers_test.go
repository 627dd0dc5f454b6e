package scheduler

import (
	"bytes"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
)

// Pods that differ in what blocks a drain, or in what budgets select them by, are scored alike only where the policy
// does not read that.
func TestPodsThatBlockDrainsAreSignedApart(t *testing.T) {
	yes := true
	movable := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1", Controller: &yes}}}}
	for name, change := range map[string]func(*v1.Pod){
		"annotation": func(p *v1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"} },
		"owner":      func(p *v1.Pod) { p.OwnerReferences = nil },
		"label":      func(p *v1.Pod) { p.Labels = nil },
		"namespace":  func(p *v1.Pod) { p.Namespace = "other" },
	} {
		other := movable.DeepCopy()
		change(other)
		off, on := &loadlinev1.ScorePolicy{}, &loadlinev1.ScorePolicy{BlockersTogether: 20}
		if !bytes.Equal(sign(movable, off), sign(other, off)) {
			t.Errorf("%s: signed apart without blockersTogether", name)
		}
		if bytes.Equal(sign(movable, on), sign(other, on)) {
			t.Errorf("%s: signed alike with blockersTogether", name)
		}
	}
	next := movable.DeepCopy()
	next.Name, next.OwnerReferences[0].Name = "web-2-x", "web-2"
	on := &loadlinev1.ScorePolicy{BlockersTogether: 20}
	if !bytes.Equal(sign(movable, on), sign(next, on)) {
		t.Error("pods of two ReplicaSets are signed apart")
	}
}
