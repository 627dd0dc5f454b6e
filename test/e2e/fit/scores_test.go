package fit

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"loadline.dev/shim/simulate"
)

// What `simulate` takes for the default scheduler's scores is what its plugins give.
func TestDefaultScoresEqualUpstream(t *testing.T) {
	upstream, err := NewUpstream(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[2]int64]bool{}
	for seed := range uint64(3000) {
		c := Generate(seed)
		c.Pod.Spec.Volumes = nil // or some PreFilter refuses the pod, and leaves nothing to score with
		if _, err := upstream.Filter(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for node, want := range upstream.scores(t, c) {
			var onNode []*v1.Pod
			for _, pod := range scheduled(c) {
				if pod.Spec.NodeName == node {
					onNode = append(onNode, pod)
				}
			}
			var got [2]int64
			got[0], got[1] = simulate.DefaultScores(c.node(node), onNode, c.Pod)
			if got != want {
				t.Fatalf("seed %d, %s: got LeastAllocated %d and BalancedAllocation %d, want %v\n%s",
					seed, node, got[0], got[1], want, c.YAML())
			}
			seen[got] = true
		}
	}
	if len(seen) < 300 {
		t.Errorf("only %d different pairs of scores", len(seen))
	}
}

// scores returns LeastAllocated and BalancedAllocation of each node, of the cluster that was loaded last; none for a
// pod that is refused before any node is looked at.
func (u *Upstream) scores(t *testing.T, c *Cluster) map[string][2]int64 {
	t.Helper()
	nodes, err := u.snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	state := framework.NewCycleState()
	if _, status, _ := u.framework.RunPreFilterPlugins(t.Context(), state, c.Pod); !status.IsSuccess() {
		return nil
	}
	if status := u.framework.RunPreScorePlugins(t.Context(), state, c.Pod, nodes); !status.IsSuccess() {
		t.Fatal(status)
	}
	all, status := u.framework.RunScorePlugins(t.Context(), state, c.Pod, nodes)
	if !status.IsSuccess() {
		t.Fatal(status)
	}
	out := map[string][2]int64{}
	for _, node := range all {
		var scores [2]int64
		for _, s := range node.Scores {
			switch s.Name {
			case names.NodeResourcesFit:
				scores[0] = s.Score
			case names.NodeResourcesBalancedAllocation:
				scores[1] = s.Score
			}
		}
		out[node.Name] = scores
	}
	return out
}
