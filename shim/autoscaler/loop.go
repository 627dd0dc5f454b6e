package autoscaler

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/sizing"
)

// loop is what one loop finds out.
type loop struct {
	now    time.Time
	states []*groupState
	// groupOf are the groups of machines, by provider id.
	groupOf map[string]string
	pods    *scaleup.Pods // that wait
	// sized are the groups that are sized by how full they are, by id. warnings say which groups of the file are not
	// sized and what they leave behind, and which groups are left as they are.
	sized    map[string]*sizedGroup
	sizePods *sizing.Gatherer
	warnings []string
	underWay map[string]drain.UnderWay
	plan     *loopPlan
	// outcome is the status of scale-down under Cluster Autoscaler's names, growthOutcome that of scale-up; problem is
	// why there is no plan.
	outcome, growthOutcome string
	problem                error
	slackProblem           error // why slack is not kept as planned
	leftOut                leftout.List
}

// fleet is what the engine has found out about machines, and what is to be done; nil: there is no plan.
func (o *loop) fleet() *loadlinev1.LoopFleetAnswer {
	if o.plan == nil {
		return nil
	}
	return o.plan.loop.GetFleet()
}

// group returns a node group by its id; nil: there is none.
func (o *loop) group(id string) *groupState {
	for _, g := range o.states {
		if g.ID == id {
			return g
		}
	}
	return nil
}

// Outcomes that no plan has.
const (
	outcomeNotTried   = "ScaleDownNotTried"
	outcomeInCooldown = "ScaleDownInCooldown"
)

// once is one loop. Where something cannot be found out, nothing is removed, and the status says why.
func (l *leader) once(ctx context.Context) error {
	defer l.metrics.time(functionMain)()
	l.batchWait = 0
	o := &loop{now: l.clock.now(), outcome: outcomeNotTried, growthOutcome: scaleUpNotTried}
	failed, err := l.decide(ctx, o)
	if err != nil {
		o.problem = err
		l.metrics.errors.WithLabelValues(failed).Inc()
	}
	l.clock.look(l.timersRun(o))
	l.metrics.decisions.WithLabelValues("drain", o.outcome).Inc()
	l.metrics.decisions.WithLabelValues("scaleUp", o.growthOutcome).Inc()
	l.gatherLeftOut(o)
	l.updateMetrics(o)
	l.tellLeftOut(o)
	status := l.statusOf(o)
	l.seen.Store(l.snapshotOf(o, status))
	if statusErr := l.status.write(ctx, status); statusErr != nil && ctx.Err() == nil {
		l.metrics.errors.WithLabelValues("status").Inc()
		klog.ErrorS(statusErr, "Status cannot be written")
	}
	if err == nil {
		l.metrics.lastLoop.Set(float64(l.clock.wall().Unix()))
	}
	return err
}

// decide looks, plans and acts. With an error, it says which part failed.
func (l *leader) decide(ctx context.Context, o *loop) (part string, err error) {
	if part, err = l.look(ctx, o); err != nil {
		return part, err
	}
	if err := l.makePlan(ctx, o); err != nil {
		return "plan", err
	}
	o.outcome = cmp.Or(o.plan.GetStatus(), outcomeNotTried)
	o.growthOutcome = l.wouldGrow(o)
	if l.config.Mode != config.Act {
		return "", nil
	}
	return l.act(ctx, o)
}

// look finds out what a plan is made from: the groups of the provider, the cluster, and the pods that wait.
func (l *leader) look(ctx context.Context, o *loop) (part string, err error) {
	l.takeResults()
	l.reload(o)
	done := l.metrics.time(functionRefresh)
	var groups []cloud.Group
	if err = l.cloud.Refresh(ctx); err == nil {
		groups, err = l.cloud.Groups(ctx, groupDefaults(l.config))
	}
	if done(); err != nil {
		l.cluster.ForgetGone()
		return "cloudProvider", err
	}
	for i := range groups {
		o.states = append(o.states, &groupState{Group: &groups[i]})
	}
	o.groupOf = groupsOf(groups)
	l.noteProblems(o)
	done = l.metrics.time(functionUpdate)
	o.underWay = l.actuator.UnderWay()
	err = l.cluster.Apply()
	if done(); err != nil {
		return "cluster", err
	}
	if err := l.cluster.Doubt(); err != nil {
		return "cluster", err
	}
	l.models.Fill(ctx, groups, l.cluster.NodesByID(), o.now)
	o.pods = l.cluster.Waiting(o.now)
	return "", nil
}

