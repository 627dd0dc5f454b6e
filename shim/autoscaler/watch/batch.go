package watch

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/scaleup"
)

// batch tells the engine how long ago pods came that wait for a node: growth waits while further pods come.
type batch struct {
	seen map[types.UID]time.Time // since when pods are known to wait
}

// follow takes note of the pods that wait in this loop, and forgets the others.
func (b *batch) follow(pods *scaleup.Pods, now time.Time) {
	seen := make(map[types.UID]time.Time, pods.Waiting())
	for i := 0; pods.Entry(i) != nil; i++ {
		for _, pod := range pods.Entry(i) {
			if at, known := b.seen[pod.UID]; known {
				seen[pod.UID] = at
			} else {
				seen[pod.UID] = now
			}
		}
	}
	b.seen = seen
}

// cameAt returns when a pod came to wait, or a little later. Loops may be far apart, and the API server counts whole
// seconds, by another clock than ours.
func (b *batch) cameAt(pod *v1.Pod, now time.Time) time.Time {
	came := pod.CreationTimestamp.Time
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.LastTransitionTime.After(came) {
			came = c.LastTransitionTime.Time
		}
	}
	came = came.Add(time.Second)
	if seen, known := b.seen[pod.UID]; known && seen.Before(came) {
		came = seen
	}
	if came.After(now) {
		return now
	}
	return came
}

// TellAges says of equal pods how long ago the first and the last of them came.
func (c *Cluster) TellAges(pods []*v1.Pod, now time.Time, entry *loadlinev1.PendingPods) {
	first, last := time.Duration(0), time.Duration(1<<63-1)
	for _, pod := range pods {
		age := now.Sub(c.demand.batch.cameAt(pod, now))
		first, last = max(first, age), min(last, age)
	}
	entry.FirstAgeMilliseconds = new(first.Milliseconds())
	entry.LastAgeMilliseconds = new(min(first, last).Milliseconds())
}
