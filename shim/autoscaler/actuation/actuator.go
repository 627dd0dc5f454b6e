// Package actuation removes nodes that a plan has chosen: it taints them, empties them by evictions that the API server
// grants, and has the cloud delete them. It decides nothing but to stop: before each step it looks again, and where
// something is not as planned the node is given back as it was.
//
// No pod is ever deleted but by eviction, unless UnsafeDeletePodsDespiteDisruptionBudgets says so. Whatever else is to be
// known of a removal under way is written on the node, so that another process can finish it, or take it back.
package actuation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/provider"
)

// Options of a scale-down, under the names of Cluster Autoscaler's flags. There are no defaults here.
type Options struct {
	// NodeDeleteDelayAfterTaint is waited after the hard taint, so that all schedulers have seen it.
	NodeDeleteDelayAfterTaint time.Duration
	// CordonNodeBeforeTerminating also makes the node unschedulable.
	CordonNodeBeforeTerminating bool
	// MaxGracefulTermination bounds the grace period of each pod, where no priority groups are given.
	MaxGracefulTermination time.Duration
	// DrainPriorityGroups, in the order of their priority: which pods end together. Empty: all do.
	DrainPriorityGroups []PriorityGroup
	// MaxPodEviction is how long the eviction of a pod is tried. 0: once.
	MaxPodEviction time.Duration
	// EvictionRetry is the time between two attempts, give or take a fifth.
	EvictionRetry time.Duration
	// UnsafeDeletePodsDespiteDisruptionBudgets: a pod whose eviction was refused for its budgets until the time was up is
	// deleted all the same, with its grace period. That violates the budgets. Cluster Autoscaler has no such flag.
	UnsafeDeletePodsDespiteDisruptionBudgets bool
	// TerminationHeadroom is what pods may take beyond their grace period.
	TerminationHeadroom time.Duration
	// Poll is how often it is seen whether pods have ended, and whether deletion is still delayed.
	Poll time.Duration
	// DaemonSetEvictionForEmptyNodes and ...ForOccupiedNodes: DaemonSet pods are asked to leave too.
	DaemonSetEvictionForEmptyNodes, DaemonSetEvictionForOccupiedNodes bool
	// IsPlaceholder says whether a pod only keeps room free: it goes whenever a node does, and whoever has made it makes another. nil: none
	// does.
	IsPlaceholder func(*v1.Pod) bool
	// IsOfDaemonSet says whether the DaemonSet that a pod names as its owner exists. Such a pod ends with its node. nil: none does.
	IsOfDaemonSet func(*v1.Pod) bool
	// NodeDeletionDelayTimeout is how long annotations may delay the deletion of a node.
	NodeDeletionDelayTimeout time.Duration
	// NodeDeletionBatcherInterval is how long a node waits for others of its group, to be deleted in one call. 0: not.
	NodeDeletionBatcherInterval time.Duration
	// Now is the time that is written down, and by which pods are judged that should have ended: that of the plans. nil: the
	// wall clock.
	Now func() time.Time
}

// Reasons for which nodes are removed. Each is a label of a metric.
const (
	ReasonEmpty         = "empty"
	ReasonUnderutilized = "underutilized"
	ReasonUnready       = "unready"
)

// Removal is one node of a plan. Its objects are those that the plan was made from.
type Removal struct {
	Node  *v1.Node
	Group string
	// Empty says that no pod has to move.
	Empty bool
	// Since is since when the node was not needed.
	Since time.Time
	// Reason is one of those above.
	Reason string
	// Pods are all pods of the node, of which Moves are the UIDs of those that are to be evicted.
	Pods  []*v1.Pod
	Moves map[types.UID]bool
}

// Plan is what is removed together.
type Plan struct {
	Removals []Removal
	// Atomic are the groups of which all nodes go, or none.
	Atomic map[string]bool
}

// Cloud deletes nodes of one group. An error is one for all of them; after one of the gRPC codes DeadlineExceeded,
// Unavailable and Canceled nobody knows whether they go.
type Cloud interface {
	DeleteNodes(ctx context.Context, group string, nodes []*v1.Node) error
}

// Outcome says how a call of Start ended.
type Outcome string

// Outcomes, under the names of Cluster Autoscaler.
const (
	NoNodeDeleted     Outcome = "ScaleDownNoNodeDeleted"
	NodeDeleteStarted Outcome = "ScaleDownNodeDeleteStarted"
	Failed            Outcome = "ScaleDownError"
)

// Result says how the removal of a node ended.
type Result string

