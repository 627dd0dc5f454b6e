package autoscaler

import (
	"fmt"

	"k8s.io/klog/v2"
)

// updateMetrics brings the metrics up to date.
func (l *leader) updateMetrics(o *loop) {
	m := l.metrics
	m.limits.WithLabelValues("all").Set(float64(l.config.ScaleDown.MaxScaleDownParallelism))
	m.limits.WithLabelValues("drain").Set(float64(l.config.ScaleDown.MaxDrainParallelism))
	counts := map[string]int{}
	for _, d := range o.underWay {
		counts[kindOf(!d.Drain)]++
	}
	for _, kind := range []string{"empty", "drain"} {
		m.underWay.WithLabelValues(kind).Set(float64(counts[kind]))
	}
	set(m.cooldown, l.fleet.coolsDown)
	l.reportGrowth(o)
	m.sizes.update(o.sized)
	m.brake.Reset()
	if o.plan == nil {
		m.brake.WithLabelValues("NoPlan").Set(1)
		return
	}
	if brake := o.plan.GetBrake(); brake != "" {
		m.brake.WithLabelValues(brake).Set(1)
	}
	m.replacements.count(o.replacement())
	m.unneeded.Set(float64(len(o.plan.GetRemove())))
	m.unremovable.Reset()
	var skipped []string
	for _, stay := range o.plan.GetStay() {
		reason := stay.GetFirst().GetReason()
		m.unremovable.WithLabelValues(reason).Add(float64(len(stay.GetSlots())))
		if reason == "NotEvaluated" {
			for _, slot := range stay.GetSlots() {
				skipped = append(skipped, o.plan.nameOf[slot])
			}
		}
	}
	m.longestSkip.Set(l.skips.Update(skipped, o.now).Seconds())
	l.logPlan(o)
}

// logPlan logs what a plan comes to. While that stays the same, it logs only at a level at which each loop is worth a
// line.
func (l *leader) logPlan(o *loop) {
	values := []any{"outcome", o.outcome, "canGo", len(o.plan.GetRemove()), "stay", o.plan.staying(),
		"underWay", len(o.underWay), "brake", o.plan.GetBrake(), "limit", o.plan.GetLimit(),
		"growth", o.growthOutcome, "waiting", o.pods.Waiting()}
	level, text := klog.Level(4), fmt.Sprint(values...)
	if text != l.logged {
		level, l.logged = 2, text
	}
	klog.V(level).InfoS("Planned", values...)
	l.logSizes(o)
}
