package fit

import (
	"context"
	"flag"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/view"
)

var (
	clusters  = flag.Uint64("fit-clusters", drawn(5000, 20000), "random clusters to compare")
	firstSeed = flag.Uint64("fit-seed", 0, "seed of the first cluster")
)

// drawn returns all for make test-drawn, which sets LOADLINE_DRAWN_CASES, and some, what each run has time for, else.
func drawn(some, all uint64) uint64 {
	if os.Getenv("LOADLINE_DRAWN_CASES") != "" {
		return all
	}
	return some
}

// leastShare is the percentage of the cases in which each filter must say yes and no, and each feature occur.
const leastShare = 4

// asUpstream are the options by which the product answers as the release of kube-scheduler does, defects included.
func asUpstream() *loadlinev1.FitOptions {
	return &loadlinev1.FitOptions{KubernetesMinor: Minor()}
}

// pair asks kube-scheduler's plugins and the engine the same.
type pair struct {
	upstream *Upstream
	engine   *Engine
	options  *loadlinev1.FitOptions
	// defaultSelector is what the services of a cluster, if any, select a pod by.
	defaultSelector func(*v1.Pod) []byte
}

func newPair(t testing.TB, configure func(*config.KubeSchedulerProfile)) *pair {
	t.Helper()
	upstream, err := NewUpstream(t.Context(), configure)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := NewEngine(library(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return &pair{upstream: upstream, engine: engine, options: asUpstream(),
		defaultSelector: func(*v1.Pod) []byte { return nil }}
}

// differences compares, node by node, what upstream says with what the engine says.
func differences(c *Cluster, want *Answers, got map[string]Answer) []string {
	var out []string
	seen := 0
	for _, w := range want.Nodes {
		g, ok := got[w.Node]
		if ok {
			seen++
		}
		switch {
		case w.Status == CannotBeJudged && g.Status == CannotBeJudged:
			continue
		case ok && w.Filter == "DynamicResources" && (g.Status == CannotBeJudged || g.Filter == "NodeDeclaredFeatures"):
			continue // devices are not judged; later filters may refuse
		case ok && Minor() >= 37 && c.Pod.Spec.NodeName != "" && w.Status != Fits && g.Status != Fits:
			continue // 1.37 leaves nodes of other names out before its filters, and says only that
		case ok && sameButDriver(w, g):
			continue
		case !ok || !reflect.DeepEqual(w, g):
			out = append(out, fmt.Sprintf("%s\n    kube-scheduler: %+v\n    engine:         %+v", w.Node, w, g))
		}
	}
	if seen != len(got) {
		out = append(out, fmt.Sprintf("the engine answers for nodes that there are not: %v", got))
	}
	return out
}

// sameButDriver says whether both refuse for want of a CSI driver: of several upstream names any.
func sameButDriver(w, g Answer) bool {
	const says = " CSI driver is not installed on the node"
	if len(w.Reasons) != 1 || len(g.Reasons) != 1 || !strings.HasSuffix(w.Reasons[0], says) ||
		!strings.HasSuffix(g.Reasons[0], says) {
		return false
	}
	w.Reasons = g.Reasons
	return reflect.DeepEqual(w, g)
}

// compare asks both about one case: before its moves, after them, and once the view itself has been led to where
// they lead. Returns what upstream said after the moves.
func (p *pair) compare(ctx context.Context, seed uint64, c *Case) (found []string, answers *Answers, err error) {
	incoming := c.Cluster.Pod
	if seed%2 == 0 {
		incoming = Admitted(incoming) // what an API server merges, the engine must not count twice
	}
	pod := &loadlinev1.IncomingPod{Pod: view.TrimIncomingPodForFilters(incoming),
		DefaultSpreadSelector: p.defaultSelector(incoming)}
	if seed%3 == 0 {
		if pod.Pod, err = incoming.Marshal(); err != nil { // nor be confused by what else a pod has
			return nil, nil, err
		}
	}
	if err := p.engine.Load(ctx, c.Cluster, allKinds...); err != nil {
		return nil, nil, err
	}
	ask := func(what string, question *Case, want *Answers) error {
		got, err := p.engine.Fit(ctx, question, pod, p.options)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		for _, d := range differences(question.Cluster, want, got) {
			found = append(found, what+": "+d)
		}
		return nil
	}
	before, err := p.upstream.Filter(ctx, c.Cluster)
	if err != nil {
		return nil, nil, err
	}
	if err := ask("as it is", &Case{Cluster: c.Cluster}, before); err != nil || len(c.Moves) == 0 {
		return found, before, err
	}
	after, _ := c.After()
	answers, err = p.upstream.Filter(ctx, after)
	if err != nil {
		return nil, nil, err
	}
	if err := ask("after the moves", c, answers); err != nil {
		return nil, nil, err
	}
	if err := ask("moves undone", &Case{Cluster: c.Cluster}, before); err != nil || len(after.Ghosts) > 0 {
		return found, answers, err
	}
	if err := p.engine.Change(ctx, after); err != nil {
		return nil, nil, err
	}
	err = ask("after the same changes", &Case{Cluster: after}, answers)
	return found, answers, err
}

func TestFitEqualsUpstream(t *testing.T) {
	start := time.Now()
	var next atomic.Uint64
	next.Store(*firstSeed)
	var wg sync.WaitGroup
	coverages := make([]*Coverage, runtime.GOMAXPROCS(0))
	for i := range coverages {
		coverages[i] = NewCoverage()
		p := newPair(t, nil)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for seed := next.Add(1) - 1; seed < *firstSeed+*clusters && !t.Failed(); seed = next.Add(1) - 1 {
				p.check(t, seed, coverages[i])
			}
		}()
	}
	wg.Wait()
	total := NewCoverage()
	for _, c := range coverages {
		total.Merge(c)
	}
	t.Logf("seeds from %d, in %.1f s\n%s", *firstSeed, time.Since(start).Seconds(), total)
	if rare := total.Rare(leastShare); len(rare) > 0 && !t.Failed() && total.Cases >= 1000 {
		t.Errorf("in less than %d %% of the cases: %s", leastShare, strings.Join(rare, ", "))
	}
}

// check compares one case, and on a difference shows a smaller one.
func (p *pair) check(t *testing.T, seed uint64, coverage *Coverage) {
	c := GenerateCase(seed)
	differences, answers, err := p.compare(t.Context(), seed, c)
	if err == nil && len(differences) == 0 {
		cluster := c.Cluster
		if len(c.Moves) > 0 {
			cluster, _ = c.After()
		}
		coverage.Add(cluster, answers)
		return
	}
	refused := err != nil
	small := Shrink(c, func(c *Case) bool {
		d, _, err := p.compare(t.Context(), seed, c)
		return refused && err != nil || !refused && err == nil && len(d) > 0
	})
	differences, _, err = p.compare(t.Context(), seed, small)
	t.Errorf("seed %d: %v\n%s\nmoves: %v\n%s", seed, err, strings.Join(differences, "\n"), small.Moves,
		small.Cluster.YAML())
}
