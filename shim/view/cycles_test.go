package view

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/internal/testing/nodeinfo"
)

// Changes that do not arrive within the timeout of a cycle are not tried again and again: they are sent in the
// background, which has more time.
func TestWhatTimesOutIsSyncedInTheBackground(t *testing.T) {
	conn := enginetest.Open(t)
	c := newCycles(conn, "v", Events{})
	defer c.Close()
	c.inline = inlineLimits{bytes: 10000, bytesUnsure: 10, trims: 1000}
	var nodes []fwk.NodeInfo
	for i, name := range []string{"a", "b", "c"} {
		nodes = append(nodes, nodeinfo.New(int64(i+1), named(name), fullPod()))
	}
	tooSlow := func(changes *loadlinev1.Changes, slots []int32) error {
		if len(changes.GetNodes()) > 0 {
			return errTimeout
		}
		_, err := score(t.Context(), conn, changes, slots)
		return err
	}
	for _, what := range []string{"full list", "delta"} {
		if err := c.Ask(cycleOf(nodes, nodes), tooSlow); !errors.Is(err, errTimeout) {
			t.Errorf("%s: got error %v, want the timeout", what, err)
		}
		if err := c.Ask(cycleOf(nodes, nodes), tooSlow); !errors.Is(err, ErrSyncing) {
			t.Errorf("%s: got error %v, want that it goes to the background", what, err)
		}
		c.wg.Wait()
		if err := c.Ask(cycleOf(nodes, nodes), tooSlow); err != nil {
			t.Errorf("%s: got error %v", what, err)
		}
		nodes[0] = nodeinfo.New(9, named("a"))
	}
}

// A cycle that takes long does not hold up another one.
func TestOneQuestionAtATime(t *testing.T) {
	c := newCycles(enginetest.Open(t), "v", Events{})
	nodes := []fwk.NodeInfo{nodeinfo.New(1, named("a"))}
	err := c.Ask(cycleOf(nodes, nodes), func(*loadlinev1.Changes, []int32) error {
		return c.Ask(cycleOf(nodes, nodes), func(*loadlinev1.Changes, []int32) error { return nil })
	})
	if !errors.Is(err, ErrSyncing) {
		t.Errorf("got error %v", err)
	}
	c.Close()
	if err := c.Ask(cycleOf(nodes, nodes), nil); !errors.Is(err, ErrSyncing) {
		t.Errorf("after Close: got error %v", err)
	}
}

// closing is a snapshot that closes its view when it is read.
type closing struct {
	NodeLister[fwk.NodeInfo]
	cycles *cycles
}

func (l closing) List() ([]fwk.NodeInfo, error) {
	l.cycles.Close()
	return l.NodeLister.List()
}

// Nothing begins in the background after Close, also where a question was under way.
func TestCloseDuringAQuestion(t *testing.T) {
	synced := false
	c := newCycles(enginetest.Open(t), "v", Events{Synced: func(error) { synced = true }})
	c.inline = inlineLimits{}
	cycle := cycleOf([]fwk.NodeInfo{nodeinfo.New(1, named("a"))}, []fwk.NodeInfo{nodeinfo.New(1, named("a"))})
	cycle.Snapshot = closing{cycle.Snapshot, c}
	if err := c.Ask(cycle, nil); !errors.Is(err, ErrSyncing) {
		t.Errorf("got error %v", err)
	}
	if c.wg.Wait(); synced {
		t.Error("a background sync began after Close")
	}
	if !c.turn.tryLock() {
		t.Error("the turn is held for ever")
	}
}

// Heartbeats bring a new object and a new generation of the same content: nothing is sent.
func TestEqualContentIsNotSentAgain(t *testing.T) {
	conn := enginetest.Open(t)
	c := newCycles(conn, "v", Events{})
	defer c.Close()
	sent := 0
	ask := func(generation int64) {
		nodes := []fwk.NodeInfo{nodeinfo.New(generation, named("a"), fullPod()), nodeinfo.New(70, named("b"))}
		err := c.Ask(cycleOf(nodes, nodes), func(changes *loadlinev1.Changes, slots []int32) error {
			sent += len(changes.GetNodes())
			_, err := score(t.Context(), conn, changes, slots)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for generation := range int64(5) {
		ask(generation)
	}
	if sent != 2 {
		t.Errorf("sent %d nodes, want each once", sent)
	}
}

// A pod or policy that the engine cannot read is sent with changes: they are applied, and no node is suspected.
func TestABadQuestionDoesNotLoseItsChanges(t *testing.T) {
	good := &loadlinev1.ScorePolicy{Preset: loadlinev1.ScorePolicy_STRICT}
	negative := fullPod()
	negative.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("-1")
	for _, c := range []struct {
		name    string
		request *loadlinev1.ScoreRequest
	}{
		{"Pod", &loadlinev1.ScoreRequest{Pod: TrimIncomingPod(negative), Policy: good}},
		{"PodBytes", &loadlinev1.ScoreRequest{Pod: []byte("\xff"), Policy: good}},
		{"Policy", &loadlinev1.ScoreRequest{Policy: &loadlinev1.ScorePolicy{}}},
		{"PolicyField", &loadlinev1.ScoreRequest{Policy: &loadlinev1.ScorePolicy{Preset: loadlinev1.ScorePolicy_STRICT,
			MaxLimitRatio: -7}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := enginetest.Open(t)
			cycles := newCycles(conn, "v", Events{})
			defer cycles.Close()
			nodes := []fwk.NodeInfo{nodeinfo.New(1, named("a")), nodeinfo.New(2, named("b"), fullPod())}
			for _, what := range []string{"full list", "delta"} {
				err := cycles.Ask(cycleOf(nodes, nodes), func(changes *loadlinev1.Changes, slots []int32) error {
					c.request.Changes, c.request.Slots = changes, slots
					_, err := loadlinev1.NewSchedulerExtenderClient(conn).Score(t.Context(), c.request)
					return err
				})
				if status.Code(err) != codes.InvalidArgument {
					t.Errorf("%s: got error %v", what, err)
				}
				err = cycles.Ask(cycleOf(nodes, nodes), func(changes *loadlinev1.Changes, slots []int32) error {
					if len(changes.GetNodes()) > 0 || changes.GetFullList() != nil {
						t.Errorf("%s: sent again: %v", what, changes)
					}
					_, err := score(t.Context(), conn, changes, slots)
					return err
				})
				if err != nil {
					t.Errorf("%s: the next question: %v", what, err)
				}
				nodes[1] = nodeinfo.New(3, named("b"))
			}
		})
	}
}

// Slots that the engine finds wrong show that the books are: everything is sent again.
func TestWrongSlotsLeadToAFullList(t *testing.T) {
	conn := enginetest.Open(t)
	c := newCycles(conn, "v", Events{})
	defer c.Close()
	nodes := []fwk.NodeInfo{nodeinfo.New(1, named("a"))}
	askUntilAnswered(t, c, conn, nodes, nodes)
	err := c.Ask(cycleOf(nodes, nodes), func(changes *loadlinev1.Changes, _ []int32) error {
		_, err := score(t.Context(), conn, changes, []int32{5})
		return err
	})
	if status.Code(err) != codes.InvalidArgument || !c.ledger.full.due {
		t.Errorf("got error %v, full list due: %v", err, c.ledger.full.due)
	}
}

// cycleOf is a cycle about feasible nodes, of all that the scheduler has.
func cycleOf(feasible, all []fwk.NodeInfo) oneCycle {
	return oneCycle{Feasible: feasible, Snapshot: &nodeinfo.Lister{Nodes: all}}
}
