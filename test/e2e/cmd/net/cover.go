package main

import (
	"strings"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
)

// covers names what happens in a recorded answer, so that one sees what a recording can find.
func (c *call) covers() []string {
	if c.GetCode() != 0 {
		return []string{"refused: " + status.Convert(c.Err).Message()}
	}
	if !strings.HasSuffix(c.GetMethod(), "/PlanLoop") {
		return nil
	}
	answer := &loadlinev1.PlanLoopResponse{}
	if proto.Unmarshal(c.GetResponse(), answer) != nil {
		return nil
	}
	var out []string
	note := func(name string, has bool) {
		if has {
			out = append(out, name)
		}
	}
	for _, g := range answer.GetGrowth() {
		note("grows for pods", g.GetNodesForPods() > 0)
		note("grows for slack", g.GetNodesForSlack() > 0)
		note("grows for utilization", g.GetNodesForUtilization() > 0)
		note("grows to its minimum", g.GetNodesForMinimum() > 0)
		note("grows for a move", g.GetNodesForReplacement() > 0)
	}
	for _, r := range answer.GetScaleDown().GetRemove() {
		note("node starts to go", r.GetStart())
		note("node with pods starts to go", r.GetStart() && !r.GetEmpty())
		note("node waits to go", !r.GetStart())
	}
	note("brake", answer.GetScaleDown().GetBrake() != "")
	note("taken back", len(answer.GetTakeBack()) > 0)
	note("moves", len(answer.GetReplacement().GetMoves()) > 0)
	note("slack placed", answer.GetSlack().GetPlaced() > 0)
	note("slack copies", len(answer.GetSlack().GetMirrored()) > 0)
	note("unplaced pods", len(answer.GetScaleUp().GetUnplaced()) > 0)
	note("pods onto nodes that are there", len(answer.GetExisting()) > 0)
	note("pods onto nodes on their way", len(answer.GetUpcoming()) > 0)
	note("deletion costs", len(answer.GetDeletionCosts()) > 0)
	note("batch waits", answer.GetBatchWaitMilliseconds() > 0)
	note("cut short", answer.GetScaleUp().GetCutShort() || answer.GetScaleDown().GetCutShortBy() != "")
	note("left out", answer.GetLeftOutTotal() > 0)
	for _, s := range answer.GetSize().GetGroups() {
		note("sized group acts", s.GetAction() > loadlinev1.GroupSize_NOTHING)
	}
	for _, g := range answer.GetFleet().GetGroups() {
		note("group backs off", g.GetBackOff() != nil)
		note("machines fail or are late", g.GetFailed()+g.GetLate()+g.GetLost() > 0)
	}
	return out
}
