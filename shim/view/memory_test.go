package view

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/nodeinfo"
)

// rawCycles is a Cycles whose engine gives each slot the raw score of a counter, and which notes what it was asked.
type rawCycles struct {
	*cycles
	all   []fwk.NodeInfo // nil: those of the cycle
	asked [][]int32      // since the last cycle
	next  int64
	err   error
}

func newRawCycles(t *testing.T) *rawCycles {
	r := &rawCycles{cycles: newCycles(nil, "v", Events{})}
	t.Cleanup(r.Close)
	return r
}

func (r *rawCycles) cycle(t *testing.T, kind string, nodes ...fwk.NodeInfo) []int64 {
	t.Helper()
	r.asked = nil
	all := r.all
	if all == nil {
		all = nodes
	}
	raw, err := r.RawScores(cycleOf(nodes, all), Kind{Pod: kind},
		func(_ *loadlinev1.Changes, slots []int32) ([]int64, error) {
			r.asked = append(r.asked, slices.Clone(slots))
			out := make([]int64, len(slots))
			for i := range out {
				r.next++
				out[i] = r.next
			}
			return out, r.err
		})
	if !errors.Is(err, r.err) {
		t.Fatal(err)
	}
	return raw
}

func (r *rawCycles) expect(t *testing.T, what string, raw, want []int64, asked ...[]int32) {
	t.Helper()
	if !slices.Equal(raw, want) || !slices.EqualFunc(r.asked, asked, slices.Equal) {
		t.Errorf("%s: got %v, asked %v; want %v, asked %v", what, raw, r.asked, want, asked)
	}
}

// Each step by hand: the fake engine counts up with each slot that it is asked about.
func TestOnlyChangedNodesAreAskedAbout(t *testing.T) {
	r := newRawCycles(t)
	a, b, c := named("a"), named("b"), named("c")
	nodes := []fwk.NodeInfo{nodeinfo.New(1, a), nodeinfo.New(2, b), nodeinfo.New(3, c)}
	r.all = nodes
	r.expect(t, "first", r.cycle(t, "k", nodes...), []int64{1, 2, 3}, []int32{0, 1, 2})
	r.expect(t, "nothing changed", r.cycle(t, "k", nodes...), []int64{1, 2, 3})
	nodes[1] = nodeinfo.New(4, b, fullPod())
	r.expect(t, "one changed", r.cycle(t, "k", nodes...), []int64{1, 4, 3}, []int32{1})
	r.expect(t, "fewer, in another order", r.cycle(t, "k", nodes[2], nodes[0]), []int64{3, 1})
	r.expect(t, "another kind of pod", r.cycle(t, "l", nodes[:2]...), []int64{5, 6}, []int32{0, 1})
	nodes[1] = nodeinfo.New(5, b, fullPod())
	r.expect(t, "a heartbeat", r.cycle(t, "k", nodes...), []int64{1, 4, 3})
	nodes[1] = nodeinfo.New(6, b)
	r.expect(t, "the pod is gone", r.cycle(t, "k", nodes...), []int64{1, 7, 3}, []int32{1})
	r.expect(t, "for the other kind as well", r.cycle(t, "l", nodes...), []int64{5, 8, 9}, []int32{1, 2})
	r.expect(t, "named twice", r.cycle(t, "m", nodes[0], nodes[0], nodes[1]), []int64{10, 10, 11}, []int32{0, 1})

	// Another node in the slot of one that is gone.
	r.all = nodes[:2]
	r.expect(t, "c is gone", r.cycle(t, "k", nodes[:2]...), []int64{1, 7})
	nodes[0] = nodeinfo.New(7, a, fullPod())
	r.expect(t, "the engine hears of it", r.cycle(t, "k", nodes[:2]...), []int64{12, 7}, []int32{0})
	r.all = nodes
	nodes[2] = nodeinfo.New(8, named("d"))
	r.expect(t, "d is new", r.cycle(t, "k", nodes...), []int64{12, 7, 13}, []int32{2})
}

