package view

import (
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
)

func blockingPod() *v1.Pod {
	yes := true
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-5-x", Labels: map[string]string{"app": "web"},
		Annotations: map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "other": "x",
			"karpenter.sh/do-not-disrupt": "4h", "controller.kubernetes.io/pod-deletion-cost": "3"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Other", Name: "other"},
			{Kind: "ReplicaSet", APIVersion: "apps/v1", Name: "web-5", UID: "u", Controller: &yes}}}}
}

func TestWithProtectionStatesWhatBlocksDrains(t *testing.T) {
	for name, trim := range map[string]func(*v1.Pod) []byte{"scores": TrimPod, "incoming": TrimIncomingPod} {
		var got v1.Pod
		if err := got.Unmarshal(WithProtection(trim(blockingPod()), blockingPod())); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		keys := slices.Sorted(maps.Keys(got.Annotations))
		if want := []string{"cluster-autoscaler.kubernetes.io/safe-to-evict",
			"karpenter.sh/do-not-disrupt"}; !slices.Equal(keys, want) {
			t.Errorf("%s: annotations %v, want %v", name, keys, want)
		}
		if len(got.OwnerReferences) != 1 || got.OwnerReferences[0].Kind != "ReplicaSet" ||
			got.OwnerReferences[0].Name != "" || !*got.OwnerReferences[0].Controller {
			t.Errorf("%s: owners %v, want the kind of the controller", name, got.OwnerReferences)
		}
		if got.Namespace != "shop" || got.Labels["app"] != "web" || got.DeletionTimestamp != nil {
			t.Errorf("%s: got %+v", name, got.ObjectMeta)
		}
	}
	leaving := blockingPod()
	leaving.DeletionTimestamp = &metav1.Time{}
	var got v1.Pod
	if err := got.Unmarshal(WithProtection(TrimPod(leaving), leaving)); err != nil || got.DeletionTimestamp == nil {
		t.Errorf("a pod that is being deleted: got %+v, %v", got.ObjectMeta, err)
	}
}

// Without the option a pod is sent as before.
func TestScoredPodStatesNoMoreThanThePolicyReads(t *testing.T) {
	pod := blockingPod()
	if got, want := ScoredPod(pod, &loadlinev1.ScorePolicy{}), TrimIncomingPod(pod); !slices.Equal(got, want) {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
	got := ScoredPod(pod, &loadlinev1.ScorePolicy{BlockersTogether: 1})
	if want := WithProtection(TrimIncomingPod(pod), pod); !slices.Equal(got, want) {
		t.Errorf("with blockersTogether: got %d bytes, want %d", len(got), len(want))
	}
}

// A budget whose pods come and go stays the same as long as it allows an eviction, or none, at some time.
func TestOnlyWhatABudgetEverAllowsBeginsAnotherEra(t *testing.T) {
	c := newCycles(nil, "v", Events{})
	budget := func(expected, desired, allowed int32) *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		b.Status.ExpectedPods, b.Status.DesiredHealthy, b.Status.DisruptionsAllowed = expected, desired, allowed
		LastingBudget(b)
		return b
	}
	era := c.ledger.era()
	for i, step := range []struct {
		do    func() error
		other bool
	}{
		{func() error { return c.SetObject(budget(3, 2, 1)) }, true},
		{func() error { return c.SetObject(budget(3, 2, 0)) }, false},
		{func() error { return c.SetObject(budget(3, 3, 0)) }, true},
		{func() error { return c.DeleteObject(budget(3, 3, 0)) }, true},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if now := c.ledger.era(); (now != era) != step.other {
			t.Errorf("step %d: another era: %v, want %v", i, now != era, step.other)
		}
		era = c.ledger.era()
	}
}
