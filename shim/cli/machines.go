package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
)

// formerly is before labels of nodes that were beta, and that some nodes still have alone.
const formerly = "beta."

// noteMachines says what a move may change that only images know: the architecture of a node, and its system. `fresh`
// are models of the nodes that are added; nil: one is not known.
func noteMachines(c *cluster, fresh ...*v1.Node) (notes []string) {
	for _, of := range []struct{ label, what string }{{v1.LabelArchStable, "architecture"}, {v1.LabelOSStable, "system"}} {
		values := map[string]bool{}
		for _, node := range slices.Concat(c.watched.SortedNodes(), fresh) {
			if node == nil {
				continue
			}
			if value := cmp.Or(node.Labels[of.label], node.Labels[formerly+of.label]); value != "" {
				values[value] = true
			}
		}
		if len(values) > 1 {
			notes = append(notes, fmt.Sprintf("Nodes are of %s, and images are not looked at: a pod that selects no %s may "+
				"be moved to any.", strings.Join(slices.Sorted(maps.Keys(values)), " and "), of.what))
		}
	}
	return notes
}

// templateOf returns the template that a file states of a group; nil: it states none.
func templateOf(o *plan.Loop, group string) *v1.Node {
	if of := o.Group(group); of != nil {
		return of.Model.Node
	}
	return nil
}

// noteMachines is noteMachines for a loop whose moves need new nodes, or whose drains evict pods.
func (l *loopPlan) noteMachines(c *cluster, o *plan.Loop) []string {
	var fresh []*v1.Node
	for _, growth := range l.GetGrowth() {
		if growth.GetNodesForReplacement() > 0 {
			fresh = append(fresh, templateOf(o, growth.GetNodeGroup()))
		}
	}
	if len(fresh) == 0 && !movesPods(l.GetScaleDown()) {
		return nil
	}
	return noteMachines(c, fresh...)
}

// movesPods says whether drains evict pods.
func movesPods(drains *loadlinev1.PlanDrainResponse) bool {
	return slices.ContainsFunc(drains.GetRemove(), func(r *loadlinev1.NodeRemoval) bool { return evictions(r) > 0 })
}
