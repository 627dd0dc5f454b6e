package autoscaler

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/actuation"
	"loadline.dev/shim/internal/text"
)

// isGoing says whether the cloud has been asked to delete a node, and has not made it plain that it does not. A
// deletion that it has acknowledged goes on until the node is gone.
func (l *leader) isGoing(o *loop, node *v1.Node) bool {
	mark, ours := actuation.MarkOf(node)
	_, underWay := o.underWay[node.Name]
	if !underWay && l.actuator.Acknowledged(node) {
		return true
	}
	if !ours || underWay || mark.Deleting == 0 {
		return false
	}
	m, listed := o.machines[node.Spec.ProviderID]
	return !listed || m.state == externalgrpc.InstanceState_INSTANCE_DELETING ||
		o.now.Sub(time.Unix(mark.Deleting, 0)) < deletionPatience
}

// isAbandoned says whether the removal of a node has begun and nobody goes on with it.
func (l *leader) isAbandoned(o *loop, node *v1.Node) bool {
	_, ours := actuation.MarkOf(node)
	_, underWay := o.underWay[node.Name]
	return ours && !underWay && !l.isGoing(o, node)
}

// noteStuckDeletions warns of nodes that the cloud has said it deletes, and still lists after some time. They hold no
// place of the deletions and drains that may be under way any more: others go on.
func (l *leader) noteStuckDeletions(o *loop) {
	for _, name := range slices.Sorted(maps.Keys(l.cluster.altered)) {
		node := l.cluster.nodes[name]
		if node == nil || !l.actuator.Acknowledged(node) {
			continue
		}
		mark, _ := actuation.MarkOf(node)
		since := o.now.Sub(time.Unix(mark.Deleting, 0))
		if _, listed := o.machines[node.Spec.ProviderID]; listed && mark.Deleting != 0 && since >= deletionPatience {
			l.planner.ended(name)
			warning := fmt.Sprintf("node %s: the cloud said %s ago that it deletes it, and still lists it: delete the "+
				"machine there", name, since.Round(time.Second))
			o.warnings = append(o.warnings, text.Bound(warning, mostStatusText))
		}
	}
}

// asPlanned returns a node as it is to be planned: one whose removal an earlier leader began as if it had not; one that
// has not started yet takes no pods, since it counts as on its way.
func (l *leader) asPlanned(o *loop, node *v1.Node) *v1.Node {
	switch {
	case l.isAbandoned(o, node):
		return actuation.WithoutMark(node)
	case o.notStarted[node.Name]:
		return unschedulable(node)
	}
	return node
}

// shrinkingGroups says of which groups nodes are being removed.
func shrinkingGroups(o *loop) map[string]bool {
	groups := map[string]bool{}
	for _, removal := range o.underWay {
		groups[removal.Group] = true
	}
	return groups
}
