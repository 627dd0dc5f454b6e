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

// giveUpMachines gives up the machines that are to go, and what the cloud did not begin to make.
func (l *leader) giveUpMachines(ctx context.Context, o *loop) {
	ctx, cancel := context.WithTimeout(ctx, cleanUpTime)
	defer cancel()
	for _, g := range o.states {
		if lost := int(g.found.GetLost()); lost > 0 {
			o.warnings = append(o.warnings, fmt.Sprintf("node group %s: %s had nodes that are gone: not deleted, "+
				"since pods may run there; look why they do not register, or delete them", g.ID,
				counted(lost, "machine")))
		}
		l.deleteMachines(ctx, g, g.deleteFailed, "failed", "cannot be created")
		l.deleteMachines(ctx, g, g.deleteLate, "late", "did not register in time")
		if short := int(g.found.GetTakeBack()); short > 0 && ctx.Err() == nil {
			err := l.cloud.DecreaseTargetSize(ctx, g.ID, g.Target, short)
			klog.InfoS("Nodes are given up that the cloud has not begun to make",
				"group", g.ID, "nodes", short, "err", err)
			if err != nil {
				l.metrics.errors.WithLabelValues("cloudProvider").Inc()
				continue
			}
			g.Target -= short
			g.found.NotBegun -= int64(short)
			l.metrics.givenUp.WithLabelValues("notBegun").Add(float64(short))
		}
	}
}

// keepGivenUp has the next leader know at once which machines were given up, even if this process ends now: it would have
// them deleted again, and the target would be one too small for each.
func (l *leader) keepGivenUp(ctx context.Context, o *loop) {
	if len(l.fleet.outcomes.GetGivenUp()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	l.settle(ctx, o)
	l.keepState(ctx)
}

// deleteMachines deletes machines that are no nodes. The cloud may list them for some time, and the engine, which hears
// of it, does not want them deleted twice meanwhile: the target size would be one too small for each time.
func (l *leader) deleteMachines(ctx context.Context, g *groupState, machines []provider.Instance, reason, why string) {
	if len(machines) == 0 || ctx.Err() != nil {
		return
	}
	var nodes []*v1.Node
	for _, m := range machines {
		// Of a machine without a node Cluster Autoscaler gives the provider id as name.
		nodes = append(nodes,
			&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.ProviderID}, Spec: v1.NodeSpec{ProviderID: m.ProviderID}})
	}
	err := l.cloud.DeleteNodes(ctx, g.ID, nodes)
	klog.InfoS("Machines are given up", "group", g.ID, "machines", len(machines), "why", why, "err", err)
	if err == nil || provider.OutcomeUnknown(err) {
		l.fleet.noteGivenUp(machines)
	}
	if err != nil {
		l.metrics.errors.WithLabelValues("cloudProvider").Inc()
		return
	}
	g.Target -= len(machines)
	l.metrics.givenUp.WithLabelValues(reason).Add(float64(len(machines)))
}
