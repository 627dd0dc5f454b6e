package act

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/watch"
)

// removals returns the nodes of these slots, which are to go now, each in a wave. The plan is compared with the objects
// that it was made from: an answer that does not match them is an error.
func removals(c *watch.Cluster, o *plan.Loop, remove map[int32]int32) (out []*drain.Removal, err error) {
	for _, removal := range o.Plan.GetRemove() {
		wave, goes := remove[removal.GetSlot()]
		if !goes {
			continue
		}
		r, err := removalOf(c, o, removal)
		if err != nil {
			return nil, err
		}
		r.Wave = wave
		out = append(out, r)
	}
	return out, nil
}

func removalOf(c *watch.Cluster, o *plan.Loop, removal *loadlinev1.NodeRemoval) (*drain.Removal, error) {
	name := o.Plan.NameOf[removal.GetSlot()]
	node := c.Nodes[name]
	if node == nil || removal.GetNode() != "" && removal.GetNode() != name {
		return nil, fmt.Errorf("the plan removes node %q of slot %d, which is %q",
			removal.GetNode(), removal.GetSlot(), name)
	}
	if uid := removal.GetUid(); uid != "" && uid != string(node.UID) {
		return nil, fmt.Errorf("the plan removes node %s of UID %s, which is %s", name, uid, node.UID)
	}
	group := removal.GetNodeGroup()
	if o.Group(group) == nil {
		return nil, fmt.Errorf("the plan removes node %s of node group %q, which there is not",
			name, group)
	}
	r := &drain.Removal{Node: node, Group: group, Atomic: o.Group(group).Options.GetZeroOrMaxNodeScaling(),
		Empty: removal.GetEmpty(), Since: time.Unix(removal.GetSinceS(), 0),
		Reason: removal.GetReason(), Pods: c.PodsOf(name), Moves: map[types.UID]bool{}}
	for _, move := range removal.GetMoves() {
		if move.GetPlaceholder() {
			continue
		}
		i := int(move.GetPod())
		if i < 0 || i >= len(r.Pods) ||
			move.GetName() != "" && (move.GetName() != r.Pods[i].Name || move.GetNamespace() != r.Pods[i].Namespace) {
			return nil, fmt.Errorf("the plan moves pod %d, %s/%s, of node %s, which has %d pods",
				i, move.GetNamespace(), move.GetName(), name, len(r.Pods))
		}
		if !c.IsPlaceholder(r.Pods[i]) { // placeholders go without a word
			r.Moves[r.Pods[i].UID] = true
		}
	}
	if r.Empty && len(r.Moves) > 0 {
		return nil, fmt.Errorf("the plan moves %d pods of node %s, which it calls empty",
			len(r.Moves), name)
	}
	return r, nil
}
