package drain

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

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
	if err := sleep(ctx, a.options.NodeDeleteDelayAfterTaint.Duration); err != nil {
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
	until := time.Now().Add(a.options.NodeDeletionDelayTimeout.Duration)
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
			klog.InfoS("Node is deleted although its deletion is still delayed", "node", klog.KRef("", d.id.name),
				"annotations", names)
			return nil
		}
		if err := sleep(ctx, a.options.PollInterval.Duration); err != nil {
			return err
		}
	}
}
