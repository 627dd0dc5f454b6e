package autoscaler

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/provider"
	"loadline.dev/shim/scaleup"
)

// machine is what the cloud says of the machine of a node.
type machine struct {
	group string
	state externalgrpc.InstanceState
}

// machinesOf returns the machines of all groups by their provider ids.
func machinesOf(groups []provider.Group) map[string]machine {
	machines := map[string]machine{}
	for i := range groups {
		for _, instance := range groups[i].Instances {
			if instance.ProviderID != "" {
				machines[instance.ProviderID] = machine{groups[i].ID, instance.State}
			}
		}
	}
	return machines
}

// groupState is a node group as one loop sees it.
type groupState struct {
	*provider.Group
	// found is what the engine has found out about its machines.
	found *loadlinev1.FleetGroupView
	nodes []*v1.Node // that have registered and started
	// lacking are the names of nodes without all devices that new ones come to offer.
	lacking map[string]bool
	// deleteFailed cannot be created and deleteLate did not register in time: they are to go now.
	deleteFailed, deleteLate []provider.Instance
	model                    model
	// swappable are nodes that the cloud has not begun to make, and may be asked to take back for others.
	swappable int
	// blockedReason is why the group may not grow; empty: it may.
	blockedReason string
}

// upcoming is how many nodes are on their way.
func (g *groupState) upcoming() int { return int(g.found.GetStarting() + g.found.GetComing()) }

// room is how many nodes the group may have more. A cloud may have more machines than its target size for some time.
func (g *groupState) room() int { return max(0, g.Max-max(g.Target, int(g.found.GetLive()))) }

// backsOff says whether the group may not grow for a time, since it has failed to.
func (g *groupState) backsOff() bool { return g.found.GetBackOff() != nil }

// whyBlocked returns why a group may not grow now; empty: it may.
func (g *groupState) whyBlocked(o *loop) string {
	switch {
	case g.Problem != nil:
		return "its options are not known: " + g.Problem.Error()
	case g.backsOff():
		return g.found.GetHeld()
	case g.Options.GetZeroOrMaxNodeScaling() && g.room() > o.newNodes:
		return fmt.Sprintf("grows by all of its %d nodes or none, and %d may be added", g.room(), o.newNodes)
	}
	return o.blockedReason
}

// started says whether a node is ready for pods: it is not while it carries a taint that goes at the start.
func started(node *v1.Node) bool {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
	return ready &&
		!slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool { return scaleup.IsStartupTaint(t.Key) })
}

// unschedulable returns a node as it is while no pod is to be planned for it.
func unschedulable(node *v1.Node) *v1.Node {
	node = node.DeepCopy()
	node.Spec.Unschedulable = true
	return node
}
