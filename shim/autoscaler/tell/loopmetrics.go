package tell

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
)

// updateMetrics brings the metrics up to date.
func (t *Teller) updateMetrics(o *plan.Loop) {
	m := t.Metrics
	setEach(m.limits, map[string]int{"all": t.config.ScaleDown.MaxScaleDownParallelism,
		"drain": t.config.ScaleDown.MaxDrainParallelism})
	underWay := map[string]int{"empty": 0, "drain": 0}
	for _, d := range o.UnderWay {
		underWay[kindOf(!d.Drain)]++
	}
	setEach(m.underWay, underWay)
	t.reportGrowth(o)
	m.sizes.update(o.Sized)
	m.brake.Reset()
	if o.Plan == nil {
		m.brake.WithLabelValues("NoPlan").Set(1)
		return
	}
	set(m.cooldown, o.Fleet().GetCoolsDown())
	if brake := o.Plan.GetBrake(); brake != "" {
		m.brake.WithLabelValues(brake).Set(1)
	}
	m.replacements.count(o.Answer().GetReplacement())
	m.unneeded.Set(float64(len(o.Plan.GetRemove())))
	m.unremovable.Reset()
	var skipped []string
	for _, stay := range o.Plan.GetStay() {
		reason := stay.GetFirst().GetReason()
		m.unremovable.WithLabelValues(reason).Add(float64(len(stay.GetSlots())))
		if reason == "NotEvaluated" {
			for _, slot := range stay.GetSlots() {
				skipped = append(skipped, o.Plan.NameOf[slot])
			}
		}
	}
	m.longestSkip.Set(t.skips.update(skipped, o.Now).Seconds())
	t.logPlan(o)
}

// logPlan logs what a plan comes to. While that stays the same, it logs only at a level at which each loop is worth a
// line.
func (t *Teller) logPlan(o *plan.Loop) {
	values := []any{"outcome", o.Outcome, "canGo", len(o.Plan.GetRemove()), "stay", o.Plan.Staying(),
		"underWay", len(o.UnderWay), "brake", o.Plan.GetBrake(), "limit", o.Plan.GetLimit(),
		"growth", o.GrowthOutcome, "waiting", o.Waiting()}
	level, text := klog.Level(4), fmt.Sprint(values...)
	if text != t.said.plan {
		level, t.said.plan = 2, text
	}
	klog.V(level).InfoS("Planned", values...)
	t.logSizes(o)
}

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
