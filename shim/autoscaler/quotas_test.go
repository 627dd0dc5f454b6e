package autoscaler

import (
	"context"
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

// No group grows before quotas could be read, and then up to what they allow: all nodes together 21 cores, and those of
// group g two nodes. One node of four cores is there, which is in no group.
func TestCapacityQuotasBoundGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := map[string]*skyGroup{"g": {max: 9, cpu: "4", price: 1},
			"h": {max: 9, cpu: "4", price: 2}}
		b := growing(t, groups, nil)
		quota := func(name string, selector, limits map[string]any) runtime.Object {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling.x-k8s.io/v1beta1",
				"kind": "CapacityQuota", "metadata": map[string]any{"name": name},
				"spec": map[string]any{"selector": selector, "limits": map[string]any{"resources": limits}}}}
		}
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{quotas.Resource: "CapacityQuotaList"},
			quota("all", map[string]any{}, map[string]any{"cpu": "21"}),
			quota("some", map[string]any{"matchLabels": map[string]any{"group": "g"}}, map[string]any{"nodes": "2"}))
		down := true
		client.PrependReactor("list", "capacityquotas", func(k8stesting.Action) (bool, runtime.Object, error) {
			return down, nil, context.DeadlineExceeded
		})
		b.leader.planner.Quotas = quotas.New(client)
		b.addPending("app", 6, "3")
		b.run(30 * time.Second)
		if g, h := groups["g"].target, groups["h"].target; g != 0 || h != 0 {
			t.Errorf("%d and %d nodes before quotas are known", g, h)
		}
		down = false
		b.run(time.Minute)
		if g, h := groups["g"].target, groups["h"].target; g != 2 || h != 2 {
			t.Errorf("%d and %d nodes, want 2 of the cheaper group and 2 of the other one", g, h)
		}
		if warnings := b.readStatus().GetWarnings(); len(warnings) > 0 {
			t.Errorf("warnings %q", warnings)
		}
	})
}
