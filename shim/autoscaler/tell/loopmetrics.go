package tell

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
)

// skipTracker tells for how long a planner has not come to look at a node. It follows the nodes that were skipped, loop
// by loop. The zero value has seen none.
type skipTracker struct {
	since map[string]time.Time // when a skipped node was last not skipped; of those skipped in the last loop
	last  time.Time            // of the last loop
}

// update takes note of a loop and returns how long the node that waits longest has not been looked at.
func (t *skipTracker) update(skipped []string, now time.Time) time.Duration {
	if t.last.IsZero() {
		t.last = now
	}
	next := make(map[string]time.Time, len(skipped))
	longest := time.Duration(0)
	for _, node := range skipped {
		since, before := t.since[node]
		if !before {
			since = t.last
		}
		next[node] = since
		longest = max(longest, now.Sub(since))
	}
	t.since, t.last = next, now
	return longest
}

// lineWatch tells how many nodes are above the load line: they take no more pods, and nothing that the autoscaler plans
// adds to them.
type lineWatch struct {
	Client loadlinev1.SchedulerExtenderClient // nil: nobody is asked
	above  int32                              // when it was last asked
}

// TellLoadLine asks, after a plan, where plans keep to a load line; nil: they keep to none. A failure of the question
// is no reason to end a loop.
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
	t.Metrics.Set(NodesAboveLine, float64(above))
	if above != t.Line.above {
		klog.InfoS("Nodes are above the load line: they take no more pods", "nodes", above, "before", t.Line.above)
	}
	t.Line.above = above
}
