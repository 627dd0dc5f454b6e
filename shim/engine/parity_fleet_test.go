package engine_test

import (
	"fmt"

	"loadline.dev/shim/api/loadlinev1"
)

// lookAtFleet looks at some groups, now and then from a state that no engine wrote.
func (g *requests) lookAtFleet() *loadlinev1.LookAtFleetRequest {
	out := &loadlinev1.LookAtFleetRequest{NowMilliseconds: 1_700_000_000_000 + int64(g.IntN(1<<30)),
		Options: &loadlinev1.FleetOptions{MaxNodeProvisionMilliseconds: int64(1 + g.IntN(1<<20)),
			MaxNodeStartupMilliseconds: int64(g.IntN(1 << 20)), InitialBackOffMilliseconds: int64(1 + g.IntN(1<<10)),
			MaxBackOffMilliseconds: 1 << 20, BackOffResetMilliseconds: int64(g.IntN(1 << 20)),
			DeletionPatienceMilliseconds: int64(g.IntN(1 << 20)), MaxDeletions: int32(g.IntN(4)) - int32(g.IntN(20)/19),
			MaxUnreadyPercent: int32(g.IntN(102)), DelayAfterAddMilliseconds: int64(g.IntN(1 << 20))}}
	if g.IntN(3) == 0 {
		out.State = []byte("LLFS\x01 and what nobody wrote")
	}
	if g.IntN(2) == 0 {
		out.Outcomes = &loadlinev1.FleetOutcomes{GivenUp: []string{"m0"}, TaintingFailed: g.IntN(2) == 0,
			Increases: []*loadlinev1.FleetIncrease{{NodeGroup: "g0", Nodes: int32(g.IntN(9)), Error: "no",
				Result: loadlinev1.FleetIncrease_Result(1 + g.IntN(3))}},
			Removals: []*loadlinev1.FleetRemoval{{NodeGroup: "g1", Machine: "m1"}}}
	}
	if g.IntN(4) > 0 {
		out.Observation = g.observation()
	}
	return out
}

func (g *requests) observation() *loadlinev1.FleetObservation {
	out := &loadlinev1.FleetObservation{}
	node := func() *loadlinev1.FleetNode {
		return &loadlinev1.FleetNode{CreatedMilliseconds: 1_700_000_000_000 + int64(g.IntN(1<<30)),
			Ready: g.IntN(3) > 0, Leaving: g.IntN(5) == 0, Devices: []string{"nvidia.com/gpu"}[:g.IntN(2)]}
	}
	for i := range g.IntN(4) {
		group := &loadlinev1.FleetGroup{NodeGroup: fmt.Sprintf("g%d", i), MinNodes: int32(g.IntN(3)),
			Target: int32(g.IntN(9)), Unreadable: g.IntN(9) == 0, Shrinks: g.IntN(4) == 0,
			TemplateDevices: []string{"nvidia.com/gpu"}[:g.IntN(2)]}
		for j := range g.IntN(6) {
			machine := &loadlinev1.FleetMachine{Id: fmt.Sprintf("m%d", 10*i+j),
				State: loadlinev1.FleetMachine_State(g.IntN(4))}
			switch g.IntN(4) {
			case 0:
				machine.Fault = &loadlinev1.MachineFault{Code: "NONE", OutOfResources: g.IntN(2) == 0}
			case 1, 2:
				machine.Node = node()
			}
			group.Machines = append(group.Machines, machine)
		}
		out.Groups = append(out.Groups, group)
	}
	for range g.IntN(3) {
		out.OtherNodes = append(out.OtherNodes, node())
	}
	return out
}
