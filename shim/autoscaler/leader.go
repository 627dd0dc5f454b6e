package autoscaler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	"loadline.dev/shim/report"
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
	now      func() time.Time
	term     int64

	// What people see: the snapshot of the last loop, and how the nodes of the engine are asked for.
	seen  atomic.Pointer[snapshot]
	loads func() (report.Placement, error)

	skips     skiptime.Tracker
	inherited map[string]time.Time // since when a node waits that an earlier leader was about to remove
	targets   map[string]int       // of the groups in the last loop
	// When a group last grew, a node last went, and tainting last failed.
	grown, deleted, failed time.Time
}

func newLeader(options *config.Configuration, client kubernetes.Interface, c *cluster, cloud cloud, p *planner, events record.EventRecorder,
	m *metrics, term int64) *leader {
	s := &options.ScaleDown
	return &leader{config: options, cluster: c, cloud: cloud, planner: p, events: events, metrics: m, now: time.Now, term: term,
		actuator:  actuation.New(actuationOptions(s), client, cloud, events, term, m.hooks()),
		soft:      actuation.NewSoftTaints(client, term, s.MaxBulkSoftTaintCount, s.MaxBulkSoftTaintTime.Duration),
		status:    &statusWriter{client: client, namespace: options.Namespace, name: options.StatusConfigMap},
		inherited: map[string]time.Time{}}
}

