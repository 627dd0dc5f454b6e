package autoscaler

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// swap takes back what the plan gives up for the nodes that groups grow by, once the cloud has agreed to all of these.
func (l *leader) swap(ctx context.Context, o *loop, increases []*increase) {
	if slices.ContainsFunc(increases, func(i *increase) bool { return i.err != nil }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cleanUpTime)
	defer cancel()
	for _, action := range o.fleet().GetActions() {
		change := action.GetTakeBack()
		if change == nil || !action.GetAfterGrowth() {
			continue
		}
		group, nodes := change.GetNodeGroup(), int(change.GetNodes())
		err := l.cloud.DecreaseTargetSize(ctx, group, int(change.GetExpectedTarget()), nodes)
		l.fleet.note(action.GetId(), err)
		if err != nil {
			klog.ErrorS(bounded(err), "Nodes that a cheaper mix replaces are not taken back", "group", group, "nodes", nodes)
			l.metrics.errors.WithLabelValues("cloudProvider").Inc()
			continue
		}
		klog.V(2).InfoS("Nodes are taken back for a cheaper mix", "group", group, "nodes", nodes)
		l.events.Eventf(l.status.reference(), v1.EventTypeNormal, "SwappedNodes",
			"Scale-up: %d nodes of group %s that were not begun are taken back for a cheaper mix", nodes, group)
		l.metrics.givenUp.WithLabelValues("swapped").Add(float64(nodes))
	}
}
