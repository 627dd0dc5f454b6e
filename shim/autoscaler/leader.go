package autoscaler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/actuation"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/provider"
	"loadline.dev/shim/autoscaler/skiptime"
	"loadline.dev/shim/internal/text"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/report"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/sizing"
)

const (
	// handOver is for how long a node whose removal an earlier leader began may wait for a plan that removes it.
	handOver = time.Minute
	// deletionPatience is how long the cloud may take from being asked to delete a node to saying that it does.
	deletionPatience = 5 * time.Minute
)

// cloud is what is asked of the provider.
type cloud interface {
	actuation.Cloud
	Refresh(ctx context.Context) error
	Groups(ctx context.Context, defaults *externalgrpc.NodeGroupAutoscalingOptions) ([]provider.Group, error)
	IncreaseSize(ctx context.Context, group string, from, delta int) error
	DecreaseTargetSize(ctx context.Context, group string, from, delta int) error
	// TemplateNode and NodePrice return nil where the provider does not tell.
	TemplateNode(ctx context.Context, group string) (*v1.Node, error)
	NodePrice(ctx context.Context, node *v1.Node) (*float64, error)
}

// leader does the work of the one process that leads, loop by loop.
type leader struct {
	config   *config.Configuration
	cluster  *cluster
	cloud    cloud
	planner  *planner
	actuator *actuation.Actuator
	soft     *actuation.SoftTaints
	status   *statusWriter
	events   record.EventRecorder
	metrics  *metrics
	clock    *planClock
	term     int64

	// What people see: the snapshot of the last loop, and how the nodes of the engine are asked for.
	seen   atomic.Pointer[snapshot]
	loads  func() (report.Placement, error)
	models *models
	growth *growth
	told   told
	// leftOutTold knows which objects have been told that plans are made without them, leftOutLog what the log says of them.
	leftOutTold told
	leftOutLog  string
	keeper      keeper // of slack; nil: it is reported only
	sized       []nodegroup.NodeGroup
	sizeTurns   turns // of namespaces, where a question does not hold all pods that are demand
	sizes       *actuation.SizeTaints

	skips     skiptime.Tracker
	logged    string               // what the log says of the last plan
	sizesLog  map[string]string    // and of each group that is sized
	inherited map[string]time.Time // since when a node waits that an earlier leader was about to remove
	targets   map[string]int       // of the groups in the last loop
	// When a group last grew, a node last went, and tainting last failed.
	grown, deleted, failed time.Time
}

func newLeader(options *config.Configuration, client kubernetes.Interface, c *cluster, cloud cloud, p *planner, events record.EventRecorder,
	m *metrics, term int64, clock Clock) *leader {
	s := &options.ScaleDown
	events = boundedEvents{events}
	plans := newPlanClock(clock)
	return &leader{config: options, cluster: c, cloud: cloud, planner: p, events: events, metrics: m, clock: plans, term: term,
		actuator:  actuation.New(actuationOptions(s, c, plans.now), client, cloud, events, term, m.hooks()),
		soft:      actuation.NewSoftTaints(client, term, s.MaxBulkSoftTaintCount, s.MaxBulkSoftTaintTime.Duration),
		status:    &statusWriter{client: client, namespace: options.Namespace, name: options.StatusConfigMap},
		sizes:     actuation.NewSizeTaints(client, term),
		models:    newModels(cloud),
		growth:    newGrowth(&options.ScaleUp, m),
		told:      newTold(),
		inherited: map[string]time.Time{}, leftOutTold: newTold()}
}

