package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/sizing"
)

// sizeTime bounds what writing the taints of groups that are sized takes in one loop.
const sizeTime = 30 * time.Second

// sizedGroup is a group that is sized by how full it is.
type sizedGroup struct {
	policy *nodegroup.NodeGroup
	// blockedReason is why nothing is asked of the cloud for it; empty: it may be.
	blockedReason string
	// size is what the plan says of it; nil: there is no plan.
	size *loadlinev1.GroupSize
}

// sizings returns the groups that are sized, as the engine has them, and takes note of those that cannot be, and of
// what they leave behind.
func (l *leader) sizings(o *loop) []*loadlinev1.SizedGroup {
	states := map[string]*groupState{}
	for _, g := range o.states {
		states[g.ID] = g
	}
	o.sized = map[string]*sizedGroup{}
	var out []*loadlinev1.SizedGroup
	for i := range l.sized {
		policy := &l.sized[i]
		g := states[policy.CloudGroup()]
		sized, err := sizingOf(policy, g)
		if err != nil {
			o.warnings = append(o.warnings, fmt.Sprintf("node group %q is not sized: %v", policy.Name(), err))
			continue
		}
		o.sized[g.ID] = &sizedGroup{policy: policy}
		if !l.config.Decides(config.ScaleUpDecision) {
			o.sized[g.ID].blockedReason = "growth is decided elsewhere"
		}
		out = append(out, sized)
	}
	if stray := l.straySizeTaints(o); len(stray) > 0 {
		o.warnings = append(o.warnings,
			fmt.Sprintf("nodes of no sized group that carry the taint %[1]s: %[2]d, one is %[3]s; nothing here takes "+
				"it off, and no new pod comes to them. Unless Escalator runs too: kubectl taint node %[3]s %[1]s-",
				drain.SizeTaint, len(stray), stray[0]))
	}
	return out
}

// sizePods gathers what sized groups count as demand; nothing if there is no such group.
func (l *leader) sizePods(o *loop, groups []*loadlinev1.SizedGroup) []*loadlinev1.WaitingPods {
	if len(groups) == 0 {
		return nil
	}
	var warning string
	o.sizePods, warning = l.cluster.SizePods(slices.ContainsFunc(groups, func(g *loadlinev1.SizedGroup) bool {
		return g.GetOptions().GetMode() == loadlinev1.SizeOptions_COMPAT
	}))
	if warning != "" {
		o.warnings = append(o.warnings, warning)
	}
	return o.sizePods.Pods()
}

// straySizeTaints returns the nodes that carry the taint of sizing, do not go, and are in no group that is sized: by
// name.
func (l *leader) straySizeTaints(o *loop) []string {
	var stray []string
	for _, node := range l.cluster.SortedNodes() {
		if drain.HasTaint(node, drain.SizeTaint) && !drain.HasTaint(node, drain.HardTaint) &&
			o.sized[o.groupOf[node.Spec.ProviderID]] == nil {
			stray = append(stray, node.Name)
		}
	}
	return stray
}

func sizingOf(policy *nodegroup.NodeGroup, g *groupState) (*loadlinev1.SizedGroup, error) {
	switch {
	case g == nil:
		return nil, fmt.Errorf("the cloud provider has no group %q", policy.CloudGroup())
	case g.Problem != nil:
		return nil, g.Problem
	case g.Options.GetZeroOrMaxNodeScaling():
		return nil, fmt.Errorf("group %q has all of its nodes or none", g.ID)
	}
	return sizing.ForLoop(policy, sizing.Cloud{ID: g.ID, Min: int32(g.Min), Max: int32(g.Max)})
}

// noteSizes takes note of what a plan says of the groups.
func (o *loop) noteSizes() {
	for _, size := range o.plan.loop.GetSize().GetGroups() {
		if g := o.sized[size.GetNodeGroup()]; g != nil {
			g.size = size
		}
	}
}

// sizeTimersRun says whether tainted nodes wait for their grace period to end.
func (o *loop) sizeTimersRun() bool {
	for _, g := range o.sized {
		if g.size.GetTaintedNodes() > 0 || len(g.size.GetTaint()) > 0 {
			return true
		}
	}
	return false
}

// taintSizes takes taints off nodes that come back, and puts them on those that their groups do without.
func (l *leader) taintSizes(ctx context.Context, o *loop) error {
	if !l.config.Decides(config.ScaleUpDecision) && !l.config.Decides(config.ScaleDownDecision) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sizeTime)
	defer cancel()
	var errs []error
	for _, group := range o.states {
		g := o.sized[group.ID]
		if g == nil || g.policy.Spec.Size.DryMode {
			continue
		}
		put := func(node *v1.Node) error { return l.sizes.Put(ctx, node, g.policy.Spec.Size.TaintEffect, o.now) }
		take := func(node *v1.Node) error { return l.sizes.Take(ctx, node) }
		errs = append(errs,
			l.eachSized(group.ID, g.size.GetTaintUnhealthy(), "Sizing: node is tainted, it is not ready", put),
			l.eachSized(group.ID, g.size.GetUntaint(), "Sizing: node comes back", take),
			l.eachSized(group.ID, g.size.GetTaint(), "Sizing: node is tainted, its group does without it", put))
	}
	return errors.Join(errs...)
}

