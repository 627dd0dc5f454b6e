package autoscaler

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/text"
)

// takeResults takes note of what has happened since the last loop.
func (l *leader) takeResults() {
	for _, eviction := range l.actuator.TakeEvictions() {
		l.planner.evicted(eviction)
	}
	for _, ended := range l.actuator.TakeEnded() {
		if ended.Err == nil {
			out := &l.fleet.outcomes
			out.Removals = append(out.Removals,
				&loadlinev1.FleetRemoval{NodeGroup: ended.Group, Machine: toldID(ended.ProviderID)})
			out.Acknowledged = append(out.Acknowledged, string(ended.UID))
			continue
		}
		l.planner.ended(ended.Node)
	}
	if err := l.actuator.TakeFailure(); err != nil {
		l.fleet.outcomes.TaintingFailed = true
		l.metrics.errors.WithLabelValues("taint").Inc()
		klog.ErrorS(bounded(err), "Nodes that were to go are given back")
	}
	uids := sync.OnceValue(l.cluster.NodeUIDs)
	l.actuator.ForgetGone(func(uid types.UID) bool { return uids()[uid] })
}

// noteProblems takes note of groups that are left as they are, since the provider cannot tell their options.
func (l *leader) noteProblems(o *loop) {
	var texts []string
	for _, g := range o.states {
		if g.Problem != nil {
			l.metrics.errors.WithLabelValues("cloudProvider").Inc()
			texts = append(texts,
				text.Bound(fmt.Sprintf("node group %s is left as it is: %v", g.ID, g.Problem), mostStatusText))
		}
	}
	o.warnings = append(o.warnings, texts...)
}

// noteCutShort warns of the parts of a plan that were cut short, and counts them.
func (l *leader) noteCutShort(o *loop) {
	for _, c := range o.plan.cutShort() {
		o.warnings = append(o.warnings, c.String())
		l.metrics.cutShort.WithLabelValues(c.part).Inc()
	}
}
