package main

import (
	"fmt"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/view"
)

// scenarioGroups is how many node groups each cluster has: a node is in the group of its number modulo so many, or in
// none.
const scenarioGroups = 3

// secondsPerLoop is more than the time for which a node has to be unneeded.
const secondsPerLoop = 400

// questions are those of one loop.
type questions struct {
	loop     *loadlinev1.PlanLoopRequest
	drain    *loadlinev1.PlanDrainRequest
	slack    *loadlinev1.PlanSlackRequest
	grow     *loadlinev1.PlanScaleUpRequest
	estimate *loadlinev1.EstimateScaleUpRequest
	fit      *loadlinev1.FitRequest
	score    *loadlinev1.ScoreRequest
}

func (s *scenario) questions(v *view.View, at *loadlinev1.Changes, loop int) *questions {
	now := int64(1_800_000_000 + loop*secondsPerLoop)
	drain, grow, both := s.groups(v)
	problem := &loadlinev1.ScaleUpProblem{Cluster: &loadlinev1.ScaleUpProblem_Changes{Changes: at}, Pods: s.pending,
		Groups: grow, MaxNewNodes: s.limits.MaxNewNodes, MaxNodesTotal: s.limits.MaxNodesTotal}
	slack := &loadlinev1.SlackPolicy{Reserve: loadlinev1.SlackPolicy_Reserve(s.seed % 5)}
	pod := s.pending[0].Pod
	return &questions{
		loop: &loadlinev1.PlanLoopRequest{Cluster: &loadlinev1.PlanLoopRequest_Changes{Changes: at}, NowS: now,
			Groups: both, Pods: s.pending,
			MaxNewNodes: s.limits.MaxNewNodes, MaxNodesTotal: s.limits.MaxNodesTotal, Slack: slack, Drain: s.options,
			Compact: s.seed%4 == 0},
		drain: &loadlinev1.PlanDrainRequest{Cluster: &loadlinev1.PlanDrainRequest_Changes{Changes: at}, NowS: now,
			Groups: drain, Options: s.options},
		slack: &loadlinev1.PlanSlackRequest{Changes: at, Policy: slack, Pods: s.pending, GroupsKnown: true,
			Groups: grow, NowSeconds: now, WantState: true},
		grow:     &loadlinev1.PlanScaleUpRequest{Problem: problem},
		estimate: &loadlinev1.EstimateScaleUpRequest{Problem: problem},
		fit:      &loadlinev1.FitRequest{Changes: at, Pods: []*loadlinev1.IncomingPod{pod}},
		score: &loadlinev1.ScoreRequest{Changes: at, Pod: pod.Pod,
			Policy: &loadlinev1.ScorePolicy{Preset: loadlinev1.ScorePolicy_Preset(1 + s.seed%2)}},
	}
}

// groups returns the node groups as drains, growth and a whole loop have them.
func (s *scenario) groups(v *view.View) (drain []*loadlinev1.DrainGroup, grow []*loadlinev1.ScalableGroup,
	both []*loadlinev1.LoopGroup) {
	for g := range scenarioGroups {
		name := fmt.Sprintf("group-%d", g)
		down := &loadlinev1.DrainGroup{MinNodes: int32(s.seed % 3), Atomic: s.seed%7 == uint64(g)}
		up := &loadlinev1.ScalableGroup{NodeGroup: name, MaxNodes: 12, NodeUsdPerHour: new(0.1 * float64(g+1)),
			InstanceType: name}
		for i, node := range s.cluster.Nodes {
			slot, known := v.Slot(node.Name)
			if i%(scenarioGroups+1) != g {
				continue
			}
			if up.TemplateNode == nil {
				template := node.DeepCopy()
				template.Name, template.Spec.Unschedulable, template.Spec.ProviderID = "new-of-"+name, false, ""
				up.TemplateNode = view.TrimNodeForPlanning(template)
			}
			if known {
				down.Slots = append(down.Slots, slot)
				up.CurrentNodes++
			}
		}
		both = append(both, &loadlinev1.LoopGroup{Growth: up,
			ScaleDown: &loadlinev1.DrainGroup{MinNodes: down.MinNodes, Atomic: down.Atomic, Slots: down.Slots}})
		down.NodeGroup, down.NodeUsdPerHour = name, up.NodeUsdPerHour
		drain, grow = append(drain, down), append(grow, up)
	}
	return drain, grow, both
}
