package engine_test

import (
	"fmt"

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
	if g.IntN(2) == 0 {
		g.addFleet(out)
	}
	return out
}

// addFleet adds what a cloud shows, now and then with a state that no engine wrote.
func (g *requests) addFleet(out *loadlinev1.PlanLoopRequest) {
	out.Fleet = &loadlinev1.LoopFleet{NowMilliseconds: out.NowS*1000 + int64(g.IntN(1000)), Acts: g.IntN(3) > 0,
		First: g.IntN(4) == 0, TaintingFailed: g.IntN(9) == 0,
		Options: &loadlinev1.FleetOptions{MaxNodeProvisionMilliseconds: int64(1 + g.IntN(1<<20)),
			MaxNodeStartupMilliseconds: int64(g.IntN(1 << 20)), InitialBackOffMilliseconds: int64(1 + g.IntN(1<<10)),
			MaxBackOffMilliseconds: 1 << 20, BackOffResetMilliseconds: int64(g.IntN(1 << 20)),
			DeletionPatienceMilliseconds: int64(g.IntN(1 << 20)), MaxDeletions: int32(g.IntN(4)) - int32(g.IntN(20)/19),
			MaxUnreadyPercent: int32(g.IntN(102)), DelayAfterAddMilliseconds: int64(g.IntN(1 << 20))},
		Outcomes: []*loadlinev1.ActionOutcome{{Id: int64(g.IntN(3)), Error: "no",
			Result: loadlinev1.ActionOutcome_Result(1 + g.IntN(4))}}[:g.IntN(2)],
		Removals:     []*loadlinev1.FleetRemoval{{NodeGroup: "g1", Machine: "m1"}}[:g.IntN(2)],
		Acknowledged: []string{"uid-1"}[:g.IntN(2)]}
	if g.IntN(3) == 0 {
		out.Fleet.State = []byte("LLLM\x01 and what nobody wrote")
	}
	slots := g.someSlots(4)
	for i, group := range out.Groups {
		group.Growth.CurrentNodes = 0
		group.Cloud = &loadlinev1.CloudGroup{Target: int32(g.IntN(9)), CloudTemplate: g.IntN(2) == 0,
			Problem: []string{"", "no answer"}[g.IntN(9)/8]}
		for j := range g.IntN(6) {
			machine := &loadlinev1.CloudMachine{Id: fmt.Sprintf("m%d", 10*i+j),
				State: loadlinev1.CloudMachine_State(g.IntN(4))}
			if g.IntN(4) == 0 {
				machine.Fault = &loadlinev1.MachineFault{Code: "NONE", OutOfResources: g.IntN(2) == 0}
			} else if len(slots) > 0 {
				machine.Slot, slots = &slots[0], slots[1:]
			}
			group.Cloud.Machines = append(group.Cloud.Machines, machine)
		}
	}
	for _, slot := range slots[:min(len(slots), g.IntN(2))] {
		out.Fleet.Marks = append(out.Fleet.Marks, &loadlinev1.NodeMark{Slot: slot, SinceS: out.NowS,
			Cordoned: g.IntN(2) == 0, Acknowledged: g.IntN(4) == 0})
	}
}
