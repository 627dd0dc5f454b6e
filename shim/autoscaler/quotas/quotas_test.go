package quotas

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// bounds returns what a question says: the cores of all nodes if these are bounded, then of each quota its name and
// selector, its cores, memory, nodes and GPUs.
func bounds(t *testing.T, q *Quotas) string {
	t.Helper()
	request, lines := &loadlinev1.PlanLoopRequest{}, []string{}
	q.Bound(request)
	if request.MaxCoresTotal != nil {
		lines = append(lines, fmt.Sprintf("cores %d", *request.MaxCoresTotal))
	}
	number := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	for _, m := range request.Maxima {
		var selector metav1.LabelSelector
		if err := selector.Unmarshal(m.Selector); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%s %q %s %s %s", m.Name, metav1.FormatLabelSelector(&selector), number(m.Cores),
			number(m.MemoryBytes), number(m.Nodes))
		for _, g := range m.Gpus {
			line += fmt.Sprintf(" %s:%d", g.GpuType, g.Gpus)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

// Each quota is a maximum of the nodes that it selects. What cannot be followed is a warning.
func TestLimits(t *testing.T) {
	labels := func(key, value string) map[string]any {
		return map[string]any{"matchLabels": map[string]any{key: value}}
	}
	const prefix, only = "CapacityQuotas that are not followed: q: ", "only cpu, memory, nodes and up to 100 types of GPUs " +
		"are bounded, not "
	cases := []struct {
		name     string
		selector map[string]any
		limits   map[string]any
		want     string
		warning  string
	}{
		{"AllNodes", nil, map[string]any{"cpu": "20", "memory": "1Ki", "nodes": int64(6), "t4": "1", "a4": "2"},
			`CapacityQuota/q "<none>" 20 1024 6 a4:2 t4:1`, ""},
		{"EmptySelector", map[string]any{}, map[string]any{"nodes": "0"}, `CapacityQuota/q "<none>" - - 0`, ""},
		{"SomeNodes", labels("pool", "a"), map[string]any{"cpu": "20"}, `CapacityQuota/q "pool=a" 20 - -`, ""},
		{"Expressions", map[string]any{"matchExpressions": []any{map[string]any{"key": "pool", "operator": "Exists"}}},
			map[string]any{"nodes": "3"}, `CapacityQuota/q "pool" - - 3`, ""},
		{"WrongSelector", map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Near"}}},
			map[string]any{"cpu": "20"}, "", prefix + `spec.selector: "Near" is not a valid label selector operator`},
		{"Hostname", labels("kubernetes.io/hostname", "n1"), map[string]any{"cpu": "20"}, "",
			prefix + "spec.selector: kubernetes.io/hostname is not known of new nodes"},
		{"PartsOfACore", nil, map[string]any{"cpu": "13500m"}, `CapacityQuota/q "<none>" 13 - -`, ""},
		{"BelowZero", nil, map[string]any{"cpu": "-1", "nodes": "-1"}, `CapacityQuota/q "<none>" 0 - 0`, ""},
		{"NoTypeOfGPUs", nil, map[string]any{"nvidia.com/gpu": "1", "memory": "100"},
			`CapacityQuota/q "<none>" - 100 -`, prefix + only + `"nvidia.com/gpu"`},
		{"Unreadable", nil, map[string]any{"cpu": "many"}, "", prefix + "quantities must match the regular expression " +
			"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			q := New(clusterOf(quotaOf("q", c.selector, c.limits)))
			if err := q.Look(t.Context(), time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
			if got := bounds(t, q); got != c.want || q.Warning() != c.warning {
				t.Errorf("%s, want %s; warning %q, want %q", got, c.want, q.Warning(), c.warning)
			}
		})
	}
	if got := bounds(t, nil); got != "" {
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
		if got := bounds(t, q); got != want || (err == nil) != (wantErr == "") ||
			err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s, want %s; error %v, want %q", got, want, err, wantErr)
		}
		now = now.Add(lookEvery)
	}
	look("no right", "cores 0")
	failure = nil
	look("", `CapacityQuota/q "<none>" 20 - -`)
	failure = apierrors.NewInternalError(errors.New("down"))
	look("down", `CapacityQuota/q "<none>" 20 - -`)
	failure = apierrors.NewNotFound(Resource.GroupResource(), "")
	look("", "")
}
