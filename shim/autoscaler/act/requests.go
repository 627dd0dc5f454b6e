package act

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/tell"
	"loadline.dev/shim/report"
)

// increase has a group grow; nil: there is no such group.
func (a *Actor) increase(o *plan.Loop, change *loadlinev1.ChangeTarget) *request {
	g := o.Group(change.GetNodeGroup())
	if g == nil {
		return nil
	}
	from, nodes := int(change.GetExpectedTarget()), int(change.GetNodes())
	to := from + nodes
	return &request{group: g.ID, growth: fmt.Sprintf("%s %d->%d (max: %d)", g.ID, from, to, g.Max),
		send: func(ctx context.Context) error { return a.cloud.IncreaseSize(ctx, g.ID, from, nodes) },
		tell: func(err error) {
			status := a.teller.About
			if err != nil {
				klog.ErrorS(plan.Bounded(err), "Scale-up failed", "group", g.ID, "from", from, "to", to)
				a.teller.Events.Eventf(status, v1.EventTypeWarning, "FailedToScaleUpGroup",
					"Scale-up failed for group %s: %v", g.ID, err)
				return
			}
			klog.V(2).InfoS("Scale-up", "group", g.ID, "from", from, "to", to, "max", g.Max)
			a.teller.Events.Eventf(status, v1.EventTypeNormal, "ScaledUpGroup",
				"Scale-up: group %s size set to %d instead of %d (max: %d)", g.ID, to, from, g.Max)
			a.teller.Metrics.Grew(g.Model.Node, change.GetNodes())
		}}
}

// deletion has machines deleted that are no nodes.
func (a *Actor) deletion(o *plan.Loop, m *loadlinev1.DeleteMachines) *request {
	group, machines := m.GetNodeGroup(), len(m.GetMachines())
	reason, why := "failed", "cannot be created"
	if m.GetLate() {
		reason, why = "late", "did not register in time"
	}
	var nodes []*v1.Node // of the request that was sent
	return &request{group: group,
		send: func(ctx context.Context) (err error) {
			if nodes, err = a.machinesOf(o, m); err != nil {
				return err
			}
			return a.cloud.DeleteNodes(ctx, group, nodes)
		},
		tell: func(err error) {
			klog.InfoS("Machines are given up", "group", group, "machines", machines, "why", why, "err", err)
			a.countGivenUp(reason, machines, err)
			if m.GetLate() { // Cluster Autoscaler has no event of machines that cannot be created
				a.teller.TellUnregistered(nodes, err)
			}
		}}
}

// machinesOf returns the machines of a group that are to go, as nodes.
func (a *Actor) machinesOf(o *plan.Loop, m *loadlinev1.DeleteMachines) (nodes []*v1.Node, err error) {
	g := o.Group(m.GetNodeGroup())
	if g == nil {
		return nil, fmt.Errorf("there is no node group %q", m.GetNodeGroup())
	}
	for _, position := range m.GetMachines() {
		if position < 0 || int(position) >= len(g.Instances) {
			return nil, fmt.Errorf("machine %d of node group %s is to go, which has %d", position, g.ID, len(g.Instances))
		}
		machine := g.Instances[position]
		if id := machine.GetId(); a.cluster.HasNode(id) {
			return nil, fmt.Errorf("machine %s of node group %s is to go as one without a node, and a node states its id", id,
				g.ID)
		}
		nodes = append(nodes, withoutNode(machine))
	}
	return nodes, nil
}

// withoutNode returns a machine that has no node in the form of Cluster Autoscaler: its name is its provider id, and an
// annotation, which providers read, says why it has none.
func withoutNode(machine *externalgrpc.Instance) *v1.Node {
	reason := "unregistered"
	if machine.GetStatus().GetErrorInfo().GetErrorCode() != "" {
		reason = "create-error"
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: machine.GetId(),
			Annotations: map[string]string{cloud.WithoutNode: reason}},
		Spec: v1.NodeSpec{ProviderID: machine.GetId()}}
}

// decrease takes back nodes that the cloud has not begun to make: they did not come in time, or others replace them.
func (a *Actor) decrease(change *loadlinev1.ChangeTarget, replaced bool) *request {
	group, nodes := change.GetNodeGroup(), int(change.GetNodes())
	return &request{group: group,
		send: func(ctx context.Context) error {
			return a.cloud.DecreaseTargetSize(ctx, group, int(change.GetExpectedTarget()), nodes)
		},
		tell: func(err error) {
			if replaced {
				a.tellSwapped(group, nodes, err)
				return
			}
			klog.InfoS("Nodes are given up that the cloud has not begun to make", "group", group, "nodes", nodes, "err", err)
			a.countGivenUp("notBegun", nodes, err)
		}}
}

// tellSwapped tells of nodes that others replace.
func (a *Actor) tellSwapped(group string, nodes int, err error) {
	a.countGivenUp("swapped", nodes, err)
	if err != nil {
		klog.ErrorS(plan.Bounded(err), "Nodes that a cheaper mix replaces are not taken back", "group", group,
			"nodes", nodes)
		return
	}
	klog.V(2).InfoS("Nodes are taken back for a cheaper mix", "group", group, "nodes", nodes)
	a.teller.Events.Eventf(a.teller.About, v1.EventTypeNormal, "SwappedNodes",
		"Scale-up: taken back for a cheaper mix: %s of group %s not begun yet", report.Counted(nodes, "node"), group)
}

func (a *Actor) countGivenUp(reason string, nodes int, err error) {
	if err != nil {
		a.teller.Metrics.Failed("cloudProvider")
		return
	}
	a.teller.Metrics.Count(tell.GivenUpNodes, float64(nodes), reason)
}