func actuationOptions(s *config.ScaleDown, c *cluster, now func() time.Time) actuation.Options {
	options := actuation.Options{
		Now: now, IsPlaceholder: c.isPlaceholder, IsOfDaemonSet: c.isOfDaemonSet,
		NodeDeleteDelayAfterTaint: s.NodeDeleteDelayAfterTaint.Duration, CordonNodeBeforeTerminating: s.CordonNodeBeforeTerminating,
		MaxGracefulTermination: time.Duration(s.MaxGracefulTerminationSec) * time.Second, MaxPodEviction: s.MaxPodEvictionTime.Duration,
		UnsafeDeletePodsDespiteDisruptionBudgets: s.UnsafeDeletePodsDespiteDisruptionBudgets,
		EvictionRetry:                            s.EvictionRetryInterval.Duration, TerminationHeadroom: s.TerminationHeadroom.Duration, Poll: s.PollInterval.Duration,
		DaemonSetEvictionForEmptyNodes: s.DaemonSetEvictionForEmptyNodes, DaemonSetEvictionForOccupiedNodes: s.DaemonSetEvictionForOccupiedNodes,
		NodeDeletionDelayTimeout: s.NodeDeletionDelayTimeout.Duration, NodeDeletionBatcherInterval: s.NodeDeletionBatcherInterval.Duration,
	}
	groups, _ := s.PriorityGroups() // checked with the configuration
	for _, g := range groups {
		options.DrainPriorityGroups = append(options.DrainPriorityGroups, actuation.PriorityGroup{Priority: g.Priority, Grace: g.Grace})
	}
	return options
}

