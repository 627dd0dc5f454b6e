package watch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/scaleup"
)

// The API server's times are whole seconds of another clock: what a pod says of itself may be early or late by one.
func TestWhenAPodCame(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }
	for name, c := range map[string]struct {
		created, refused metav1.Time
		seen             time.Duration // ago; 0: not before
		want             time.Duration // ago
	}{
		"JustCreated":       {created: at(0), want: 0},
		"WithinASecond":     {created: at(2 * time.Second), want: time.Second},
		"SeenBefore":        {created: at(2 * time.Second), seen: 1500 * time.Millisecond, want: 1500 * time.Millisecond},
		"RefusedLater":      {created: at(time.Hour), refused: at(3 * time.Second), want: 2 * time.Second},
		"AClockThatIsAhead": {created: at(-time.Hour), want: 0},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", CreationTimestamp: c.created},
			Status: v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodScheduled, LastTransitionTime: c.refused}}}}
		d := &demand{}
		if c.seen > 0 {
			d.seen = map[types.UID]time.Time{"u": now.Add(-c.seen)}
		}
		if got := now.Sub(d.cameAt(pod, now)); got != c.want {
			t.Errorf("%s: came %v ago, want %v", name, got, c.want)
		}
	}
}

// told returns what the engine gets about pods that are equal where they are placed, in order.
func told(delay time.Duration, now time.Time, pods []*v1.Pod) (entries []string) {
	options := config.Default()
	options.ScaleUp.NewPodScaleUpDelay.Duration = delay
	c := &Cluster{options: &options, objects: objects{Unbound: map[types.NamespacedName]*v1.Pod{}}}
	for i, pod := range pods {
		pod.Namespace, pod.Name = "default", fmt.Sprint("pod-", i)
		c.Unbound[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = pod
	}
	gathered := c.WithoutNode(now, nil)
	for i, entry := range gathered.Pending() {
		c.Tell(gathered.Entry(i), now, entry)
		own := "none"
		if entry.ScaleUpDelayMilliseconds != nil {
			own = fmt.Sprint(entry.GetScaleUpDelayMilliseconds())
		}
		entries = append(entries, fmt.Sprintf("%d %t %s %d", entry.GetCount(), entry.GetUnschedulable(), own,
			entry.GetYoungestAgeMilliseconds()))
	}
	return entries
}

func TestPodsWithoutANodeComeWithTheirFacts(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	pod := func(age time.Duration, edits ...func(*v1.Pod)) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-age))}}
		for _, edit := range edits {
			edit(p)
		}
		return p
	}
	states := func(delay string) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Annotations = map[string]string{scaleup.DelayAnnotation: delay} }
	}
	condition := func(status v1.ConditionStatus, reason string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse},
				{Type: v1.PodScheduled, Status: status, Reason: reason}}
		}
	}
	refused := condition(v1.ConditionFalse, v1.PodReasonUnschedulable)
	for name, c := range map[string]struct {
		delay time.Duration
		pods  []*v1.Pod
		want  []string
	}{
		"WithoutADelayAgesSplitNothing": {0, []*v1.Pod{pod(time.Hour), pod(-time.Hour), pod(time.Second)},
			[]string{`3 false none 0`}},
		"Conditions": {0, []*v1.Pod{pod(0, refused), pod(0, condition(v1.ConditionFalse, "SchedulerError")),
			pod(0, condition(v1.ConditionTrue, v1.PodReasonUnschedulable)), pod(0), pod(time.Second, refused)},
			[]string{`2 true none 0`, `3 false none 0`}},
		"YoungAndOldByTheOption": {time.Minute, []*v1.Pod{pod(time.Second), pod(time.Minute), pod(2 * time.Second),
			pod(time.Hour)}, []string{`2 false none 1000`, `2 false none 60000`}},
		// Pods of one second, one minute and one hour: the engine decides which of both delays counts.
		"YoungAndOldByBoth": {time.Minute, []*v1.Pod{pod(time.Second, states("10s")), pod(time.Minute, states("10s")),
			pod(time.Hour, states("10s")), pod(20*time.Second, states("10s")), pod(20 * time.Second)},
			[]string{`1 false 10000 1000`, `2 false 10000 60000`, `1 false 10000 20000`, `1 false none 20000`}},
		"HostileDelays": {0, []*v1.Pod{pod(time.Second, states("")), pod(time.Second, states("99999999999999h")),
			pod(time.Second, states("1")), pod(time.Second, states("-1h")), pod(time.Second, states("0")),
			pod(time.Second, states("2000000h"))},
			[]string{`3 false none 1000`, `1 false -3600000 1000`, `1 false 0 1000`,
				`1 false 7200000000000 1000`}},
		"OfDaemonSets": {0, []*v1.Pod{pod(0, refused, func(p *v1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
		})}, nil},
		"NotToBeScheduled": {0, []*v1.Pod{pod(0, refused, func(p *v1.Pod) {
			p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "g"}}
		}), pod(0, refused, func(p *v1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(now)) })}, nil},
	} {
		got := told(c.delay, now, c.pods)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: told of %q, want %q", name, got, c.want)
		}
	}
}

