package autoscaler

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/act"
	"loadline.dev/shim/autoscaler/buffers"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/tell"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/internal/text"
)

// leader does the work of the one process that leads, loop by loop.
type leader struct {
	config    *config.Configuration
	cluster   *watch.Cluster
	cloud     cloud.Provider
	models    *cloud.Models
	planner   *plan.Planner
	actor     *act.Actor
	teller    *tell.Teller
	clock     *planClock
	files     reloader
	ordered   *priorities             // nil: no ConfigMap states which groups grow first
	rival     *rival                  // nil: there can be none
	buffers   *buffers.Buffers        // nil: those of others are not kept
	batchWait time.Duration           // for how long growth waits for further pods, by the last plan
	missing   *atomic.Pointer[string] // which rights are missing, as in vitals; nil: nobody looks
}

func newLeader(p *plan.Planner, t *tell.Teller, client kubernetes.Interface, asked cloud.Provider,
	clock Clock) *leader {
	plans := newPlanClock(clock)
	return &leader{config: p.Config, cluster: p.Cluster, cloud: asked, models: cloud.NewModels(asked), planner: p,
		actor: act.New(p, t, client, asked, plans.now), teller: t, clock: plans, rival: newRival(p.Config, client),
		ordered: newPriorities(p.Config, client)}
}

// once is one loop. Where something cannot be found out, nothing is removed, and the status says why.
func (l *leader) once(ctx context.Context) error {
	defer l.teller.Metrics.Time(tell.FunctionMain)()
	l.batchWait = 0
	o := plan.NewLoop(l.clock.now())
	failed, err := l.decide(ctx, o)
	if err != nil {
		o.Problem = err
		l.teller.Metrics.Failed(failed)
	}
	l.clock.look(l.timersRun(o))
	l.teller.Tell(ctx, o, l.clock.wall(), l.clock.now().Sub(o.Now))
	if err == nil {
		l.teller.Metrics.Set(tell.LastLoop, float64(l.clock.wall().Unix()))
	}
	return err
}

// decide looks, plans and acts. With an error, it says which part failed.
func (l *leader) decide(ctx context.Context, o *plan.Loop) (part string, err error) {
	if part, err = l.look(ctx, o); err != nil {
		return part, err
	}
	if err := l.makePlan(ctx, o); err != nil {
		return "plan", err
	}
	if l.config.Mode != config.Act {
		return "", nil
	}
	l.failed(ctx, l.buffers.Write(ctx, o.Answer().GetSlack(), l.clock.wall()), "capacityBuffers")
	return l.actor.Act(ctx, o)
}

// look finds out what a plan is made from: the groups of the provider, the cluster, and the pods without a node.
func (l *leader) look(ctx context.Context, o *plan.Loop) (part string, err error) {
	l.actor.TakeResults()
	l.reload(o)
	l.ordered.follow(ctx, l.planner, o)
	done := l.teller.Metrics.Time(tell.FunctionRefresh)
	var groups []cloud.Group
	if err = l.cloud.Refresh(ctx); err == nil {
		groups, err = l.cloud.Groups(ctx, plan.GroupDefaults(l.config))
	}
	if done(); err != nil {
		return "cloudProvider", err
	}
	grows := l.config.Decides(config.ScaleUpDecision) || len(l.planner.Sized) > 0
	removes := l.config.Decides(config.ScaleDownDecision)
	warnings, err := l.rival.yield(ctx, groups, grows, removes, o.Now)
	if err != nil {
		return "cluster", err
	}
	o.Warnings = append(o.Warnings, warnings...)
	if missing := textOf(l.missing); missing != "" {
		o.Warnings = append(o.Warnings, text.Bound(missing, plan.MostPageText))
	}
	o.See(groups)
	for _, g := range o.Groups {
		if g.Problem != nil {
			l.teller.Metrics.Failed("cloudProvider")
			o.Warnings = append(o.Warnings, fmt.Sprintf("node group %s is left as it is: %s", g.ID,
				text.Bound(g.Problem.Error(), plan.MostStatusText)))
		}
		if g.Warning != nil {
			o.Warnings = append(o.Warnings, fmt.Sprintf("node group %s: %s", g.ID,
				text.Bound(g.Warning.Error(), plan.MostStatusText)))
		}
	}
	done = l.teller.Metrics.Time(tell.FunctionUpdate)
	o.UnderWay, o.Acknowledged = l.actor.Actuator.UnderWay(), l.actor.Actuator.Acknowledged
	l.lookAtCapacity(ctx, o)
	err = l.cluster.Apply()
	if done(); err != nil {
		return "cluster", err
	}
	if err := l.cluster.Doubt(); err != nil {
		return "cluster", err
	}
	l.models.Fill(ctx, groups, l.cluster.NodesByID(), o.Now)
	o.Pods = l.cluster.WithoutNode(o.Now, nil)
	return "", nil
}

// lookAtCapacity reads what others write about capacity: which room is to be kept, and how far the cluster may grow.
func (l *leader) lookAtCapacity(ctx context.Context, o *plan.Loop) {
	l.failed(ctx, l.buffers.Look(ctx, o.Now), "capacityBuffers")
	l.failed(ctx, l.planner.Quotas.Look(ctx, o.Now), "capacityQuotas")
	for _, warning := range []string{l.buffers.Warning(), l.planner.Quotas.Warning()} {
		if warning != "" {
			o.Warnings = append(o.Warnings, text.Bound(warning, plan.MostStatusText))
		}
	}
}

// failed counts and logs what a loop does without.
func (l *leader) failed(ctx context.Context, err error, kind string) {
	if err != nil && ctx.Err() == nil {
		l.teller.Metrics.Failed(kind)
		klog.ErrorS(plan.Bounded(err), "A loop goes on without a part")
	}
}

// makePlan has the engine plan, takes note of what it has found out, and keeps what it remembers before anything is
// done: the next leader knows of it even if this process ends now.
func (l *leader) makePlan(ctx context.Context, o *plan.Loop) error {
	done := l.teller.Metrics.Time(tell.FunctionPlan)
	err := l.planner.Plan(ctx, o)
	if done(); err != nil {
		return err
	}
	l.batchWait = time.Duration(o.Plan.Answer.GetBatchWaitMilliseconds()) * time.Millisecond
	l.teller.TellPlan(o)
	// A write that fails is no error of the loop: the next one tries again, and a new leader lets the times of what it
	// does not know begin anew.
	if err := l.planner.Keep(ctx); err != nil && ctx.Err() == nil {
		l.teller.Metrics.Failed("state")
		klog.InfoS("What is remembered of machines and groups is not written: the next loop tries again",
			"err", plan.Bounded(err))
	}
	l.teller.TellLoadLine(ctx, l.planner.Settings.GetFit().GetLoadLine())
	return nil
}

// timersRun says whether this loop counted for how long something has been so.
func (l *leader) timersRun(o *plan.Loop) bool {
	return o.Plan == nil || o.Fleet().GetTimersRun() || len(o.UnderWay) > 0
}
