package autoscaler

import (
	"context"

	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
)

// lineWatch tells how many nodes are above the load line: they take no more pods, and nothing that the autoscaler plans
// adds to them.
type lineWatch struct {
	client loadlinev1.SchedulerExtenderClient // nil: nobody is asked
	above  int32                              // when it was last asked
}

// noteLoadLine asks, after a plan, where plans keep to a load line. That it cannot be told is no reason to end a loop.
func (l *leader) noteLoadLine(ctx context.Context) {
	line := l.planner.settings.GetFit().GetLoadLine()
	if l.line.client == nil || line == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var above int32
	err := l.cluster.View.Ask(ctx, func(at *loadlinev1.Changes) error {
		answer, err := l.line.client.CheckLoadLine(ctx, &loadlinev1.CheckLoadLineRequest{Changes: at, Line: line})
		above = answer.GetNodesAbove()
		return err
	})
	if err != nil {
		klog.ErrorS(err, "It is not known how many nodes are above the load line")
		return
	}
	l.metrics.nodesAboveLine.Set(float64(above))
	if above != l.line.above {
		klog.InfoS("Nodes are above the load line: they take no more pods", "nodes", above, "before", l.line.above)
	}
	l.line.above = above
}
