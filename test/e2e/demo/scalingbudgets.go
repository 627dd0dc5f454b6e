package demo

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/autoscaler/act/drain"
)

// closure is a time in which no budget allowed a disruption.
type closure struct{ from, to time.Time }

// tighten closes all budgets once a node is marked whose pods are to be evicted, so that the API server refuses what
// was planned, and opens them when it has. It ends then, or with the context.
func (s *scaling) tighten(ctx context.Context) error {
	seen := map[string]bool{}
	for ctx.Err() == nil {
		drains, err := s.newDrains(ctx, seen)
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		if drains {
			refused, err := s.closeBudgets(ctx)
			if err != nil || refused {
				return ignoreEnd(ctx, err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// ignoreEnd returns an error unless its cause is the end of the context.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// newDrains says whether nodes are marked to be drained that were not seen before.
func (s *scaling) newDrains(ctx context.Context, seen map[string]bool) (found bool, err error) {
	nodes, err := s.nodes(ctx)
	for i := range nodes {
		if mark, goes := drain.MarkOf(&nodes[i]); goes && mark.Drain && !seen[nodes[i].Name] {
			seen[nodes[i].Name], found = true, true
		}
	}
	return found, err
}

// heldClosed is for how long budgets stay closed after the first refusal, and openAgain how long one is waited for: a
// drain may have been faster.
const heldClosed, openAgain = 2 * time.Second, 6 * time.Second

// closeBudgets closes all budgets for a while, and says whether evictions were refused meanwhile.
func (s *scaling) closeBudgets(ctx context.Context) (refused bool, err error) {
	if err := s.setBudgets(ctx, 0); err != nil {
		return false, err
	}
	c := closure{from: time.Now()}
	until := c.from.Add(openAgain)
	for ; time.Now().Before(until) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		evictions, err := s.evictions(c)
		if err != nil {
			return false, err
		}
		if evictions[429] > 0 && !refused {
			refused, until = true, time.Now().Add(heldClosed)
		}
	}
	c.to = time.Now()
	s.closures = append(s.closures, c)
	s.log("budgets were closed for %.1f s while nodes drained", c.to.Sub(c.from).Seconds())
	return refused, s.setBudgets(context.WithoutCancel(ctx), 1)
}

// setBudgets changes how many pods of each Deployment may be missing.
func (s *scaling) setBudgets(ctx context.Context, pods int) error {
	client := s.Client.PolicyV1().PodDisruptionBudgets("default")
	budgets, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range budgets.Items {
		patch := fmt.Appendf(nil, `{"spec":{"maxUnavailable":%d}}`, pods)
		if _, err := client.Patch(ctx, budgets.Items[i].Name, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// evictions counts those that the autoscaler has asked for in a time, by the status of the API server's answer.
func (s *scaling) evictions(c closure) (map[int]int, error) {
	changes, err := s.Changes(AutoscalerUser)
	if err != nil {
		return nil, err
	}
	counts := map[int]int{}
	for _, change := range changes {
		if change.Resource == "pods/eviction" && change.At.After(c.from) && (c.to.IsZero() || change.At.Before(c.to)) {
			counts[change.Code]++
		}
	}
	return counts, nil
}

// checkClosures adds up what was answered while budgets were closed.
func (s *scaling) checkClosures() error {
	for _, c := range s.closures {
		evictions, err := s.evictions(c)
		if err != nil {
			return err
		}
		s.out.PutOff += evictions[429]
		if evictions[201] > 0 {
			s.out.Broken = append(s.out.Broken,
				fmt.Sprintf("%d evictions were accepted while budgets were closed", evictions[201]))
		}
	}
	return nil
}

// closed says whether budgets were closed at a time since the begin. Pods that had just been evicted are missing in
// them then.
func (s *scaling) closed(at time.Duration) bool {
	for _, c := range s.closures {
		if at >= c.from.Sub(s.began)-sampleEvery && at <= c.to.Sub(s.began)+sampleEvery {
			return true
		}
	}
	return false
}