// The time that a namespace without bounds takes of a loop, whether or not its pods wait, it takes from itself.
func TestAHundredThousandPodsKeepNobodyOut(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	options := config.Default()
	options.ScaleUp.NewPodScaleUpDelay.Duration = time.Minute
	c := &Cluster{options: &options, objects: objects{Unbound: map[types.NamespacedName]*v1.Pod{}}}
	add := func(namespace, name string, age time.Duration) {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			CreationTimestamp: metav1.NewTime(now.Add(-age))}}
		c.Unbound[types.NamespacedName{Namespace: namespace, Name: name}] = pod
	}
	for i := range mostPending {
		add("a", fmt.Sprint(i), time.Duration(i)*time.Second)
	}
	add("b", "0", time.Hour)
	gathered := c.WithoutNode(now, nil)
	pending := gathered.Pending()
	if gathered.Waiting() != mostPending || len(pending) != 3 {
		t.Errorf("%d pods of %d kinds, want %d of 3: the young and the old ones of a, and that of b", gathered.Waiting(),
			len(pending), mostPending)
	}
	if last := gathered.Entry(len(pending) - 1); len(last) != 1 || last[0].Namespace != "b" {
		t.Errorf("the last kind has %d pods", len(last))
	}
}

// A loop looks at each pod without a node, most of which no scheduler finds a node for.
func BenchmarkWithoutNode(b *testing.B) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	options := config.Default()
	c := &Cluster{options: &options, objects: objects{Unbound: map[types.NamespacedName]*v1.Pod{}}}
	for i := range mostPending {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint(i)}}
		pod.Status.Conditions = []v1.PodCondition{
			{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable}}
		c.Unbound[types.NamespacedName{Namespace: "a", Name: pod.Name}] = pod
	}
	for b.Loop() {
		if kinds := len(c.WithoutNode(now, nil).Pending()); kinds != 1 {
			b.Fatalf("%d kinds of pods, want 1", kinds)
		}
	}
}

// With names of schedulers that are allowed, pods of others make no group grow: the engine does not get them.
func TestPodsOfOtherSchedulersAreLeftOut(t *testing.T) {
	options := config.Default()
	c := &Cluster{options: &options, objects: objects{Unbound: map[types.NamespacedName]*v1.Pod{}}}
	for _, scheduler := range []string{"a", "b"} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: scheduler},
			Spec: v1.PodSpec{SchedulerName: scheduler}}
		c.Unbound[types.NamespacedName{Namespace: "default", Name: scheduler}] = pod
	}
	for allowed, want := range map[string]int{"": 2, "a": 1, "c": 0} {
		options.ScaleUp.AllowedSchedulerNames = nil
		if allowed != "" {
			options.ScaleUp.AllowedSchedulerNames = []string{allowed}
		}
		if got := len(c.WithoutNode(time.Unix(0, 0), nil).Pending()); got != want {
			t.Errorf("%q is allowed: %d kinds of pods, want %d", allowed, got, want)
		}
	}
}
