package plan

import (
	"time"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/nodegroup"
)

// Gather gathers the question of a loop about groups that a file states, and a cluster that Take and Apply have brought
// into effect: what an autoscaler would ask that begins at this moment. `waits` says for which pods without a node
// groups may grow; nil: the engine decides that.
func (p *Planner) Gather(groups []nodegroup.NodeGroup, now time.Time, waits func(*v1.Pod) bool) (*Loop, error) {
	shown, err := cloud.Stated(groups, p.Cluster.SortedNodes(), GroupDefaults(p.Config))
	if err != nil {
		return nil, err
	}
	p.Sized = sizedGroups(groups)
	return p.GatherShown(shown, now, waits), nil
}

// GatherShown gathers the same question about groups as a cloud shows them.
func (p *Planner) GatherShown(shown []cloud.Group, now time.Time, waits func(*v1.Pod) bool) *Loop {
	o := NewLoop(now)
	o.See(shown)
	o.Acknowledged = func(node *v1.Node) bool {
		mark, _ := drain.MarkOf(node)
		return mark.Acknowledged
	}
	o.Pods = p.Cluster.WithoutNode(now, waits)
	return o
}

// sizedGroups returns the groups that are sized by how full they are: they grow and shrink by nothing else. They have
// their own names here, not those at a cloud.
func sizedGroups(groups []nodegroup.NodeGroup) (out []nodegroup.NodeGroup) {
	for _, group := range groups {
		if group.Spec.Size != nil {
			size := *group.Spec.Size
			size.CloudGroup, group.Spec.Size = "", &size
			out = append(out, group)
		}
	}
	return out
}

// notWaiting says of the entries of the question whether their pods do not wait.
func (p *Plan) notWaiting() map[int32]bool {
	others := map[int32]bool{}
	for _, entry := range p.Answer.GetNotWaiting() {
		others[entry.GetPod()] = true
	}
	return others
}

// Waiting returns how many pods of the question wait for a node.
func (p *Plan) Waiting() (pods int) {
	others := p.notWaiting()
	for i, entry := range p.Question.GetPods() {
		if !others[int32(i)] {
			pods += int(entry.GetCount())
		}
	}
	return pods
}

// Problem is the question how far each group by itself would grow for the pods that wait, but for the cluster.
func (p *Plan) Problem() *loadlinev1.ScaleUpProblem {
	out := &loadlinev1.ScaleUpProblem{DaemonPods: p.Question.GetDaemonPods(), Fit: p.Question.GetFit(),
		StartupTaints: p.Question.GetStartupTaints(), NowSeconds: p.Question.GetNowS()}
	others := p.notWaiting()
	for i, entry := range p.Question.GetPods() {
		if others[int32(i)] { // it keeps its position
			entry = &loadlinev1.PendingPods{Pod: entry.GetPod()}
		}
		out.Pods = append(out.Pods, entry)
	}
	for _, group := range p.Groups() {
		group.Growth.NodeSlots = group.GetScaleDown().GetSlots()
		out.Groups = append(out.Groups, group.Growth)
	}
	return out
}

// Groups are the groups of the question with their nodes, for questions that do not ask what becomes of machines.
func (p *Plan) Groups() []*loadlinev1.LoopGroup {
	sized := map[string]bool{}
	for _, group := range p.Question.GetSized() {
		sized[group.GetNodeGroup()] = true
	}
	out := make([]*loadlinev1.LoopGroup, len(p.Question.GetGroups()))
	for i, group := range p.Question.GetGroups() {
		growth, shrinks := proto.CloneOf(group.GetGrowth()), proto.CloneOf(group.GetScaleDown())
		growth.CurrentNodes, shrinks.Sized = group.GetCloud().GetTarget(), sized[growth.GetNodeGroup()]
		for _, machine := range group.GetCloud().GetMachines() {
			if machine.Slot != nil {
				shrinks.Slots = append(shrinks.Slots, machine.GetSlot())
			}
		}
		out[i] = &loadlinev1.LoopGroup{Growth: growth, ScaleDown: shrinks}
	}
	return out
}

// DrainGroups are the same groups, for questions about drains.
func (p *Plan) DrainGroups() []*loadlinev1.DrainGroup {
	var out []*loadlinev1.DrainGroup
	for _, group := range p.Groups() {
		growth, shrinks := group.GetGrowth(), group.GetScaleDown()
		shrinks.NodeGroup, shrinks.Target, shrinks.MaxNodes = growth.GetNodeGroup(), &growth.CurrentNodes, &growth.MaxNodes
		shrinks.NodeUsdPerHour = growth.NodeUsdPerHour
		out = append(out, shrinks)
	}
	return out
}
