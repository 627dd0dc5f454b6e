package act

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
)

// cleanUpTime bounds what is asked of the cloud in one loop about machines that do not become nodes.
const cleanUpTime = 30 * time.Second

// giveUp carries out what a plan says of machines that do not become nodes, and of nodes whose removal goes on no more.
func (a *Actor) giveUp(ctx context.Context, o *plan.Loop) {
	inTime, cancel := context.WithTimeout(ctx, cleanUpTime)
	defer cancel()
	for _, action := range o.Fleet().GetActions() {
		switch {
		case action.GetDeleteMachines() != nil && inTime.Err() == nil:
			a.planner.Fleet.Note(action.GetId(), a.deleteMachines(inTime, o, action.GetDeleteMachines()))
		case action.GetTakeBack() != nil && !action.GetAfterGrowth() && inTime.Err() == nil:
			a.takeBack(inTime, action.GetTakeBack())
		case action.GetAction() != nil && isGiveBack(action):
			a.giveBack(ctx, o.Plan.NameOf[action.GetGiveBackSlot()])
		}
	}
}

func isGiveBack(action *loadlinev1.LoopAction) bool {
	_, is := action.GetAction().(*loadlinev1.LoopAction_GiveBackSlot)
	return is
}

// deleteMachines deletes machines that are no nodes.
func (a *Actor) deleteMachines(ctx context.Context, o *plan.Loop, m *loadlinev1.DeleteMachines) error {
	g := o.Group(m.GetNodeGroup())
	if g == nil {
		return fmt.Errorf("there is no node group %q", m.GetNodeGroup())
	}
	var nodes []*v1.Node
	for _, position := range m.GetMachines() {
		if position < 0 || int(position) >= len(g.Instances) {
			return fmt.Errorf("machine %d of node group %s is to go, which has %d", position, g.ID, len(g.Instances))
		}
		// Of a machine without a node Cluster Autoscaler gives the provider id as name.
		id := g.Instances[position].ProviderID
		nodes = append(nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1.NodeSpec{ProviderID: id}})
	}
	reason, why := "failed", "cannot be created"
	if m.GetLate() {
		reason, why = "late", "did not register in time"
	}
	err := a.cloud.DeleteNodes(ctx, g.ID, nodes)
	klog.InfoS("Machines are given up", "group", g.ID, "machines", len(nodes), "why", why, "err", err)
	if err != nil {
		a.teller.Metrics.Failed("cloudProvider")
		return err
	}
	a.teller.Metrics.GaveUp(reason, len(nodes))
	return nil
}

// takeBack gives up nodes that the cloud has not begun to make.
func (a *Actor) takeBack(ctx context.Context, change *loadlinev1.ChangeTarget) {
	nodes := int(change.GetNodes())
	err := a.cloud.DecreaseTargetSize(ctx, change.GetNodeGroup(), int(change.GetExpectedTarget()), nodes)
	klog.InfoS("Nodes are given up that the cloud has not begun to make",
		"group", change.GetNodeGroup(), "nodes", nodes, "err", err)
	if err != nil {
		a.teller.Metrics.Failed("cloudProvider")
		return
	}
	a.teller.Metrics.GaveUp("notBegun", nodes)
}

// swap takes back what the plan gives up for the nodes that groups grow by, once the cloud has agreed to all of these.
func (a *Actor) swap(ctx context.Context, o *plan.Loop, increases []*increase) {
	if slices.ContainsFunc(increases, func(i *increase) bool { return i.err != nil }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cleanUpTime)
	defer cancel()
	for _, action := range o.Fleet().GetActions() {
		change := action.GetTakeBack()
		if change == nil || !action.GetAfterGrowth() {
			continue
		}
		group, nodes := change.GetNodeGroup(), int(change.GetNodes())
		err := a.cloud.DecreaseTargetSize(ctx, group, int(change.GetExpectedTarget()), nodes)
		a.planner.Fleet.Note(action.GetId(), err)
		if err != nil {
			klog.ErrorS(plan.Bounded(err), "Nodes that a cheaper mix replaces are not taken back", "group", group,
				"nodes", nodes)
			a.teller.Metrics.Failed("cloudProvider")
			continue
		}
		klog.V(2).InfoS("Nodes are taken back for a cheaper mix", "group", group, "nodes", nodes)
		a.teller.Events.Eventf(a.teller.About, v1.EventTypeNormal, "SwappedNodes",
			"Scale-up: %d nodes of group %s that were not begun are taken back for a cheaper mix", nodes, group)
		a.teller.Metrics.GaveUp("swapped", nodes)
	}
}

// giveBack leaves a node as it was before its removal began.
func (a *Actor) giveBack(ctx context.Context, name string) {
	node := a.cluster.Nodes[name]
	if node == nil {
		return
	}
	klog.V(2).InfoS("Node is given back: it is not to go any more", "node", klog.KRef("", name))
	if err := a.Actuator.Release(ctx, node); err != nil && ctx.Err() == nil {
		klog.ErrorS(err, "Node cannot be given back", "node", klog.KRef("", name))
	}
}
