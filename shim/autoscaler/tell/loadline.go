package tell

import (
	"context"

	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
)

// lineWatch tells how many nodes are above the load line: they take no more pods, and nothing that the autoscaler plans
// adds to them.
type lineWatch struct {
	Client loadlinev1.SchedulerExtenderClient // nil: nobody is asked
	above  int32                              // when it was last asked
}

// TellLoadLine asks, after a plan, where plans keep to a load line; nil: they keep to none. That it cannot be told is
// no reason to end a loop.
func (t *Teller) TellLoadLine(ctx context.Context, line *loadlinev1.LoadLine) {
	if t.Line.Client == nil || line == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, plan.AnswerTime)
	defer cancel()
	var above int32
	err := t.cluster.View.Ask(ctx, func(at *loadlinev1.Changes) error {
		answer, err := t.Line.Client.CheckLoadLine(ctx, &loadlinev1.CheckLoadLineRequest{Changes: at, Line: line})
		above = answer.GetNodesAbove()
		return err
	})
	if err != nil {
		klog.ErrorS(err, "It is not known how many nodes are above the load line")
		return
	}
	t.Metrics.NodesAboveLine.Set(float64(above))
	if above != t.Line.above {
		klog.InfoS("Nodes are above the load line: they take no more pods", "nodes", above, "before", t.Line.above)
	}
	t.Line.above = above
}
