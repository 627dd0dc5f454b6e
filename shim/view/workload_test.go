package view

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/workload"
)

func TestWithWorkloadStatesTheWorkloadOnce(t *testing.T) {
	yes := true
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-5-x",
		Labels:          map[string]string{"pod-template-hash": "5"},
		Annotations:     map[string]string{workload.Annotation: "Deployment/forged"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-5", Controller: &yes}}}}
	for name, trim := range map[string]func(*v1.Pod) []byte{"scores": TrimPod, "incoming": TrimIncomingPod,
		"planning": TrimPodForPlanning} {
		var got v1.Pod
		if err := got.Unmarshal(WithWorkload(trim(pod), pod)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := workload.AnnotationOf(pod)
		if got.Annotations[workload.Annotation] != want || len(got.Annotations) != 1 || got.Namespace != "shop" {
			t.Errorf("%s: annotations %v in %q, want %q", name, got.Annotations, got.Namespace, want)
		}
	}
	bare := pod.DeepCopy()
	bare.OwnerReferences = nil
	if got, want := string(WithWorkload(TrimPod(bare), bare)), string(TrimPod(bare)); got != want {
		t.Errorf("a bare pod has %d more bytes", len(got)-len(want))
	}
}
