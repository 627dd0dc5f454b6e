package engine_test

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
)

// planSlack asks about the view, sometimes with a state of placeholders that nobody planned.
func (g *requests) planSlack() *loadlinev1.PlanSlackRequest {
	out := &loadlinev1.PlanSlackRequest{Changes: g.at(), NowSeconds: 1_700_000_000 + int64(g.IntN(1000)),
		Literal: g.IntN(2) == 0, WantState: true,
		GroupsKnown: g.IntN(3) == 0, Fit: g.fitOptions(),
		Policy: &loadlinev1.SlackPolicy{Basis: loadlinev1.SlackPolicy_Basis(g.IntN(3)),
			Reserve: loadlinev1.SlackPolicy_Reserve(g.IntN(5)), Granularity: int32(g.IntN(8)),
			MaxPlaceholders: int32(g.IntN(50))}}
	if g.IntN(2) == 0 {
		out.Policy.ExtraCapacityMinRate = proto.Float64(g.Float64() * 1.2)
	}
	for _, pod := range g.pods() {
		out.Pods = append(out.Pods, &loadlinev1.PendingPods{Pod: pod, Count: int32(g.IntN(5))})
	}
	if g.IntN(3) == 0 {
		out.State = &loadlinev1.SlackState{NextId: 100}
		for id := range int64(g.IntN(5)) {
			out.State.Placeholders = append(out.State.Placeholders, &loadlinev1.Placeholder{Id: id + 1,
				Kind: loadlinev1.Placeholder_Kind(1 + g.IntN(3)), Owner: fmt.Sprint("class-", g.IntN(2)),
				MilliCpu: int64(g.IntN(2000)), Node: fmt.Sprint("node-", g.IntN(20))})
		}
	}
	return out
}
