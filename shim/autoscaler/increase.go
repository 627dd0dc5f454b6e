package autoscaler

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
)

// Outcomes of scale-up, under the names of Cluster Autoscaler.
const (
	scaleUpNotTried   = "ScaleUpNotTried"
	scaleUpNotNeeded  = "ScaleUpNotNeeded"
	scaleUpNoOptions  = "ScaleUpNoOptionsAvailable"
	scaleUpSuccessful = "ScaleUpSuccessful"
	scaleUpInCooldown = "ScaleUpInCooldown" // it waits for further pods
	scaleUpError      = "ScaleUpError"
)

const (
	// growTime bounds what asking for all nodes of one loop takes; growAtOnce is how many groups are asked for at once.
	growTime   = time.Minute
	growAtOnce = 8
)

// increase is how far one group is to grow.
type increase struct {
	*loadlinev1.ChangeTarget
	id    int64 // of the action
	group *groupState
	err   error
	tried bool
}

func (i *increase) from() int { return int(i.GetExpectedTarget()) }

func (i *increase) to() int { return int(i.GetExpectedTarget() + i.GetNodes()) }

func (i *increase) String() string {
	return fmt.Sprintf("%s %d->%d (max: %d)", i.group.ID, i.from(), i.to(), i.group.Max)
}

// grow has the cloud make the nodes of a plan, and tells of it.
func (l *leader) grow(ctx context.Context, o *loop) {
	var increases []*increase
	for _, action := range o.fleet().GetActions() {
		if change := action.GetGrow(); change != nil && o.group(change.GetNodeGroup()) != nil {
			increases = append(increases,
				&increase{ChangeTarget: change, id: action.GetId(), group: o.group(change.GetNodeGroup())})
		}
	}
	if len(increases) > 0 {
		defer l.metrics.time(functionScaleUp)()
		l.askForNodes(ctx, increases)
		o.growthOutcome = scaleUpSuccessful
	}
	for _, i := range increases {
		l.tellIncrease(o, i)
	}
	l.swap(ctx, o, increases)
	l.tellPods(o, increases)
}

// askForNodes asks the cloud for nodes, for some groups at once: one that does not answer must not keep the others.
func (l *leader) askForNodes(ctx context.Context, increases []*increase) {
	ctx, cancel := context.WithTimeout(ctx, growTime)
	defer cancel()
	var work sync.WaitGroup
	turns := make(chan struct{}, growAtOnce)
	for _, i := range increases {
		work.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			if i.err = ctx.Err(); i.err == nil {
				i.tried = true
				i.err = l.cloud.IncreaseSize(ctx, i.group.ID, i.from(), int(i.GetNodes()))
			}
		})
	}
	work.Wait()
}

// tellIncrease takes note of what came of asking for nodes of one group, and tells of it.
func (l *leader) tellIncrease(o *loop, i *increase) {
	g, status := i.group, l.status.reference()
	if i.tried {
		l.fleet.note(i.id, i.err)
	}
	if i.err == nil {
		klog.V(2).InfoS("Scale-up", "group", g.ID, "from", i.from(), "to", i.to(), "max", g.Max)
		l.events.Eventf(status, v1.EventTypeNormal, "ScaledUpGroup",
			"Scale-up: group %s size set to %d instead of %d (max: %d)", g.ID, i.to(), i.from(), g.Max)
		l.metrics.scaledUp.WithLabelValues(gpuResource(g.Model.Node)).Add(float64(i.GetNodes()))
		return
	}
	o.growthOutcome = scaleUpError
	klog.ErrorS(bounded(i.err), "Scale-up failed", "group", g.ID, "from", i.from(), "to", i.to())
	l.events.Eventf(status, v1.EventTypeWarning, "FailedToScaleUpGroup", "Scale-up failed for group %s: %v",
		g.ID, i.err)
}
