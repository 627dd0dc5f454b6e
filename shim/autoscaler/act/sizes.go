package act

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
)

// sizeTime bounds what writing the taints of groups that are sized takes in one loop.
const sizeTime = 30 * time.Second

// taintSizes takes taints off nodes that come back, and puts them on those that their groups do without.
func (a *Actor) taintSizes(ctx context.Context, o *plan.Loop) error {
	if !a.config.Decides(config.ScaleUpDecision) && !a.config.Decides(config.ScaleDownDecision) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sizeTime)
	defer cancel()
	var errs []error
	for _, group := range o.Groups {
		g := o.Sized[group.ID]
		if g == nil || g.Policy.Spec.Size.DryMode {
			continue
		}
		put := func(node *v1.Node) error { return a.sizes.Put(ctx, node, g.Policy.Spec.Size.TaintEffect, o.Now) }
		take := func(node *v1.Node) error { return a.sizes.Take(ctx, node) }
		errs = append(errs,
			a.eachSized(group.ID, g.Size.GetTaintUnhealthy(), "Sizing: node is tainted, it is not ready", put),
			a.eachSized(group.ID, g.Size.GetUntaint(), "Sizing: node comes back", take),
			a.eachSized(group.ID, g.Size.GetTaint(), "Sizing: node is tainted, its group does without it", put))
	}
	return errors.Join(errs...)
}

// eachSized does something with each node of a list. One that is gone, or is not the one that was planned with, is left
// out: the next plan knows.
func (a *Actor) eachSized(group string, nodes []*loadlinev1.SizedNode, what string, do func(*v1.Node) error) error {
	var errs []error
	for _, sized := range nodes {
		node := a.cluster.Nodes[sized.GetNode()]
		if node == nil {
			continue
		}
		if err := do(node); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", node.Name, err))
			continue
		}
		klog.V(2).InfoS(what, "node", klog.KRef("", node.Name), "group", group)
	}
	return errors.Join(errs...)
}
