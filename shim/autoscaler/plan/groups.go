package plan

import (
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
)

// Group is a node group as one loop sees it.
type Group struct {
	*cloud.Group
	// Found is what the engine has found out about it; nil: there is no answer.
	Found *loadlinev1.GroupSight
}

// Upcoming is how many nodes are on their way.
func (g *Group) Upcoming() int { return int(g.Found.GetStarting() + g.Found.GetComing()) }

// BacksOff says whether the group may not grow for a time, since it has failed to.
func (g *Group) BacksOff() bool { return g.Found.GetBackOff() != nil }
