package act

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/tell"
)

// shrink removes nodes, and has soft taints follow the plan, out of the loop's way. Where somebody else decides, all
// stays as it is; while groups grow, the plan starts nothing and its timers go on.
func (a *Actor) shrink(ctx context.Context, o *plan.Loop, todo *actions) (part string, err error) {
	if o.Plan.Answer.GetScaleDown() == nil {
		return "", nil
	}
	defer a.Soft.Begin(ctx, todo.softTaints, func(took time.Duration, err error) {
		a.teller.Metrics.Took(tell.FunctionSoftTaints, took)
		a.failed(ctx, err, "softTaints", "Soft taints cannot be written")
	})
	wanted, err := removals(a.cluster, o, todo.remove)
	if err != nil {
		o.Outcome = plan.OutcomeNotTried
		return "plan", err
	}
	if len(wanted) == 0 {
		return "", nil
	}
	defer a.teller.Metrics.Time(tell.FunctionStart)()
	for _, removal := range wanted {
		a.announce(removal)
	}
	o.Outcome = a.Actuator.Begin(ctx, wanted)
	o.UnderWay = a.Actuator.UnderWay()
	return "", nil
}

// giveBack leaves a node as it was before its removal began.
func (a *Actor) giveBack(ctx context.Context, name string) {
	node := a.cluster.Nodes[name]
	if node == nil {
		return
	}
	klog.V(2).InfoS("Node is given back: it is not to go any more", "node", klog.KRef("", name))
	if err := a.Actuator.Release(ctx, node); err != nil && ctx.Err() == nil {
		klog.ErrorS(err, "Node cannot be given back", "node", klog.KRef("", name))
	}
}

// orderDownscale has pods state what their deletion costs, out of the loop's way.
func (a *Actor) orderDownscale(ctx context.Context, o *plan.Loop) {
	if !a.config.Decides(config.DownscaleOrderDecision) {
		return
	}
	costs := map[string]int32{}
	for _, node := range o.Plan.Answer.GetDeletionCosts() {
		costs[o.Plan.NameOf[node.GetSlot()]] = node.GetCost()
	}
	delete(costs, "") // of a slot that is none: pods without a node are not meant
	a.Costs.Begin(ctx, maps.Values(a.cluster.Pods), costs, func(took time.Duration, err error) {
		a.teller.Metrics.Took(tell.FunctionDeletionCosts, took)
		if err != nil {
			a.failed(ctx, plan.Bounded(err), "deletionCosts", "Deletion costs of pods cannot be written")
		}
	})
}

// announce tells that a node is about to be removed.
func (a *Actor) announce(r *drain.Removal) {
	object := a.teller.About
	if r.Empty {
		klog.V(2).InfoS("Scale-down: removing an empty node", "node", klog.KRef("", r.Node.Name), "group", r.Group)
		a.teller.Events.Eventf(object, v1.EventTypeNormal, "ScaleDownEmpty", "Scale-down: removing empty node %q",
			r.Node.Name)
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
	a.teller.Events.Eventf(object, v1.EventTypeNormal, "ScaleDown", "Scale-down: removing node %s, pods to reschedule: %s",
		r.Node.Name, text)
}
