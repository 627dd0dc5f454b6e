package view

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/internal/testing/nodeinfo"
	"loadline.dev/shim/internal/testing/randompod"
)

// Whatever is done to the cluster and to the messages, once messages arrive again the engine has what it would have,
// had it got everything anew: batches applied twice, late or never, a lost engine, a chunked full list.

const (
	seeds         = 60
	stepsPerSeed  = 150
	distinctNodes = 8
	distinctPods  = 40
	distinctSpecs = 150 // more than pods, so that shapes come and go and ids are reused
)

// world is a cluster that changes at random.
type world struct {
	*rand.Rand
	nodes map[string]*v1.Node
	pods  map[string]*v1.Pod // by name; also such whose node is not there
	uids  int
}

func newWorld(seed uint64) *world {
	return &world{Rand: rand.New(rand.NewPCG(seed, 1)), nodes: map[string]*v1.Node{}, pods: map[string]*v1.Pod{}}
}

// node is now and then one that a picky engine does not take.
func (w *world) node() *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", w.IntN(distinctNodes))},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			"cpu":    *resource.NewQuantity(w.Int64N(64)-4, resource.DecimalSI),
			"memory": *resource.NewQuantity(w.Int64N(1<<36), resource.BinarySI),
		}},
	}
}

func (w *world) pod() *v1.Pod {
	spec := rand.New(rand.NewPCG(w.Uint64N(distinctSpecs), 2))
	pod, _ := randompod.New(spec, fmt.Sprintf("pod-%d", w.IntN(distinctPods)),
		fmt.Sprintf("node-%d", w.IntN(distinctNodes)))
	pod.Namespace = "ns"
	w.uids++
	pod.UID = types.UID(fmt.Sprint(w.uids))
	pod.ResourceVersion = fmt.Sprint(w.uids)
	return pod
}

func (w *world) fill(v *View) {
	for _, pod := range w.pods {
		v.SetPod(pod)
	}
	for _, node := range w.nodes {
		v.SetNode(node)
	}
}

// change changes the cluster and tells the view, as informers would.
func (w *world) change(v *View) {
	switch w.IntN(10) {
	case 0, 1, 2:
		node := w.node()
		w.nodes[node.Name] = node
		v.SetNode(node)
	case 3:
		name := w.node().Name
		delete(w.nodes, name)
		v.DeleteNode(name)
	case 4, 5, 6, 7:
		pod := w.pod()
		w.pods[pod.Name] = pod
		v.SetPod(pod)
	case 8:
		if pod := w.pods[w.pod().Name]; pod != nil {
			delete(w.pods, pod.Name)
			v.DeletePod(pod)
		}
	case 9:
		if pod := w.pods[w.pod().Name]; pod != nil { // an event about an older pod of the name, come late
			old := pod.DeepCopy()
			old.UID = "older"
			v.DeletePod(old)
		}
	}
}

// Invariants A4, F1, F2, F3, F5, F7.
func TestViewLeadsToWhatAFullSyncLeadsTo(t *testing.T) {
	conn := picky{enginetest.Open(t)}
	counts := map[string]int{}
	for seed := range uint64(seeds) {
		name := fmt.Sprintf("view-%d", seed)
		f := &faulty{ClientConnInterface: conn, r: rand.New(rand.NewPCG(seed, 3)), view: name, counts: counts}
		v := New(f, name)
		v.chunk = 200 // a node or two: full lists and deltas take several messages
		v.LeaveOutInvalid(expectNegative(t, counts))
		w := newWorld(seed)
		for step := range stepsPerSeed {
			w.change(v)
			f.on, f.during = true, func() { w.change(v) }
			if w.IntN(3) == 0 {
				if err := v.Sync(t.Context()); err == nil {
					counts["synced in spite of it"]++
				}
			}
			if step%15 != 14 {
				continue
			}
			f.heal(t.Context())
			if err := v.Sync(t.Context()); err != nil {
				t.Fatalf("seed %d step %d: %v", seed, step, err)
			}
			expectNoDifference(t, seed, step,
				func(ctx context.Context) ([]string, error) { return v.Audit(ctx, w.fill) })
		}
		if err := v.Drop(t.Context()); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	expectAll(t, counts, "synced in spite of it", "node left out")
}

// snapshot is the world as a scheduler's snapshot.
type snapshot struct {
	*world
	infos      map[string]*nodeinfo.NodeInfo
	generation int64
}

// update makes a NodeInfo, of a new generation, of each node that changed.
func (s *snapshot) update(changed ...string) {
	byNode := map[string][]*v1.Pod{}
	for _, pod := range s.pods {
		byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod)
	}
	for _, name := range changed {
		delete(s.infos, name)
		if node := s.nodes[name]; node != nil {
			s.generation++
			s.infos[name] = nodeinfo.New(s.generation, node, byNode[name]...)
		}
	}
}

func (s *snapshot) change() {
	switch s.IntN(6) {
	case 0, 1:
		node := s.node()
		s.nodes[node.Name] = node
		s.update(node.Name)
	case 2:
		name := s.node().Name
		delete(s.nodes, name)
		s.update(name)
	case 3, 4:
		pod := s.pod()
		old := s.pods[pod.Name]
		s.pods[pod.Name] = pod
		if s.update(pod.Spec.NodeName); old != nil {
			s.update(old.Spec.NodeName)
		}
	case 5:
		if pod := s.pods[s.pod().Name]; pod != nil {
			delete(s.pods, pod.Name)
			s.update(pod.Spec.NodeName)
		}
	}
}

