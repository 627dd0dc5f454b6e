package fit

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	core "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	registrypod "k8s.io/kubernetes/pkg/registry/core/pod"
)

// Admitted does to affinity what the API server's own strategy does to a new pod.
func TestAdmittedIsWhatAnAPIServerStores(t *testing.T) {
	merged := 0
	for seed := range uint64(2000) {
		pod := Generate(seed).Pod
		var internal core.Pod
		if err := legacyscheme.Scheme.Convert(pod.DeepCopy(), &internal, nil); err != nil {
			t.Fatal(err)
		}
		registrypod.Strategy.PrepareForCreate(genericapirequest.WithNamespace(t.Context(), pod.Namespace), &internal)
		var want v1.Pod
		if err := legacyscheme.Scheme.Convert(&internal, &want, nil); err != nil {
			t.Fatal(err)
		}
		got := Admitted(pod)
		if !reflect.DeepEqual(got.Spec.Affinity, want.Spec.Affinity) {
			t.Fatalf("seed %d:\ngot  %v\nwant %v", seed, got.Spec.Affinity, want.Spec.Affinity)
		}
		if !reflect.DeepEqual(got.Spec.Affinity, pod.Spec.Affinity) {
			merged++
		}
	}
	if merged < 50 {
		t.Errorf("keys were merged into only %d pods", merged)
	}
}
