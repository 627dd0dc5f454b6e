// Package actuation removes nodes that a plan has chosen: it taints them, empties them by evictions that the API server
// grants, and has the cloud delete them. Its only decision is to stop: it looks again before each step, and gives the
// node back as it was if something is not as planned.
//
// Pods are deleted by eviction only, unless UnsafeDeletePodsDespiteDisruptionBudgets is set. Everything else about a
// removal under way is written on the node, so that another process can finish it or take it back.
package drain

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

	"loadline.dev/shim/autoscaler/cloud"
)

// Hooks hear of what happens, for metrics. They must not block.
type Hooks struct {
	// Evicted hears of each answer to an eviction: "accepted", or why not; and "deleted_despite_budget" of a deletion
	// that took its place.
	Evicted func(result string)
	// Removed hears of each removal that has ended.
	Removed func(r *Removal, result Result, took time.Duration)
}

// Actuator removes nodes. Safe for concurrent use.
type Actuator struct {
	options Options
	nodes   nodeClient
	cloud   cloud.Deleter
	events  record.EventRecorder
	hooks   Hooks
	batcher *batcher
	running sync.WaitGroup
	// evicting has an entry for each eviction that waits for an answer.
	evicting chan struct{}
	// freed has an entry once a removal has ended since somebody looked.
	freed chan struct{}
	tracker
}

// New returns an actuator for the leader of a term.
func New(options Options, client kubernetes.Interface, asked cloud.Deleter, events record.EventRecorder, term int64,
	hooks Hooks) *Actuator {
	a := &Actuator{options: options, nodes: nodeClient{client: client, term: term}, cloud: asked, events: events,
		hooks: hooks, tracker: tracker{underWay: map[string]*deletion{}, acknowledged: map[types.UID]bool{}},
		evicting: make(chan struct{}, evictionsAtOnce), freed: make(chan struct{}, 1)}
	a.batcher = newBatcher(options.NodeDeletionBatcherInterval.Duration, a.send,
		func(nodes []*deletion) { a.giveBackAll(nodes, errAnotherFailed) })
	return a
}

// deletion is a removal under way.
type deletion struct {
	removal *Removal
	atomic  bool // its group goes as a whole
	id      identity
	began   time.Time
	stage   Stage // guarded by tracker.mu
	result  Result
	err     error
}

// Begin taints the nodes of a plan and removes them in the background, so that no loop waits for the API server. The
// removals are under way when it returns; TakeFailure tells whether nodes could not be tainted. It all ends with the
// context: nodes that are left then keep their marks.
//
// Empty nodes come first. If one of them cannot be tainted, all are given back and nothing else begins; if one of those
// to be drained cannot, these are given back.
func (a *Actuator) Begin(ctx context.Context, plan Plan) Outcome {
	empty, drain := a.admit(plan)
	if len(empty)+len(drain) == 0 {
		return NoNodeDeleted
	}
	a.running.Go(func() {
		if err := a.start(ctx, empty, drain); err != nil && ctx.Err() == nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.failure = errors.Join(a.failure, err)
		}
	})
	return NodeDeleteStarted
}

// start removes nodes that were admitted.
func (a *Actuator) start(ctx context.Context, empty, drain []*deletion) error {
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
			return err
		}
		for _, d := range part {
			a.running.Go(func() { a.remove(ctx, d) })
		}
	}
	return nil
}

// admit takes the nodes of a plan on, but for those that are on their way already or in the hands of somebody else; of
// an atomic group all, or none.
func (a *Actuator) admit(plan Plan) (empty, drain []*deletion) {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := func(r *Removal) bool {
		mark, ours := MarkOf(r.Node)
		return !ours && HasTaint(r.Node, HardTaint) || a.underWay[r.Node.Name] != nil ||
			mark.Acknowledged || a.acknowledged[r.Node.UID]
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
		d := &deletion{removal: r, atomic: plan.Atomic[r.Group], id: identityOf(r.Node), began: time.Now(),
			stage: StageTainted}
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
			if errs[i] = a.nodes.mark(ctx, d.id, mark, a.options.CordonNodeBeforeTerminating, a.options.Now()); errs[i] == nil {
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

func (a *Actuator) end(d *deletion, result Result, err error) {
	klog.V(2).InfoS("Removal of a node ended", "node", klog.KRef("", d.id.name), "group", d.removal.Group,
		"result", result, "err", err)
	a.mu.Lock()
	delete(a.underWay, d.id.name)
	a.ended = append(a.ended, Ended{Node: d.id.name, ProviderID: d.id.providerID, UID: d.id.uid,
		Group: d.removal.Group, Result: result, Err: err})
	a.mu.Unlock()
	select {
	case a.freed <- struct{}{}:
	default:
	}
	a.hooks.Removed(d.removal, result, time.Since(d.began))
}

func (a *Actuator) event(d *deletion, kind, reason, text string) {
	a.events.Event(d.removal.Node, kind, reason, text)
}
