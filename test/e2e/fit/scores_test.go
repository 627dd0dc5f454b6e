package fit

import (
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"loadline.dev/shim/arrivals"
	"loadline.dev/shim/filterconfig"
)

const schedulerHead = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"

// schedulerFiles are configurations as kube-scheduler takes them, by name.
var schedulerFiles = map[string]string{
	"Default": schedulerHead + "- schedulerName: default-scheduler\n",
	"MostAllocated": schedulerHead + `
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}, {name: memory, weight: 1},
      {name: example.com/gpu, weight: 7}, {name: ephemeral-storage, weight: 2}, {name: hugepages-2Mi, weight: 1}]}}
  plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 4}]}}
`,
	"LeastAllocated": schedulerHead + `
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: LeastAllocated, resources: [{name: memory, weight: 100}, {name: example.com/gpu, weight: 1}]}}
  - name: NodeResourcesBalancedAllocation
    args: {resources: [{name: cpu}, {name: memory}, {name: example.com/gpu}, {name: ephemeral-storage}]}
  plugins: {multiPoint: {enabled: [{name: NodeResourcesBalancedAllocation, weight: 3}]}}
`,
	"RequestedToCapacityRatio": schedulerHead + `
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 2}, {name: memory, weight: 5}, {name: example.com/gpu, weight: 3}]
        requestedToCapacityRatio:
          shape: [{utilization: 10, score: 2}, {utilization: 55, score: 0}, {utilization: 60, score: 9},
            {utilization: 97, score: 3}]
  - name: NodeResourcesBalancedAllocation
    args: {resources: [{name: memory}]}
`,
}

// decoded returns the first profile of a configuration, as kube-scheduler reads it.
func decoded(t *testing.T, text string) *config.KubeSchedulerProfile {
	t.Helper()
	object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &object.(*config.KubeSchedulerConfiguration).Profiles[0]
}

// The scores of the scheduler in `simulate` are those of its plugins, for the files that configure both.
func TestScoresEqualUpstream(t *testing.T) {
	for name, text := range schedulerFiles {
		t.Run(name, func(t *testing.T) {
			profile := decoded(t, text)
			upstream, err := NewUpstream(t.Context(), func(p *config.KubeSchedulerProfile) { *p = *profile })
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "scheduler.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			scheduler, err := filterconfig.Read(filterconfig.Request{File: file})
			if err != nil {
				t.Fatal(err)
			}
			compareScores(t, upstream, scheduler)
		})
	}
}

func compareScores(t *testing.T, upstream *Upstream, scheduler *filterconfig.Scheduler) {
	scorer, scoring := arrivals.NewScorer(scheduler), scheduler.Profiles[""]
	seen := map[[2]int64]bool{}
	for seed := range uint64(3000) {
		c := Generate(seed)
		c.Pod.Spec.Volumes = nil // or some PreFilter refuses the pod, and leaves nothing to score with
		c.Devices = nil          // of which nobody here knows how many there are
		for _, pod := range append([]*v1.Pod{c.Pod}, c.Pods...) {
			if pod.Spec.Resources != nil { // or the helper adds the overhead to the pod itself, once per call
				pod.Spec.Overhead = nil
			}
		}
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
			fit, balanced := scorer.Scores(c.node(node), onNode, c.Pod)
			got := [2]int64{fit * scoring.FitWeight, balanced * scoring.BalancedWeight}
			if got != want {
				t.Fatalf("seed %d, %s: got NodeResourcesFit %d and BalancedAllocation %d, want %v\n%s",
					seed, node, got[0], got[1], want, c.YAML())
			}
			seen[got] = true
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d different pairs of scores", len(seen))
	}
}

// scores returns what NodeResourcesFit and BalancedAllocation give each node, times their weights, of the cluster that
// was loaded last; none for a pod that is refused before any node is looked at.
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
