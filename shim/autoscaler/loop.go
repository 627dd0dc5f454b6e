package autoscaler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/actuation"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/provider"
	"loadline.dev/shim/internal/text"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/sizing"
)

// loop is what one loop finds out.
type loop struct {
	now      time.Time
	groups   []provider.Group
	machines map[string]machine // by provider id
	states   []*groupState      // in the order of groups
	groupOf  map[string]string  // by node, of those that may be planned for
	pods     *scaleup.Pods      // that wait
	// sized are the groups that are sized by how full they are, by id. warnings say which groups of the file are not
	// sized and what they leave behind, and which groups are left as they are.
	sized    map[string]*sizedGroup
	sizePods *sizing.Gatherer
	warnings []string
	// newNodes is how many nodes all groups together may grow by; blockedReason is why none may.
	newNodes      int
	blockedReason string
	// unhealthy is why no group grows in this cluster; notStarted are nodes that count as on their way.
	unhealthy  string
	notStarted map[string]bool
	underWay   map[string]actuation.UnderWay
	plan       *loopPlan
	// outcome is the status of scale-down under Cluster Autoscaler's names, growthOutcome that of scale-up; problem is
	// why there is no plan.
	outcome, growthOutcome string
	problem                error
	slackProblem           error // why slack is not kept as planned
	leftOut                leftout.List
}

// Outcomes that no plan has.
const (
	outcomeNotTried   = "ScaleDownNotTried"
	outcomeInCooldown = "ScaleDownInCooldown"
)

// once is one loop. Where something cannot be found out, nothing is removed, and the status says why.
func (l *leader) once(ctx context.Context) error {
	defer l.metrics.time(functionMain)()
	l.batch.wait = 0
	o := &loop{now: l.clock.now(), outcome: outcomeNotTried, growthOutcome: scaleUpNotTried}
	failed, err := l.decide(ctx, o)
	if err != nil {
		o.problem = err
		l.metrics.errors.WithLabelValues(failed).Inc()
	}
	l.settle(ctx, o)
	l.keepState(ctx)
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
	l.takeResults()
	l.reload(o)
	done := l.metrics.time(functionRefresh)
	if err = l.cloud.Refresh(ctx); err == nil {
		o.groups, err = l.cloud.Groups(ctx, groupDefaults(l.config))
	}
	if done(); err != nil {
		l.cluster.forgetGone()
		return "cloudProvider", err
	}
	o.machines = machinesOf(o.groups)
	l.noteProblems(o)
	done = l.metrics.time(functionUpdate)
	o.underWay = l.actuator.UnderWay()
	err = l.cluster.applyNotes()
	if done(); err != nil {
		return "cluster", err
	}
	if err := l.cluster.doubt(); err != nil {
		return "cluster", err
	}
	if err := l.lookAtFleet(ctx, o); err != nil {
		return "fleet", err
	}
	l.cluster.show(func(node *v1.Node) *v1.Node { return l.asPlanned(o, node) })
	l.noteStuckDeletions(o)
	l.lookAtGroups(ctx, o)
	o.pods = l.cluster.waiting(&l.config.ScaleUp, o.now)
	l.batch.follow(o.pods, o.now)
	done = l.metrics.time(functionPlan)
	sized := l.sizings(o)
	o.plan, err = l.planner.plan(ctx,
		&question{groups: o.states, sized: sized, sizePods: l.sizePods(o, sized), pods: o.pods, batch: &l.batch,
			groupOf: o.groupOf, underWay: slices.Sorted(maps.Keys(o.underWay)), newNodes: o.newNodes, now: o.now})
	if done(); err != nil {
		return "plan", err
	}
	l.noteLoadLine(ctx)
	l.batch.note(time.Duration(o.plan.loop.GetBatchWaitMilliseconds())*time.Millisecond, o.now)
	o.noteSizes()
	l.noteCutShort(o)
	o.outcome = cmp.Or(o.plan.GetStatus(), outcomeNotTried)
	o.growthOutcome = l.wouldGrow(o)
	if l.config.Mode != config.Act {
		return "", nil
	}
	if l.config.Decides(config.ScaleUpDecision) {
		if part, err := l.grow(ctx, o); err != nil {
			return part, err
		}
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

// lookAtGroups gives up machines that do not become nodes, and finds out what new ones are like and which groups may
// grow.
func (l *leader) lookAtGroups(ctx context.Context, o *loop) {
	if l.config.Mode == config.Act && l.config.Decides(config.ScaleUpDecision) {
		l.giveUpMachines(ctx, o)
		l.keepGivenUp(ctx, o)
	}
	l.models.fill(ctx, o.states, o.now)
	o.newNodes = l.mostNewNodes(o.states)
	if o.blockedReason = o.unhealthy; o.blockedReason == "" && o.newNodes == 0 {
		o.blockedReason = fmt.Sprintf("the cluster may have %d nodes in all", l.config.ScaleUp.MaxNodesTotal)
	}
	o.groupOf = map[string]string{}
	for _, g := range o.states {
		g.blockedReason = text.Bound(g.whyBlocked(o), mostStatusText) // the question tells it too
		// Nobody knows by which rules its nodes may go: they are in no group, and stay.
		if g.Problem != nil {
			continue
		}
		for _, node := range g.nodes {
			o.groupOf[node.Name] = g.ID
		}
	}
	for name, node := range l.cluster.nodes {
		if l.isAbandoned(o, node) {
			l.planner.ended(name) // the engine may still count it among those that go
		}
	}
}

// timersRun says whether this loop counted for how long something has been so. Where no drain was planned, nobody tells
// whether nodes wait to go.
func (l *leader) timersRun(o *loop) bool {
	return o.plan == nil || len(o.plan.GetRemove()) > 0 || len(o.underWay) > 0 || o.sizeTimersRun() ||
		l.config.Decides(config.ScaleDownDecision) && o.plan.loop.GetNoScaleDown() != "" ||
		slices.ContainsFunc(o.states, func(g *groupState) bool { return g.upcoming() > 0 }) ||
		l.fleet.backsOff || l.fleet.coolsDown
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
