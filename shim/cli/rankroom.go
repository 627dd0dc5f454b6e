package cli

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
)

// askRoom asks what the pods that wait find beside room on nodes that are there: nodes on their way, and what pods
// leave that end or that no group grows for. The question of the plan is one of a whole loop that grows by little.
func askRoom(ctx context.Context, p *plan.Planner, asked *plan.Plan) (err error) {
	asked.Question.Decisions = []loadlinev1.PlanLoopRequest_Decision{loadlinev1.PlanLoopRequest_SCALE_UP}
	whole := asked.Question.GetMaxNewNodes()
	asked.Question.MaxNewNodes = 1 // what it would grow by is asked of each group alone
	asked.Answer, err = p.Client.PlanLoop(ctx, asked.Question)
	asked.Question.MaxNewNodes = whole
	return err
}

// room is what pods find in a loop, and an estimate does not know of.
type room struct {
	pods  map[int32]int64 // by entry
	lines []string        // a sentence for each place
	where string          // the first place; empty: there is none
}

// roomBeside returns the room that a loop finds for pods and an estimate does not.
func roomBeside(loop *loadlinev1.PlanLoopResponse, estimate *loadlinev1.EstimateScaleUpResponse, pods int) room {
	r := room{pods: map[int32]int64{}}
	known, there := map[int32]int64{}, map[int32]map[string]bool{}
	for _, place := range estimate.GetExisting() {
		entry := place.GetPods().GetPod()
		known[entry] += int64(place.GetPods().GetCount())
		if there[entry] == nil {
			there[entry] = map[string]bool{}
		}
		there[entry][place.GetNode()] = true
	}
	take := func(run *loadlinev1.PodRun, place, why string) {
		if int(run.GetPod()) >= pods { // of nodes that are being deleted
			return
		}
		further := int64(run.GetCount())
		met := min(known[run.GetPod()], further)
		known[run.GetPod()] -= met
		if further -= met; further > 0 {
			r.pods[run.GetPod()] += further
			r.lines = append(r.lines, fmt.Sprintf("%s expected on %s%s.", plural(int(further), "pod")+
				agree(further, " is", " are"), place, why))
			if r.where == "" {
				r.where = place
			}
		}
	}
	for _, both := range []bool{true, false} { // what both know first
		for _, place := range loop.GetExisting() {
			if there[place.GetPods().GetPod()][place.GetNode()] == both {
				take(place.GetPods(), place.GetNode(), ", where pods end or are expendable")
			}
		}
	}
	for _, place := range loop.GetUpcoming() {
		take(place.GetPods(), "a node of "+place.GetNodeGroup()+" on its way", "")
	}
	return r
}

// without returns a problem without pods that have such room.
func (r *room) without(problem *loadlinev1.ScaleUpProblem) *loadlinev1.ScaleUpProblem {
	out := &loadlinev1.ScaleUpProblem{}
	proto.Merge(out, problem)
	for entry, pods := range r.pods {
		out.Pods[entry].Count -= int32(pods)
	}
	return out
}
