package cli

import (
	"fmt"
	"slices"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
)

// otherNode is a node that is no machine, as data.
type otherNode struct {
	Node string `json:"node"`
	// Kind is "control plane" or "virtual".
	Kind string `json:"kind"`
}

// kindName is the word for the kind of a node; empty for a machine.
func kindName(kind loadlinev1.NodeKind) string {
	switch kind {
	case loadlinev1.NodeKind_CONTROL_PLANE:
		return "control plane"
	case loadlinev1.NodeKind_VIRTUAL:
		return "virtual"
	}
	return ""
}

// otherNodesOf returns nodes that are no machines as data.
func otherNodesOf(others *loadlinev1.OtherNodes) []otherNode {
	out := []otherNode{}
	for _, node := range others.GetFirst() {
		out = append(out, otherNode{node.GetNode(), kindName(node.GetKind())})
	}
	return out
}

// mostNamedNodes is how many nodes of a kind a sentence names.
const mostNamedNodes = 5

// noteOtherNodes says which nodes are no machines and what follows, a sentence for each kind: "1 node of the control
// plane (cp-1) holds no slack." follows has its verb for one node and for several: {"holds no slack", "hold no slack"}.
func noteOtherNodes(others *loadlinev1.OtherNodes, follows [2]string) []string {
	var notes []string
	for _, of := range []struct {
		kind      loadlinev1.NodeKind
		count     int64
		one, many string
	}{{loadlinev1.NodeKind_CONTROL_PLANE, others.GetControlPlane(), "node of the control plane",
		"nodes of the control plane"},
		{loadlinev1.NodeKind_VIRTUAL, others.GetVirtual(), "virtual node", "virtual nodes"}} {
		if of.count == 0 {
			continue
		}
		var names []string
		for _, node := range others.GetFirst() {
			if node.GetKind() == of.kind && len(names) < mostNamedNodes {
				names = append(names, node.GetNode())
			}
		}
		if int64(len(names)) < of.count {
			names = append(names, "...")
		}
		noun, verb := of.many, follows[1]
		if of.count == 1 {
			noun, verb = of.one, follows[0]
		}
		notes = append(notes, fmt.Sprintf("%d %s (%s) %s.", of.count, noun, strings.Join(names, ", "), verb))
	}
	return append(notes, noteNodesAsMachines(others)...)
}

// noteNodesAsMachines says which nodes of the control plane a node group has, whose selector may be meant for others.
func noteNodesAsMachines(others *loadlinev1.OtherNodes) []string {
	count := others.GetAsMachines()
	if count == 0 {
		return nil
	}
	names := others.GetFirstAsMachines()
	if int64(len(names)) < count || len(names) > mostNamedNodes {
		names = append(slices.Clone(names[:min(len(names), mostNamedNodes)]), "...")
	}
	return []string{fmt.Sprintf("%s of the control plane (%s) %s, and may be removed like any machine.",
		plural(int(count), "node"), strings.Join(names, ", "),
		agree(count, "belongs to a node group that names it", "belong to node groups that name them"))}
}