// makePlan has the engine plan, and takes note of what it has found out.
func (l *leader) makePlan(ctx context.Context, o *loop) (err error) {
	done := l.metrics.time(functionPlan)
	sized := l.sizings(o)
	o.plan, err = l.planner.plan(ctx,
		&question{groups: o.states, fleet: l.fleet.question(l.planner.settings.Fleet, o.now), sized: sized,
			sizePods: l.sizePods(o, sized), pods: o.pods, groupOf: o.groupOf, underWay: o.underWay,
			acknowledged: l.actuator.Acknowledged, now: o.now})
	if done(); err != nil {
		return err
	}
	if err := l.takeAnswer(ctx, o); err != nil {
		o.plan = nil
		return err
	}
	l.noteLoadLine(ctx)
	o.noteSizes()
	l.noteCutShort(o)
	l.tellMoves(o.replacement())
	return nil
}

// act carries out the plan.
func (l *leader) act(ctx context.Context, o *loop) (part string, err error) {
	l.giveUp(ctx, o)
	if l.config.Decides(config.ScaleUpDecision) {
		l.grow(ctx, o)
	}
	// It must not keep nodes from going.
	if o.slackProblem = l.keepSlack(ctx, o); o.slackProblem != nil && ctx.Err() == nil {
		l.metrics.errors.WithLabelValues("slack").Inc()
		klog.ErrorS(o.slackProblem, "Slack is not kept as planned")
	}
	if err := l.taintSizes(ctx, o); err != nil && ctx.Err() == nil {
		l.metrics.errors.WithLabelValues("sizeTaints").Inc()
		klog.ErrorS(err, "Taints of groups that are sized cannot be written")
	}
	return l.shrink(ctx, o)
}

// takeAnswer takes over what the engine has found out, and keeps what it remembers before anything is done: the next
// leader knows of it even if this process ends now.
func (l *leader) takeAnswer(ctx context.Context, o *loop) error {
	answer := o.fleet()
	if len(answer.GetGroups()) != len(o.states) {
		return fmt.Errorf("the plan tells of %d groups, there are %d", len(answer.GetGroups()), len(o.states))
	}
	for i, g := range o.states {
		g.found = answer.Groups[i]
	}
	for id, g := range o.sized {
		g.blockedReason = cmp.Or(g.blockedReason, o.group(id).found.GetHeld())
	}
	o.warnings = append(o.warnings, answer.GetWarnings()...)
	l.batchWait = time.Duration(o.plan.loop.GetBatchWaitMilliseconds()) * time.Millisecond
	l.fleet.take(answer, o.now)
	l.keepState(ctx)
	return nil
}

// timersRun says whether this loop counted for how long something has been so.
func (l *leader) timersRun(o *loop) bool {
	return o.plan == nil || o.fleet().GetTimersRun() || len(o.underWay) > 0
}

// wouldGrow says what a plan comes to for scale-up, before it is carried out.
func (l *leader) wouldGrow(o *loop) string {
	switch {
	case !l.config.Decides(config.ScaleUpDecision):
		return scaleUpNotTried
	case o.plan.loop.GetBatchWaitMilliseconds() > 0:
		return scaleUpInCooldown
	case len(o.plan.loop.GetGrowth()) > 0:
		return scaleUpSuccessful
	case len(o.plan.loop.GetScaleUp().GetUnplaced()) > 0:
		return scaleUpNoOptions
	}
	return scaleUpNotNeeded
}
