package autoscaler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
)

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
	l.podEvents.begin(o.now)
	for _, run := range o.plan.loop.GetScaleUp().GetUnplaced() {
		pods := o.entry(run.GetPod())
		// Those that found a place come first, wherever that is.
		for _, pod := range pods[max(0, len(pods)-int(run.GetCount())):] {
			named := &v1.ObjectReference{Kind: kindPod, Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
			if l.podEvents.isNews(named, why, o.now) {
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

// saidEvents knows which objects have been told what.
type saidEvents struct {
	objects map[v1.ObjectReference]saidEvent
	left    int // how many more may be told in this loop
}

type saidEvent struct {
	text string
	at   time.Time
}

func newSaidEvents() saidEvents { return saidEvents{objects: map[v1.ObjectReference]saidEvent{}} }

// begin is called once in a loop.
func (t *saidEvents) begin(now time.Time) {
	t.left = mostTold
	for object, last := range t.objects {
		if now.Sub(last.at) >= tellAgain {
			delete(t.objects, object)
		}
	}
}

// isNews says whether an object is to be told something, and supposes that it is.
func (t *saidEvents) isNews(object *v1.ObjectReference, text string, now time.Time) bool {
	if t.left == 0 || t.objects[*object].text == text {
		return false
	}
	t.left--
	t.objects[*object] = saidEvent{text, now}
	return true
}

// whyNoGrowth counts the reasons for which groups do not grow for a pod.
func (l *leader) whyNoGrowth(o *loop) string {
	if held := o.fleet().GetHeld(); held != "" {
		return held
	}
	grows, atMaximum := map[string]int{}, atMaximum(o.plan.loop)
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
	}{{text: unfit}, {text: "backs off after failed scale-up"},
		{text: "grows by all of its nodes or none, and so many may not be added"},
		{text: "max node group size reached"}, {text: "no price or template known"}, {text: "sized by utilization"},
		{text: "their options are not known"}}
	ofCluster := map[string]int{} // groups by which maxima of the cluster they come against
	for _, g := range o.states {
		switch {
		case g.Problem != nil:
			reasons[6].count++
		case g.backsOff():
			reasons[1].count++
		case o.sized[g.ID] != nil:
			reasons[5].count++
		case g.found.GetHeld() != "":
			reasons[2].count++
		case g.room() <= grows[g.ID]:
			reasons[3].count++
		case l.unpriced(g):
			reasons[4].count++
		case atMaximum[g.ID] != "":
			ofCluster[atMaximum[g.ID]]++
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
	for _, resources := range slices.Sorted(maps.Keys(ofCluster)) {
		parts = append(parts, fmt.Sprintf("%d max cluster %s limit reached", ofCluster[resources], resources))
	}
	if len(parts) == 0 {
		return "there is no node group"
	}
	return strings.Join(parts, ", ")
}

// atMaximum returns, of each group that the maxima of the cluster keep from growing further, the resources of which there
// would be too much.
func atMaximum(plan *loadlinev1.PlanLoopResponse) map[string]string {
	groups := map[string]string{}
	for _, group := range plan.GetAtMaximum() {
		groups[group.GetNodeGroup()] = strings.Join(group.GetResources(), ", ")
	}
	return groups
}

// unpriced says whether nobody knows what nodes of a group are like, or cost. What price lists know, the engine knows.
func (l *leader) unpriced(g *groupState) bool {
	s := &l.config.ScaleUp
	return g.model.node == nil || g.model.price == nil && !s.BaseRatePrices && len(s.Prices) == 0
}
