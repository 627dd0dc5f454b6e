package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/provider"
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
	group *groupState
	delta int
	err   error
	tried bool
}

func (i *increase) String() string {
	return fmt.Sprintf("%s %d->%d (max: %d)", i.group.ID, i.group.Target, i.group.Target+i.delta, i.group.Max)
}

// plannedIncreases returns how far groups are to grow by a plan. The engine holds all limits; a plan that goes beyond
// one, of a group or of all together, or that lets a group that has all of its nodes or none grow in part, is an error,
// and nothing grows: it is not known what else is wrong with it.
func (l *leader) plannedIncreases(o *loop) ([]*increase, error) {
	byID := map[string]*groupState{}
	for _, g := range o.states {
		byID[g.ID] = g
	}
	var out []*increase
	left := o.newNodes
	for _, growth := range o.plan.loop.GetGrowth() {
		g := byID[growth.GetNodeGroup()]
		delta := newNodesOf(growth)
		switch {
		case g == nil:
			return nil, fmt.Errorf("the plan lets node group %q grow, which there is not", growth.GetNodeGroup())
		case g.blockedReason != "":
			return nil, fmt.Errorf("the plan lets node group %s grow, which may not: %s", g.ID, g.blockedReason)
		case delta < 1 || delta > g.room():
			return nil, fmt.Errorf("the plan adds %d nodes to group %s of %d, which may have %d",
				delta, g.ID, g.Target, g.Max)
		case g.Options.GetZeroOrMaxNodeScaling() && delta != g.room():
			return nil, fmt.Errorf("the plan adds %d nodes to group %s, which grows by all of its %d nodes or none",
				delta, g.ID, g.room())
		case delta > left:
			return nil, fmt.Errorf("the plan adds %d nodes to group %s, and %d more may be added to all groups "+
				"together", delta, g.ID, left)
		}
		left -= delta
		out = append(out, &increase{group: g, delta: delta})
	}
	return out, nil
}

// newNodesOf returns by how many nodes a group is to grow, for whatever reason.
func newNodesOf(g *loadlinev1.LoopGrowth) int {
	return int(g.GetNodesForPods() + g.GetNodesForSlack() + g.GetNodesForUtilization() + g.GetNodesForMinimum())
}

// mostNewNodes returns how many nodes all groups together may grow by.
func (l *leader) mostNewNodes(states []*groupState) int {
	s := &l.config.ScaleUp
	most := s.MaxNodesPerScaleUp
	if most == 0 {
		most = math.MaxInt32
	}
	if s.MaxNodesTotal > 0 {
		nodes := len(l.cluster.nodes)
		for _, g := range states {
			nodes += int(g.found.GetComing())
		}
		most = min(most, max(0, s.MaxNodesTotal-nodes))
	}
	return most
}

// grow has the cloud make the nodes of a plan, and tells of it.
func (l *leader) grow(ctx context.Context, o *loop) (part string, err error) {
	increases, err := l.plannedIncreases(o)
	if err != nil {
		o.growthOutcome = scaleUpError
		return "plan", err
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
	l.batch.noteGrowth(o, increases)
	l.settle(ctx, o)
	l.tellPods(o, increases)
	return "", nil
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
				i.err = l.cloud.IncreaseSize(ctx, i.group.ID, i.group.Target, i.delta)
			}
		})
	}
	work.Wait()
}

// tellIncrease takes note of what came of asking for nodes of one group, and tells of it.
func (l *leader) tellIncrease(o *loop, i *increase) {
	g, status := i.group, l.status.reference()
	if i.tried {
		l.fleet.noteIncrease(i)
	}
	if i.err == nil {
		klog.V(2).InfoS("Scale-up", "group", g.ID, "from", g.Target, "to", g.Target+i.delta, "max", g.Max)
		l.events.Eventf(status, v1.EventTypeNormal, "ScaledUpGroup",
			"Scale-up: group %s size set to %d instead of %d (max: %d)", g.ID, g.Target+i.delta, g.Target, g.Max)
		l.metrics.scaledUp.WithLabelValues(gpuResource(g.model.node)).Add(float64(i.delta))
		return
	}
	o.growthOutcome = scaleUpError
	klog.ErrorS(bounded(i.err), "Scale-up failed", "group", g.ID, "from", g.Target, "to", g.Target+i.delta)
	l.events.Eventf(status, v1.EventTypeWarning, "FailedToScaleUpGroup", "Scale-up failed for group %s: %v",
		g.ID, i.err)
}

// refused says whether a cloud that answered with an error has not done what it was asked for the fault of nobody: the
// group does not back off.
func refused(err error) bool { return errors.Is(err, provider.ErrChanged) }
