package autoscaler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"loadline.dev/shim/autoscaler/config"
)

// The pods have no limit of memory, so that each counts as all of its node: n1 with two of them is above a line of 1.5,
// and no node takes a second one, so that none can go. Without a line n1 takes the pod of n2.
func TestNodesAboveTheLoadLineAreTold(t *testing.T) {
	for line, want := range map[string]struct {
		above float64
		goes  bool
	}{"": {0, true}, "memory=1.5": {1, false}, "memory=3": {0, true}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBenchWith(t, nil, 2, func(c *config.Configuration) {
				if line != "" {
					c.Filters.MaxLimitsOverAllocatable = []string{line}
				}
			})
			b.addController()
			b.addPod("p1", "n1", "1", nil)
			b.addPod("p2", "n1", "1", nil)
			b.addPod("p3", "n2", "1", nil)
			synctest.Wait() // the informers see them
			b.run(3 * time.Minute)
			gone := len(b.deleted) > 0
			b.end()
			above := testutil.ToFloat64(b.teller.Metrics.NodesAboveLine)
			if gone != want.goes || !gone && above != want.above {
				t.Errorf("line %q: %v nodes above, a node is gone: %v; want %+v", line, above, gone, want)
			}
		})
	}
}
