package e2e

import (
	"slices"
	"strings"
	"testing"

	"loadline.dev/test/e2e/harness"
)

// cheapLarge is a list of prices by which a small node costs much more than a large one. The nodes of the test are some
// seconds old, and a move must pay within a quarter of that.
const cheapLarge = `instance_type,arch,allocatable_cpu,allocatable_memory,allocatable_pods,on_demand_usd_per_hour
small,amd64,1900m,4086Mi,30,100
large,amd64,7900m,16374Mi,60,1
`

// Four pods get a small node each. Then small nodes become dear: with `replace` one large node is added in their place,
// by one NodeClaim, before any of them is removed. An autoscaler that is killed meanwhile is followed by one that
// continues: nothing is bought twice, no NodeClaim is deleted with pods, and the budget of the pods is kept.
func TestKarpenterNodesAreReplaced(t *testing.T) {
	t.Parallel()
	a := startActing(t)
	grows := a.start("grows", "--decisions=scale-up,scale-down")
	for _, pods := range []int32{2, 4} { // four at once are cheaper on a large node
		a.deploy("web", pods, "1500m")
		a.load.waitRunning("web", int(pods))
	}
	a.check("4 small")
	a.wait("nodes that Karpenter has initialized", func() bool { return a.initialized() == 4 })
	a.must(grows.Stop())
	a.load.protect("web", 1)
	a.load.budgets = watchBudgets(t, a.ctx, a.cluster, "app")
	a.wait("healthy pods", func() bool { return a.load.budgets.ready() == 4 })
	a.load.budgets.begin()
	a.prices = a.write("other-prices.csv", []byte(cheapLarge))
	a.register("10s") // time for a kill before the new node is there
	arguments := []string{"--decisions=scale-up,scale-down,replace", "--replacement-rest=5s",
		"--pod-disruption-cost=0.0005", "--payback-hours=1"}
	small := a.load.nodes()
	killed := a.start("killed", arguments...)
	a.wait("a NodeClaim of another type", func() bool { return strings.Contains(a.claims.made(), "large") })
	killed.Kill()
	if nodes := a.load.nodes(); len(nodes) != len(small) || a.claims.going() != 0 {
		t.Errorf("%d nodes, and %d NodeClaims are being deleted, before the new node is there", len(nodes),
			a.claims.going())
	}
	a.start("continues", arguments...)
	a.wait("the small nodes to go", func() bool {
		return len(a.list(nodeClaims)) == 1 && len(a.nodes()) == 1 && len(a.load.busy()) == 0
	})
	a.load.waitRunning("web", 4)
	a.wait("the end of the move", func() bool {
		return metricsOf(t, a.ctx, a.load.autoscaler).Sum("loadline_autoscaler_replacement_moves_total",
			harness.Labels{"result": "done"}) >= 1
	})
	a.waitLoops(10)
	a.check("1 large, 4 small")
	if lowest := a.load.budgets.lowest("web"); lowest < 3 {
		t.Errorf("at some time %d pods were healthy, the budget wants 3", lowest)
	}
	for _, node := range small {
		if reasons := a.load.eventsOn(node.Name); !slices.Contains(reasons, "Replacement") {
			t.Errorf("events on node %s, which was replaced: %v", node.Name, reasons)
		}
	}
	expectNothingForbidden(t, a.load.autoscaler.Process)
}
