package autoscaler

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/backoff"
)

// Outcomes of scale-up, under the names of Cluster Autoscaler.
const (
	scaleUpNotTried   = "ScaleUpNotTried"
	scaleUpNotNeeded  = "ScaleUpNotNeeded"
	scaleUpNoOptions  = "ScaleUpNoOptionsAvailable"
	scaleUpSuccessful = "ScaleUpSuccessful"
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

// increases returns how far groups are to grow by a plan. The engine holds all limits; a plan that goes beyond one, of a group or of all
// together, or that lets a group that has all of its nodes or none grow in part, is an error, and nothing grows: it is not known what else is
// wrong with it.
func (l *leader) increases(o *loop) ([]*increase, error) {
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
		case g.held != "":
			return nil, fmt.Errorf("the plan lets node group %s grow, which may not: %s", g.ID, g.held)
		case delta < 1 || delta > g.room():
			return nil, fmt.Errorf("the plan adds %d nodes to group %s of %d, which may have %d", delta, g.ID, g.Target, g.Max)
		case g.Options.GetZeroOrMaxNodeScaling() && delta != g.room():
			return nil, fmt.Errorf("the plan adds %d nodes to group %s, which grows by all of its %d nodes or none", delta, g.ID, g.room())
		case delta > left:
			return nil, fmt.Errorf("the plan adds %d nodes to group %s, and %d more may be added to all groups together", delta, g.ID, left)
		}
		left -= delta
		out = append(out, &increase{group: g, delta: delta})
	}
	return out, nil
}

// newNodesOf returns by how many nodes a group is to grow, for whatever reason.
func newNodesOf(g *loadlinev1.LoopGrowth) int {
	return int(g.GetNodesForPods() + g.GetNodesForSlack() + g.GetNodesForUtilization())
}

// newNodes returns how many nodes all groups together may grow by.
func (l *leader) newNodes(states []*groupState) int {
	s := &l.config.ScaleUp
	most := s.MaxNodesPerScaleUp
	if most == 0 {
		most = math.MaxInt32
	}
	if s.MaxNodesTotal > 0 {
		nodes := len(l.cluster.nodes)
		for _, g := range states {
			nodes += g.coming
		}
		most = min(most, max(0, s.MaxNodesTotal-nodes))
	}
	return most
}

// grow has the cloud make the nodes of a plan, and tells of it.
func (l *leader) grow(ctx context.Context, o *loop) (part string, err error) {
	increases, err := l.increases(o)
	if err != nil {
		o.growthOutcome = scaleUpError
		return "plan", err
	}
	if len(increases) > 0 {
		defer l.metrics.time(functionScaleUp)()
		l.increase(ctx, increases)
		o.growthOutcome = scaleUpSuccessful
	}
	for _, i := range increases {
		l.note(o, i)
	}
	l.tellPods(o, increases)
	return "", nil
}