func TestNothingIsRememberedOfWhatFailed(t *testing.T) {
	r := newRawCycles(t)
	nodes := []fwk.NodeInfo{nodeinfo.New(1, named("a")), nodeinfo.New(2, named("b"))}
	r.err = errTimeout
	r.cycle(t, "k", nodes...)
	r.err = nil
	r.expect(t, "after a timeout", r.cycle(t, "k", nodes...), []int64{3, 4}, []int32{0, 1})
	r.err = status.Error(codes.NotFound, "no such view")
	r.cycle(t, "l", nodes...)
	r.err = nil
	r.expect(t, "after a restart", r.cycle(t, "k", nodes...), []int64{7, 8}, []int32{0, 1})
	raw, err := r.RawScores(cycleOf(nodes, nodes), Kind{Pod: "m"},
		func(*loadlinev1.Changes, []int32) ([]int64, error) { return []int64{1}, nil })
	if raw != nil || err != nil {
		t.Errorf("too few answers: got %v, %v", raw, err)
	}
}

func TestTheKindsAskedAboutLastAreRemembered(t *testing.T) {
	r := newRawCycles(t)
	node := nodeinfo.New(1, named("a"))
	for i := range mostKinds {
		r.cycle(t, fmt.Sprint(i), node)
	}
	r.cycle(t, "0", node)
	if len(r.asked) != 0 {
		t.Error("kind 0 is forgotten")
	}
	r.cycle(t, "new", node) // pushes out kind 1, the one asked about longest ago
	for i := range mostKinds {
		if r.cycle(t, fmt.Sprint(i), node); i == 0 && len(r.asked) != 0 {
			t.Error("kind 0 is forgotten although it was asked about again")
		} else if i == 1 && len(r.asked) != 1 {
			t.Error("kind 1 is remembered beyond the bound")
		}
	}
	if len(r.memory.kinds) != mostKinds {
		t.Errorf("%d kinds are remembered", len(r.memory.kinds))
	}
}

