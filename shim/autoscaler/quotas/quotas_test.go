package quotas

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"loadline.dev/shim/api/loadlinev1"
)

func quotaOf(name string, selector map[string]any, resources map[string]any) runtime.Object {
	spec := map[string]any{"limits": map[string]any{"resources": resources}}
	if selector != nil {
		spec["selector"] = selector
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling.x-k8s.io/v1beta1",
		"kind": "CapacityQuota", "metadata": map[string]any{"name": name}, "spec": spec}}
}

func clusterOf(objects ...runtime.Object) *fake.FakeDynamicClient {
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{Resource: "CapacityQuotaList"}, objects...)
}

// bounds returns the limits of a question with 100 cores, 1000 bytes, 50 nodes and 8 GPUs of type a4, in this order.
func bounds(q *Quotas) string {
	request := &loadlinev1.PlanLoopRequest{MaxCoresTotal: new(int64(100)), MaxMemoryTotal: new(int64(1000)),
		MaxNodesTotal: 50, MaxGpusTotal: []*loadlinev1.GpuCount{{GpuType: "a4", Gpus: 8}}}
	q.Bound(request)
	var gpus []string
	for _, g := range request.MaxGpusTotal {
		gpus = append(gpus, fmt.Sprintf("%s:%d", g.GpuType, g.Gpus))
	}
	return fmt.Sprintf("%d %d %d %s", *request.MaxCoresTotal, *request.MaxMemoryTotal, request.MaxNodesTotal,
		strings.Join(gpus, " "))
}

// The least of all limits counts, those of the configuration among them. A quota of some nodes is no limit of the
// cluster.
func TestLimits(t *testing.T) {
	everything, some := map[string]any{}, map[string]any{"matchLabels": map[string]any{"pool": "a"}}
	cases := []struct {
		name   string
		quotas []runtime.Object
		want   string
	}{
		{"None", nil, "100 1000 50 a4:8"},
		{"Higher", []runtime.Object{quotaOf("q", nil, map[string]any{"cpu": "200", "memory": "1Gi", "nodes": int64(60),
			"a4": "9"})}, "100 1000 50 a4:8"},
		{"Lower", []runtime.Object{quotaOf("q", everything, map[string]any{"cpu": "20", "memory": "100", "nodes": "6",
			"a4": "2", "t4": "1"})}, "20 100 6 a4:2 t4:1"},
		{"LeastOfTwo", []runtime.Object{quotaOf("q", nil, map[string]any{"cpu": "20"}),
			quotaOf("r", nil, map[string]any{"cpu": "30", "nodes": "7"})}, "20 1000 7 a4:8"},
		{"OfSomeNodes", []runtime.Object{quotaOf("q", some, map[string]any{"cpu": "20"}),
			quotaOf("r", nil, map[string]any{"cpu": "90"})}, "90 1000 50 a4:8"},
		{"NoNodes", []runtime.Object{quotaOf("q", nil, map[string]any{"nodes": "0"})}, "0 1000 50 a4:8"},
		{"PartsOfACore", []runtime.Object{quotaOf("q", nil, map[string]any{"cpu": "13500m"})}, "13 1000 50 a4:8"},
		{"NoTypeOfGPUs", []runtime.Object{quotaOf("q", nil, map[string]any{"nvidia.com/gpu": "1", "memory": "100"})},
			"100 100 50 a4:8"},
		{"Unreadable", []runtime.Object{quotaOf("q", nil, map[string]any{"cpu": "many"})}, "100 1000 50 a4:8"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			q := New(clusterOf(c.quotas...))
			if err := q.Look(t.Context(), time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
			if got := bounds(q); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	if got := bounds(nil); got != "100 1000 50 a4:8" {
		t.Errorf("without the flag: %s", got)
	}
}

// Until quotas could be read, no group may grow; later those that were known stay. Without their kind there are none.
func TestQuotasThatCannotBeRead(t *testing.T) {
	client := clusterOf(quotaOf("q", nil, map[string]any{"cpu": "20"}))
	failure := error(apierrors.NewForbidden(Resource.GroupResource(), "", errors.New("no right")))
	client.PrependReactor("list", Resource.Resource, func(k8stesting.Action) (bool, runtime.Object, error) {
		return failure != nil, nil, failure
	})
	q, now := New(client), time.Unix(1000, 0)
	look := func(wantErr, want string) {
		t.Helper()
		err := q.Look(t.Context(), now)
		if got := bounds(q); got != want || (err == nil) != (wantErr == "") ||
			err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s, want %s; error %v, want %q", got, want, err, wantErr)
		}
		now = now.Add(lookEvery)
	}
	look("no right", "0 1000 50 a4:8")
	failure = nil
	look("", "20 1000 50 a4:8")
	failure = apierrors.NewInternalError(errors.New("down"))
	look("down", "20 1000 50 a4:8")
	failure = apierrors.NewNotFound(Resource.GroupResource(), "")
	look("", "100 1000 50 a4:8")
}
