package autoscaler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
)

// shrink carries out what a plan says of nodes that go. Where somebody else decides, all stays as it is; while groups
// grow, the plan starts nothing and its timers go on.
func (l *leader) shrink(ctx context.Context, o *loop) (part string, err error) {
	if o.plan.loop.GetScaleDown() == nil {
		return "", nil
	}
	defer func() { l.soften(ctx, o) }()
	wanted, err := removals(l.cluster, o.plan)
	if err != nil {
		o.outcome = outcomeNotTried
		return "plan", err
	}
	if len(wanted.Removals) == 0 {
		starts := func(r *loadlinev1.NodeRemoval) bool { return r.GetStart() }
		if l.fleet.coolsDown && slices.ContainsFunc(o.plan.GetRemove(), starts) {
			o.outcome = outcomeInCooldown
		}
		return "", nil
	}
	done := l.metrics.time(functionStart)
	defer done()
	for i := range wanted.Removals {
		l.announce(&wanted.Removals[i])
	}
	o.outcome = string(l.actuator.Begin(ctx, wanted))
	o.underWay = l.actuator.UnderWay()
	return "", nil
}

// soften has soft taints follow the plan, out of the loop's way.
func (l *leader) soften(ctx context.Context, o *loop) {
	nodes := slices.DeleteFunc(l.cluster.SortedNodes(), func(node *v1.Node) bool {
		_, goes := o.underWay[node.Name]
		return goes
	})
	l.soft.Begin(ctx, nodes, unneededOf(o), func(took time.Duration, err error) {
		l.metrics.duration.WithLabelValues(functionSoftTaints).Observe(took.Seconds())
		if err != nil && ctx.Err() == nil {
			l.metrics.errors.WithLabelValues("softTaints").Inc()
			klog.ErrorS(err, "Soft taints cannot be written")
		}
	})
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
func (l *leader) announce(r *drain.Removal) {
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
