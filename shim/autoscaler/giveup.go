package autoscaler

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
)

// cleanUpTime bounds what is asked of the cloud in one loop about machines that do not become nodes.
const cleanUpTime = 30 * time.Second

// giveUp carries out what a plan says of machines that do not become nodes, and of nodes whose removal goes on no more.
func (l *leader) giveUp(ctx context.Context, o *loop) {
	inTime, cancel := context.WithTimeout(ctx, cleanUpTime)
	defer cancel()
	for _, action := range o.fleet().GetActions() {
		switch {
		case action.GetDeleteMachines() != nil && inTime.Err() == nil:
			l.fleet.note(action.GetId(), l.deleteMachines(inTime, o, action.GetDeleteMachines()))
		case action.GetTakeBack() != nil && !action.GetAfterGrowth() && inTime.Err() == nil:
			l.takeBack(inTime, action.GetTakeBack())
		case action.GetAction() != nil && isGiveBack(action):
			l.giveBack(ctx, o.plan.nameOf[action.GetGiveBackSlot()])
		}
	}
}

func isGiveBack(action *loadlinev1.LoopAction) bool {
	_, is := action.GetAction().(*loadlinev1.LoopAction_GiveBackSlot)
	return is
}

// deleteMachines deletes machines that are no nodes.
func (l *leader) deleteMachines(ctx context.Context, o *loop, m *loadlinev1.DeleteMachines) error {
	g := o.group(m.GetNodeGroup())
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
	err := l.cloud.DeleteNodes(ctx, g.ID, nodes)
	klog.InfoS("Machines are given up", "group", g.ID, "machines", len(nodes), "why", why, "err", err)
	if err != nil {
		l.metrics.errors.WithLabelValues("cloudProvider").Inc()
		return err
	}
	l.metrics.givenUp.WithLabelValues(reason).Add(float64(len(nodes)))
	return nil
}

// takeBack gives up nodes that the cloud has not begun to make.
func (l *leader) takeBack(ctx context.Context, change *loadlinev1.ChangeTarget) {
	nodes := int(change.GetNodes())
	err := l.cloud.DecreaseTargetSize(ctx, change.GetNodeGroup(), int(change.GetExpectedTarget()), nodes)
	klog.InfoS("Nodes are given up that the cloud has not begun to make",
		"group", change.GetNodeGroup(), "nodes", nodes, "err", err)
	if err != nil {
		l.metrics.errors.WithLabelValues("cloudProvider").Inc()
		return
	}
	l.metrics.givenUp.WithLabelValues("notBegun").Add(float64(nodes))
}

// giveBack leaves a node as it was before its removal began.
func (l *leader) giveBack(ctx context.Context, name string) {
	node := l.cluster.Nodes[name]
	if node == nil {
		return
	}
	klog.V(2).InfoS("Node is given back: it is not to go any more", "node", klog.KRef("", name))
	if err := l.actuator.Release(ctx, node); err != nil && ctx.Err() == nil {
		klog.ErrorS(err, "Node cannot be given back", "node", klog.KRef("", name))
	}
}
