// Package drain removes nodes that a plan has chosen: it taints them, empties them by evictions that the API server
// grants, and has the cloud delete them. The engine says the next step, in core/removal: this package carries it out,
// and reports what it sees. All that must survive a restart is written on the node, so that another process can finish
// a removal or take it back.
package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
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
	rules   *loadlinev1.RemovalRules
	engine  Engine
	nodes   nodeClient
	cloud   cloud.Deleter
	events  record.EventRecorder
	hooks   Hooks
	running sync.WaitGroup
	// evicting has an entry for each eviction that waits for an answer.
	evicting chan struct{}
	// freed has an entry once a removal has ended since somebody looked.
	freed chan struct{}
	tracker
}

// Engine says the next step of a removal: a loadlinev1.AutoscalerClient.
type Engine interface {
	StepRemoval(context.Context, *loadlinev1.StepRemovalRequest, ...grpc.CallOption) (*loadlinev1.StepRemovalResponse,
		error)
}

// New returns an actuator for the leader of a term.
func New(options Options, engine Engine, client kubernetes.Interface, asked cloud.Deleter, events record.EventRecorder,
	term int64, hooks Hooks) *Actuator {
	return &Actuator{options: options, rules: rulesOf(&options), engine: engine,
		nodes: nodeClient{client: client, term: term}, cloud: asked, events: events, hooks: hooks,
		tracker: tracker{underWay: map[string]*deletion{}, gathering: map[string]*batch{},
			acknowledged: map[types.UID]*v1.Node{}},
		evicting: make(chan struct{}, evictionsAtOnce), freed: make(chan struct{}, 1)}
}

// deletion is a removal under way.
type deletion struct {
	*Removal
	batch   *batch // nil: it is removed alone; guarded by tracker.mu
	began   time.Time
	told    string                        // how far it is, for people; guarded by tracker.mu
	reached loadlinev1.RemovalState_Stage // the same for its siblings; guarded by tracker.mu
	refused map[string]string             // why budgets refuse its pods, by UID
	seen    map[string]*v1.Pod            // its pods by UID, as they were last
}

// Begin taints the nodes of a plan and removes them in the background, so that no loop waits for the API server. The
// removals are under way when it returns; TakeFailure tells whether nodes could not be tainted. It all ends with the
// context: nodes that are left then keep their marks.
//
// Waves come in their order. If a node of one cannot be tainted, those of this wave and of later ones are given back.
func (a *Actuator) Begin(ctx context.Context, plan []*Removal) (outcome string) {
	nodes := a.admit(plan)
	if len(nodes) == 0 {
		return NoNodeDeleted
	}
	a.running.Go(func() {
		if err := a.start(ctx, nodes); err != nil && ctx.Err() == nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.failure = errors.Join(a.failure, err)
		}
	})
	return NodeDeleteStarted
}

// start removes nodes that were admitted, by wave.
func (a *Actuator) start(ctx context.Context, nodes []*deletion) error {
	// Asked before anything is written: an engine of another version may not know the question.
	call, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if _, err := a.engine.StepRemoval(call, &loadlinev1.StepRemovalRequest{Rules: a.rules, NowMs: a.nowMs()}); err != nil {
		for _, d := range nodes {
			if ctx.Err() == nil {
				a.fail(d, ErrorInternal, err)
			}
		}
		return err
	}
	for len(nodes) > 0 {
		wave := nodes
		if end := slices.IndexFunc(nodes, func(d *deletion) bool { return d.Wave != nodes[0].Wave }); end > 0 {
			wave = nodes[:end]
		}
		failed := a.taintAll(ctx, wave)
		if first := cmp.Or(failed...); first != nil {
			a.giveUp(nodes, failed)
			return first
		}
		for _, d := range wave {
			a.running.Go(func() { a.remove(ctx, d) })
		}
		nodes = nodes[len(wave):]
	}
	return nil
}

// giveUp gives nodes back of which some of the first cannot be tainted, by these errors.
func (a *Actuator) giveUp(nodes []*deletion, failed []error) {
	for i, d := range nodes {
		result, err := ErrorFailedDelete, errAnotherFailed
		if i < len(failed) && failed[i] != nil {
			result, err = ErrorFailedToMark, failed[i]
		}
		a.note(d, &loadlinev1.StepRemovalResponse{End: &loadlinev1.RemovalEnd{Error: err.Error(), FailsSiblings: true}})
		a.giveBack(d)
		a.fail(d, result, err)
	}
}

// admit takes the nodes of a plan on, but for those that are on their way already or in the hands of somebody else; of
// an atomic group all, or none. They come by wave.
func (a *Actuator) admit(plan []*Removal) (nodes []*deletion) {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := func(r *Removal) bool {
		mark, ours := MarkOf(r.Node)
		return !ours && HasTaint(r.Node, HardTaint) || a.underWay[r.Node.Name] != nil ||
			mark.Acknowledged || a.acknowledged[r.Node.UID] != nil
	}
	broken, batches := map[string]bool{}, map[string]*batch{}
	for _, r := range plan {
		broken[r.Group] = broken[r.Group] || r.Atomic && taken(r)
	}
	for _, r := range plan {
		if taken(r) || broken[r.Group] {
			continue
		}
		d := &deletion{Removal: r, began: time.Now(), told: "tainted", refused: map[string]string{}}
		if r.Atomic {
			a.join(batches, d)
		}
		a.underWay[r.Node.Name] = d
		nodes = append(nodes, d)
	}
	slices.SortStableFunc(nodes, func(a, b *deletion) int { return cmp.Compare(a.Wave, b.Wave) })
	return nodes
}

// taintsAtOnce bounds the nodes that are tainted at the same time.
const taintsAtOnce = 5

// taintAll taints all nodes, and returns in their order why some cannot be.
func (a *Actuator) taintAll(ctx context.Context, nodes []*deletion) []error {
	failed := make([]error, len(nodes))
	// All of them, also when the context ends: then they have an error.
	workqueue.ParallelizeUntil(context.Background(), taintsAtOnce, len(nodes), func(i int) {
		d := nodes[i]
		mark := Mark{Since: d.Since.Unix(), Drain: !d.Empty}
		err := a.nodes.mark(ctx, d.Node, mark, a.options.CordonNodeBeforeTerminating, a.options.Now())
		if err != nil {
			failed[i] = fmt.Errorf("node %s cannot be tainted: %w", d.Node.Name, err)
			return
		}
		a.events.Event(d.Node, v1.EventTypeNormal, "ScaleDown", "marked the node as toBeDeleted/unschedulable")
	})
	return failed
}

func (a *Actuator) end(d *deletion, result Result, err error) {
	klog.V(2).InfoS("Removal of a node ended", "node", klog.KRef("", d.Node.Name), "group", d.Group,
		"result", result, "err", err)
	a.mu.Lock()
	delete(a.underWay, d.Node.Name)
	a.ended = append(a.ended, Ended{d.Removal, result, err})
	a.mu.Unlock()
	select {
	case a.freed <- struct{}{}:
	default:
	}
	a.hooks.Removed(d.Removal, result, time.Since(d.began))
}