// Results, under the names of Cluster Autoscaler.
const (
	NodeDeleteOK       Result = "NodeDeleteOk"
	ErrorFailedToMark  Result = "NodeDeleteErrorFailedToMarkToBeDeleted"
	ErrorFailedToEvict Result = "NodeDeleteErrorFailedToEvictPods"
	ErrorFailedDelete  Result = "NodeDeleteErrorFailedToDelete"
	ErrorInternal      Result = "NodeDeleteErrorInternal"
)

// Stage is how far the removal of a node has got.
type Stage string

// Stages, in their order.
const (
	StageTainted  Stage = "tainted"
	StageDraining Stage = "draining"
	StageWaiting  Stage = "waiting" // for annotations that delay it, or for others of its group
	StageDeleting Stage = "deleting"
)

// Hooks hear of what happens, for metrics. They must not block; each may be nil.
type Hooks struct {
	// Evicted hears of each answer to an eviction: "accepted", or why not; and "deleted_despite_budget" of a deletion that
	// took its place.
	Evicted func(result string)
	// Removed hears of each removal that has ended.
	Removed func(r *Removal, result Result, took time.Duration)
}

// Actuator removes nodes. Safe for concurrent use.
type Actuator struct {
	options Options
	nodes   nodeClient
	cloud   Cloud
	events  record.EventRecorder
	hooks   Hooks
	now     func() time.Time // of what is written down, never of what is waited for
	batcher *batcher
	running sync.WaitGroup

	mu        sync.Mutex
	underWay  map[string]*deletion // by node; guarded by mu
	evictions []Eviction           // guarded by mu
	ended     []Ended              // guarded by mu
}

// New returns an actuator for the leader of a term.
func New(options Options, client kubernetes.Interface, cloud Cloud, events record.EventRecorder, term int64, hooks Hooks) *Actuator {
	a := &Actuator{options: options, nodes: nodeClient{client: client, term: term}, cloud: cloud, events: events, hooks: hooks,
		now: options.Now, underWay: map[string]*deletion{}}
	if a.now == nil {
		a.now = time.Now
	}
	a.batcher = newBatcher(options.NodeDeletionBatcherInterval, a.send,
		func(nodes []*deletion) { a.giveBackAll(nodes, errAnotherFailed) })
	return a
}

// deletion is a removal under way.
type deletion struct {
	removal *Removal
	atomic  bool // its group goes as a whole
	id      identity
	began   time.Time
	stage   Stage // guarded by Actuator.mu
	result  Result
	err     error
}

func (h *Hooks) count(eviction string) {
	if h.Evicted != nil {
		h.Evicted(eviction)
	}
}

// Start taints the nodes of a plan and begins to remove them. It returns when all are tainted, and the rest happens in
// the background until the context ends: nodes that are left then keep their marks.
//
// Empty nodes come first. If one of them cannot be tainted, all are given back and nothing else begins; if one of those
// to be drained cannot, these are given back.
func (a *Actuator) Start(ctx context.Context, plan Plan) (Outcome, error) {
	empty, drain := a.admit(plan)
	if len(empty)+len(drain) == 0 {
		return NoNodeDeleted, nil
	}
	for _, d := range append(empty[:len(empty):len(empty)], drain...) {
		if d.atomic {
			a.batcher.expect(d.removal.Group, 1)
		}
	}
	for i, part := range [][]*deletion{empty, drain} {
		if err := a.taintAll(ctx, part); err != nil {
			failed := part
			if i == 0 {
				failed = append(failed, drain...)
			}
			for _, d := range failed {
				a.batcher.abort(d)
			}
			return Failed, err
		}
		for _, d := range part {
			a.running.Go(func() { a.remove(ctx, d) })
		}
	}
	return NodeDeleteStarted, nil
}

// admit takes the nodes of a plan on, but for those that are on their way already or in the hands of somebody else; of
// an atomic group all, or none.
func (a *Actuator) admit(plan Plan) (empty, drain []*deletion) {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := func(r *Removal) bool {
		_, ours := MarkOf(r.Node)
		return !ours && hasTaint(r.Node, HardTaint) || a.underWay[r.Node.Name] != nil
	}
	broken := map[string]bool{}
	for i := range plan.Removals {
		if r := &plan.Removals[i]; plan.Atomic[r.Group] && taken(r) {
			broken[r.Group] = true
		}
	}
	for i := range plan.Removals {
		r := &plan.Removals[i]
		if taken(r) || broken[r.Group] {
			continue
		}
		d := &deletion{removal: r, atomic: plan.Atomic[r.Group], id: identityOf(r.Node), began: time.Now(), stage: StageTainted}
		a.underWay[r.Node.Name] = d
		if r.Empty {
			empty = append(empty, d)
		} else {
			drain = append(drain, d)
		}
	}
	return empty, drain
}