// eachSized does something with each node of a list. One that is gone, or is not the one that was planned with, is left
// out: the next plan knows.
func (l *leader) eachSized(group string, nodes []*loadlinev1.SizedNode, what string, do func(*v1.Node) error) error {
	var errs []error
	for _, sized := range nodes {
		node := l.cluster.Nodes[sized.GetNode()]
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

// GroupSizeStatus tells how full a group is that is sized by it, and what happens to it.
type GroupSizeStatus struct {
	// CPU and Memory are what is requested, of what its untainted nodes offer: "71.4 %", or "from zero" without nodes.
	CPU    string `json:"cpu"`
	Memory string `json:"memory"`
	// Action is nothing, scale-up, remove-slowly or remove-fast; Delta is how many nodes it wins, or if negative are
	// tainted.
	Action string `json:"action"`
	Delta  int    `json:"delta"`
	Reason string `json:"reason"`
	// Tainted nodes wait for their grace period to end, or for pods that keep them.
	Tainted int `json:"tainted"`
	// Held is why nothing is asked of the cloud for it. In DryMode nothing is done at all.
	Held     string   `json:"held,omitempty"`
	DryMode  bool     `json:"dryMode,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// String says it in a line.
func (s *GroupSizeStatus) String() string {
	text := fmt.Sprintf("cpu %s, memory %s, %s, %+d: %s", s.CPU, s.Memory, s.Action, s.Delta, s.Reason)
	if s.Tainted > 0 {
		text += fmt.Sprintf("; %d tainted", s.Tainted)
	}
	if s.Held != "" {
		text += "; asks for nothing: " + s.Held
	}
	if s.DryMode {
		text += "; dry mode, nothing is done"
	}
	return text
}

// sizeStatus returns what there is to be told of a group; nil: it is not sized, or there is no plan.
func (o *loop) sizeStatus(group string) *GroupSizeStatus {
	g := o.sized[group]
	if g == nil || g.size == nil {
		return nil
	}
	s := &GroupSizeStatus{Action: sizing.Action(g.size), Delta: int(g.size.GetDelta()), Reason: g.size.GetReasonText(),
		Tainted: int(g.size.GetTaintedNodes()),
		Held:    g.blockedReason, DryMode: g.policy.Spec.Size.DryMode, Warnings: sizing.Warnings(g.size, o.sizePods)}
	u := g.size.GetUtilization()
	s.CPU, s.Memory = fmt.Sprintf("%.1f %%", u.GetCpuPercent()), fmt.Sprintf("%.1f %%", u.GetMemoryPercent())
	switch u.GetKind() {
	case loadlinev1.Utilization_FROM_ZERO:
		s.CPU, s.Memory = "from zero", "from zero"
	case loadlinev1.Utilization_NO_CAPACITY:
		s.CPU, s.Memory = "no capacity", "no capacity"
	}
	return s
}

// addSizes tells of the groups that are sized.
func (s *snapshot) addSizes(status *Status) {
	s.page.Warnings = append(s.page.Warnings, status.Warnings...)
	for i := range status.NodeGroups {
		if g := &status.NodeGroups[i]; g.Size != nil {
			s.page.Lines = append(s.page.Lines, fmt.Sprintf("Sized: %s: %s.", g.Name, g.Size))
		}
	}
}

// logSizes tells of the groups that are sized, and why others are not, when what there is to tell has changed.
func (l *leader) logSizes(o *loop) {
	before := l.sizesLog
	l.sizesLog = map[string]string{}
	tell := func(key, text string, log func()) {
		l.sizesLog[key] = text
		if before[key] != text {
			log()
		}
	}
	tell("", strings.Join(o.warnings, "\n"), func() {
		for _, warning := range o.warnings {
			klog.InfoS("Warning: " + warning)
		}
	})
	for _, g := range o.states {
		s := o.sizeStatus(g.ID)
		if s == nil {
			continue
		}
		tell(g.ID, s.String(), func() {
			klog.V(2).InfoS("Sized", "group", g.ID, "cpu", s.CPU, "memory", s.Memory, "action", s.Action,
				"delta", s.Delta, "reason", s.Reason,
				"tainted", s.Tainted, "held", s.Held, "dryMode", s.DryMode, "warnings", s.Warnings)
		})
	}
}
