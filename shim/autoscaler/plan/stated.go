package plan

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/nodegroup"
)

// Once makes the plan of one loop for groups that a file states, of a cluster that Take and Apply have brought into
// effect. It asks what an autoscaler would ask that begins at this moment.
func (p *Planner) Once(ctx context.Context, groups []nodegroup.NodeGroup, now time.Time) (*Loop, error) {
	o := NewLoop(now)
	shown, err := cloud.Stated(groups, p.Cluster.SortedNodes(), GroupDefaults(p.Config))
	if err != nil {
		return nil, err
	}
	o.See(shown)
	o.Acknowledged = func(node *v1.Node) bool {
		mark, _ := drain.MarkOf(node)
		return mark.Acknowledged
	}
	o.Pods = p.Cluster.WithoutNode(now)
	return o, p.Plan(ctx, o)
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
		StartupTaints: p.Question.GetStartupTaints()}
	others := p.notWaiting()
	for i, entry := range p.Question.GetPods() {
		if others[int32(i)] { // it keeps its position
			entry = &loadlinev1.PendingPods{Pod: entry.GetPod()}
		}
		out.Pods = append(out.Pods, entry)
	}
	for _, group := range p.Question.GetGroups() {
		growth := proto.CloneOf(group.GetGrowth())
		growth.CurrentNodes = group.GetCloud().GetTarget()
		for _, machine := range group.GetCloud().GetMachines() {
			if machine.Slot != nil {
				growth.NodeSlots = append(growth.NodeSlots, machine.GetSlot())
			}
		}
		out.Groups = append(out.Groups, growth)
	}
	return out
}
