package autoscaler

import (
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
)

// groupState is a node group as one loop sees it.
type groupState struct {
	*cloud.Group
	// found is what the engine has found out about it; nil: there is no answer.
	found *loadlinev1.GroupSight
}

// upcoming is how many nodes are on their way.
func (g *groupState) upcoming() int { return int(g.found.GetStarting() + g.found.GetComing()) }

// backsOff says whether the group may not grow for a time, since it has failed to.
func (g *groupState) backsOff() bool { return g.found.GetBackOff() != nil }

// groupsOf returns the groups by the provider ids of their machines.
func groupsOf(groups []cloud.Group) map[string]string {
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
