package act

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/tell"
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
	group *plan.Group
	err   error
	tried bool
}

func (i *increase) from() int { return int(i.GetExpectedTarget()) }

func (i *increase) to() int { return int(i.GetExpectedTarget() + i.GetNodes()) }

func (i *increase) String() string {
	return fmt.Sprintf("%s %d->%d (max: %d)", i.group.ID, i.from(), i.to(), i.group.Max)
}

// grow has the cloud make the nodes of a plan, and tells of it.
func (a *Actor) grow(ctx context.Context, o *plan.Loop) {
	var increases []*increase
	for _, action := range o.Fleet().GetActions() {
		if change := action.GetGrow(); change != nil && o.Group(change.GetNodeGroup()) != nil {
			increases = append(increases,
				&increase{ChangeTarget: change, id: action.GetId(), group: o.Group(change.GetNodeGroup())})
		}
	}
	if len(increases) > 0 {
		defer a.teller.Metrics.Time(tell.FunctionScaleUp)()
		a.askForNodes(ctx, increases)
		o.GrowthOutcome = plan.ScaleUpSuccessful
	}
	grows := map[string]string{}
	for _, i := range increases {
		a.tellIncrease(o, i)
		if i.err == nil {
			grows[i.group.ID] = i.String()
		}
	}
	a.swap(ctx, o, increases)
	a.teller.TellPods(o, grows)
}

// askForNodes asks the cloud for nodes, for some groups at once: one that does not answer must not keep the others.
func (a *Actor) askForNodes(ctx context.Context, increases []*increase) {
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
				i.err = a.cloud.IncreaseSize(ctx, i.group.ID, i.from(), int(i.GetNodes()))
			}
		})
	}
	work.Wait()
}

// tellIncrease takes note of what came of asking for nodes of one group, and tells of it.
func (a *Actor) tellIncrease(o *plan.Loop, i *increase) {
	g, status := i.group, a.teller.About
	if i.tried {
		a.planner.Fleet.Note(i.id, i.err)
	}
	if i.err == nil {
		klog.V(2).InfoS("Scale-up", "group", g.ID, "from", i.from(), "to", i.to(), "max", g.Max)
		a.teller.Events.Eventf(status, v1.EventTypeNormal, "ScaledUpGroup",
			"Scale-up: group %s size set to %d instead of %d (max: %d)", g.ID, i.to(), i.from(), g.Max)
		a.teller.Metrics.Grew(g.Model.Node, i.GetNodes())
		return
	}
	o.GrowthOutcome = plan.ScaleUpError
	klog.ErrorS(plan.Bounded(i.err), "Scale-up failed", "group", g.ID, "from", i.from(), "to", i.to())
	a.teller.Events.Eventf(status, v1.EventTypeWarning, "FailedToScaleUpGroup", "Scale-up failed for group %s: %v",
		g.ID, i.err)
}
