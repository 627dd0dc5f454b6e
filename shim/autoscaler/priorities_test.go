package autoscaler

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/autoscaler/config"
)

// Groups that a provider prefers grow first, though they are dear; others for the pods that are left over.
func TestPreferredGroupsGrowFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := map[string]*skyGroup{"cheap": {max: 9, cpu: "4", price: 1}, "last": {max: 9, cpu: "4", price: 0.5},
			"preferred": {max: 2, cpu: "4", price: 9, priority: new(int64(10))}}
		groups["cheap"].priority = new(int64(0))
		b := growing(t, groups, nil)
		b.addPending("app", 5, "3")
		b.run(30 * time.Second)
		for id, want := range map[string]int{"preferred": 2, "cheap": 3, "last": 0} {
			if groups[id].target != want {
				t.Errorf("group %s has %d nodes, want %d", id, groups[id].target, want)
			}
		}
	})
}

// Plans follow Cluster Autoscaler's ConfigMap of priorities, also when it changes; what it said before holds while it
// cannot be read.
func TestPrioritiesOfConfigMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := map[string]*skyGroup{"a-spot": {max: 9, cpu: "4", price: 9}, "b": {max: 9, cpu: "4", price: 1},
			"c": {max: 9, cpu: "4", price: 2}}
		b := growing(t, groups, func(c *config.Configuration) { c.ScaleUp.Strategies = []string{"priority", "price"} })
		maps := b.client.CoreV1().ConfigMaps("kube-system")
		object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: upstreamPriorities},
			Data: map[string]string{"priorities": "10:\n- .*\n50:\n- .*spot.*\n"}}
		grown := func(step, id, warning string) {
			t.Helper()
			before := groups[id].target
			b.addPending(step, 1, "3")
			b.run(2 * time.Minute)
			if groups[id].target != before+1 {
				t.Errorf("%s: group %s did not grow", step, id)
			}
			status, err := maps.Get(t.Context(), config.Default().StatusConfigMap, metav1.GetOptions{})
			told := strings.Join(strings.Fields(status.Data["status"]), " ") // lines are wrapped
			if err != nil || !strings.Contains(told, warning) {
				t.Errorf("%s: the status has no %q (%v):\n%s", step, warning, err, told)
			}
		}
		grown("missing", "b", "cluster-autoscaler-priority-expander is not followed")
		if _, err := maps.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		grown("spot-first", "a-spot", "")
		change := func(data map[string]string) {
			object.Data = data
			if _, err := maps.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		change(map[string]string{"priorities": "10: [.*]\n50: [(]"})
		grown("no-pattern", "a-spot", "priorities[50]")
		change(map[string]string{"priorities": "10: .*"})
		grown("no-list", "a-spot", "must map priorities to lists of patterns")
		change(map[string]string{"priorities": "50:" + strings.Repeat("\n- .*", 1001)})
		grown("too-many", "a-spot", "priorities[50]: more than 1000 patterns")
		change(map[string]string{"other": "10: [.*]"})
		grown("no-key", "a-spot", "it has no key")
		change(map[string]string{"priorities": "10:\n- .*\n50:\n- ^c$\n"})
		grown("changed", "c", "")
	})
}
