package demo

import (
	"context"
	"fmt"
	"strings"

	"loadline.dev/shim/autoscaler/act/drain"
)

// MixUSD is what the nodes for the first load cost per hour, without the base node.
func (r *Scaling) MixUSD() (usd float64) {
	for _, g := range ScalingGroups() {
		if g.ID != BaseGroup {
			usd += g.Price * float64(r.Mix[g.ID])
		}
	}
	return usd
}

// MixText tells the nodes of each group in words.
func (r *Scaling) MixText() string {
	var parts []string
	for _, g := range ScalingGroups() {
		if r.Mix[g.ID] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", r.Mix[g.ID], g.ID))
		}
	}
	return strings.Join(parts, ", ")
}

// check gathers from the records of the API server and of the cloud what must not have happened.
func (s *scaling) check(ctx context.Context) error {
	changes, err := s.Changes(AutoscalerUser)
	if err != nil {
		return err
	}
	broken := func(format string, args ...any) { s.out.Broken = append(s.out.Broken, fmt.Sprintf(format, args...)) }
	for _, change := range changes {
		switch {
		case change.Resource == "pods/eviction":
			s.out.Evictions[change.Code]++
		case change.Resource == "pods" || change.Resource == "nodes" && change.Verb != "patch":
			broken("the autoscaler has made a change that it should not: %v", change)
		}
	}
	for _, deleted := range s.cloud.Deleted() {
		s.out.Removed++
		for _, node := range s.rest {
			if node == deleted.Node {
				s.out.Moved++
			}
		}
		if len(deleted.Pods) > 0 {
			broken("node %s was deleted with %d pods", deleted.Node, len(deleted.Pods))
		}
	}
	if twice := s.cloud.DeletedTwice(); len(twice) > 0 {
		broken("the cloud was asked again to delete %v", twice)
	}
	for _, g := range ScalingGroups() {
		if smallest, largest := s.cloud.Sizes(g.ID); smallest < g.Min || largest > g.Max {
			broken("group %s has had %d to %d nodes, it may have %d to %d", g.ID, smallest, largest, g.Min, g.Max)
		}
	}
	if err := s.checkClosures(); err != nil {
		return err
	}
	nodes, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if len(node.Spec.Taints) > 0 || node.Spec.Unschedulable || node.Annotations[drain.MarkAnnotation] != "" {
			broken("node %s keeps taints %v, annotations %v", node.Name, node.Spec.Taints, node.Annotations)
		}
	}
	return nil
}