// An HTTP extender that answers whole nodes gives the scheduler NodeInfos with these and without pods. They change
// nothing in the engine's view, and a node that it made up has no raw score.
func TestNodeInfosWithoutContentChangeNothing(t *testing.T) {
	r := newRawCycles(t)
	all := []fwk.NodeInfo{nodeinfo.New(1, named("a"), fullPod()), nodeinfo.New(2, named("b"), fullPod(), fullPod())}
	r.expect(t, "first", r.cycle(t, "k", all...), []int64{1, 2}, []int32{0, 1})
	empty := []fwk.NodeInfo{nodeinfo.New(8, named("b")), nodeinfo.New(7, named("a")), nodeinfo.New(9, named("x"))}
	for range 2 {
		var sent *loadlinev1.Changes
		raw, err := r.RawScores(cycleOf(empty, all), Kind{Pod: "l"},
			func(changes *loadlinev1.Changes, slots []int32) ([]int64, error) {
				sent = changes
				return []int64{20, 10}, nil
			})
		if want := []int64{20, 10, NoRawScore}; err != nil || !slices.Equal(raw, want) || len(sent.GetNodes()) > 0 {
			t.Errorf("got %v, %v, sent %v; want %v", raw, err, sent.GetNodes(), want)
		}
	}
	r.expect(t, "afterwards", r.cycle(t, "k", all...), []int64{1, 2})
	all[0] = nodeinfo.New(3, all[0].Node(), fullPod(), fullPod())
	if err := r.Ask(cycleOf(empty[1:2], all), func(changes *loadlinev1.Changes, _ []int32) error {
		if len(changes.GetNodes()) != 1 || len(changes.GetNodes()[0].GetPods()) != 2 {
			t.Errorf("sent %v, want a with 2 pods", changes.GetNodes())
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// trial is a scheduler's snapshot in the cycle of a pod group, which places pods without another generation.
type trial struct {
	r     *rand.Rand
	nodes []*trialNode
	next  int64
}

type trialNode struct {
	node       *v1.Node
	generation int64
	pods       []*v1.Pod
	placed     int // of the pods: on trial
}

func (s *trial) infos() (all []fwk.NodeInfo) {
	for _, n := range s.nodes {
		all = append(all, nodeinfo.New(n.generation, n.node, n.pods...))
	}
	return all
}

func (s *trial) some(all []fwk.NodeInfo) (feasible []fwk.NodeInfo) {
	for _, info := range all {
		if s.r.IntN(3) > 0 {
			feasible = append(feasible, info)
		}
	}
	return feasible
}

func (s *trial) bind() {
	n := s.nodes[s.r.IntN(len(s.nodes))]
	s.next++
	n.generation = s.next
	if len(n.pods) > 0 && s.r.IntN(2) == 0 {
		n.pods = slices.Clone(n.pods[1:])
	} else {
		n.pods = append(slices.Clone(n.pods), s.pod())
	}
}

func (s *trial) place() {
	n := s.nodes[s.r.IntN(len(s.nodes))]
	n.pods = append(slices.Clone(n.pods), s.pod())
	n.placed++
}

func (s *trial) pod() *v1.Pod {
	pod := fullPod()
	pod.UID = ""
	return pod
}

// reject takes all pods of the group away again; else they are bound.
func (s *trial) end(reject bool) {
	for _, n := range s.nodes {
		if n.placed > 0 && reject {
			n.pods = slices.Clone(n.pods[:len(n.pods)-n.placed])
		} else if n.placed > 0 {
			s.next++
			n.generation = s.next
		}
		n.placed = 0
	}
}

// In each cycle of a group the engine knows the pods of the members before, afterwards those of accepted groups alone:
// after each cycle the raw score of each feasible node is the number of its pods, counted anew.
func TestMembersOfAGroupSeeThoseBefore(t *testing.T) {
	var inGroup, rejected int
	for seed := range uint64(300) {
		s := &trial{r: rand.New(rand.NewPCG(seed, 5))}
		for i := range 1 + s.r.IntN(6) {
			s.next++
			s.nodes = append(s.nodes, &trialNode{node: named(fmt.Sprint("n", i)), generation: s.next})
		}
		held := map[int32]int64{} // what a fake engine holds: the pods of each slot
		c := newCycles(nil, "v", Events{})
		cycle := func(group any) {
			all := s.infos()
			feasible := s.some(all)
			raw, err := c.RawScores(oneCycle{Feasible: feasible, Snapshot: &nodeinfo.Lister{Nodes: all}, Group: group},
				Kind{Pod: "k"}, func(changes *loadlinev1.Changes, slots []int32) (out []int64, err error) {
					for _, node := range changes.GetNodes() {
						held[node.GetSlot()] = int64(len(node.GetPods()))
					}
					for _, slot := range slots {
						out = append(out, held[slot])
					}
					return out, nil
				})
			if err != nil {
				t.Fatal(err)
			}
			for i, info := range feasible {
				if want := int64(len(info.GetPods())); raw[i] != want {
					t.Fatalf("seed %d: %s has the raw score %d, want %d; group %v", seed, info.Node().Name, raw[i],
						want, group != nil)
				}
			}
		}
		for range 30 {
			switch s.r.IntN(3) {
			case 0:
				s.bind()
				cycle(nil)
			case 1:
				cycle(nil)
			default:
				group := new(int)
				for range s.r.IntN(5) {
					cycle(group)
					s.place()
					inGroup++
				}
				reject := s.r.IntN(2) == 0
				if s.end(reject); reject {
					rejected++
				}
			}
		}
		c.Close()
	}
	if inGroup < 1000 || rejected < 500 {
		t.Errorf("only %d cycles in groups, %d groups were rejected", inGroup, rejected)
	}
}

// Also where nothing is asked about them: what the engine holds of nodes that are not feasible.
func TestNothingOfARejectedGroupStays(t *testing.T) {
	c := newCycles(nil, "v", Events{})
	defer c.Close()
	a, b := named("a"), named("b")
	without := []fwk.NodeInfo{nodeinfo.New(1, a), nodeinfo.New(2, b)}
	with := []fwk.NodeInfo{nodeinfo.New(1, a, fullPod()), nodeinfo.New(2, b)}
	held := map[string]int{}
	ask := func(feasible, all []fwk.NodeInfo, group any) {
		err := c.Ask(oneCycle{Feasible: feasible, Snapshot: &nodeinfo.Lister{Nodes: all}, Group: group},
			func(changes *loadlinev1.Changes, slots []int32) error {
				for _, node := range changes.GetNodes() {
					held[c.ledger.slots[node.GetSlot()].name] = len(node.GetPods())
				}
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	group, other := new(int), new(int)
	ask(without, without, group)
	ask(with, with, group)
	if held["a"] != 1 {
		t.Errorf("within the group the engine holds %v", held)
	}
	ask(without[1:], without, other)
	if held["a"] != 0 {
		t.Errorf("in the next group the engine holds %v", held)
	}
	ask(with[1:], with, other)
	ask(with[:1], with, other)
	if held["a"] != 1 {
		t.Errorf("within the next group the engine holds %v", held)
	}
	ask(without[1:], without, nil)
	if held["a"] != 0 || len(c.tentative) != 0 {
		t.Errorf("after the groups the engine holds %v, %d nodes of groups", held, len(c.tentative))
	}
}
