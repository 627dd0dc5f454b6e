package tell

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/watch"
)

// mostTold is how many pods are told of a scale-up in one loop, and as many of none.
const mostTold = 100

// TellPods tells pods which groups grow for them, and how far, or why none does.
func (t *Teller) TellPods(o *plan.Loop, grows map[string]string) {
	taken := map[int32]int{} // how many pods of each entry have been told
	told := 0
	for _, nodes := range o.Plan.Answer.GetScaleUp().GetNodes() {
		group := o.Groups[nodes.GetGroup()].ID
		for _, run := range nodes.GetPods() {
			pods := o.Entry(run.GetPod())
			from := min(taken[run.GetPod()], len(pods))
			to := min(from+int(run.GetCount()*nodes.GetNodes()), len(pods))
			taken[run.GetPod()] = to
			if growth := grows[group]; growth != "" {
				for _, pod := range pods[from:to][:min(to-from, mostTold-told)] {
					t.Events.Eventf(pod, v1.EventTypeNormal, "TriggeredScaleUp", "pod triggered scale-up: [{%s}]", growth)
					told++
				}
			}
		}
	}
	why := "pod didn't trigger scale-up: " + o.Fleet().GetWhyNoGrowth()
	t.said.pods.begin(o.Now)
	for _, run := range o.Plan.Answer.GetScaleUp().GetUnplaced() {
		pods := o.Entry(run.GetPod())
		// Those that found a place come first, wherever that is.
		for _, pod := range pods[max(0, len(pods)-int(run.GetCount())):] {
			named := &v1.ObjectReference{Kind: watch.KindPod, Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
			if t.said.pods.isNews(named, why, o.Now) {
				t.Events.Event(pod, v1.EventTypeNormal, "NotTriggerScaleUp", why)
			}
		}
	}
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
