package tell

import (
	"cmp"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/internal/text"
)

// Bounds on lists, and on the texts of events, of which an API server takes 1 KiB.
const (
	mostStatusEntries = 100
	mostPageEntries   = 1000
	mostEventText     = 1000
)

// EventSource returns the source of events. With the status of Cluster Autoscaler it is that of Cluster Autoscaler, by
// which alerts and exporters select events.
func EventSource(c *config.Configuration) v1.EventSource {
	if c.StatusConfigMap == upstreamStatus {
		return v1.EventSource{Component: upstreamComponent}
	}
	return v1.EventSource{Component: Component}
}

// boundedEvents are events whose messages an API server takes.
type boundedEvents struct{ to record.EventRecorder }

func (b boundedEvents) Event(object runtime.Object, kind, reason, message string) {
	b.to.Event(object, kind, reason, text.Bound(message, mostEventText))
}

func (b boundedEvents) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	b.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (b boundedEvents) AnnotatedEventf(object runtime.Object, annotations map[string]string,
	kind, reason, format string, args ...any) {
	b.to.AnnotatedEventf(object, annotations, kind, reason, "%s",
		text.Bound(fmt.Sprintf(format, args...), mostEventText))
}

// mostTold is the number of pods that get an event about a scale-up in one loop, and as many about none.
const mostTold = 100

// TellPods tells pods which groups grow for them, and how far, or why none does.
func (t *Teller) TellPods(o *plan.Loop, grows map[string]string) {
	taken := map[int32]int{} // how many pods of each entry have got an event
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
	reasons := map[int32]string{}
	for _, kind := range o.Fleet().GetPodsWithoutNode() {
		for _, pod := range kind.GetPods() {
			reasons[pod] = kind.GetWhy()
		}
	}
	t.said.pods.begin(o.Now)
	for _, run := range o.Plan.Answer.GetScaleUp().GetUnplaced() {
		pods := o.Entry(run.GetPod())
		why := "pod didn't trigger scale-up: " + cmp.Or(reasons[run.GetPod()], o.Fleet().GetWhyNoGrowth())
		// Pods that found a place are first, wherever that is.
		for _, pod := range pods[max(0, len(pods)-int(run.GetCount())):] {
			named := &v1.ObjectReference{Kind: watch.KindPod, Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
			if t.said.pods.isNews(named, why, o.Now) {
				t.Events.Event(pod, v1.EventTypeNormal, "NotTriggerScaleUp", why)
			}
		}
	}
}

// tellNodes records events on nodes.
func (t *Teller) tellNodes(events []*loadlinev1.NodeEvent) {
	for _, event := range events {
		kind := v1.EventTypeNormal
		if event.Warning {
			kind = v1.EventTypeWarning
		}
		for _, name := range event.Nodes {
			if node := t.cluster.Nodes[name]; node != nil {
				t.Events.Event(node, kind, event.Reason, event.Message)
			}
		}
	}
}

// tellTimeouts records an event for each group that backs off because its nodes did not come in time.
func (t *Teller) tellTimeouts(o *plan.Loop) {
	for _, failure := range o.Fleet().GetFailures() {
		g := o.Group(failure.GetNodeGroup())
		if g == nil || failure.GetBackOff().GetReason() != loadlinev1.GroupBackOff_TIMEOUT {
			continue
		}
		within := t.config.ScaleUp.MaxNodeProvisionTime.Duration
		if own := g.Options.GetMaxNodeProvisionDuration().AsDuration(); own > 0 {
			within = own
		}
		t.Events.Eventf(t.About, v1.EventTypeWarning, "ScaleUpTimedOut",
			"Nodes added to group %s failed to register within %v", g.ID, within)
	}
}

// mostUnregistered bounds the events about the machines of one request: client-go lets 25 about the status pass, and
// the rest is for other events.
const mostUnregistered = 10

// TellUnregistered records an event for each machine that did not become a node in time and that the cloud was asked to
// delete, with what came of the request.
func (t *Teller) TellUnregistered(machines []*v1.Node, err error) {
	for _, machine := range machines[:min(len(machines), mostUnregistered)] {
		if err != nil {
			t.Events.Eventf(t.About, v1.EventTypeWarning, "DeleteUnregisteredFailed", "Failed to remove node %s: %v",
				machine.Name, err)
		} else {
			t.Events.Eventf(t.About, v1.EventTypeNormal, "DeleteUnregistered", "Removed unregistered node %s", machine.Name)
		}
	}
}

// tellAgain is the time after which an object gets the same event again.
const tellAgain = 10 * time.Minute

// saidEvents knows which objects have got which event.
type saidEvents struct {
	objects map[v1.ObjectReference]saidEvent
	left    int // how many more events this loop may send
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

// isNews says whether an event about an object is due, and supposes that it is sent.
func (t *saidEvents) isNews(object *v1.ObjectReference, text string, now time.Time) bool {
	if t.left == 0 || t.objects[*object].text == text {
		return false
	}
	t.left--
	t.objects[*object] = saidEvent{text, now}
	return true
}
