package cli

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/filterconfig"
)

// groupRefusal says why a node group takes no more of some pods that wait.
type groupRefusal struct {
	NodeGroup string `json:"nodeGroup"`
	Pods      int64  `json:"pods"`
	SuchAs    string `json:"suchAs"`
	// Filter is the first that refuses them on a further node, or that cannot be judged; empty: none does.
	Filter string `json:"filter,omitempty"`
	Reason string `json:"reason"`
}

func (g groupRefusal) String() string {
	if g.Pods == 1 {
		return g.SuchAs + ": " + g.Reason
	}
	return fmt.Sprintf("%d pods, such as %s: %s", g.Pods, g.SuchAs, g.Reason)
}

// refusalTable has a line for each.
var refusalTable = table{rows: "refusals", columns: []column{{header: "NODE GROUP", path: "nodeGroup"},
	{header: "TAKES NO MORE OF", path: "pods", right: true}, {header: "SUCH AS", path: "suchAs"},
	{header: "FILTER", path: "filter"}, {header: "WHY", path: "reason"}}}

// estimated is an estimate of how many nodes pods need, with what was asked.
type estimated struct {
	problem *loadlinev1.ScaleUpProblem
	answer  *loadlinev1.EstimateScaleUpResponse
	pods    []string // names, by position
	// capped says of groups why the cluster takes no more nodes of them than were estimated.
	capped map[string]string
}

// leftBy returns how many pods of each entry a group leaves over that find no room on nodes that are there.
func (e *estimated) leftBy(group int) map[int32]int64 {
	left := map[int32]int64{}
	for i, pods := range e.problem.GetPods() {
		left[int32(i)] = int64(pods.GetCount())
	}
	for _, placement := range e.answer.GetExisting() {
		left[placement.GetPods().GetPod()] -= int64(placement.GetPods().GetCount())
	}
	for _, run := range e.answer.GetGroups()[group].GetPods() {
		left[run.GetPod()] -= int64(run.GetCount())
	}
	maps.DeleteFunc(left, func(_ int32, count int64) bool { return count <= 0 })
	return left
}

// refusals says why a group takes no more of the pods that are left over: `held`, if not empty, is why it does not grow
// for those that no filter refuses, which is said first; for the others nothing helps but another node.
func (e *estimated) refusals(group int, left map[int32]int64, held string) (out []groupRefusal) {
	estimate := e.answer.GetGroups()[group]
	left = maps.Clone(left)
	take := func(filter, reason string, pods []int32) {
		r := groupRefusal{NodeGroup: estimate.GetNodeGroup(), Filter: filter, Reason: reason}
		for _, pod := range pods {
			if r.Pods == 0 {
				r.SuchAs = e.pods[pod]
			}
			r.Pods += left[pod]
			delete(left, pod)
		}
		if r.Pods > 0 {
			out = append(out, r)
		}
	}
	for _, refusal := range estimate.GetRefusals() {
		why := refusal.GetWhy()
		text := cmp.Or(refusal.GetText(), strings.Join(why.GetReasons(), "; ")) // older engines give no text
		take(filterconfig.FilterName(why.GetFilter()), text, refusal.GetPods())
	}
	if held == "" && estimate.GetEnd() == loadlinev1.GroupEstimate_NODE_LIMIT {
		held = e.capped[estimate.GetNodeGroup()]
	}
	if held == "" || estimate.GetEnd() == loadlinev1.GroupEstimate_NO_TEMPLATE {
		held = endOf(estimate, e.problem.GetGroups()[group])
	}
	if held != "" {
		rest := make([]int32, 0, len(left))
		for i := range e.problem.GetPods() {
			if left[int32(i)] > 0 {
				rest = append(rest, int32(i))
			}
		}
		filters := out
		out = nil
		take("", held, rest)
		out = append(out, filters...)
	}
	return out
}

// endOf says why an estimate of a group ends; empty: it took all that new nodes take.
func endOf(estimate *loadlinev1.GroupEstimate, group *loadlinev1.ScalableGroup) string {
	switch estimate.GetEnd() {
	case loadlinev1.GroupEstimate_NODE_LIMIT:
		return "may not grow further: " + maximumOf(group, int64(estimate.GetNodeCount()))
	case loadlinev1.GroupEstimate_CUT_SHORT:
		return "the estimate was cut short"
	case loadlinev1.GroupEstimate_NO_TEMPLATE:
		return "it has neither a template nor a node, so nobody knows what a new one is"
	}
	return ""
}

// maximumOf tells the maximum of a group that gets so many more nodes.
func maximumOf(group *loadlinev1.ScalableGroup, more int64) string {
	with := ""
	if more > 0 {
		with = fmt.Sprintf("with %d more ", more)
	}
	return fmt.Sprintf("%sit has %d of at most %s", with, int64(group.GetCurrentNodes())+more,
		plural(int(group.GetMaxNodes()), "node"))
}

// bySizeOnly is why a group that is sized does not grow for pods.
const bySizeOnly = "it grows by nothing but how full it is"

// heldAt says what heldBy says, and which maximum of the cluster leaves room for no further node of this model.
func (l *loopPlan) heldAt(i int, group *loadlinev1.ScalableGroup, more int64, maxima clusterMaxima,
	model *v1.Node) string {
	sights := l.GetFleet().GetGroups()
	if i >= len(sights) {
		return ""
	}
	held := heldBy(sights[i], group, more)
	switch sights[i].GetHold() {
	case loadlinev1.GroupSight_HOLD_UNSPECIFIED, loadlinev1.GroupSight_CLUSTER_MAXIMUM:
		if room, why := maxima.room(model); room == 0 {
			return why
		}
	}
	for _, at := range l.GetAtMaximum() {
		if held != "" && sights[i].GetHold() == loadlinev1.GroupSight_CLUSTER_MAXIMUM &&
			at.GetNodeGroup() == group.GetNodeGroup() {
			held += " of " + strings.Join(at.GetResources(), ", ")
		}
	}
	return held
}

// heldBy says why a group that gets so many more nodes does not grow further, whatever pods ask for; empty: it may.
func heldBy(sight *loadlinev1.GroupSight, group *loadlinev1.ScalableGroup, more int64) string {
	switch sight.GetHold() {
	case loadlinev1.GroupSight_OPTIONS_UNKNOWN:
		return "it cannot be read"
	case loadlinev1.GroupSight_BACKS_OFF:
		return "it backs off after a failed scale-up"
	case loadlinev1.GroupSight_SIZED:
		return bySizeOnly
	case loadlinev1.GroupSight_HELD:
		return sight.GetHeld()
	case loadlinev1.GroupSight_AT_MAXIMUM:
		return "may not grow further: " + maximumOf(group, more)
	case loadlinev1.GroupSight_UNPRICED:
		return "its price is not known: it grows by a ranking only"
	case loadlinev1.GroupSight_CLUSTER_MAXIMUM:
		return "the cluster is at its maximum"
	}
	return ""
}
