package engine_test

import (
	"loadline.dev/shim/api/loadlinev1"
)

// planLoop asks what the parts are asked, all at once.
func (g *requests) planLoop() *loadlinev1.PlanLoopRequest {
	problem, drain, slack := g.problem(), g.planDrain(), g.planSlack()
	out := &loadlinev1.PlanLoopRequest{Cluster: &loadlinev1.PlanLoopRequest_Changes{Changes: g.at()},
		NowS: drain.GetNowS(), SeenS: drain.GetSeenS(),
		Pods: problem.GetPods(), DaemonPods: problem.GetDaemonPods(), Prices: g.prices(), Slack: slack.GetPolicy(),
		Drain: drain.GetOptions(),
		Fit:   problem.GetFit(), MaxNewNodes: problem.GetMaxNewNodes(), MaxNodesTotal: problem.GetMaxNodesTotal()}
	for range g.IntN(3) {
		out.Decisions = append(out.Decisions, loadlinev1.PlanLoopRequest_Decision(1+g.IntN(3)))
	}
	for _, group := range problem.GetGroups() {
		out.Groups = append(out.Groups, &loadlinev1.LoopGroup{Growth: group})
	}
	if slack.GetState() != nil {
		out.State = &loadlinev1.LoopState{Slack: slack.GetState()}
	}
	return out
}