func (s *snapshot) all() []fwk.NodeInfo {
	var out []fwk.NodeInfo
	for _, name := range slices.Sorted(maps.Keys(s.infos)) {
		out = append(out, s.infos[name])
	}
	return out
}

// feasible picks some of the nodes, in any order.
func (s *snapshot) feasible(all []fwk.NodeInfo) []fwk.NodeInfo {
	picked := slices.Clone(all)
	s.Shuffle(len(picked), func(i, j int) { picked[i], picked[j] = picked[j], picked[i] })
	return picked[:1+s.IntN(len(picked))]
}

// Invariants A4, F1, F2, F3, F5, F7.
func TestCyclesAreAnsweredAsAFreshEngineWould(t *testing.T) {
	conn := picky{enginetest.Open(t)}
	counts := map[string]int{}
	for seed := range uint64(seeds) {
		name := fmt.Sprintf("cycles-%d", seed)
		f := &faulty{ClientConnInterface: conn, r: rand.New(rand.NewPCG(seed, 4)), view: name, counts: counts}
		c := newCycles(f, name, Events{LeftOut: expectNegative(t, counts)})
		c.chunk = 200
		c.inline = inlineLimits{bytes: 4000, bytesUnsure: 1500, trims: 15}
		s := &snapshot{world: newWorld(seed), infos: map[string]*nodeinfo.NodeInfo{}}
		for step := range stepsPerSeed {
			s.change()
			f.on = step%15 != 14
			if !f.on {
				f.heal(t.Context())
			}
			runCycle(t, s, c, f, fmt.Sprintf("seed %d step %d", seed, step))
			if all := s.all(); !f.on && len(all) > 0 {
				askUntilAnswered(t, c, f, all, all)
				expectNoDifference(t, seed, step,
					func(ctx context.Context) ([]string, error) { return c.Audit(ctx, all) })
			}
		}
		c.Close()
		f.restart(t.Context())
	}
	expectAll(t, counts, "answered", "synced in the background", "node left out")
}

// askUntilAnswered asks again while the engine is brought up to date, and after a refusal.
func askUntilAnswered(t *testing.T, c *cycles, conn grpc.ClientConnInterface,
	feasible, all []fwk.NodeInfo) (scores []int32) {
	t.Helper()
	var err error
	for range 10 {
		err = c.Ask(cycleOf(feasible, all), func(changes *loadlinev1.Changes, slots []int32) (err error) {
			scores, err = score(t.Context(), conn, changes, slots)
			return err
		})
		if err == nil {
			return scores
		}
		c.wg.Wait()
	}
	t.Fatal(err)
	return nil
}

// runCycle asks about some of the nodes and holds an answer against that of a fresh view.
func runCycle(t *testing.T, s *snapshot, c *cycles, f *faulty, where string) {
	t.Helper()
	all := s.all()
	if len(all) == 0 {
		return
	}
	feasible := s.feasible(all)
	var got []int32
	err := c.Ask(cycleOf(feasible, all), func(changes *loadlinev1.Changes, slots []int32) (err error) {
		got, err = score(t.Context(), f, changes, slots)
		return err
	})
	if errors.Is(err, ErrSyncing) {
		c.wg.Wait()
		f.counts["synced in the background"]++
	}
	if err != nil {
		return
	}
	f.counts["answered"]++
	fresh := newCycles(f.ClientConnInterface, "fresh", Events{})
	defer fresh.Close()
	if want := askUntilAnswered(t, fresh, f.ClientConnInterface, feasible, feasible); !slices.Equal(got, want) {
		t.Fatalf("%s: got scores %v, want %v", where, got, want)
	}
}

// score asks about a pod that is the same each time. Nodes that are left out have no score.
func score(ctx context.Context, conn grpc.ClientConnInterface, changes *loadlinev1.Changes,
	slots []int32) ([]int32, error) {
	slots = slices.DeleteFunc(slices.Clone(slots), func(slot int32) bool { return slot == NoSlot })
	if len(slots) == 0 {
		_, err := loadlinev1.NewClusterStateClient(conn).Sync(ctx, &loadlinev1.SyncRequest{Changes: changes})
		return nil, err
	}
	answer, err := loadlinev1.NewSchedulerExtenderClient(conn).Score(ctx, &loadlinev1.ScoreRequest{
		Changes: changes, Pod: TrimIncomingPod(fullPod()), Slots: slots,
		Policy: &loadlinev1.ScorePolicy{Preset: loadlinev1.ScorePolicy_STRICT,
			Normalization: loadlinev1.ScorePolicy_ABSOLUTE},
	})
	return answer.GetScores(), err
}

func expectNoDifference(t *testing.T, seed uint64, step int, audit func(context.Context) ([]string, error)) {
	t.Helper()
	differing, err := audit(t.Context())
	if err != nil || len(differing) > 0 {
		t.Fatalf("seed %d step %d: nodes %v differ from those of a full sync, error %v", seed, step, differing, err)
	}
}

// expectNegative counts nodes that are left out, and lets none pass for which the books are to blame.
func expectNegative(t *testing.T, counts map[string]int) func(string, error) {
	return func(node string, err error) {
		counts["node left out"]++
		if !strings.Contains(err.Error(), "negative") {
			t.Errorf("%s was left out: %v", node, err)
		}
	}
}

// expectAll makes sure that the test tried what it is about.
func expectAll(t *testing.T, counts map[string]int, more ...string) {
	t.Helper()
	t.Log(counts)
	for _, what := range append(more, "request lost", "answer lost", "request late", "request doubled",
		"engine restarted", "engine unreachable") {
		if counts[what] < 20 {
			t.Errorf("%s: %d times, want at least 20", what, counts[what])
		}
	}
}
