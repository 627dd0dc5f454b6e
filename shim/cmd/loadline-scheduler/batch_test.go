package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"loadline.dev/shim/internal/testing/enginetest"
)

// Two profiles that differ in what the engine calls their clusters: one is used with batches, one without.
const batching = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: batched
  plugins: &plugins
    multiPoint:
      disabled: [{name: "*"}]
      enabled:
      - {name: PrioritySort}
      - {name: DefaultBinder}
      - {name: NodeResourcesFit}
      - {name: NodeResourcesLimitAware, weight: %[2]d}
  pluginConfig:
  - name: NodeResourcesLimitAware
    args: {engineAddress: %[1]q, timeout: 1s, view: batched, preset: %[3]s}
- schedulerName: plain
  plugins: *plugins
  pluginConfig:
  - name: NodeResourcesLimitAware
    args: {engineAddress: %[1]q, timeout: 1s, view: plain, preset: %[3]s}
`

// batch places equal pods one after the other, by the hints of a batch where the framework gives them.
type batch struct {
	t       *testing.T
	batched framework.Framework
	plain   framework.Framework
	nodes   []fwk.NodeInfo
	cycle   int64
	last    string // the node of the last pod
	// totals are the points that the batch has reached: those of its first cycle, or, in 1.37, of the last one before
	// which the last pod had not filled its node.
	totals          map[string]int64
	hints, rescored int
}

// place places one pod, and returns false when there is no choice.
func (b *batch) place(pod *v1.Pod) bool {
	b.cycle++
	ctx, state := b.t.Context(), framework.NewCycleState()
	if _, status, _ := b.batched.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		b.t.Fatal(status)
	}
	var feasible []fwk.NodeInfo
	for _, node := range b.nodes {
		if b.batched.RunFilterPlugins(ctx, state, pod, node).IsSuccess() {
			feasible = append(feasible, node)
		}
	}
	if len(feasible) < 2 {
		return false
	}
	fresh := map[string]int64{}
	for _, node := range b.score(b.plain, framework.NewCycleState(), pod, feasible) {
		fresh[node.Name] = node.TotalScore
	}
	chosen := b.choose(state, pod, feasible, fresh)
	best := int64(0)
	for name := range fresh {
		best = max(best, b.totals[name])
	}
	if b.totals[chosen] != best {
		b.t.Errorf("pod %d of the batch goes to %s, of %v; the single cycle has %v", b.cycle, chosen, b.totals, fresh)
	}
	b.last = chosen
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, node := range b.nodes {
		if node.Node().Name == chosen {
			node.AddPodInfo(info)
		}
	}
	return true
}

// choose returns the node that the batch hints at, or that of a whole cycle.
func (b *batch) choose(state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo, fresh map[string]int64) string {
	signature := b.batched.SignPod(b.t.Context(), pod)
	if signature == nil {
		b.t.Fatal("the pod is not signed")
	}
	if hint := b.batched.GetNodeHint(b.t.Context(), pod, signature, state, b.cycle); hint != "" {
		b.hints++
		if _, ok := fresh[b.last]; ok { // there is room on it for one more: it was scored again
			b.totals = fresh
			b.rescored++
		}
		b.batched.StoreScheduleResults(b.t.Context(), signature, hint, hint, nil, b.cycle)
		return hint
	}
	b.totals = fresh
	nodes := b.score(b.batched, state, pod, feasible)
	slices.SortFunc(nodes, func(a, b fwk.NodePluginScores) int { return cmp.Compare(b.TotalScore, a.TotalScore) })
	b.batched.StoreScheduleResults(b.t.Context(), signature, "", nodes[0].Name,
		sortedLike(framework.SortedScoredNodes(nil), nodes[1:]).(framework.SortedScoredNodes), b.cycle)
	return nodes[0].Name
}

func (b *batch) score(f framework.Framework, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) []fwk.NodePluginScores {
	if status := f.RunPreScorePlugins(b.t.Context(), state, pod, nodes); !status.IsSuccess() {
		b.t.Fatalf("PreScore: %v", status)
	}
	scores, status := f.RunScorePlugins(b.t.Context(), state, pod, nodes)
	if !status.IsSuccess() {
		b.t.Fatalf("Score: %v", status)
	}
	return scores
}

// sorted are nodes by their points, the best first. They are a framework.SortedScoredNodes where Kind is what that
// hands out: a name in 1.36, later the points as well.
type sorted[Kind any] struct{ nodes []fwk.NodePluginScores }

func sortedLike[Like interface{ Pop() Kind }, Kind any](_ Like, nodes []fwk.NodePluginScores) any {
	return &sorted[Kind]{nodes}
}

func (s *sorted[Kind]) Len() int { return len(s.nodes) }

func (s *sorted[Kind]) UnorderedList() []fwk.NodePluginScores { return s.nodes }

func (s *sorted[Kind]) Pop() (out Kind) {
	switch out := any(&out).(type) {
	case *string:
		*out = s.nodes[0].Name
	case *fwk.NodePluginScores:
		*out = s.nodes[0]
	}
	s.nodes = s.nodes[1:]
	return out
}

// The node that a batch hints at is one that is best without batching: in 1.36, which has batches where each pod fills
// its node, by the points of the batch's first cycle; in 1.37, which keeps raw scores and normalizes them together with
// fresh ones of nodes with room for more, by those of a cycle of its own.
func TestBatchesOrderNodesAsSingleCyclesDo(t *testing.T) {
	cases := 1000
	if testing.Short() {
		cases = 100
	}
	hints, rescored := 0, 0
	for seed := range uint64(cases) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			b := drawBatch(t, seed)
			hints, rescored = hints+b.hints, rescored+b.rescored
		})
		if t.Failed() {
			break
		}
	}
	t.Logf("%d hints in %d batches, %d of them after scoring a node again", hints, cases, rescored)
	if hints < cases/4 {
		t.Errorf("only %d hints in %d batches", hints, cases)
	}
}

func drawBatch(t *testing.T, seed uint64) *batch {
	r := rand.New(rand.NewPCG(seed, 9))
	amounts := func(cpu, memory int64) v1.ResourceList {
		return v1.ResourceList{"cpu": *resource.NewQuantity(1+r.Int64N(cpu), resource.DecimalSI),
			"memory": *resource.NewQuantity(1+r.Int64N(memory<<30), resource.BinarySI)}
	}
	draw := func(name, node string) *v1.Pod {
		pod := newPod(name, node, 1, 1)
		requests := amounts(4, 2)
		pod.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: requests,
			Limits: v1.ResourceList{"cpu": *resource.NewQuantity(r.Int64N(12), resource.DecimalSI),
				"memory": *resource.NewQuantity(r.Int64N(8<<30), resource.BinarySI)}}
		return pod
	}
	var nodes []*v1.Node
	var pods []*v1.Pod
	for i := range 3 + r.IntN(8) {
		name := fmt.Sprint("n", i)
		offer := amounts(16, 32)
		offer["pods"] = resource.MustParse("10")
		nodes = append(nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: offer}})
		for j := range r.IntN(3) {
			pods = append(pods, draw(fmt.Sprint("p", i, "-", j), name))
		}
	}
	config := fmt.Sprintf(batching, enginetest.Address(t), 1+r.IntN(3), []string{"strict", "kep217"}[r.IntN(2)])
	profiles, infos, err := newProfiles(t, config, pods, nodes)
	if err != nil {
		t.Fatal(err)
	}
	b := &batch{t: t, batched: profiles["batched"], plain: profiles["plain"], nodes: infos}
	kind := draw("incoming", "")
	for i := range 12 {
		pod := kind.DeepCopy()
		pod.Name, pod.UID = fmt.Sprint("incoming", i), ""
		if !b.place(pod) {
			break
		}
	}
	return b
}