func actuationOptions(s *config.ScaleDown) actuation.Options {
	options := actuation.Options{
		NodeDeleteDelayAfterTaint: s.NodeDeleteDelayAfterTaint.Duration, CordonNodeBeforeTerminating: s.CordonNodeBeforeTerminating,
		MaxGracefulTermination: time.Duration(s.MaxGracefulTerminationSec) * time.Second, MaxPodEviction: s.MaxPodEvictionTime.Duration,
		EvictionRetry: s.EvictionRetryInterval.Duration, TerminationHeadroom: s.TerminationHeadroom.Duration, Poll: s.PollInterval.Duration,
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
	groupOf  map[string]string  // by node, of those that may be planned for
	underWay map[string]actuation.UnderWay
	plan     *drainPlan
	// outcome is the status of scale-down under Cluster Autoscaler's names; problem is why there is no plan.
	outcome string
	problem error
}

// Outcomes that no plan has.
const (
	outcomeNotTried   = "ScaleDownNotTried"
	outcomeInCooldown = "ScaleDownInCooldown"
)

// once is one loop. Where something cannot be found out, nothing is removed, and the status says why.
func (l *leader) once(ctx context.Context) error {
	defer l.metrics.time(functionMain)()
	o := &loop{now: l.now(), outcome: outcomeNotTried}
	failed, err := l.decide(ctx, o)
	if err != nil {
		o.problem = err
		l.metrics.errors.WithLabelValues(failed).Inc()
	}
	l.metrics.decisions.WithLabelValues("drain", o.outcome).Inc()
	l.report(o)
	status := l.statusOf(o)
	l.seen.Store(l.snapshotOf(o, status))
	if statusErr := l.status.write(ctx, status); statusErr != nil && ctx.Err() == nil {
		l.metrics.errors.WithLabelValues("status").Inc()
		klog.ErrorS(statusErr, "Status cannot be written")
	}
	if err == nil {
		l.metrics.lastLoop.Set(float64(o.now.Unix()))
	}
	return err
}

// decide looks, plans and acts. With an error, it says which part failed.
func (l *leader) decide(ctx context.Context, o *loop) (part string, err error) {
	l.takeResults(o.now)
	done := l.metrics.time(functionRefresh)
	if err = l.cloud.Refresh(ctx); err == nil {
		o.groups, err = l.cloud.Groups(ctx, groupDefaults(&l.config.ScaleDown))
	}
	if done(); err != nil {
		return "cloudProvider", err
	}
	o.machines = machinesOf(o.groups)
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
	o.groupOf = map[string]string{}
	for name, node := range l.cluster.nodes {
		if m, ok := o.machines[node.Spec.ProviderID]; ok && !l.goes(o, node) {
			o.groupOf[name] = m.group
		}
		if l.left(o, node) {
			l.planner.ended(name) // the engine may still count it among those that go
		}
	}
	done = l.metrics.time(functionFindUnneeded)
	o.plan, err = l.planner.plan(ctx, o.groups, o.groupOf, slices.Sorted(maps.Keys(o.underWay)), o.now)
	if done(); err != nil {
		return "plan", err
	}
	o.outcome = o.plan.GetStatus()
	if l.config.Mode != config.Act {
		return "", nil
	}
	return l.act(ctx, o)
}

// takeResults takes note of what has happened since the last loop.
func (l *leader) takeResults(now time.Time) {
	for _, eviction := range l.actuator.TakeEvictions() {
		l.planner.evicted(eviction)
	}
	for _, ended := range l.actuator.TakeEnded() {
		if ended.Err == nil {
			l.deleted = now
			continue
		}
		l.planner.ended(ended.Node)
	}
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
func groupDefaults(s *config.ScaleDown) *externalgrpc.NodeGroupAutoscalingOptions {
	return &externalgrpc.NodeGroupAutoscalingOptions{
		ScaleDownUtilizationThreshold: s.ScaleDownUtilizationThreshold, ScaleDownGpuUtilizationThreshold: s.ScaleDownGPUThreshold,
		IgnoreDaemonSetsUtilization: s.IgnoreDaemonSets,
		ScaleDownUnneededDuration:   durationMessage(s.ScaleDownUnneededTime), ScaleDownUnreadyDuration: durationMessage(s.ScaleDownUnreadyTime),
	}
}

// goes says whether the cloud has been asked to delete a node, and has not made it plain that it does not.
func (l *leader) goes(o *loop, node *v1.Node) bool {
	mark, ours := actuation.MarkOf(node)
	if _, underWay := o.underWay[node.Name]; !ours || underWay || mark.Deleting == 0 {
		return false
	}
	return o.machines[node.Spec.ProviderID].state != externalgrpc.InstanceState_INSTANCE_RUNNING || o.now.Sub(time.Unix(mark.Deleting, 0)) < deletionPatience
}

// left says whether the removal of a node has begun and nobody goes on with it.
func (l *leader) left(o *loop, node *v1.Node) bool {
	_, ours := actuation.MarkOf(node)
	_, underWay := o.underWay[node.Name]
	return ours && !underWay && !l.goes(o, node)
}

// shown returns a node as it is to be planned: one whose removal an earlier leader began as if it had not.
func (l *leader) shown(o *loop, node *v1.Node) *v1.Node {
	if l.left(o, node) {
		return actuation.WithoutMark(node)
	}
	return node
}

// act carries a plan out.
func (l *leader) act(ctx context.Context, o *loop) (part string, err error) {
	defer func() {
		done := l.metrics.time(functionSoftTaints)
		defer done()
		if softErr := l.soft.Update(ctx, l.cluster.sortedNodes(), unneededOf(o)); softErr != nil && ctx.Err() == nil {
			l.metrics.errors.WithLabelValues("softTaints").Inc()
			klog.ErrorS(softErr, "Soft taints cannot be written")
		}
	}()
	wanted, err := l.cluster.removals(o.plan)
	if err != nil {
		o.outcome = outcomeNotTried
		return "plan", err
	}
	l.release(ctx, o, wanted)
	if len(wanted.Removals) == 0 {
		return "", nil
	}
	if l.cooldown(o.now) {
		o.outcome = outcomeInCooldown
		return "", nil
	}
	done := l.metrics.time(functionStart)
	defer done()
	for i := range wanted.Removals {
		l.announce(&wanted.Removals[i])
	}
	outcome, err := l.actuator.Start(ctx, wanted)
	o.outcome = string(outcome)
	o.underWay = l.actuator.UnderWay()
	if err != nil {
		l.failed = o.now
		return "taint", err
	}
	return "", nil
}

// cooldown says whether no removal begins for now.
func (l *leader) cooldown(now time.Time) bool {
	s := &l.config.ScaleDown
	within := func(since time.Time, delay config.Duration) bool {
		return !since.IsZero() && now.Sub(since) < delay.Duration
	}
	return within(l.grown, s.ScaleDownDelayAfterAdd) || within(l.deleted, s.ScaleDownDelayAfterDelete) || within(l.failed, s.ScaleDownDelayAfterFailure)
}

// release gives nodes back whose removal an earlier leader began, and that are not to go now: at once when the plan
// keeps them, and when it does not come to remove them in some time.
func (l *leader) release(ctx context.Context, o *loop, wanted actuation.Plan) {
	candidates := map[string]bool{}
	for _, removal := range o.plan.GetRemove() {
		candidates[o.plan.nameOf[removal.GetSlot()]] = true
	}
	for _, r := range wanted.Removals {
		delete(l.inherited, r.Node.Name)
	}
	starts := func(name string) bool {
		return slices.ContainsFunc(wanted.Removals, func(r actuation.Removal) bool { return r.Node.Name == name })
	}
	waiting := map[string]time.Time{}
	for _, node := range l.cluster.sortedNodes() {
		if !l.left(o, node) || starts(node.Name) {
			continue
		}
		since, known := l.inherited[node.Name]
		if !known {
			since = o.now
		}
		if candidates[node.Name] && o.now.Sub(since) < handOver {
			waiting[node.Name] = since
			continue
		}
		klog.V(2).InfoS("Node is given back: it is not to go any more", "node", klog.KRef("", node.Name))
		if err := l.actuator.Release(ctx, node); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Node cannot be given back", "node", klog.KRef("", node.Name))
		}
	}
	l.inherited = waiting
}

// unneededOf returns since when nodes are not needed.
func unneededOf(o *loop) map[string]time.Time {
	unneeded := map[string]time.Time{}
	for _, removal := range o.plan.GetRemove() {
		unneeded[o.plan.nameOf[removal.GetSlot()]] = time.Unix(removal.GetSinceS(), 0)
	}
	return unneeded
}

// announce tells that a node is about to be removed.
func (l *leader) announce(r *actuation.Removal) {
	object := l.status.reference()
	if r.Empty {
		klog.V(2).InfoS("Scale-down: removing an empty node", "node", klog.KRef("", r.Node.Name), "group", r.Group)
		l.events.Eventf(object, v1.EventTypeNormal, "ScaleDownEmpty", "Scale-down: removing empty node %q", r.Node.Name)
		return
	}
	var names []string
	for _, pod := range r.Pods {
		if r.Moves[pod.UID] {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
	}
	klog.V(2).InfoS("Scale-down: draining a node", "node", klog.KRef("", r.Node.Name), "group", r.Group, "pods", names)
	const most = 20 // an event may hold 1 KiB
	text := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d others", len(names)-most)
	}
	l.events.Eventf(object, v1.EventTypeNormal, "ScaleDown", "Scale-down: removing node %s, pods to reschedule: %s", r.Node.Name, text)
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
	klog.V(2).InfoS("Scale-down planned", "outcome", o.outcome, "canGo", len(o.plan.GetRemove()), "stay", len(o.plan.GetKeep()),
		"underWay", len(o.underWay), "brake", o.plan.GetBrake(), "limit", o.plan.GetLimit())
}
