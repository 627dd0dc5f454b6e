package autoscaler

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
)

// swapRefusedFor is for how long a group is not asked again to take nodes back for others after it has refused.
const swapRefusedFor = time.Hour

// offerSwaps says of each group how many nodes the cloud has not begun to make and may be asked to take back.
func (l *leader) offerSwaps(o *loop) {
	if !l.config.ScaleUp.SwapNotBegun || l.config.Mode != config.Act {
		return
	}
	for _, g := range o.states {
		refused, known := l.fleet.swapRefused[g.ID]
		if known && o.now.Sub(refused) < swapRefusedFor {
			continue
		}
		delete(l.fleet.swapRefused, g.ID)
		g.swappable = int(g.found.GetUnbegun())
	}
}

// swap takes back what the plan gives up for the nodes that groups grow by, once the cloud has agreed to all of these.
func (l *leader) swap(ctx context.Context, o *loop, increases []*increase) {
	if slices.ContainsFunc(increases, func(i *increase) bool { return i.err != nil }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cleanUpTime)
	defer cancel()
	for _, back := range o.plan.loop.GetTakeBack() {
		at := slices.IndexFunc(o.states, func(g *groupState) bool { return g.ID == back.GetNodeGroup() })
		nodes := int(back.GetNodes())
		if at < 0 || nodes < 1 || nodes > o.states[at].swappable {
			klog.ErrorS(nil, "The plan takes back nodes that it may not", "group", back.GetNodeGroup(), "nodes", nodes)
			l.metrics.errors.WithLabelValues("plan").Inc()
			continue
		}
		l.takeBack(ctx, o, o.states[at], nodes, increases)
	}
}

func (l *leader) takeBack(ctx context.Context, o *loop, g *groupState, nodes int, increases []*increase) {
	from := g.Target
	for _, i := range increases {
		if i.group == g {
			from += i.delta
		}
	}
	if err := l.cloud.DecreaseTargetSize(ctx, g.ID, from, nodes); err != nil {
		klog.ErrorS(bounded(err), "Nodes that a cheaper mix replaces are not taken back", "group", g.ID, "nodes", nodes)
		l.metrics.errors.WithLabelValues("cloudProvider").Inc()
		l.fleet.swapRefused[g.ID] = o.now
		return
	}
	klog.V(2).InfoS("Nodes are taken back for a cheaper mix", "group", g.ID, "nodes", nodes)
	l.events.Eventf(l.status.reference(), v1.EventTypeNormal, "SwappedNodes",
		"Scale-up: %d nodes of group %s that were not begun are taken back for a cheaper mix", nodes, g.ID)
	l.metrics.givenUp.WithLabelValues("swapped").Add(float64(nodes))
	l.fleet.outcomes.TakenBack = append(l.fleet.outcomes.TakenBack,
		&loadlinev1.FleetTakenBack{NodeGroup: g.ID, Nodes: int32(nodes)})
}
