package expander

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/ranking"
)

// threeGroups is twoGroups with a second large machine before the other, of one size and dearer: to least waste the two
// are the same, and it takes the first.
func threeGroups() asked {
	a := twoGroups()
	dear := a.options[1]
	dear.group = "dear"
	a.options = slices.Insert(a.options, 1, dear)
	a.templates["dear"] = templateNode("c2-standard-8", "8", "30000Mi")
	return a
}

func gcePolicy(t *testing.T) *ranking.Policy {
	t.Helper()
	p := ranking.Default()
	if err := p.AddCatalogue(filepath.Join("..", "..", "manifests", "prices", "gce-us-central1.csv")); err != nil {
		t.Fatal(err)
	}
	return p
}

// For 10 nodes 4 cpu are preferred, so that both sizes have an unfitness of 2. Machines cost their price and a disk of
// 100 GB, 0.013889; X = 0.5 * 0.033174 + 500/1024 * 0.004446.
//
//	small  T = 1.1 * 0.033174 + 2.0625 * 0.004446 = 0.045661  C = 3 * 0.108889  (2-1) * (1-tanh(2/15)) + 1 = 1.867451  10.0136
//	large  T = 0.045661 + 3 * 0.033174 + 8 * 0.004446         C = 0.393889      2                                       4.1366
//	dear   the same                                           C = 0.431489      2                                       4.5136
func TestEveryGenerationGetsTheRightAnswer(t *testing.T) {
	for _, g := range generations {
		t.Run(g.name, func(t *testing.T) {
			r := start(t, enginetest.Open(t),
				Options{Policy: gcePolicy(t), Nodes: func() (int, bool) { return 10, true }})
			log := keepLog(t)
			r.expect(g.encode(t, threeGroups()), "large")
			r.counts(map[string]float64{"ranked": 1, "fallback": 0}, nil, nil)
			log.has(t, `"nodeGroup"="large"`, `"runnerUp"="dear"`, "score 4.136", "against 4.513",
				"instance type n1-standard-8 in gce-us-central1.csv")
		})
	}
}

// The same with limits of 28 Gi: under a line of 1.5 for memory four of them count as 112 Gi, for which three nodes of
// 44 Gi are needed: C = 3 * 0.393889, X and T as above, (1.181667 + X) / (T + X) * 1.867451 = 11.236. On small nodes
// each counts as 7500 Mi, so that two suffice, and Cluster Autoscaler's three stay.
func TestTheLoadLineCounts(t *testing.T) {
	line := &loadlinev1.LoadLine{Resources: []*loadlinev1.LineResource{
		{Resource: "memory", MaxLimitsOverAllocatable: "1.5"}}}
	a := threeGroups()
	for _, option := range a.options {
		for _, pod := range option.pods {
			pod.Spec.Containers[0].Resources.Limits["memory"] = resource.MustParse("28Gi")
		}
	}
	nodes := func() (int, bool) { return 10, true }
	for _, g := range generations {
		r := start(t, enginetest.Open(t), Options{Policy: gcePolicy(t), Nodes: nodes, Line: line})
		log := keepLog(t)
		r.expect(g.encode(t, a), "small")
		log.has(t, `"nodesCounted"=3`, "score 10.01", "against 11.236")
	}
	start(t, enginetest.Open(t), Options{Policy: gcePolicy(t), Nodes: nodes}).expect(generations[2].encode(t, a), "large")
}

// Killed and started again: the answer is an id all along, and the engine's as soon as it is back.
func TestTheEngineDiesAndComesBack(t *testing.T) {
	daemon := enginetest.StartDaemon(t)
	r := start(t, daemon.Open(), Options{Policy: gcePolicy(t), Nodes: func() (int, bool) { return 10, true }})
	keepLog(t)
	request := generations[2].encode(t, threeGroups())
	r.expect(request, "large")
	daemon.Kill()
	for range 7 {
		r.expect(request, "dear")
	}
	r.counts(map[string]float64{"ranked": 1, "fallback": 7}, nil, nil)
	daemon.Start()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		got, err := call(t.Context(), r.conn, request)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(got, lengthDelimited(1, lengthDelimited(1, "large"))) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the engine is back, and not asked")
		}
	}
}
