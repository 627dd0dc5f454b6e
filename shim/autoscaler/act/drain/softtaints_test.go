package drain

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Nodes that cannot be written, more than are written in one loop, keep no others waiting, and are tried in turn.
func TestSoftTaintsOfNodesThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		unneeded := map[string]time.Time{}
		for _, name := range []string{"bad1", "bad2", "bad3", "good1", "good2", "good3"} {
			node := w.addNode(name)
			if strings.HasPrefix(name, "bad") { // these come first: they are to lose theirs
				node.Spec.Taints = []v1.Taint{{Key: SoftTaint, Value: "5", Effect: v1.TaintEffectPreferNoSchedule}}
				w.updateNode(node)
				w.taintFails = append(w.taintFails, name)
			} else {
				unneeded[name] = time.Unix(77, 0)
			}
		}
		soft := NewSoftTaints(w.client, 1, 2, time.Second)
		for loop, want := range []string{"bad1 bad2", "bad3 good1", "good2 good3", "bad1 bad2", "bad1 bad3"} {
			clear(w.tried)
			if loop == 4 {
				w.taintFails = nil // bad3 has waited for longest, then come those that are tried again
			}
			err := soft.Update(t.Context(), w.nodes(), unneeded)
			if tried := strings.Join(slices.Sorted(maps.Keys(w.tried)), " "); tried != want ||
				(err != nil) != (loop < 4 && strings.Contains(want, "bad")) {
				t.Errorf("loop %d: tried %s, want %s; error %v", loop, tried, want, err)
			}
		}
	})
}
