package view

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"loadline.dev/shim/internal/testing/randompod"
)

// reduce reduces a copy of an object, and checks that a second time changes nothing.
func reduce[T runtime.Object](t *testing.T, k *Keeper, object T) T {
	t.Helper()
	kept, err := k.Reduce(object.DeepCopyObject())
	if err != nil {
		t.Fatal(err)
	}
	again, err := k.Reduce(kept.(T).DeepCopyObject())
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(kept, again) {
		t.Fatalf("%T reduced again differs:\nonce  %v\ntwice %v", object, kept, again)
	}
	old, _ := meta.Accessor(object)
	reduced, err := meta.Accessor(kept)
	if err != nil || reduced.GetUID() != old.GetUID() || reduced.GetResourceVersion() != old.GetResourceVersion() ||
		reduced.GetManagedFields() != nil {
		t.Fatalf("metadata of a %T became %v, error %v", object, reduced, err)
	}
	return kept.(T)
}

// podMessages are all messages about a pod to an engine.
var podMessages = map[string]func(*v1.Pod) []byte{
	"scores": TrimPod, "filters": TrimPodForFilters, "planning": TrimPodForPlanning, "sign": SignPodForFilters,
	"incoming": TrimIncomingPodForPlanning,
	"too large": func(pod *v1.Pod) []byte {
		return TrimPodForPlanning(SlimPod(pod))
	},
}

// The engine hears the same of a pod that an informer has reduced, whatever fields the pod has.
func TestReducedPodsAreToldAsWholeOnes(t *testing.T) {
	keeper, r, fill := NewKeeper(), rand.New(rand.NewPCG(5, 6)), randompod.Filler(7)
	for i := range 4000 {
		pod, _ := randompod.New(r, fmt.Sprint(i), "node")
		if i%2 == 0 {
			pod = &v1.Pod{}
			fill.Fill(pod)
		}
		kept := reduce(t, keeper, pod)
		for what, message := range podMessages {
			if got, want := message(kept), message(pod); !bytes.Equal(got, want) {
				t.Fatalf("pod %d, %s: the engine would be told\n%q, not\n%q", i, what, got, want)
			}
		}
	}
}

// The same for nodes and all other kinds.
func TestReducedObjectsAreToldAsWholeOnes(t *testing.T) {
	keeper, fill := NewKeeper(), randompod.Filler(8)
	for range 300 {
		node := &v1.Node{}
		fill.Fill(node)
		if got, want := TrimNodeForPlanning(reduce(t, keeper, node)), TrimNodeForPlanning(node); !bytes.Equal(got, want) {
			t.Fatalf("the engine would be told of a node\n%q, not\n%q", got, want)
		}
		for _, object := range []runtime.Object{&v1.Namespace{}, &v1.PersistentVolume{}, &v1.PersistentVolumeClaim{},
			&storagev1.StorageClass{}, &storagev1.CSINode{}, &policyv1.PodDisruptionBudget{},
			&v1.ReplicationController{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{},
			&appsv1.Deployment{}, &batchv1.Job{}} {
			fill.Fill(object)
			key, want, err := trimObject(object)
			if err != nil {
				t.Fatal(err)
			}
			keptKey, got, err := trimObject(reduce(t, keeper, object))
			if err != nil || key != keptKey || !bytes.Equal(got, want) {
				t.Fatalf("%T: error %v, the engine would be told\n%q, not\n%q", object, err, got, want)
			}
		}
	}
}

// A common part is kept once; how much of that is remembered is bounded.
func TestCommonPartsOfPods(t *testing.T) {
	keeper := NewKeeper()
	pod := fullPod()
	other := pod.DeepCopy()
	other.Name, other.UID, other.Spec.NodeName = "other", "other", "elsewhere"
	a, b := reduce(t, keeper, pod), reduce(t, keeper, other)
	if &a.Spec.Containers[0] != &b.Spec.Containers[0] {
		t.Error("pods of one template have containers of their own")
	}
	if a.Name != "pod" || b.Name != "other" || a.Spec.NodeName != "node" || b.Spec.NodeName != "elsewhere" {
		t.Errorf("pods became %s on %s and %s on %s", a.Name, a.Spec.NodeName, b.Name, b.Spec.NodeName)
	}
	for i := range 20_000 {
		other.Labels = map[string]string{"job-name": fmt.Sprintf("%0500d", i)}
		reduce(t, keeper, other)
		if keeper.bytes > mostCommonBytes {
			t.Fatalf("%d bytes are remembered", keeper.bytes)
		}
	}
}

// Informers also hand over notes that an object is gone.
func TestReduceLeavesNotesAlone(t *testing.T) {
	note := cache.DeletedFinalStateUnknown{Key: "shop/web-0"}
	if kept, err := NewKeeper().Reduce(note); err != nil || kept != any(note) {
		t.Errorf("a note became %v, error %v", kept, err)
	}
}
