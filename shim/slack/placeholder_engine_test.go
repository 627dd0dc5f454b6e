package slack_test

import (
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/slack"
)

// The shim must know placeholders before it asks, so that the engine's rule is here a second time. Both say
// the same of random pods: a placeholder that waits is demand of no sized group, and any other pod of these is.
func TestIsPlaceholderAsTheEngineSays(t *testing.T) {
	client, r := loadlinev1.NewAutoscalerClient(enginetest.Open(t)), rand.New(rand.NewPCG(7, 7))
	const pods = 2000
	found := 0
	for i := range pods {
		pod := almostPlaceholder(r)
		want := slack.IsPlaceholder(pod, slack.DefaultNamespace)
		if want {
			found++
		}
		if got := countsAsDemand(t, client, pod); got == want {
			t.Errorf("pod %d, %v of %v, %v: placeholder %v in Go, demand of the engine %v",
				i, pod.Labels, pod.Namespace, pod.OwnerReferences, want, got)
		}
	}
	if found < pods/10 || found > pods*9/10 {
		t.Errorf("%d of %d pods are placeholders: too few or too many to tell", found, pods)
	}
}

// almostPlaceholder is a placeholder with a few of its features changed.
func almostPlaceholder(r *rand.Rand) *v1.Pod {
	pick := func(right string, wrong ...string) string {
		if r.IntN(10) > 0 {
			return right
		}
		return wrong[r.IntN(len(wrong))]
	}
	label := pick(slack.PlaceholderLabel, "loadline.dev/placeholder2", "placeholder")
	controller := r.IntN(10) > 0
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name:      "p",
		Namespace: pick(slack.DefaultNamespace, "shop", "loadline-", "kube-system"),
		Labels:    map[string]string{label: pick("true", "", "false")},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: pick("apps/v1", "apps/v2", "apps", "example.com/v1", "v1", ""),
			Kind:       pick("ReplicaSet", "Deployment", "StatefulSet", "Job", "replicaset"),
			Name:       "o", UID: "o", Controller: &controller,
		}},
	}}
	if r.IntN(20) == 0 {
		pod.OwnerReferences = nil
	}
	if priority := int32(-14 + r.IntN(6)); r.IntN(20) > 0 {
		pod.Spec.Priority = &priority
	}
	return pod
}

func countsAsDemand(t *testing.T, client loadlinev1.AutoscalerClient, pod *v1.Pod) bool {
	t.Helper()
	bytes, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	options := &loadlinev1.SizeOptions{MaxNodes: 10, TaintLowerPercent: 20, TaintUpperPercent: 40, ScaleUpPercent: 70,
		SlowRate: 1, FastRate: 2, SoftGraceMilliseconds: 1000, HardGraceMilliseconds: 2000, CoolDownMilliseconds: 1000}
	answer, err := client.MeasureUtilization(t.Context(), &loadlinev1.MeasureUtilizationRequest{
		Cluster:         &loadlinev1.MeasureUtilizationRequest_Own{Own: &loadlinev1.Changes{}},
		NowMilliseconds: 1_700_000_000_000,
		Groups: []*loadlinev1.SizedGroup{{NodeGroup: "all", CatchAll: true, Options: options,
			Labels: []*loadlinev1.GroupLabel{{Key: "pool", Value: "all"}}}},
		Pods: []*loadlinev1.WaitingPods{{Pod: bytes, Count: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetGroups()[0].GetPods() == 1
}
