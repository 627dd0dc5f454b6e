package autoscaler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/actuation"
	"loadline.dev/shim/autoscaler/config"
)

// shrink carries out what a plan says of nodes that go. Where somebody else decides, all stays as it is; while groups
// grow, the plan starts nothing and its timers go on.
func (l *leader) shrink(ctx context.Context, o *loop) (part string, err error) {
	if o.plan.loop.GetScaleDown() == nil {
		l.release(ctx, o, actuation.Plan{})
		return "", nil
	}
	defer l.soften(ctx, o)
	wanted, err := l.cluster.removals(o.plan)
	if err != nil {
		o.outcome = outcomeNotTried
		return "plan", err
	}
	l.release(ctx, o, wanted)
	if len(wanted.Removals) == 0 {
		return "", nil
	}
	if l.fleet.coolsDown {
		o.outcome = outcomeInCooldown
		return "", nil
	}
	done := l.metrics.time(functionStart)
	defer done()
	for i := range wanted.Removals {
		l.announce(&wanted.Removals[i])
	}
	outcome, err := l.actuator.Start(ctx, wanted)
	o.outcome = string(outcome)
	o.underWay = l.actuator.UnderWay()
	if err != nil {
		l.fleet.outcomes.TaintingFailed = true
		return "taint", err
	}
	return "", nil
}

// soften has soft taints follow the plan, out of the loop's way.
func (l *leader) soften(ctx context.Context, o *loop) {
	l.soft.Begin(ctx, l.cluster.sortedNodes(), unneededOf(o), func(took time.Duration, err error) {
		l.metrics.duration.WithLabelValues(functionSoftTaints).Observe(took.Seconds())
		if err != nil && ctx.Err() == nil {
			l.metrics.errors.WithLabelValues("softTaints").Inc()
			klog.ErrorS(err, "Soft taints cannot be written")
		}
	})
}

// release gives nodes back whose removal an earlier leader began, and that are not to go now: at once when the plan
// keeps them, and when it does not come to remove them in some time.
func (l *leader) release(ctx context.Context, o *loop, wanted actuation.Plan) {
	undecided := o.plan.loop.GetScaleDown() == nil && l.config.Decides(config.ScaleDownDecision)
	candidates := map[string]bool{}
	for _, removal := range o.plan.GetRemove() {
		candidates[o.plan.nameOf[removal.GetSlot()]] = true
	}
	for _, r := range wanted.Removals {
		delete(l.inherited, r.Node.Name)
	}
	starts := func(name string) bool {
		return slices.ContainsFunc(wanted.Removals, func(r actuation.Removal) bool { return r.Node.Name == name })
	}
	waiting := map[string]time.Time{}
	for _, node := range l.cluster.sortedNodes() {
		if !l.isAbandoned(o, node) || starts(node.Name) {
			continue
		}
		since, known := l.inherited[node.Name]
		if !known {
			since = o.now
		}
		if (undecided || candidates[node.Name]) && o.now.Sub(since) < handOver {
			waiting[node.Name] = since
			continue
		}
		klog.V(2).InfoS("Node is given back: it is not to go any more", "node", klog.KRef("", node.Name))
		if err := l.actuator.Release(ctx, node); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Node cannot be given back", "node", klog.KRef("", node.Name))
		}
	}
	l.inherited = waiting
}

// unneededOf returns since when nodes are not needed.
func unneededOf(o *loop) map[string]time.Time {
	unneeded := map[string]time.Time{}
	for _, removal := range o.plan.GetRemove() {
		unneeded[o.plan.nameOf[removal.GetSlot()]] = time.Unix(removal.GetSinceS(), 0)
	}
	return unneeded
}

// announce tells that a node is about to be removed.
func (l *leader) announce(r *actuation.Removal) {
	object := l.status.reference()
	if r.Empty {
		klog.V(2).InfoS("Scale-down: removing an empty node", "node", klog.KRef("", r.Node.Name), "group", r.Group)
		l.events.Eventf(object, v1.EventTypeNormal, "ScaleDownEmpty", "Scale-down: removing empty node %q", r.Node.Name)
		return
	}
	var names []string
	for _, pod := range r.Pods {
		if r.Moves[pod.UID] {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
	}
	klog.V(2).InfoS("Scale-down: draining a node", "node", klog.KRef("", r.Node.Name), "group", r.Group, "pods", names)
	const most = 20 // an event may hold 1 KiB
	text := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d others", len(names)-most)
	}
	l.events.Eventf(object, v1.EventTypeNormal, "ScaleDown", "Scale-down: removing node %s, pods to reschedule: %s",
		r.Node.Name, text)
}
