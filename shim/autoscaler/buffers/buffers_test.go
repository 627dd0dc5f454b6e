package buffers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"loadline.dev/shim/api/loadlinev1"
)

// clusterOf has buffers of three copies each of one PodTemplate, in v1beta1. The definition of the kind lacks the field
// `drops` of a status, unless that is empty. The readyReplicas of each write are noted.
func clusterOf(drops *string, asked *[]string, names ...string) *fake.FakeDynamicClient {
	objects := []runtime.Object{&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1",
		"kind": "PodTemplate", "metadata": map[string]any{"namespace": "shop", "name": "shape"},
		"template": map[string]any{}}}}
	for _, name := range names {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{"kind": "CapacityBuffer",
			"apiVersion": "autoscaling.x-k8s.io/v1beta1", "metadata": map[string]any{"namespace": "shop", "name": name},
			"spec": map[string]any{"podTemplateRef": map[string]any{"name": "shape"}, "replicas": int64(3)}}})
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: group, Version: "v1beta1", Resource: kind}: "CapacityBufferList",
		{Version: "v1", Resource: "resourcequotas"}:        "ResourceQuotaList"}, objects...)
	store := k8stesting.ObjectReaction(client.Tracker())
	client.PrependReactor("patch", kind, func(action k8stesting.Action) (bool, runtime.Object, error) {
		patch, content := action.(k8stesting.PatchActionImpl), map[string]map[string]any{}
		err := json.Unmarshal(patch.GetPatch(), &content)
		*asked = append(*asked, fmt.Sprint(content["status"]["readyReplicas"]))
		delete(content, "metadata")
		delete(content["status"], *drops)
		if err == nil {
			patch.Patch, err = json.Marshal(content)
		}
		if err != nil {
			return true, nil, err
		}
		return store(patch)
	})
	return client
}

func readerOf(client *fake.FakeDynamicClient) *Buffers {
	served := &k8stesting.Fake{Resources: []*metav1.APIResourceList{
		{GroupVersion: group + "/v1beta1", APIResources: []metav1.APIResource{{Name: kind}}}}}
	return New(client, &discoveryfake.FakeDiscovery{Fake: served}, cache.ResourceEventHandlerFuncs{})
}

// The status says how many copies fit now. An API server that drops a field, as older definitions lack readyReplicas
// and provisioningStrategy, gets no write for its sake; it gets the field again as soon as it keeps it, beside another
// change.
func TestReadyReplicas(t *testing.T) {
	const reason = "no node has room"
	for _, c := range []struct {
		placed []int64 // by look
		drops  string
		until  int // the look from which on it is kept
		want   string
	}{
		{[]int64{0, 0, 2, 2, 3, 3}, "", 0, "0 2 3"},
		{[]int64{0, 0, 2, 2, 3, 3}, "readyReplicas", 6, "0 3"},
		{[]int64{0, 2, 2, 3, 2, 1, 1}, "readyReplicas", 2, "0 3 2 1"},
		{[]int64{0, 0, 2, 2, 3, 3}, "provisioningStrategy", 6, "0 2 3"},
		{[]int64{3, 3, 3, 2, 2}, "provisioningStrategy", 2, "3 2"},
		{[]int64{3, 3, 3, 3}, "podTemplateRef", 4, "3"},
	} {
		drops, asked := "", []string{}
		b := readerOf(clusterOf(&drops, &asked, "one"))
		now := time.Unix(1000, 0)
		for i, placed := range c.placed {
			if drops = ""; i < c.until {
				drops = c.drops
			}
			if err := b.Look(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			if err := b.Write(t.Context(), &loadlinev1.PlanSlackResponse{Mirrored: []*loadlinev1.MirroredSlack{{Wanted: 3,
				Count: 3, Placed: placed, Reason: reason, Sources: []string{"Deployment shop/capacitybuffer:one"}}}},
				now); err != nil {
				t.Fatal(err)
			}
			now = now.Add(lookEvery)
		}
		if got := strings.Join(asked, " "); got != c.want {
			t.Errorf("placed %v, drops %q: wrote %s, want %s", c.placed, c.drops, got, c.want)
		}
	}
}

// Buffers with the same pod are kept together: each gets the copies that are its own however the others fit. There
// is no number where the plan tells none.
func TestReadyReplicasOfBuffersThatArePlannedTogether(t *testing.T) {
	sources := []string{"Deployment shop/capacitybuffer:a", "Deployment shop/capacitybuffer:b"}
	for _, c := range []struct {
		plan *loadlinev1.PlanSlackResponse
		want string
	}{
		{&loadlinev1.PlanSlackResponse{Mirrored: []*loadlinev1.MirroredSlack{{Wanted: 6, Count: 6, Placed: 6,
			Sources: sources}}}, "3 3"},
		{&loadlinev1.PlanSlackResponse{Mirrored: []*loadlinev1.MirroredSlack{{Wanted: 6, Count: 6, Placed: 4,
			Sources: sources}}}, "1 1"},
		{&loadlinev1.PlanSlackResponse{Mirrored: []*loadlinev1.MirroredSlack{{Wanted: 6, Count: 5, Placed: 2,
			Sources: sources}}}, "0 0"},
		{&loadlinev1.PlanSlackResponse{Errors: []*loadlinev1.SlackWishError{{Source: sources[0], Text: "no"},
			{Source: sources[1], Text: "no"}}}, "0 0"},
		{&loadlinev1.PlanSlackResponse{}, "<nil> <nil>"},
	} {
		drops, asked := "", []string{}
		b := readerOf(clusterOf(&drops, &asked, "a", "b"))
		if err := b.Look(t.Context(), time.Unix(1000, 0)); err != nil {
			t.Fatal(err)
		}
		if err := b.Write(t.Context(), c.plan, time.Unix(1000, 0)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(asked, " "); got != c.want {
			t.Errorf("%v: wrote %s, want %s", c.plan, got, c.want)
		}
	}
}
