package autoscaler

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
)

// tellNominated says of equal pods for how many of them the scheduler makes room on which nodes.
func (c *cluster) tellNominated(pods []*v1.Pod, entry *loadlinev1.PendingPods) {
	counts := map[int32]int32{}
	for _, pod := range pods {
		if pod.Status.NominatedNodeName == "" {
			continue
		}
		if slot, ok := c.view.Slot(pod.Status.NominatedNodeName); ok {
			counts[slot]++
		}
	}
	entry.Nominated = nil
	for slot, count := range counts {
		entry.Nominated = append(entry.Nominated, &loadlinev1.NominatedPods{Slot: slot, Count: count})
	}
	slices.SortFunc(entry.Nominated, func(a, b *loadlinev1.NominatedPods) int { return int(a.Slot) - int(b.Slot) })
}