// taintsAtOnce bounds the nodes that are tainted at the same time.
const taintsAtOnce = 5

// taintAll taints all nodes. The error is the first one; the nodes have a result then.
func (a *Actuator) taintAll(ctx context.Context, nodes []*deletion) error {
	slots := make(chan struct{}, taintsAtOnce)
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, d := range nodes {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			mark := Mark{Since: d.removal.Since.Unix(), Drain: !d.removal.Empty}
			if errs[i] = a.nodes.mark(ctx, d.id, mark, a.options.CordonNodeBeforeTerminating, a.now()); errs[i] == nil {
				a.event(d, v1.EventTypeNormal, "ScaleDown", "marked the node as toBeDeleted/unschedulable")
			} else {
				errs[i] = fmt.Errorf("node %s cannot be tainted: %w", d.id.name, errs[i])
				d.result, d.err = ErrorFailedToMark, errs[i]
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// remove takes a tainted node to its end.
func (a *Actuator) remove(ctx context.Context, d *deletion) {
	result, err := a.prepare(ctx, d)
	switch {
	case ctx.Err() != nil: // the node keeps its mark: the next leader goes on
	case err != nil:
		d.result, d.err = result, err
		a.batcher.abort(d)
	default:
		a.batcher.schedule(ctx, d)
	}
}

// prepare makes a tainted node ready to be deleted.
func (a *Actuator) prepare(ctx context.Context, d *deletion) (Result, error) {
	if err := sleep(ctx, a.options.NodeDeleteDelayAfterTaint); err != nil {
		return ErrorInternal, err
	}
	pods, err := a.lookAgain(ctx, d)
	if err != nil {
		return ErrorInternal, err
	}
	daemonSets := a.options.DaemonSetEvictionForOccupiedNodes
	if d.removal.Empty {
		daemonSets = a.options.DaemonSetEvictionForEmptyNodes
	}
	a.stage(d, StageDraining)
	full, daemonSet := a.podKinds().toEvict(pods, d.removal.Moves, daemonSets)
	for _, pod := range full {
		if pod.DeletionTimestamp == nil {
			a.events.Event(pod, v1.EventTypeNormal, "ScaleDown", "deleting pod for node scale down")
		}
	}
	if _, err := a.drain(ctx, d.id.name, a.stillOurs(d), full, daemonSet); err != nil {
		return ErrorFailedToEvict, err
	}
	a.stage(d, StageWaiting)
	if err := a.awaitDelays(ctx, d); err != nil {
		return ErrorInternal, err
	}
	if pods, err = podsOn(ctx, a.nodes.client, d.id.name); err != nil {
		return ErrorInternal, err
	}
	if pod := a.podKinds().remaining(pods); pod != nil {
		return ErrorInternal, fmt.Errorf("pod %s is on the node that is to be deleted", nameOf(pod))
	}
	return NodeDeleteOK, nil
}

// lookAgain checks that node and pods are still those of the plan, and returns the pods.
func (a *Actuator) lookAgain(ctx context.Context, d *deletion) ([]*v1.Pod, error) {
	if _, err := a.nodes.confirm(ctx, d.id); err != nil {
		return nil, err
	}
	pods, err := podsOn(ctx, a.nodes.client, d.id.name)
	if err != nil {
		return nil, err
	}
	return pods, d.removal.unexpected(pods, a.podKinds())
}

// awaitDelays waits until nobody asks to delay the deletion any more, or the time for that is up.
func (a *Actuator) awaitDelays(ctx context.Context, d *deletion) error {
	until := time.Now().Add(a.options.NodeDeletionDelayTimeout)
	for {
		node, err := a.nodes.confirm(ctx, d.id)
		if err != nil {
			return err
		}
		names := delays(node)
		if len(names) == 0 {
			return nil
		}
		if !time.Now().Before(until) {
			klog.InfoS("Node is deleted although its deletion is still delayed", "node", klog.KRef("", d.id.name), "annotations", names)
			return nil
		}
		if err := sleep(ctx, a.options.Poll); err != nil {
			return err
		}
	}
}

// send has the cloud delete nodes of one group. Of an atomic group it asks for all of them, or for none.
func (a *Actuator) send(ctx context.Context, group string, nodes []*deletion) {
	marked := a.markAllDeleting(ctx, nodes)
	if ctx.Err() != nil {
		return
	}
	if left := leftOf(nodes); left != nil {
		a.giveBackAll(nodes, fmt.Errorf("its group goes as a whole, and node %s cannot go: %w", left.id.name, left.err))
		return
	}
	if len(marked) > 0 {
		a.ask(ctx, group, marked)
	}
	if ctx.Err() != nil {
		return // nobody knows whether the cloud has heard: the next leader finds out
	}
	for _, d := range nodes {
		switch {
		case d.err == nil:
			a.end(d, NodeDeleteOK, nil)
		case d.stage == StageDeleting && provider.OutcomeUnknown(d.err): // it may be on its way: no pod is to come to it
			a.event(d, v1.EventTypeWarning, "ScaleDownFailed", "nobody knows whether the cloud deletes the node: "+d.err.Error())
			a.end(d, d.result, d.err)
		default:
			a.giveBack(d)
		}
	}
}

// markAllDeleting notes on nodes that the cloud is about to be asked, and returns those on which it could. The others have a
// result then.
func (a *Actuator) markAllDeleting(ctx context.Context, nodes []*deletion) (marked []*deletion) {
	for _, d := range nodes {
		if d.err = a.nodes.markDeleting(ctx, d.id, a.now()); d.err != nil {
			d.result = ErrorFailedDelete
			continue
		}
		a.stage(d, StageDeleting)
		marked = append(marked, d)
	}
	return marked
}

// leftOf returns a node that would be left of an atomic group if the others went; nil: none. One without an object has
// gone before, but one that has come anew under its name is left.
func leftOf(nodes []*deletion) *deletion {
	for _, d := range nodes {
		if d.atomic && d.err != nil && (!errors.Is(d.err, errNodeGone) || errors.Is(d.err, errNodeReplaced)) {
			return d
		}
	}
	return nil
}

// ask has the cloud delete nodes, and notes its answer.
func (a *Actuator) ask(ctx context.Context, group string, marked []*deletion) {
	var nodes []*v1.Node
	for _, d := range marked {
		nodes = append(nodes, d.removal.Node)
	}
	err := a.cloud.DeleteNodes(ctx, group, nodes)
	for _, d := range marked {
		if d.err = err; err != nil {
			d.result = ErrorFailedDelete
		}
	}
}

// errAnotherFailed is why a node is given back whose group goes as a whole, and cannot.
var errAnotherFailed = errors.New("another node that is to be deleted with it cannot be")

// giveBackAll gives nodes back that are not deleted. Those without a result fail with another one of their group, for `why`.
func (a *Actuator) giveBackAll(nodes []*deletion, why error) {
	for _, d := range nodes {
		if d.err == nil {
			d.result, d.err = ErrorFailedDelete, why
		}
		a.giveBack(d)
	}
}

// giveBackTimeout bounds the writing when a node is given back. It happens even while the process ends.
const giveBackTimeout = 10 * time.Second

// giveBack leaves a node as it was before its removal began.
func (a *Actuator) giveBack(d *deletion) {
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTimeout)
	defer cancel()
	if err := a.nodes.release(ctx, d.id); err != nil && !errors.Is(err, errNotOurs) {
		klog.ErrorS(err, "Node keeps the taint of a removal that has failed, until the next loop", "node", klog.KRef("", d.id.name))
	}
	a.event(d, v1.EventTypeWarning, "ScaleDownFailed", "failed to delete the node: "+d.err.Error())
	a.end(d, d.result, d.err)
}

// Release gives back a node whose removal an earlier leader began, and that is not to go any more.
func (a *Actuator) Release(ctx context.Context, node *v1.Node) error {
	a.mu.Lock()
	_, underWay := a.underWay[node.Name]
	a.mu.Unlock()
	if underWay {
		return fmt.Errorf("node %s: its removal is under way", node.Name)
	}
	return a.nodes.release(ctx, identityOf(node))
}

func (a *Actuator) end(d *deletion, result Result, err error) {
	klog.V(2).InfoS("Removal of a node ended", "node", klog.KRef("", d.id.name), "group", d.removal.Group, "result", result, "err", err)
	a.mu.Lock()
	delete(a.underWay, d.id.name)
	a.ended = append(a.ended, Ended{Node: d.id.name, Group: d.removal.Group, Result: result, Err: err, At: a.now()})
	a.mu.Unlock()
	if a.hooks.Removed != nil {
		a.hooks.Removed(d.removal, result, time.Since(d.began))
	}
}

func (a *Actuator) stage(d *deletion, stage Stage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d.stage = stage
}

func (a *Actuator) event(d *deletion, kind, reason, text string) {
	a.events.Event(d.removal.Node, kind, reason, text)
}
