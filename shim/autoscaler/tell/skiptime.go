package tell

import "time"

// skipTracker tells for how long a planner has not come to look at a node. It follows the nodes that were skipped, loop
// by loop. The zero value has seen none.
type skipTracker struct {
	since map[string]time.Time // when a skipped node was last not skipped; of those skipped in the last loop
	last  time.Time            // of the last loop
}

// update takes note of a loop and returns how long the node that waits longest has not been looked at.
func (t *skipTracker) update(skipped []string, now time.Time) time.Duration {
	if t.last.IsZero() {
		t.last = now
	}
	next := make(map[string]time.Time, len(skipped))
	longest := time.Duration(0)
	for _, node := range skipped {
		since, before := t.since[node]
		if !before {
			since = t.last
		}
		next[node] = since
		longest = max(longest, now.Sub(since))
	}
	t.since, t.last = next, now
	return longest
}