// loop is what one loop finds out.
type loop struct {
	now      time.Time
	groups   []provider.Group
	machines map[string]machine // by provider id
	states   []*groupState      // in the order of groups
	groupOf  map[string]string  // by node, of those that may be planned for
	pods     *scaleup.Pods      // that wait
	// sized are the groups that are sized by how full they are, by id. warnings say which groups of the file are not sized and what
	// they leave behind, and which groups are left as they are.
	sized    map[string]*sizedGroup
	sizePods *sizing.Gatherer
	warnings []string
	// newNodes is how many nodes all groups together may grow by; held is why none may.
	newNodes int
	held     string
	underWay map[string]actuation.UnderWay
	plan     *loopPlan
	// outcome is the status of scale-down under Cluster Autoscaler's names, growthOutcome that of scale-up; problem is why
	// there is no plan.
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
	l.report(o)
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

// timersRun says whether this loop counted for how long something has been so. Where no drain was planned, nobody tells
// whether nodes wait to go.
func (l *leader) timersRun(o *loop) bool {
	return o.plan == nil || len(o.plan.GetRemove()) > 0 || len(o.underWay) > 0 || o.sizeTimersRun() ||
		l.config.Decides(config.ScaleDownDecision) && o.plan.loop.GetNoScaleDown() != "" ||
		slices.ContainsFunc(o.states, func(g *groupState) bool { return g.upcoming() > 0 }) ||
		l.growth.backoff.Any(o.now) || l.cooldown(o.now)
}

// decide looks, plans and acts. With an error, it says which part failed.
func (l *leader) decide(ctx context.Context, o *loop) (part string, err error) {
	l.takeResults(o.now)
	done := l.metrics.time(functionRefresh)
	if err = l.cloud.Refresh(ctx); err == nil {
		o.groups, err = l.cloud.Groups(ctx, groupDefaults(l.config))
	}
	if done(); err != nil {
		return "cloudProvider", err
	}
	o.machines = machinesOf(o.groups)
	l.noteProblems(o)
	l.noteGrowth(o)
	done = l.metrics.time(functionUpdate)
	o.underWay = l.actuator.UnderWay()
	err = l.cluster.apply(func(node *v1.Node) *v1.Node { return l.shown(o, node) })
	if done(); err != nil {
		return "cluster", err
	}
	if err := l.cluster.doubt(); err != nil {
		return "cluster", err
	}
	l.lookAtGroups(ctx, o)
	o.pods = l.cluster.waiting(&l.config.ScaleUp, o.now)
	done = l.metrics.time(functionPlan)
	sized := l.sizings(o)
	o.plan, err = l.planner.plan(ctx, &question{groups: o.states, sized: sized, sizePods: l.sizePods(o, sized), pods: o.pods, groupOf: o.groupOf,
		underWay: slices.Sorted(maps.Keys(o.underWay)), newNodes: o.newNodes, now: o.now})
	if done(); err != nil {
		return "plan", err
	}
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
	if o.slackProblem = l.keepSlack(ctx, o); o.slackProblem != nil && ctx.Err() == nil { // it must not keep nodes from going
		l.metrics.errors.WithLabelValues("slack").Inc()
		klog.ErrorS(o.slackProblem, "Slack is not kept as planned")
	}
	if err := l.taintSizes(ctx, o); err != nil && ctx.Err() == nil {
		l.metrics.errors.WithLabelValues("sizeTaints").Inc()
		klog.ErrorS(err, "Taints of groups that are sized cannot be written")
	}
	return l.shrink(ctx, o)
}

// noteCutShort warns of the parts of a plan that were cut short, and counts them.
func (l *leader) noteCutShort(o *loop) {
	for _, c := range o.plan.cutShort() {
		o.warnings = append(o.warnings, c.String())
		l.metrics.cutShort.WithLabelValues(c.part).Inc()
	}
}

// lookAtGroups counts nodes, gives up machines that do not become any, and finds out what new ones are like.
func (l *leader) lookAtGroups(ctx context.Context, o *loop) {
	l.growth.look(o.groups, l.cluster.nodes, o.now)
	o.states = l.groupStates(o)
	l.growth.settle(o.states, shrinks(o), o.now)
	if l.config.Mode == config.Act && l.config.Decides(config.ScaleUpDecision) {
		l.cleanUp(ctx, o)
	}
	l.models.fill(ctx, o.states, o.now)
	o.newNodes = l.newNodes(o.states)
	if o.held = l.unhealthyCluster(o.now); o.held == "" && o.newNodes == 0 {
		o.held = fmt.Sprintf("the cluster may have %d nodes in all", l.config.ScaleUp.MaxNodesTotal)
	}
	o.groupOf = map[string]string{}
	for _, g := range o.states {
		g.held = text.Bound(l.whyHeld(o, g), mostStatusText) // the question tells it too
		if g.Problem != nil {                                // nobody knows by which rules its nodes may go: they are in no group, and stay
			continue
		}
		for _, node := range g.nodes {
			o.groupOf[node.Name] = g.ID
		}
	}
	for name, node := range l.cluster.nodes {
		if l.left(o, node) {
			l.planner.ended(name) // the engine may still count it among those that go
		}
	}
}

// wouldGrow says what a plan comes to for scale-up, before it is carried out.
func (l *leader) wouldGrow(o *loop) string {
	switch {
	case !l.config.Decides(config.ScaleUpDecision):
		return scaleUpNotTried
	case len(o.plan.loop.GetGrowth()) > 0:
		return scaleUpSuccessful
	case len(o.plan.loop.GetScaleUp().GetUnplaced()) > 0:
		return scaleUpNoOptions
	}
	return scaleUpNotNeeded
}

// takeResults takes note of what has happened since the last loop.
func (l *leader) takeResults(now time.Time) {
	for _, eviction := range l.actuator.TakeEvictions() {
		l.planner.evicted(eviction)
	}
	for _, ended := range l.actuator.TakeEnded() {
		if ended.Err == nil {
			l.deleted = now
			l.growth.shrunk(ended.Group)
			continue
		}
		l.planner.ended(ended.Node)
	}
}

// noteProblems takes note of groups that are left as they are, since the provider cannot tell their options.
func (l *leader) noteProblems(o *loop) {
	var texts []string
	for i := range o.groups {
		if g := &o.groups[i]; g.Problem != nil {
			l.metrics.errors.WithLabelValues("cloudProvider").Inc()
			texts = append(texts, text.Bound(fmt.Sprintf("node group %s is left as it is: %v", g.ID, g.Problem), mostStatusText))
		}
	}
	o.warnings = append(o.warnings, texts...)
}

// noteGrowth takes note of groups that have grown since the last loop, whoever let them.
func (l *leader) noteGrowth(o *loop) {
	targets := map[string]int{}
	for i := range o.groups {
		g := &o.groups[i]
		targets[g.ID] = g.Target
		if before, known := l.targets[g.ID]; known && g.Target > before {
			l.grown = o.now
		}
	}
	l.targets = targets
}

// groupDefaults is what holds for groups that state nothing.
func groupDefaults(c *config.Configuration) *externalgrpc.NodeGroupAutoscalingOptions {
	s := &c.ScaleDown
	return &externalgrpc.NodeGroupAutoscalingOptions{
		ScaleDownUtilizationThreshold: s.ScaleDownUtilizationThreshold, ScaleDownGpuUtilizationThreshold: s.ScaleDownGPUThreshold,
		IgnoreDaemonSetsUtilization: s.IgnoreDaemonSets,
		ScaleDownUnneededDuration:   durationMessage(s.ScaleDownUnneededTime), ScaleDownUnreadyDuration: durationMessage(s.ScaleDownUnreadyTime),
		MaxNodeProvisionDuration: durationMessage(c.ScaleUp.MaxNodeProvisionTime), MaxNodeStartupDuration: durationMessage(c.ScaleUp.MaxNodeStartupTime),
	}
}

// goes says whether the cloud has been asked to delete a node, and has not made it plain that it does not.
func (l *leader) goes(o *loop, node *v1.Node) bool {
	mark, ours := actuation.MarkOf(node)
	if _, underWay := o.underWay[node.Name]; !ours || underWay || mark.Deleting == 0 {
		return false
	}
	m, listed := o.machines[node.Spec.ProviderID]
	return !listed || m.state == externalgrpc.InstanceState_INSTANCE_DELETING || o.now.Sub(time.Unix(mark.Deleting, 0)) < deletionPatience
}

// shrinks says of which groups nodes are being removed.
func shrinks(o *loop) map[string]bool {
	groups := map[string]bool{}
	for _, removal := range o.underWay {
		groups[removal.Group] = true
	}
	return groups
}

// left says whether the removal of a node has begun and nobody goes on with it.
func (l *leader) left(o *loop, node *v1.Node) bool {
	_, ours := actuation.MarkOf(node)
	_, underWay := o.underWay[node.Name]
	return ours && !underWay && !l.goes(o, node)
}

// shown returns a node as it is to be planned: one whose removal an earlier leader began as if it had not; one that has
// not started yet takes no pods, since it counts as on its way.
func (l *leader) shown(o *loop, node *v1.Node) *v1.Node {
	switch {
	case l.left(o, node):
		return actuation.WithoutMark(node)
	case l.isStarting(o, node):
		return unschedulable(node)
	}
	return node
}

// report brings the metrics up to date.
func (l *leader) report(o *loop) {
	m := l.metrics
	m.limits.WithLabelValues("all").Set(float64(l.config.ScaleDown.MaxScaleDownParallelism))
	m.limits.WithLabelValues("drain").Set(float64(l.config.ScaleDown.MaxDrainParallelism))
	counts := map[string]int{}
	for _, d := range o.underWay {
		counts[kindOf(!d.Drain)]++
	}
	for _, kind := range []string{"empty", "drain"} {
		m.underWay.WithLabelValues(kind).Set(float64(counts[kind]))
	}
	set(m.cooldown, l.cooldown(o.now))
	l.reportGrowth(o)
	m.brake.Reset()
	if o.plan == nil {
		m.brake.WithLabelValues("NoPlan").Set(1)
		return
	}
	if brake := o.plan.GetBrake(); brake != "" {
		m.brake.WithLabelValues(brake).Set(1)
	}
	m.unneeded.Set(float64(len(o.plan.GetRemove())))
	m.unremovable.Reset()
	var skipped []string
	for _, keep := range o.plan.GetKeep() {
		m.unremovable.WithLabelValues(keep.GetReason()).Inc()
		if keep.GetReason() == "NotEvaluated" {
			skipped = append(skipped, o.plan.nameOf[keep.GetSlot()])
		}
	}
	m.longestSkip.Set(l.skips.Update(skipped, o.now).Seconds())
	l.logPlan(o)
}

// logPlan tells what a plan comes to; while it comes to the same, only at a level where each loop is worth a line.
func (l *leader) logPlan(o *loop) {
	values := []any{"outcome", o.outcome, "canGo", len(o.plan.GetRemove()), "stay", len(o.plan.GetKeep()), "underWay", len(o.underWay),
		"brake", o.plan.GetBrake(), "limit", o.plan.GetLimit(), "growth", o.growthOutcome, "waiting", o.pods.Waiting()}
	level, text := klog.Level(4), fmt.Sprint(values...)
	if text != l.logged {
		level, l.logged = 2, text
	}
	klog.V(level).InfoS("Planned", values...)
	l.logSizes(o)
}
