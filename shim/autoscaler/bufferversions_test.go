package autoscaler

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"
)

var alphaBuffers = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1alpha1",
	Resource: "capacitybuffers"}

// servedIn returns what discovery says of a kind of autoscaling.x-k8s.io.
func servedIn(resource string, versions ...string) (all []*metav1.APIResourceList) {
	for _, version := range versions {
		all = append(all, &metav1.APIResourceList{GroupVersion: "autoscaling.x-k8s.io/" + version,
			APIResources: []metav1.APIResource{{Name: resource}, {Name: resource + "/status"}}})
	}
	return all
}

// Buffers are read and written in the newest known version that has them, and in another one as soon as that is gone.
// The status says that they are served in unknown versions only; that there is no such kind is no news.
func TestVersionsOfCapacityBuffers(t *testing.T) {
	for _, c := range []struct {
		served []*metav1.APIResourceList
		kept   int
		warned string
	}{
		{servedIn("capacitybuffers", "v1alpha1"), 3, ""},
		{servedIn("capacitybuffers", "v1", "v1alpha1"), 3, ""},
		{servedIn("capacitybuffers", "v1alpha1", "v1beta1"), 0, ""}, // of v1beta1 this cluster has none
		{slices.Concat(servedIn("capacityquotas", "v1beta1"), servedIn("capacitybuffers", "v1alpha1")), 3, ""},
		{servedIn("capacitybuffers", "v1", "v2"), 0, "in v1, v2 of autoscaling.x-k8s.io only"},
		{servedIn("capacityquotas", "v1beta1"), 0, ""},
		{nil, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			one := bufferOf("shop", "one", nil, map[string]any{"podTemplateRef": map[string]any{"name": "shape"},
				"replicas": int64(3)})
			one["apiVersion"] = "autoscaling.x-k8s.io/v1alpha1"
			b := keepingBuffers(t, one, map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "metadata": map[string]any{
				"namespace": "shop", "name": "shape"}, "template": podOf("2")})
			b.client.Resources = c.served
			b.run(time.Minute)
			warnings := strings.Join(b.readStatus().GetWarnings(), "\n")
			if b.kept.replicas() != c.kept || (c.warned == "") == strings.Contains(warnings, "CapacityBuffers") ||
				!strings.Contains(warnings, c.warned) {
				t.Errorf("%v: %d replicas, warnings %q, want %d, %q", c.served, b.kept.replicas(), warnings, c.kept, c.warned)
			}
			written, err := b.objects.Resource(alphaBuffers).Namespace("shop").Get(t.Context(), "one", metav1.GetOptions{})
			if _, has := written.Object["status"]; err != nil || has != (c.kept > 0) {
				t.Errorf("%v: status of %v, error %v", c.served, written, err)
			}
			b.end()
		})
	}
}

// A version that is gone while buffers are kept in it is replaced by another one at the same look.
func TestVersionOfCapacityBuffersThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := keepingBuffers(t)
		b.run(30 * time.Second)
		b.client.Resources = servedIn("capacitybuffers", "v1alpha1")
		b.objects.PrependReactor("list", "capacitybuffers", func(action k8stesting.Action) (bool, runtime.Object, error) {
			asked := action.GetResource()
			if asked.Version == "v1beta1" {
				return true, nil, apierrors.NewNotFound(asked.GroupResource(), "")
			}
			return true, &unstructured.UnstructuredList{Object: map[string]any{"kind": "CapacityBufferList",
				"apiVersion": asked.GroupVersion().String()}}, nil
		})
		b.objects.ClearActions()
		b.run(10 * time.Second)
		var asked []string
		for _, action := range b.objects.Actions() {
			asked = append(asked, action.GetResource().Version)
		}
		if got := strings.Join(asked, " "); got != "v1beta1 v1alpha1" {
			t.Errorf("asked for buffers in %s", got)
		}
		b.end()
	})
}
