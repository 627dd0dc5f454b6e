package fit

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Filters are kube-scheduler's filters in its default order.
var Filters = []string{
	"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
	"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
	"NodeDeclaredFeatures",
}

// Coverage counts in how many cases something occurred.
type Coverage struct {
	Cases    int
	No       map[string]int // the filter refused some node
	Yes      map[string]int // the filter had something to decide and let the pod pass
	Features map[string]int
	Errors   int // upstream had no answer for some node
	Nodes    int // answers
}

// NewCoverage returns an empty count.
func NewCoverage() *Coverage {
	return &Coverage{No: map[string]int{}, Yes: map[string]int{}, Features: map[string]int{}}
}

// Add counts one case by what upstream said of it.
func (k *Coverage) Add(c *Cluster, answers *Answers) {
	k.Cases++
	k.Nodes += len(answers.Nodes)
	no, yes, failed := map[string]bool{}, map[string]bool{}, 0
	for i, answer := range answers.Nodes {
		passed := len(Filters)
		switch answer.Status {
		case CannotBeJudged:
			failed = 1
			continue
		case Unschedulable, Unresolvable:
			no[answer.Filter] = true
			passed = slices.Index(Filters, answer.Filter)
		}
		for _, filter := range Filters[:max(passed, 0)] {
			if !answer.BeforeNodes && hadToDecide(filter, c.Pod, c.node(answers.Nodes[i].Node), answers) {
				yes[filter] = true
			}
		}
	}
	k.Errors += failed
	for filter := range no {
		k.No[filter]++
	}
	for filter := range yes {
		k.Yes[filter]++
	}
	for feature := range featuresOf(c) {
		k.Features[feature]++
	}
}

// hadToDecide says whether a filter looked at something that it might have refused.
func hadToDecide(filter string, pod *v1.Pod, node *v1.Node, answers *Answers) bool {
	switch filter {
	case "NodeUnschedulable":
		return node.Spec.Unschedulable
	case "NodeName":
		return pod.Spec.NodeName != ""
	case "TaintToleration":
		return slices.ContainsFunc(node.Spec.Taints,
			func(t v1.Taint) bool { return t.Effect != v1.TaintEffectPreferNoSchedule })
	}
	return !answers.Idle.Has(filter)
}

func (c *Cluster) node(name string) *v1.Node {
	return c.Nodes[slices.IndexFunc(c.Nodes, func(n *v1.Node) bool { return n.Name == name })]
}

// String prints one line per filter and feature.
func (k *Coverage) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cases, %d answers, %d cases with an error of upstream\n", k.Cases, k.Nodes, k.Errors)
	for _, filter := range Filters {
		fmt.Fprintf(&b, "%-20s no in %6d cases (%4.1f %%), yes in %6d (%4.1f %%)\n", filter,
			k.No[filter], k.percent(k.No[filter]), k.Yes[filter], k.percent(k.Yes[filter]))
	}
	for _, feature := range features {
		fmt.Fprintf(&b, "%-50s in %6d cases (%4.1f %%)\n", feature.name, k.Features[feature.name],
			k.percent(k.Features[feature.name]))
	}
	return b.String()
}

// Rare lists what occurred in less than a share of the cases.
func (k *Coverage) Rare(percent float64) []string {
	var out []string
	for _, filter := range Filters {
		if k.percent(k.No[filter]) < percent {
			out = append(out, "no of "+filter)
		}
		if k.percent(k.Yes[filter]) < percent {
			out = append(out, "yes of "+filter)
		}
	}
	for _, feature := range features {
		if k.percent(k.Features[feature.name]) < percent {
			out = append(out, feature.name)
		}
	}
	return out
}

func (k *Coverage) percent(n int) float64 { return 100 * float64(n) / float64(max(k.Cases, 1)) }

// Merge adds the counts of another part of the cases.
func (k *Coverage) Merge(other *Coverage) {
	k.Cases += other.Cases
	k.Errors += other.Errors
	k.Nodes += other.Nodes
	for _, pair := range []struct{ into, from map[string]int }{{k.No, other.No}, {k.Yes, other.Yes},
		{k.Features, other.Features}} {
		for name, n := range pair.from {
			pair.into[name] += n
		}
	}
}
