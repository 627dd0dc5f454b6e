package autoscaler

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/provider"
)

// cleanUpTime bounds what is asked of the cloud in one loop about machines that do not become nodes.
const cleanUpTime = 30 * time.Second

// giveUpMachines gives up machines that cannot be created or did not register in time, and what the cloud did not begin
// to make, as far as the minimum of their group allows it. In one loop it deletes as many machines as scale-down may.
func (l *leader) giveUpMachines(ctx context.Context, o *loop) {
	ctx, cancel := context.WithTimeout(ctx, cleanUpTime)
	defer cancel()
	left := max(1, l.config.ScaleDown.MaxScaleDownParallelism)
	for _, g := range o.states {
		if g.lost > 0 {
			o.warnings = append(o.warnings, fmt.Sprintf("node group %s: %s had nodes that are gone: not deleted, "+
				"since pods may run there; look why they do not register, or delete them", g.ID,
				counted(g.lost, "machine")))
		}
		if g.Problem != nil {
			continue // it may have to go as a whole
		}
		left -= l.deleteMachines(ctx, o, g, g.failed, left, "failed", "cannot be created")
		left -= l.deleteMachines(ctx, o, g, l.arrivals.certainlyLate(g), left, "late", "did not register in time")
		if short := min(g.short, g.Target-g.Min); short > 0 && ctx.Err() == nil {
			err := l.cloud.DecreaseTargetSize(ctx, g.ID, g.Target, short)
			klog.InfoS("Nodes are given up that the cloud has not begun to make",
				"group", g.ID, "nodes", short, "err", err)
			if err != nil {
				l.metrics.errors.WithLabelValues("cloudProvider").Inc()
				continue
			}
			g.Target -= short
			g.short -= short
			l.metrics.givenUp.WithLabelValues("notBegun").Add(float64(short))
		}
	}
}

// certainlyLate returns the late machines of a group that are to go. Machines that have been running for longer than
// this process may have nodes by another provider id than the cloud tells: they go only where other machines of the
// group have nodes.
func (a *arrivals) certainlyLate(group *groupState) (machines []provider.Instance) {
	matches := len(group.nodes)+group.starting > 0
	for _, m := range group.late {
		if matches || !a.inherited[m.ProviderID] {
			machines = append(machines, m)
		}
	}
	return machines
}

// deleteMachines deletes up to `left` machines that are no nodes, and returns how many may go. The cloud may list
// them for some time, and is not asked twice meanwhile: its target size would be one too small for each time.
func (l *leader) deleteMachines(ctx context.Context, o *loop, g *groupState, machines []provider.Instance, left int,
	reason, why string) int {
	most := min(len(machines), g.Target-g.Min, left)
	if most <= 0 || ctx.Err() != nil {
		return 0
	}
	var nodes []*v1.Node
	for _, m := range machines[:most] {
		// Of a machine without a node Cluster Autoscaler gives the provider id as name.
		nodes = append(nodes,
			&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.ProviderID}, Spec: v1.NodeSpec{ProviderID: m.ProviderID}})
		l.arrivals.givenUp[m.ProviderID] = o.now
	}
	err := l.cloud.DeleteNodes(ctx, g.ID, nodes)
	klog.InfoS("Machines are given up", "group", g.ID, "machines", most, "why", why, "err", err)
	if err != nil {
		l.metrics.errors.WithLabelValues("cloudProvider").Inc()
		if provider.OutcomeUnknown(err) {
			return most
		}
		for _, m := range machines[:most] {
			delete(l.arrivals.givenUp, m.ProviderID)
		}
		return 0
	}
	g.Target -= most
	l.metrics.givenUp.WithLabelValues(reason).Add(float64(most))
	return most
}
