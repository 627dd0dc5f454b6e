package plan

import (
	"fmt"
	"slices"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/sizing"
)

// SizedGroup is a group that is sized by how full it is.
type SizedGroup struct {
	Policy *nodegroup.NodeGroup
	// Size is what the plan says of it; nil: there is no plan.
	Size *loadlinev1.GroupSize
}

// sizings returns the groups that are sized, as the engine has them, and takes note of those that cannot be, and of
// what they leave behind.
func (p *Planner) sizings(o *Loop) []*loadlinev1.SizedGroup {
	o.Sized = map[string]*SizedGroup{}
	var out []*loadlinev1.SizedGroup
	for i := range p.Sized {
		policy := &p.Sized[i]
		g := o.Group(policy.CloudGroup())
		sized, err := sizingOf(policy, g)
		if err != nil {
			o.Warnings = append(o.Warnings, fmt.Sprintf("node group %q is not sized: %v", policy.Name(), err))
			continue
		}
		o.Sized[g.ID] = &SizedGroup{Policy: policy}
		out = append(out, sized)
	}
	if stray := p.straySizeTaints(o); len(stray) > 0 {
		o.Warnings = append(o.Warnings,
			fmt.Sprintf("nodes of no sized group that carry the taint %[1]s: %[2]d, one is %[3]s; nothing here takes "+
				"it off, and no new pod comes to them. Unless Escalator runs too: kubectl taint node %[3]s %[1]s-",
				drain.SizeTaint, len(stray), stray[0]))
	}
	return out
}

// sizePods gathers what sized groups count as demand; nothing if there is no such group.
func (p *Planner) sizePods(o *Loop, groups []*loadlinev1.SizedGroup) []*loadlinev1.WaitingPods {
	if len(groups) == 0 {
		return nil
	}
	var warning string
	o.SizePods, warning = p.Cluster.SizePods(slices.ContainsFunc(groups, func(g *loadlinev1.SizedGroup) bool {
		return g.GetOptions().GetMode() == loadlinev1.SizeOptions_COMPAT
	}))
	if warning != "" {
		o.Warnings = append(o.Warnings, warning)
	}
	return o.SizePods.Pods()
}

// straySizeTaints returns the nodes that carry the taint of sizing, do not go, and are in no group that is sized: by
// name. While a group has a problem a node of no group may be one of its nodes.
func (p *Planner) straySizeTaints(o *Loop) []string {
	unread := slices.ContainsFunc(o.Groups, func(g *Group) bool { return g.Problem != nil })
	var stray []string
	for _, node := range p.Cluster.SortedNodes() {
		if !drain.HasTaint(node, drain.SizeTaint) || drain.HasTaint(node, drain.HardTaint) {
			continue
		}
		id, known := o.groupOf[cloud.MachineID(node)]
		if o.Sized[id] != nil || unread && (!known || o.Group(id).Problem != nil) {
			continue
		}
		stray = append(stray, node.Name)
	}
	return stray
}

func sizingOf(policy *nodegroup.NodeGroup, g *Group) (*loadlinev1.SizedGroup, error) {
	switch {
	case g == nil:
		return nil, fmt.Errorf("the cloud provider has no group %q", policy.CloudGroup())
	case g.Problem != nil:
		return nil, g.Problem
	case g.Options.GetZeroOrMaxNodeScaling():
		return nil, fmt.Errorf("group %q has all of its nodes or none", g.ID)
	}
	return sizing.ForLoop(policy, sizing.Cloud{ID: g.ID, Min: Number(g.Min), Max: Number(g.Max)})
}

// noteSizes takes note of what a plan says of the groups.
func (o *Loop) noteSizes() {
	for _, size := range o.Plan.Answer.GetSize().GetGroups() {
		if g := o.Sized[size.GetNodeGroup()]; g != nil {
			g.Size = size
		}
	}
}
