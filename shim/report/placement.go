// Package report shows how the nodes of a cluster are loaded by what their pods may use: as a table of text and
// as one HTML page that needs nothing but a browser. Several placements of the same pods stand side by side.
package report

import (
	"cmp"
	"maps"
	"slices"

	"loadline.dev/shim/api/loadlinev1"
)

// Placement is one way in which pods were spread over nodes.
type Placement struct {
	// Name tells placements apart, such as the name of the scheduler.
	Name string
	// Nodes in the order in which they are drawn; the same node has the same name in all placements.
	Nodes []Node
	// PendingPods counts the pods that found no node.
	PendingPods int
	// Listed says which nodes are drawn one by one; nil: all are. Summaries are of all nodes.
	Listed func(node string) bool
}

// Node is one node with the sums over its pods.
type Node struct {
	Name string
	// Resources by name, such as "cpu".
	Resources map[string]Amounts
}

// Amounts of one resource on one node: CPU in millicores, every other resource in its own unit, all at least 0.
type Amounts struct {
	// Allocatable is what the node offers to pods; 0: the node lacks the resource.
	Allocatable int64
	// Limits and Requests are sums over the pods on the node.
	Limits   int64
	Requests int64
}

// Ratio returns limits over allocatable; false when the node lacks the resource.
func (a Amounts) Ratio() (float64, bool) {
	return a.over(a.Limits)
}

// RequestsRatio returns requests over allocatable; false when the node lacks the resource.
func (a Amounts) RequestsRatio() (float64, bool) {
	return a.over(a.Requests)
}

func (a Amounts) over(amount int64) (float64, bool) {
	if a.Allocatable <= 0 {
		return 0, false
	}
	return float64(amount) / float64(a.Allocatable), true
}

// FromNodeStates returns the placement that an engine described, its nodes in name order. Limits are those that
// pods state: a pod without a limit adds nothing.
func FromNodeStates(name string, states []*loadlinev1.NodeState, pendingPods int) Placement {
	p := Placement{Name: name, PendingPods: pendingPods, Nodes: make([]Node, 0, len(states))}
	for _, state := range states {
		node := Node{Name: state.GetName(), Resources: make(map[string]Amounts, len(state.GetResources()))}
		for _, r := range state.GetResources() {
			node.Resources[r.GetResource()] = Amounts{
				Allocatable: r.GetAllocatable(), Limits: r.GetLimits(), Requests: r.GetRequested(),
			}
		}
		p.Nodes = append(p.Nodes, node)
	}
	slices.SortFunc(p.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// Resources returns the resources worth showing: cpu, memory, ephemeral-storage, then the others by name. A
// resource counts when a pod requests or limits it somewhere; cpu and memory when any node offers them.
func Resources(placements []Placement) []string {
	used := map[string]bool{}
	for _, p := range placements {
		for _, node := range p.Nodes {
			for name, a := range node.Resources {
				always := name == "cpu" || name == "memory"
				if a.Limits > 0 || a.Requests > 0 || always && a.Allocatable > 0 {
					used[name] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(used), CompareResources)
}

// CompareResources orders resource names: cpu, memory, ephemeral-storage, then the others by name.
func CompareResources(a, b string) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

func rank(resource string) int {
	if i := slices.Index([]string{"cpu", "memory", "ephemeral-storage"}, resource); i >= 0 {
		return i
	}
	return 3
}
