package drain

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/guard"
	"loadline.dev/shim/internal/text"
)

// rulesOf returns how patient removals are.
func rulesOf(s *Options) *loadlinev1.RemovalRules {
	groups, _ := s.PriorityGroups() // checked with the configuration
	return &loadlinev1.RemovalRules{
		DelayAfterTaintMilliseconds:     s.NodeDeleteDelayAfterTaint.Milliseconds(),
		EvictionRetryMilliseconds:       max(1, s.EvictionRetryInterval.Milliseconds()),
		MaxPodEvictionMilliseconds:      s.MaxPodEvictionTime.Milliseconds(),
		MaxGraceSeconds:                 int64(s.MaxGracefulTerminationSec),
		TerminationHeadroomMilliseconds: s.TerminationHeadroom.Milliseconds(),
		PollMilliseconds:                max(1, s.PollInterval.Milliseconds()),
		BatchIntervalMilliseconds:       s.NodeDeletionBatcherInterval.Milliseconds(),
		DeletionDelayMilliseconds:       s.NodeDeletionDelayTimeout.Milliseconds(),
		EvictDaemonSetsOfEmpty:          s.DaemonSetEvictionForEmptyNodes,
		EvictDaemonSetsOfOccupied:       s.DaemonSetEvictionForOccupiedNodes,
		DeleteDespiteBudgets:            s.UnsafeDeletePodsDespiteDisruptionBudgets,
		PriorityGroups:                  groups,
	}
}

// remove takes a tainted node to its end: it does what the engine orders, and tells what it sees.
func (a *Actuator) remove(ctx context.Context, d *deletion) {
	q := &loadlinev1.StepRemovalRequest{State: &loadlinev1.RemovalState{Empty: d.Empty, SinceMs: a.nowMs()}}
	for {
		siblings, changed := a.siblings(d)
		q.Rules, q.Siblings = a.rules, siblings
		answer, err := a.ask(ctx, q)
		switch {
		case ctx.Err() != nil: // the node keeps its mark: the next leader continues
			return
		case err != nil:
			answer = &loadlinev1.StepRemovalResponse{End: endWithout(q.Asked, err)}
		}
		for _, result := range answer.Counted {
			a.hooks.Evicted(result)
		}
		if answer.Note != "" {
			klog.InfoS("Removal of a node: "+answer.Note, "node", klog.KRef("", d.Node.Name))
		}
		a.note(d, answer)
		if answer.End != nil {
			a.finish(d, answer.End)
			return
		}
		q = &loadlinev1.StepRemovalRequest{State: answer.State}
		a.carryOut(ctx, d, answer, q)
		if wait := time.Duration(answer.DueMs-a.nowMs()) * time.Millisecond; wait > 0 && !sleep(ctx, wait, changed) {
			continue
		}
		a.look(ctx, d, answer, q)
	}
}

// mostDelays is the number of annotations that delay a deletion which the engine hears of: one is enough.
const mostDelays = 20

const (
	// stepTimeout bounds one call of the engine, and enginePatience how long one that is not there is waited for.
	stepTimeout    = 10 * time.Second
	enginePatience = 2 * time.Minute
)

// ask asks the engine for the next step. It waits for an engine that is being started again.
func (a *Actuator) ask(ctx context.Context, q *loadlinev1.StepRemovalRequest) (*loadlinev1.StepRemovalResponse, error) {
	until := time.Now().Add(enginePatience)
	for {
		q.NowMs = a.nowMs()
		call, cancel := context.WithTimeout(ctx, stepTimeout)
		answer, err := a.engine.StepRemoval(call, q)
		cancel()
		if err == nil {
			return answer, nil
		}
		switch guard.Judge(err) {
		case guard.Away, guard.Late, guard.Busy:
		default:
			return nil, err
		}
		if q.Asked != nil || time.Now().After(until) {
			return nil, err
		}
		q.Node, q.Pods = nil, nil // they may change meanwhile: the engine has us look again
		if !sleep(ctx, a.options.PollInterval.Duration, nil) {
			return nil, ctx.Err()
		}
	}
}

// endWithout is the end of a removal if the engine cannot say the next step: once the cloud was asked its answer
// counts, and else the node is given back.
func endWithout(asked *loadlinev1.AskOutcome, err error) *loadlinev1.RemovalEnd {
	end := &loadlinev1.RemovalEnd{Result: loadlinev1.RemovalEnd_INTERNAL, Error: textOf(err), FailsSiblings: true,
		GiveBack: asked == nil || asked.Result == loadlinev1.AskOutcome_REFUSED}
	if asked != nil {
		end.Result, end.Error = loadlinev1.RemovalEnd_FAILED_TO_DELETE, asked.Error
	}
	if asked != nil && asked.Result == loadlinev1.AskOutcome_TAKEN {
		end.Result = loadlinev1.RemovalEnd_DELETED
	}
	return end
}

