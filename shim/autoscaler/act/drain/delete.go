package drain

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/autoscaler/cloud"
)

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
	var back []*deletion
	for _, d := range nodes {
		switch {
		case d.err == nil:
			a.end(d, NodeDeleteOK, nil)
		case d.stage == StageDeleting && cloud.OutcomeUnknown(d.err):
			// It may be on its way: no pod is to come to it.
			a.event(d, v1.EventTypeWarning, "ScaleDownFailed",
				"nobody knows whether the cloud deletes the node: "+d.err.Error())
			a.end(d, d.result, d.err)
		default:
			back = append(back, d)
		}
	}
	a.giveBack(back)
}

// markAllDeleting notes on nodes that the cloud is about to be asked, and returns those on which it could. The others
// have a result then.
func (a *Actuator) markAllDeleting(ctx context.Context, nodes []*deletion) (marked []*deletion) {
	for _, d := range nodes {
		if d.err = a.expectEmpty(ctx, d); d.err != nil {
			d.result = ErrorInternal
			continue
		}
		if d.err = a.nodes.markDeleting(ctx, d.id, a.options.Now()); d.err != nil {
			d.result = ErrorFailedDelete
			continue
		}
		a.stage(d, StageDeleting)
		marked = append(marked, d)
	}
	return marked
}

// expectEmpty fails if a pod is on the node that would be lost with it. Nodes may have waited long for others of their
// group since they were drained, and pods that tolerate all taints come meanwhile.
func (a *Actuator) expectEmpty(ctx context.Context, d *deletion) error {
	pods, err := podsOn(ctx, a.nodes.client, d.id.name)
	if err != nil {
		return err
	}
	if pod := a.podKinds().remaining(pods); pod != nil {
		return fmt.Errorf("pod %s is on the node that is to be deleted", nameOf(pod))
	}
	return nil
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
			continue
		}
		a.acknowledge(ctx, d)
	}
}
