// Package scaleup puts the question which node group grows: of a cluster's objects it gathers the pods that wait for a
// node, what every new node carries, and what the node groups look like.
package scaleup

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
)

// Named gives a template a name where people leave it out: the engine takes no node without one, nor one with a space,
// which a group may have.
func Named(template *v1.Node, group string) *v1.Node {
	if template.Name != "" {
		return template
	}
	node := *template
	node.Name = "template-node-for-" + strings.Map(func(r rune) rune { // as Cluster Autoscaler calls them
		if r <= ' ' || r > '~' {
			return '-'
		}
		return r
	}, group)
	return &node
}

// Options returns the options that estimates come to, to be ranked. Groups that need no node are options as well, so
// that the ranking says what became of them. An option of a group with nodes shows the node that the estimate makes.
func Options(problem *loadlinev1.ScaleUpProblem,
	estimates []*loadlinev1.GroupEstimate) ([]*loadlinev1.ExpansionOption, error) {
	if len(estimates) != len(problem.GetGroups()) {
		return nil, fmt.Errorf("asked about %d node groups, answered about %d", len(problem.GetGroups()),
			len(estimates))
	}
	out := make([]*loadlinev1.ExpansionOption, len(estimates))
	for i, estimate := range estimates {
		group := problem.GetGroups()[i]
		out[i] = &loadlinev1.ExpansionOption{
			NodeGroup: group.GetNodeGroup(), NodeCount: estimate.GetNodeCount(),
			TemplateNode: estimate.GetModelNode(), Pods: estimate.GetPods(),
			NodeUsdPerHour: group.NodeUsdPerHour, InstanceType: group.GetInstanceType(), Spot: group.Spot,
		}
		if len(out[i].TemplateNode) == 0 {
			out[i].TemplateNode = group.GetTemplateNode()
		}
	}
	return out, nil
}

// WaitNote says how many pods wait, and how many of them find room on nodes that are there.
func WaitNote(all, there int64) string {
	switch {
	case all == 0:
		return "No pod waits."
	case all == 1 && there == 0:
		return "1 pod waits; it fits on no node that is there."
	case all == 1:
		return "1 pod waits; it fits on a node that is there."
	case there == 1:
		return fmt.Sprintf("%d pods wait; 1 of them fits on nodes that are there.", all)
	}
	return fmt.Sprintf("%d pods wait; %d of them fit on nodes that are there.", all, there)
}

// Notes says what became of pods and groups beside the options, each in a sentence.
func Notes(problem *loadlinev1.ScaleUpProblem, answer *loadlinev1.EstimateScaleUpResponse) []string {
	all, there := int64(0), int64(0)
	for _, pods := range problem.GetPods() {
		all += int64(pods.GetCount())
	}
	for _, placement := range answer.GetExisting() {
		there += int64(placement.GetPods().GetCount())
	}
	notes := []string{WaitNote(all, there)}
	for _, group := range answer.GetGroups() {
		switch group.GetEnd() {
		case loadlinev1.GroupEstimate_NODE_LIMIT:
			notes = append(notes, group.GetNodeGroup()+" may not grow further.")
		case loadlinev1.GroupEstimate_CUT_SHORT:
			notes = append(notes, group.GetNodeGroup()+": the estimate was cut short.")
		case loadlinev1.GroupEstimate_NO_TEMPLATE:
			notes = append(notes, group.GetNodeGroup()+" has neither a template nor a node.")
		}
	}
	return notes
}