// carryOut does what was ordered, and puts what became of it into the next question.
func (a *Actuator) carryOut(ctx context.Context, d *deletion, answer *loadlinev1.StepRemovalResponse,
	q *loadlinev1.StepRemovalRequest) {
	q.Evictions = a.evictAll(ctx, d, answer.Evictions)
	if answer.Mark {
		standing, why := standingOf(a.nodes.markDeleting(ctx, d.Node, a.options.Now()))
		q.Marked = &loadlinev1.MarkOutcome{Standing: standing, Error: why}
	}
	if answer.Ask {
		q.Asked = a.askCloud(ctx, d)
	}
}

// askCloud has the cloud delete a node, together with the others of its batch.
func (a *Actuator) askCloud(ctx context.Context, d *deletion) *loadlinev1.AskOutcome {
	err := a.deleteTogether(ctx, d)
	switch {
	case err == nil:
		return &loadlinev1.AskOutcome{Result: loadlinev1.AskOutcome_TAKEN}
	case cloud.OutcomeUnknown(err):
		return &loadlinev1.AskOutcome{Result: loadlinev1.AskOutcome_UNKNOWN, Error: textOf(err)}
	}
	return &loadlinev1.AskOutcome{Result: loadlinev1.AskOutcome_REFUSED, Error: textOf(err)}
}

// look reads what was asked for, as it is now.
func (a *Actuator) look(ctx context.Context, d *deletion, answer *loadlinev1.StepRemovalResponse,
	q *loadlinev1.StepRemovalRequest) {
	if answer.LookAtNode {
		node, err := a.nodes.confirm(ctx, d.Node)
		standing, why := standingOf(err)
		q.Node = &loadlinev1.SeenNode{Standing: standing, Error: why}
		if node != nil {
			names := delays(node)
			q.Node.Delays = names[:min(len(names), mostDelays)]
		}
	}
	if answer.LookAtPods {
		q.Pods = a.seePods(ctx, d)
	}
}

func standingOf(err error) (loadlinev1.NodeStanding, string) {
	switch {
	case err == nil:
		return loadlinev1.NodeStanding_NODE_OURS, ""
	case errors.Is(err, errNodeReplaced):
		return loadlinev1.NodeStanding_NODE_REPLACED, textOf(err)
	case errors.Is(err, errNodeGone):
		return loadlinev1.NodeStanding_NODE_GONE, textOf(err)
	case errors.Is(err, errNotOurs):
		return loadlinev1.NodeStanding_NODE_NOT_OURS, textOf(err)
	}
	return loadlinev1.NodeStanding_NODE_UNREADABLE, textOf(err)
}

// results are the engine's, under the names of Cluster Autoscaler.
var results = map[loadlinev1.RemovalEnd_Result]Result{
	loadlinev1.RemovalEnd_FAILED_TO_EVICT:  ErrorFailedToEvict,
	loadlinev1.RemovalEnd_FAILED_TO_DELETE: ErrorFailedDelete,
	loadlinev1.RemovalEnd_INTERNAL:         ErrorInternal,
}

// finish ends a removal as the engine says.
func (a *Actuator) finish(d *deletion, end *loadlinev1.RemovalEnd) {
	if end.Result == loadlinev1.RemovalEnd_DELETED {
		a.end(d, NodeDeleteOK, nil)
		return
	}
	if end.GiveBack {
		a.giveBack(d)
	}
	a.fail(d, results[end.Result], errors.New(end.Error))
}

// fail ends a removal whose node stays, or is removed without us.
func (a *Actuator) fail(d *deletion, result Result, err error) {
	a.events.Event(d.Node, v1.EventTypeWarning, "ScaleDownFailed", "failed to delete the node: "+err.Error())
	a.end(d, result, err)
}

// textOf returns an error as the engine takes it: a cloud may answer anything.
func textOf(err error) string { return text.Bound(err.Error(), 1<<10) }

func (a *Actuator) nowMs() int64 { return a.options.Now().UnixMilli() }

// sleep waits. It returns false if something has changed before, or the context has ended.
func sleep(ctx context.Context, d time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-changed:
	case <-ctx.Done():
	}
	return false
}
