package autoscaler

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"loadline.dev/shim/autoscaler/quotas"
)

// No group grows before quotas could be read, and then up to what they allow. The status says of a quota of some nodes
// that it bounds nothing.
func TestCapacityQuotasBoundGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := map[string]*skyGroup{"g": {max: 9, cpu: "4", price: 1}}
		b := growing(t, groups, nil)
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{quotas.Resource: "CapacityQuotaList"},
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling.x-k8s.io/v1beta1",
				"kind": "CapacityQuota", "metadata": map[string]any{"name": "all"},
				"spec": map[string]any{"limits": map[string]any{"resources": map[string]any{"cpu": "13"}}}}},
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling.x-k8s.io/v1beta1",
				"kind": "CapacityQuota", "metadata": map[string]any{"name": "some"},
				"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"pool": "a"}},
					"limits": map[string]any{"resources": map[string]any{"cpu": "1"}}}}})
		down := true
		client.PrependReactor("list", "capacityquotas", func(k8stesting.Action) (bool, runtime.Object, error) {
			return down, nil, context.DeadlineExceeded
		})
		b.leader.planner.Quotas = quotas.New(client)
		b.addPending("app", 5, "3")
		b.run(30 * time.Second)
		if groups["g"].target != 0 {
			t.Errorf("%d nodes before quotas are known", groups["g"].target)
		}
		down = false
		b.run(time.Minute)
		if groups["g"].target != 2 {
			t.Errorf("%d nodes of four cores beside one, where thirteen cores are allowed", groups["g"].target)
		}
		const want = "CapacityQuotas that are not followed: some: it selects nodes by labels, and only quotas of all nodes " +
			"are followed"
		if warnings := b.readStatus().GetWarnings(); !slices.Contains(warnings, want) {
			t.Errorf("warnings %q, want %q", warnings, want)
		}
	})
}
