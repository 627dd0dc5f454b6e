package tell

import (
	"fmt"

	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/plan"
)

// updateMetrics brings the metrics up to date.
func (t *Teller) updateMetrics(o *plan.Loop) {
	m := t.Metrics
	m.limits.WithLabelValues("all").Set(float64(t.config.ScaleDown.MaxScaleDownParallelism))
	m.limits.WithLabelValues("drain").Set(float64(t.config.ScaleDown.MaxDrainParallelism))
	counts := map[string]int{}
	for _, d := range o.UnderWay {
		counts[kindOf(!d.Drain)]++
	}
	for _, kind := range []string{"empty", "drain"} {
		m.underWay.WithLabelValues(kind).Set(float64(counts[kind]))
	}
	set(m.cooldown, o.CoolsDown)
	t.reportGrowth(o)
	m.sizes.update(o.Sized)
	m.brake.Reset()
	if o.Plan == nil {
		m.brake.WithLabelValues("NoPlan").Set(1)
		return
	}
	if brake := o.Plan.GetBrake(); brake != "" {
		m.brake.WithLabelValues(brake).Set(1)
	}
	m.replacements.count(o.Replacement())
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
		"growth", o.GrowthOutcome, "waiting", o.Pods.Waiting()}
	level, text := klog.Level(4), fmt.Sprint(values...)
	if text != t.said.plan {
		level, t.said.plan = 2, text
	}
	klog.V(level).InfoS("Planned", values...)
	t.logSizes(o)
}