// increase asks the cloud for nodes, for some groups at once: one that does not answer must not keep the others.
func (l *leader) increase(ctx context.Context, increases []*increase) {
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

// note takes note of what came of asking for nodes of one group, and tells of it.
func (l *leader) note(o *loop, i *increase) {
	g, status := i.group, l.status.reference()
	switch {
	case i.err == nil:
		klog.V(2).InfoS("Scale-up", "group", g.ID, "from", g.Target, "to", g.Target+i.delta, "max", g.Max)
		l.events.Eventf(status, v1.EventTypeNormal, "ScaledUpGroup", "Scale-up: group %s size set to %d instead of %d (max: %d)", g.ID, g.Target+i.delta, g.Target, g.Max)
		l.metrics.scaledUp.WithLabelValues(gpuResource(g.model.node)).Add(float64(i.delta))
		l.growth.asked(g, i.delta, o.now)
		l.grown = o.now
		return
	case i.tried && !refused(i.err):
		l.growth.fail(g.ID, backoff.ReasonAPIError, i.err.Error(), o.now)
	}
	o.growthOutcome = scaleUpError
	klog.ErrorS(bounded(i.err), "Scale-up failed", "group", g.ID, "from", g.Target, "to", g.Target+i.delta)
	l.events.Eventf(status, v1.EventTypeWarning, "FailedToScaleUpGroup", "Scale-up failed for group %s: %v", g.ID, i.err)
}

// mostTold is how many pods are told of a scale-up in one loop, and as many of none.
const mostTold = 100

// tellPods tells pods which groups grow for them, or why none does.
func (l *leader) tellPods(o *loop, increases []*increase) {
	grows := map[string]*increase{}
	for _, i := range increases {
		if i.err == nil {
			grows[i.group.ID] = i
		}
	}
	taken := map[int32]int{} // how many pods of each entry have been told
	told := 0
	for _, nodes := range o.plan.loop.GetScaleUp().GetNodes() {
		group := o.states[nodes.GetGroup()].ID
		for _, run := range nodes.GetPods() {
			pods := o.entry(run.GetPod())
			from := min(taken[run.GetPod()], len(pods))
			to := min(from+int(run.GetCount()*nodes.GetNodes()), len(pods))
			taken[run.GetPod()] = to
			if i := grows[group]; i != nil {
				for _, pod := range pods[from:to][:min(to-from, mostTold-told)] {
					l.events.Eventf(pod, v1.EventTypeNormal, "TriggeredScaleUp", "pod triggered scale-up: [{%s}]", i)
					told++
				}
			}
		}
	}
	why := "pod didn't trigger scale-up: " + l.whyNoGrowth(o)
	l.told.begin(o.now)
	for _, run := range o.plan.loop.GetScaleUp().GetUnplaced() {
		pods := o.entry(run.GetPod())
		// Those that found a place come first, wherever that is.
		for _, pod := range pods[max(0, len(pods)-int(run.GetCount())):] {
			if l.told.news(&v1.ObjectReference{Kind: kindPod, Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, why, o.now) {
				l.events.Event(pod, v1.EventTypeNormal, "NotTriggerScaleUp", why)
			}
		}
	}
}

// entry returns the pods at a position of the question; none where they are on nodes that are being deleted.
func (o *loop) entry(position int32) []*v1.Pod {
	if position < 0 || int(position) >= len(o.plan.entries) {
		return nil
	}
	return o.pods.Entry(o.plan.entries[position])
}

// tellAgain is after which time an object is told the same again.
const tellAgain = 10 * time.Minute

// told knows which objects have been told what.
type told struct {
	objects map[v1.ObjectReference]toldObject
	left    int // how many more may be told in this loop
}

type toldObject struct {
	text string
	at   time.Time
}

func newTold() told { return told{objects: map[v1.ObjectReference]toldObject{}} }

// begin is called once in a loop.
func (t *told) begin(now time.Time) {
	t.left = mostTold
	for object, last := range t.objects {
		if now.Sub(last.at) >= tellAgain {
			delete(t.objects, object)
		}
	}
}

// news says whether an object is to be told something, and supposes that it is.
func (t *told) news(object *v1.ObjectReference, text string, now time.Time) bool {
	if t.left == 0 || t.objects[*object].text == text {
		return false
	}
	t.left--
	t.objects[*object] = toldObject{text, now}
	return true
}

// whyNoGrowth counts the reasons for which groups do not grow for a pod.
func (l *leader) whyNoGrowth(o *loop) string {
	if o.held != "" {
		return o.held
	}
	grows := map[string]int{}
	for _, growth := range o.plan.loop.GetGrowth() {
		grows[growth.GetNodeGroup()] = newNodesOf(growth)
	}
	unfit := "new nodes do not take it"
	if s := &l.config.ScaleUp; !s.BaseRatePrices && len(s.Prices) > 0 {
		unfit += ", or no price list knows them"
	}
	reasons := []struct {
		text  string
		count int
	}{{text: unfit}, {text: "backs off after failed scale-up"}, {text: "grows by all of its nodes or none, and so many may not be added"}, {text: "max node group size reached"}, {text: "no price or template known"}, {text: "sized by utilization"}, {text: "their options are not known"}}
	for _, g := range o.states {
		_, backsOff := l.growth.backoff.Of(g.ID, o.now)
		switch {
		case g.Problem != nil:
			reasons[6].count++
		case backsOff:
			reasons[1].count++
		case o.sized[g.ID] != nil:
			reasons[5].count++
		case g.held != "":
			reasons[2].count++
		case g.room() <= grows[g.ID]:
			reasons[3].count++
		case l.unpriced(g):
			reasons[4].count++
		default:
			reasons[0].count++
		}
	}
	var parts []string
	for _, reason := range reasons {
		if reason.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", reason.count, reason.text))
		}
	}
	if len(parts) == 0 {
		return "there is no node group"
	}
	return strings.Join(parts, ", ")
}

// unpriced says whether nobody knows what nodes of a group are like, or cost. What price lists know, the engine knows.
func (l *leader) unpriced(g *groupState) bool {
	s := &l.config.ScaleUp
	return g.model.node == nil || g.model.price == nil && !s.BaseRatePrices && len(s.Prices) == 0
}
