package autoscaler

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/provider"
	"loadline.dev/shim/scaleup"
)

// groupState is a node group as one loop sees it.
type groupState struct {
	*provider.Group
	model model
	// found is what the engine has found out about it; nil: there is no answer.
	found *loadlinev1.GroupSight
}

// upcoming is how many nodes are on their way.
func (g *groupState) upcoming() int { return int(g.found.GetStarting() + g.found.GetComing()) }

// room is how many nodes the group may have more.
func (g *groupState) room() int { return int(g.found.GetRoom()) }

// backsOff says whether the group may not grow for a time, since it has failed to.
func (g *groupState) backsOff() bool { return g.found.GetBackOff() != nil }

// groupsOf returns the groups by the provider ids of their machines.
func groupsOf(groups []provider.Group) map[string]string {
	of := map[string]string{}
	for i := range groups {
		for _, instance := range groups[i].Instances {
			if instance.ProviderID != "" {
				of[instance.ProviderID] = groups[i].ID
			}
		}
	}
	return of
}

// started says whether a node is ready for pods: it is not while it carries a taint that goes at the start.
func started(node *v1.Node) bool {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
	return ready &&
		!slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool { return scaleup.IsStartupTaint(t.Key) })
}
