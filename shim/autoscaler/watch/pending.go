package watch

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/share"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/sizing"
)

// mostPending is how many pods without a node are planned for in one loop: the engine takes no more kinds of them.
const mostPending = 100_000

// sharePods is how many pods of a namespace are taken before those of the next one, while there are more.
const sharePods = 100

// ShareCost is what a namespace may take of the bytes of a question before the next one takes its turn.
const ShareCost = 64 << 10

// demand is what is remembered of pods without a node from one loop to the next.
type demand struct {
	// seen says since when pods are known to wait. The engine gets the time since their arrival: growth waits while
	// further pods arrive.
	seen map[types.UID]time.Time
	// turns say which namespaces come first while there are more pods than are planned for in one loop; sizeTurns, while
	// a question does not hold all that groups that are sized count.
	turns, sizeTurns share.Turns
}

// WithoutNode gathers the pods without a node, those of higher priority first, and what each new node carries. The
// engine decides which of them wait for one. Here is decided only what bounds the bytes of a question: of too many pods
// the engine sees some, those that do not wait among them, and namespaces take turns. Pods of DaemonSets stand for what
// their set puts on each new node. Pods of which `waits`, if it is set, says that no group grows for them are left out.
func (c *Cluster) WithoutNode(now time.Time, waits func(*v1.Pod) bool) *scaleup.Pods {
	pods := slices.SortedFunc(maps.Values(c.Unbound), func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(corev1helpers.PodPriority(b), corev1helpers.PodPriority(a)), byName(a, b))
	})
	pods = slices.DeleteFunc(pods, func(pod *v1.Pod) bool {
		return !c.options.ScaleUp.Allows(pod.Spec.SchedulerName) || waits != nil && !waits(pod)
	})
	items := make([]share.Item, len(pods))
	for i, pod := range pods {
		items[i] = share.Item{Priority: corev1helpers.PodPriority(pod), Namespace: pod.Namespace, Cost: 1}
	}
	var taken []int
	taken, c.demand.turns = c.demand.turns.Take(items, mostPending, sharePods)
	gathered := scaleup.NewPods()
	if len(c.profiled) > 0 {
		gathered.TellWorkloads(c.profiled)
	}
	gathered.Selectors = c.selectors
	gathered.Apart = func(pod *v1.Pod) string {
		return factsOf(pod, now).apart(c.options.ScaleUp.NewPodScaleUpDelay.Milliseconds())
	}
	for _, i := range taken {
		gathered.AddPod(pods[i])
	}
	for _, set := range c.Sets {
		gathered.AddObject(set)
		for _, pod := range c.daemons[scaleup.IdentityOf(set)] {
			gathered.AddPod(pod)
		}
	}
	return gathered
}

// facts are the inputs of the engine's decision whether a pod without a node waits for one, beside what the pod says to
// schedulers.
type facts struct {
	unschedulable  bool
	ageMs, delayMs int64
	statesDelay    bool
}

func factsOf(pod *v1.Pod, now time.Time) facts {
	f := facts{ageMs: max(0, now.Sub(pod.CreationTimestamp.Time)).Milliseconds(), // another clock may be ahead
		unschedulable: scaleup.FoundNoNode(pod)}
	delay, stated := scaleup.StatedDelay(pod)
	f.delayMs, f.statesDelay = delay.Milliseconds(), stated
	return f
}

// apart returns a text that is equal for pods with equal facts. Of ages it says only which of the stated delays they
// have reached, so that there are few kinds of pods: whichever delay holds, it holds for all of a kind alike.
func (f facts) apart(delayMs int64) string {
	switch {
	case !f.statesDelay && f.ageMs >= delayMs && f.unschedulable: // as nearly all are
		return "u "
	case !f.statesDelay && f.ageMs >= delayMs:
		return "- "
	}
	return fmt.Sprintf("%t %t %d %t %t ", f.unschedulable, f.statesDelay, f.delayMs, f.ageMs < f.delayMs,
		f.ageMs < delayMs)
}

// mostSizeBytes is how much of a question the pods may take that groups that are sized count as demand.
const mostSizeBytes = 1 << 20

// SizePods gathers the pods without a node. It warns where a question does not hold all kinds of them. With `starting`
// it also gathers those that start on their node, as Escalator does.
func (c *Cluster) SizePods(starting bool) (gathered *sizing.Gatherer, warning string) {
	from := c.Unbound
	if starting {
		from = c.Pods
	}
	gathered = sizing.New()
	for _, pod := range slices.SortedFunc(maps.Values(from), byName) {
		gathered.AddPod(pod)
	}
	pods := gathered.Pods()
	items := make([]share.Item, len(pods))
	for i, entry := range pods {
		namespace, _, _ := strings.Cut(gathered.Name(int32(i)), "/")
		items[i] = share.Item{Namespace: namespace, Cost: proto.Size(entry) + 8} // tag and length
	}
	var taken []int
	taken, c.demand.sizeTurns = c.demand.sizeTurns.Take(items, mostSizeBytes, ShareCost)
	if len(taken) < len(pods) {
		warning = fmt.Sprintf("%d of %d kinds of pods that wait are no demand of groups that are sized: a question "+
			"holds no more of them", len(pods)-len(taken), len(pods))
	}
	return gathered.Only(taken), warning
}

// Follow takes note of the pods that wait in this loop, and forgets the others.
func (c *Cluster) Follow(waiting iter.Seq[*v1.Pod], now time.Time) {
	seen := map[types.UID]time.Time{}
	for pod := range waiting {
		at, known := c.demand.seen[pod.UID]
		if !known {
			at = now
		}
		seen[pod.UID] = at
	}
	c.demand.seen = seen
}

// cameAt returns when a pod came to wait, or a little later. Loops may be far apart, and the API server counts whole
// seconds, by another clock than ours.
func (d *demand) cameAt(pod *v1.Pod, now time.Time) time.Time {
	came := pod.CreationTimestamp.Time
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.LastTransitionTime.After(came) {
			came = c.LastTransitionTime.Time
		}
	}
	came = came.Add(time.Second)
	if seen, known := d.seen[pod.UID]; known && seen.Before(came) {
		came = seen
	}
	if came.After(now) {
		return now
	}
	return came
}

// Tell fills in, for equal pods, the facts by which the engine decides whether they wait for a node, and how long ago
// the first and the last of them arrived.
func (c *Cluster) Tell(pods []*v1.Pod, now time.Time, entry *loadlinev1.PendingPods) {
	f := factsOf(slices.MaxFunc(pods, func(a, b *v1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}), now)
	entry.Unschedulable, entry.YoungestAgeMilliseconds, entry.ScaleUpDelayMilliseconds = f.unschedulable, &f.ageMs, nil
	if f.statesDelay {
		entry.ScaleUpDelayMilliseconds = &f.delayMs
	}
	first, last := time.Duration(0), time.Duration(1<<63-1)
	for _, pod := range pods {
		age := now.Sub(c.demand.cameAt(pod, now))
		first, last = max(first, age), min(last, age)
	}
	entry.FirstAgeMilliseconds = new(first.Milliseconds())
	entry.LastAgeMilliseconds = new(min(first, last).Milliseconds())
}
