// Package drain asks which nodes may go.
package drain

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/nodegroup"
)

// Groups finds the nodes of node groups.
type Groups struct {
	groups  []nodegroup.NodeGroup
	members [][]string
	clash   error
}

// NewGroups returns groups without nodes.
func NewGroups(groups []nodegroup.NodeGroup) *Groups {
	return &Groups{groups: groups, members: make([][]string, len(groups))}
}

// AddNode puts a node into its group, if it has one.
func (g *Groups) AddNode(node *v1.Node) {
	found := -1
	for i := range g.groups {
		if !g.groups[i].Spec.Has(node.Labels) {
			continue
		}
		if found >= 0 && g.clash == nil {
			g.clash = fmt.Errorf("node %s belongs to two node groups, %s and %s", node.Name, g.groups[found].Name(),
				g.groups[i].Name())
		}
		found = i
	}
	if found >= 0 {
		g.members[found] = append(g.members[found], node.Name)
	}
}

// Proto returns the groups for a question. slot returns the number of a node in the view.
func (g *Groups) Proto(slot func(node string) (int32, bool)) ([]*loadlinev1.DrainGroup, error) {
	if g.clash != nil {
		return nil, g.clash
	}
	var out []*loadlinev1.DrainGroup
	for i, members := range g.members {
		group := newGroup(&g.groups[i])
		for _, name := range members {
			if number, ok := slot(name); ok {
				group.Slots = append(group.Slots, number)
			}
		}
		out = append(out, group)
	}
	return out, nil
}

func newGroup(g *nodegroup.NodeGroup) *loadlinev1.DrainGroup {
	group := &loadlinev1.DrainGroup{NodeGroup: g.Name(), MinNodes: g.Spec.Min, MaxNodes: &g.Spec.Max,
		Target: g.Spec.Target, NodeUsdPerHour: g.Spec.Price, Sized: g.Spec.Size != nil}
	if s := g.Spec.ScaleDown; s != nil {
		group.Atomic = s.ZeroOrMaxNodeScaling
		group.ScaleDownUtilizationThreshold = s.ScaleDownUtilizationThreshold
		group.ScaleDownGpuUtilizationThreshold = s.ScaleDownGpuUtilizationThreshold
		group.IgnoreDaemonsetsUtilization = s.IgnoreDaemonSetsUtilization
		if s.ScaleDownUnneededTime != nil {
			wait := int64(s.ScaleDownUnneededTime.Seconds())
			group.ScaleDownUnneededTimeS = &wait
		}
		if s.ScaleDownUnreadyTime != nil {
			wait := int64(s.ScaleDownUnreadyTime.Seconds())
			group.ScaleDownUnreadyTimeS = &wait
		}
	}
	return group
}
