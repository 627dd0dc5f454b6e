package main

import (
	"context"

	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
)

// askBeside puts, now and then, questions of single families about the same cluster.
func (d *driver) askBeside(ctx context.Context, q *loadlinev1.PlanLoopRequest) {
	own := q.GetOwn()
	up := make([]*loadlinev1.ScalableGroup, len(q.GetGroups()))
	down := make([]*loadlinev1.DrainGroup, len(up))
	plain := make([]*loadlinev1.LoopGroup, len(up))
	for i, g := range q.GetGroups() {
		plain[i] = proto.CloneOf(g)
		plain[i].Cloud = nil
		up[i], down[i] = plain[i].Growth, proto.CloneOf(g.GetScaleDown())
		down[i].NodeGroup, down[i].NodeUsdPerHour = up[i].NodeGroup, up[i].NodeUsdPerHour
		down[i].MaxNodes = new(up[i].MaxNodes)
		for _, m := range g.GetCloud().GetMachines() {
			if m.Slot != nil {
				down[i].Slots = append(down[i].Slots, m.GetSlot())
			}
		}
		plain[i].ScaleDown.Slots = down[i].Slots
		up[i].CurrentNodes = int32(len(down[i].Slots))
	}
	switch d.IntN(8) {
	case 0:
		c := &loadlinev1.PlanConsolidationRequest{NowS: d.now, Groups: plain, DaemonPods: q.DaemonPods, Prices: q.Prices,
			Drain: q.Drain, Fit: q.Fit, Policy: q.Consolidation}
		if c.Cluster = (&loadlinev1.PlanConsolidationRequest_Changes{Changes: q.GetChanges()}); own != nil {
			c.Cluster = &loadlinev1.PlanConsolidationRequest_Own{Own: own}
		}
		_, _ = d.planner.PlanConsolidation(ctx, c) // the answer is recorded
	case 1:
		c := &loadlinev1.PlanDrainRequest{NowS: d.now, Groups: down, Options: q.Drain, Fit: q.Fit,
			State: &loadlinev1.DrainState{}}
		if c.Cluster = (&loadlinev1.PlanDrainRequest_Changes{Changes: q.GetChanges()}); own != nil {
			c.Cluster = &loadlinev1.PlanDrainRequest_Own{Own: own}
		}
		_, _ = d.planner.PlanDrain(ctx, c)
	case 2, 3:
		d.askGrowth(ctx, q, up)
	case 4:
		if own == nil {
			_, _ = d.planner.PlanSlack(ctx, &loadlinev1.PlanSlackRequest{Changes: q.GetChanges(), Policy: q.Slack,
				State: &loadlinev1.SlackState{NextId: 1}, Pods: q.Pods, GroupsKnown: true, Groups: up,
				DaemonPods: q.DaemonPods, Fit: q.Fit, NowSeconds: d.now, WantState: true, Literal: d.chance(30)})
		}
	}
}

// askGrowth asks how far groups would grow, and ranks that.
func (d *driver) askGrowth(ctx context.Context, q *loadlinev1.PlanLoopRequest, up []*loadlinev1.ScalableGroup) {
	problem := &loadlinev1.ScaleUpProblem{Pods: q.Pods, Groups: up, DaemonPods: q.DaemonPods, Fit: q.Fit,
		MaxNewNodes: q.MaxNewNodes, MaxNodesTotal: q.MaxNodesTotal}
	if problem.Cluster = (&loadlinev1.ScaleUpProblem_Changes{Changes: q.GetChanges()}); q.GetOwn() != nil {
		problem.Cluster = &loadlinev1.ScaleUpProblem_Own{Own: q.GetOwn()}
	}
	_, _ = d.planner.PlanScaleUp(ctx, &loadlinev1.PlanScaleUpRequest{Problem: problem, Prices: q.Prices,
		UsdPerFurtherType: q.UsdPerFurtherType})
	estimate, err := d.planner.EstimateScaleUp(ctx, &loadlinev1.EstimateScaleUpRequest{Problem: problem,
		Mode: loadlinev1.EstimateScaleUpRequest_Mode(d.IntN(3))})
	if err != nil {
		return
	}
	policy := q.Ranking
	if policy == nil {
		policy = &loadlinev1.RankPolicy{Preset: loadlinev1.RankPolicy_CLUSTER_AUTOSCALER}
	}
	rank := &loadlinev1.RankOptionsRequest{ClusterNodes: new(int32(len(d.nodes))), Prices: q.Prices, Policy: policy}
	for _, pods := range q.Pods {
		rank.Pods = append(rank.Pods, pods.GetPod().GetPod())
	}
	for i, e := range estimate.GetGroups() {
		if e.GetNodeCount() > 0 {
			rank.Options = append(rank.Options, &loadlinev1.ExpansionOption{NodeGroup: e.GetNodeGroup(),
				NodeCount: e.GetNodeCount(), TemplateNode: up[i].TemplateNode, Pods: e.GetPods(),
				NodeUsdPerHour: up[i].NodeUsdPerHour, InstanceType: up[i].InstanceType, Spot: up[i].Spot,
				Priority: q.Groups[i].Priority})
		}
	}
	if len(rank.Options) > 0 {
		_, _ = d.planner.RankOptions(ctx, rank)
	}
}
