package tell

import (
	"fmt"
	"time"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
)

// upstreamStatus is the ConfigMap of Cluster Autoscaler. Under this name the status has its form.
const upstreamStatus = config.UpstreamStatus

// transition is what a condition was last, and since when.
type transition struct{ status, since string }

// upstreamTime returns a time of a status as Cluster Autoscaler writes it. Readers of the ConfigMap, this program among
// them, parse this layout alone.
func upstreamTime(rfc3339 string) string {
	at, err := time.Parse(time.RFC3339, rfc3339)
	if err != nil {
		return rfc3339
	}
	return at.UTC().Format(LastUpdatedLayout)
}

// inUpstreamForm adds what Cluster Autoscaler's status has beside ours: nodes that are not ready as a sum with a part,
// and for each condition when it was looked at and when it became what it is.
func (s *said) inUpstreamForm(all map[string]any, status *loadlinev1.AutoscalerStatus) {
	before := s.transitions
	s.transitions = map[string]transition{} // without groups that are gone
	s.conditionsIn(all["clusterWide"], "", status.Time, before)
	groups, _ := all["nodeGroups"].([]any)
	for _, g := range groups {
		if group, is := g.(map[string]any); is {
			s.conditionsIn(group, fmt.Sprint(group["name"]), status.Time, before)
		}
	}
}

// conditionsIn adds to the conditions of all nodes, or of a group.
func (s *said) conditionsIn(of any, name, now string, before map[string]transition) {
	fields, _ := of.(map[string]any)
	for _, kind := range []string{"health", "scaleUp", "scaleDown"} {
		condition, is := fields[kind].(map[string]any)
		if !is {
			continue
		}
		key := name + "\n" + kind
		last := transition{status: fmt.Sprint(condition["status"]), since: now}
		if was, known := before[key]; known && was.status == last.status {
			last = was
		}
		s.transitions[key] = last
		condition["lastProbeTime"], condition["lastTransitionTime"] = now, last.since
		counts, _ := condition["nodeCounts"].(map[string]any)
		if registered, is := counts["registered"].(map[string]any); is {
			registered["unready"] = map[string]any{"total": registered["unready"], "resourceUnready": 0}
		}
	}
}
