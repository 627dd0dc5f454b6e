// Package act carries out plans: groups grow, nodes go, and room is kept free. It tells of all that it does.
package act

import (
	"context"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/tell"
	"loadline.dev/shim/autoscaler/watch"
)

// Actor carries out plans.
type Actor struct {
	config   *config.Configuration
	cluster  *watch.Cluster
	cloud    cloud.Provider
	planner  *plan.Planner
	Actuator *drain.Actuator
	Soft     *drain.SoftTaints
	Costs    *drain.DeletionCosts
	sizes    *drain.SizeTaints
	Keeper   keeper // of slack; nil: it is reported only
	teller   *tell.Teller
}

// New returns what carries out plans for the leader of a term, by the time of the plans.
func New(p *plan.Planner, t *tell.Teller, client kubernetes.Interface, asked cloud.Provider,
	now func() time.Time) *Actor {
	c, s := p.Cluster, p.Config.ScaleDown
	options := drain.Options{ScaleDown: s, IsPlaceholder: c.IsPlaceholder, IsOfDaemonSet: c.IsOfDaemonSet,
		SharesMachine: c.SharesMachine, Now: now}
	return &Actor{config: p.Config, cluster: c, cloud: asked, planner: p, teller: t,
		Actuator: drain.New(options, p.Client, client, asked, t.Events, t.Term, t.Metrics.Hooks()),
		Soft:     drain.NewSoftTaints(client, t.Term, s.MaxBulkSoftTaintTime.Duration),
		Costs:    drain.NewDeletionCosts(client, t.Metrics.WroteDeletionCost),
		sizes:    drain.NewSizeTaints(client, t.Term)}
}

// Act carries out the plan.
func (a *Actor) Act(ctx context.Context, o *plan.Loop) (part string, err error) {
	todo := a.actionsOf(o)
	a.askCloud(ctx, o, todo)
	for _, slot := range todo.giveBack {
		a.giveBack(ctx, o.Plan.NameOf[slot])
	}
	o.SlackProblem = a.keepSlack(ctx, o) // it must not keep nodes from going
	a.failed(ctx, o.SlackProblem, "slack", "Slack is not kept as planned")
	a.failed(ctx, a.taintSizes(ctx, o), "sizeTaints", "Taints of groups that are sized cannot be written")
	a.orderDownscale(ctx, o)
	return a.shrink(ctx, o, todo)
}

// failed counts and logs what could not be done, if anything, unless the process ends. `kind` is that of the metric.
func (a *Actor) failed(ctx context.Context, err error, kind, text string) {
	if err != nil && ctx.Err() == nil {
		a.teller.Metrics.Failed(kind)
		klog.ErrorSDepth(1, plan.Bounded(err), text)
	}
}

// TakeResults takes note of what has happened since the last loop.
func (a *Actor) TakeResults() {
	for _, eviction := range a.Actuator.TakeEvictions() {
		a.planner.Evicted(eviction)
	}
	for _, ended := range a.Actuator.TakeEnded() {
		if ended.Err == nil {
			out := &a.planner.Fleet.Outcomes
			out.Removals = append(out.Removals,
				&loadlinev1.FleetRemoval{NodeGroup: ended.Group, Machine: plan.ToldID(ended.Node.Spec.ProviderID)})
			out.Acknowledged = append(out.Acknowledged, string(ended.Node.UID))
			continue
		}
		a.planner.Ended(ended.Node.Name)
	}
	if err := a.Actuator.TakeFailure(); err != nil {
		a.planner.Fleet.Outcomes.TaintingFailed = true
		a.teller.Metrics.Failed("taint")
		klog.ErrorS(plan.Bounded(err), "Nodes that were to go are given back")
	}
	tried := &a.planner.Fleet.Outcomes.SoftTaintsTried
	*tried = append(*tried, a.Soft.TakeTried()...)
	a.Actuator.ForgetGone(a.cluster.Nodes)
}
