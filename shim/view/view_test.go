package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/internal/testing/nodeinfo"
)

func named(name string) *v1.Node { return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func expectSync(t *testing.T, v *View) {
	t.Helper()
	if err := v.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// heldNodes tells by name which nodes the engine holds, with their slots.
func heldNodes(t *testing.T, conn engine.Conn, view string) map[string]int32 {
	t.Helper()
	answer, err := loadlinev1.NewClusterStateClient(conn).Describe(t.Context(), &loadlinev1.DescribeRequest{View: view})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int32{}
	for _, node := range answer.GetNodes() {
		out[node.GetName()] = node.GetSlot()
	}
	return out
}

func TestSlotsAreDenseAndReused(t *testing.T) {
	conn := enginetest.Open(t)
	v := New(conn, "v")
	for _, name := range []string{"a", "b", "c"} {
		v.SetNode(named(name))
		if _, ok := v.Slot(name); ok {
			t.Errorf("%s has a slot before the engine knows it", name)
		}
	}
	expectSync(t, v)
	v.DeleteNode("b")
	v.SetNode(named("d"))
	expectSync(t, v)
	v.SetNode(named("e")) // takes the slot of b, whose removal has arrived
	expectSync(t, v)
	want := map[string]int32{"a": 0, "c": 2, "d": 3, "e": 1}
	if got := heldNodes(t, conn, "v"); len(got) != len(want) {
		t.Errorf("the engine holds %v, want %v", got, want)
	}
	for name, slot := range want {
		if got, ok := v.Slot(name); !ok || got != slot {
			t.Errorf("%s is in slot %d (%v), want %d", name, got, ok, slot)
		}
		if got, ok := v.Node(slot); !ok || got != name {
			t.Errorf("slot %d holds %s (%v), want %s", slot, got, ok, name)
		}
	}
	for _, slot := range []int32{-1, 4} {
		if name, ok := v.Node(slot); ok {
			t.Errorf("slot %d holds %s", slot, name)
		}
	}
	if _, ok := v.Slot("b"); ok {
		t.Error("b has a slot although it is gone")
	}
}

// Invariant F6.
func TestPodsThatComeBeforeTheirNodeAndOutliveIt(t *testing.T) {
	conn := enginetest.Open(t)
	v := New(conn, "v")
	pod := fullPod()
	pods := func() int64 {
		expectSync(t, v)
		answer, err := loadlinev1.NewClusterStateClient(conn).Describe(t.Context(),
			&loadlinev1.DescribeRequest{View: "v"})
		if err != nil {
			t.Fatal(err)
		}
		return answer.GetViews()[0].GetPods()
	}
	for _, c := range []struct {
		name   string
		change func()
		want   int64
	}{
		{"PodWithoutNode", func() { v.SetPod(pod) }, 0},
		{"NodeComes", func() { v.SetNode(named("node")) }, 1},
		{"NodeGoes", func() { v.DeleteNode("node") }, 0},
		{"NodeReturns", func() { v.SetNode(named("node")) }, 1},
		{"PodOfTheSameNameAndAnotherUID", func() { p := pod.DeepCopy(); p.UID = "new"; v.SetPod(p) }, 1},
		{"OldPodGoes", func() { v.DeletePod(pod) }, 1},
		{"PodMoves", func() { p := pod.DeepCopy(); p.UID, p.Spec.NodeName = "new", "other"; v.SetPod(p) }, 0},
		{"OtherNodeComes", func() { v.SetNode(named("other")) }, 1},
		{"PodIsUnbound", func() { p := pod.DeepCopy(); p.Spec.NodeName = ""; v.SetPod(p) }, 0},
		{"UnknownPodGoes", func() { v.DeletePod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}}) }, 0},
	} {
		if c.change(); pods() != c.want {
			t.Errorf("%s: the engine holds %d pods, want %d", c.name, pods(), c.want)
		}
	}
}

// Invariants F4, F7.
func TestAskSendsEverythingAgainToARestartedEngine(t *testing.T) {
	conn := enginetest.Open(t)
	v := New(conn, "v")
	v.SetNode(named("a"))
	client := loadlinev1.NewSchedulerExtenderClient(conn)
	asked := 0
	ask := func(at *loadlinev1.Changes) error {
		asked++
		_, err := client.Score(t.Context(), &loadlinev1.ScoreRequest{
			Changes: at, Pod: TrimIncomingPod(fullPod()),
			Policy: &loadlinev1.ScorePolicy{Preset: loadlinev1.ScorePolicy_STRICT},
		})
		return err
	}
	if err := v.Ask(t.Context(), ask); err != nil || asked != 1 {
		t.Errorf("asked %d times, error %v", asked, err)
	}
	if _, err := loadlinev1.NewClusterStateClient(conn).Drop(t.Context(),
		&loadlinev1.DropRequest{View: "v"}); err != nil {
		t.Fatal(err)
	}
	if err := v.Ask(t.Context(), ask); err != nil || asked != 3 {
		t.Errorf("after a restart: asked %d times, error %v", asked, err)
	}
	if got := heldNodes(t, conn, "v"); len(got) != 1 {
		t.Errorf("the engine holds %v", got)
	}
	other := errors.New("other")
	if err := v.Ask(t.Context(), func(*loadlinev1.Changes) error { return other }); !errors.Is(err, other) {
		t.Errorf("got error %v", err)
	}
	asked = 0
	err := v.Ask(t.Context(),
		func(*loadlinev1.Changes) error { asked++; return status.Error(codes.FailedPrecondition, "always") })
	if status.Code(err) != codes.FailedPrecondition || asked != maxRefusals+1 {
		t.Errorf("an engine that always refuses was asked %d times, error %v", asked, err)
	}
}

// A question without slots keeps no batch waiting; one that a batch has overtaken is asked again.
func TestAskApartKeepsNobodyWaiting(t *testing.T) {
	conn := enginetest.Open(t)
	v := New(conn, "v")
	v.SetNode(named("a"))
	client := loadlinev1.NewAutoscalerClient(conn)
	asked := 0
	err := v.AskApart(t.Context(), func(at *loadlinev1.Changes) error {
		if asked++; asked == 1 {
			v.SetNode(named("b"))
			expectSync(t, v) // would wait for ever under Ask
		}
		_, err := client.RankOptions(t.Context(), &loadlinev1.RankOptionsRequest{Changes: at,
			Policy: &loadlinev1.RankPolicy{Preset: loadlinev1.RankPolicy_PROPOSAL}})
		return err
	})
	if err != nil || asked != 2 {
		t.Errorf("asked %d times, error %v", asked, err)
	}
	asked = 0
	err = v.AskApart(t.Context(), func(*loadlinev1.Changes) error {
		asked++
		v.SetNode(named(fmt.Sprint("n", asked)))
		expectSync(t, v)
		return status.Error(codes.FailedPrecondition, "always")
	})
	if status.Code(err) != codes.FailedPrecondition || asked != maxRefusals+1 {
		t.Errorf("asked %d times, error %v", asked, err)
	}
	if got := heldNodes(t, conn, "v"); len(got) != 5 {
		t.Errorf("the engine holds %v", got)
	}
}

// A node that returns while its removal is under way is not in the engine until the next batch.
func TestSlotWhileANodeComesBack(t *testing.T) {
	conn := enginetest.Open(t)
	f := &faulty{ClientConnInterface: conn}
	v := New(f, "v")
	v.SetNode(named("a"))
	expectSync(t, v)
	v.DeleteNode("a")
	f.during = func() { v.SetNode(named("a")) }
	expectSync(t, v)
	f.during = nil
	if held := heldNodes(t, conn, "v"); len(held) != 0 {
		t.Fatalf("the engine holds %v", held)
	}
	if slot, ok := v.Slot("a"); ok {
		t.Errorf("slot %d is said to hold a node", slot)
	}
	expectSync(t, v)
	if slot, ok := v.Slot("a"); !ok || heldNodes(t, conn, "v")["a"] != slot {
		t.Errorf("a is in slot %d (%v), and the engine holds %v", slot, ok, heldNodes(t, conn, "v"))
	}
}

// negative is a node that a picky engine does not take.
func negative(name string) *v1.Node {
	node := named(name)
	node.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("-1")}
	return node
}

func TestSyncFailsForAnInvalidNode(t *testing.T) {
	v := New(picky{enginetest.Open(t)}, "v")
	v.SetNode(named("a"))
	v.SetNode(negative("bad"))
	for range 3 { // each time, until it is put right
		if err := v.Sync(t.Context()); status.Code(err) != codes.InvalidArgument ||
			!strings.Contains(err.Error(), `"bad"`) {
			t.Errorf("got error %v, want one that names the node", err)
		}
	}
	v.SetNode(named("bad"))
	expectSync(t, v)
}

func TestLeaveOutInvalid(t *testing.T) {
	conn := picky{enginetest.Open(t)}
	v := New(conn, "v")
	var left []string
	v.LeaveOutInvalid(func(node string, err error) { left = append(left, node) })
	for _, name := range []string{"a", "b", "c", "d"} {
		v.SetNode(named(name))
	}
	v.SetNode(negative("b"))
	expectSync(t, v) // a full list with a bad node
	v.SetNode(negative("c"))
	v.SetNode(named("e"))
	expectSync(t, v) // a node that the engine has turns bad
	expectSync(t, v)
	if want := []string{"b", "c"}; !slices.Equal(left, want) {
		t.Errorf("left out %v, want %v", left, want)
	}
	if held := heldNodes(t, conn, "v"); len(held) != 3 {
		t.Errorf("the engine holds %v, want a, d and e", held)
	}
	for name, want := range map[string]bool{"a": true, "b": false, "c": false, "d": true, "e": true} {
		if _, ok := v.Slot(name); ok != want {
			t.Errorf("%s has a slot: %v, want %v", name, ok, want)
		}
	}
	v.SetNode(named("b"))
	v.SetNode(named("c"))
	expectSync(t, v)
	if held := heldNodes(t, conn, "v"); len(held) != 5 {
		t.Errorf("the engine holds %v, want all five", held)
	}
}

func TestCheckName(t *testing.T) {
	conn := enginetest.Open(t)
	for name, ok := range map[string]bool{
		"v": true, "a/b-9": true, strings.Repeat("x", 63): true,
		"": false, "Bad_View": false, "a b": false, "a.b": false, "ä": false, strings.Repeat("x", 64): false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
		if err := New(conn, name).sync(t.Context(), 0); (err == nil) != ok { // the engine agrees
			t.Errorf("%q: %v", name, err)
		}
	}
}

// If all batches are invalid, no node is to blame, and none is sought for ever.
func TestWhatIsNoNodesFaultIsReturned(t *testing.T) {
	nobody := func(node string, err error) { t.Errorf("%s was left out: %v", node, err) }
	for range 3 {
		conn := &measured{ClientConnInterface: enginetest.Open(t)}
		v := New(conn, "Bad_View")
		v.LeaveOutInvalid(nobody)
		v.SetNode(named("a"))
		v.SetNode(named("b"))
		if err := v.Sync(t.Context()); status.Code(err) != codes.InvalidArgument || len(conn.sizes) > 3 {
			t.Errorf("got error %v after %d messages", err, len(conn.sizes))
		}
	}
	conn := &measured{ClientConnInterface: enginetest.Open(t)}
	synced := make(chan error, 1)
	c := newCycles(conn, "Bad_View", Events{LeftOut: nobody, Synced: func(err error) { synced <- err }})
	defer c.Close()
	nodes := []fwk.NodeInfo{nodeinfo.New(1, named("a")), nodeinfo.New(2, named("b"))}
	ask := func(changes *loadlinev1.Changes, slots []int32) error {
		_, err := score(t.Context(), conn, changes, slots)
		return err
	}
	if err := c.Ask(cycleOf(nodes, nodes), ask); status.Code(err) != codes.InvalidArgument {
		t.Errorf("got error %v", err)
	}
	for range 3 {
		conn.sizes = nil
		if err := c.Ask(cycleOf(nodes, nodes), ask); !errors.Is(err, ErrSyncing) {
			t.Errorf("got error %v", err)
		}
		if err := <-synced; status.Code(err) != codes.InvalidArgument || len(conn.sizes) > 2 {
			t.Errorf("got error %v after %d messages", err, len(conn.sizes))
		}
		c.wg.Wait()
	}
}

// While a full list is on its way, a shape that its first chunk refers to loses its last pod. Its id must not get
// another content before the engine has heard of that.
func TestShapeIdOutlivesTheFullListThatRefersToIt(t *testing.T) {
	conn := enginetest.Open(t)
	f := &faulty{ClientConnInterface: conn}
	v := New(f, "v")
	limited := func(name, node, limit string) *v1.Pod {
		pod := fullPod()
		pod.Name, pod.Spec.NodeName = name, node
		pod.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse(limit)
		return pod
	}
	v.chunk = len(TrimPod(limited("on-a", "a", "11"))) + 100 // a node with its pod per message
	v.SetNode(named("a"))
	v.SetNode(named("b"))
	v.SetPod(limited("on-a", "a", "11"))
	v.SetPod(limited("on-b", "b", "12"))
	messages := 0
	f.during = func() {
		if messages++; messages == 1 {
			v.SetPod(limited("on-a", "a", "21"))
		}
	}
	expectSync(t, v)
	if messages != 2 {
		t.Fatalf("the full list took %d messages, want 2", messages)
	}
	v.chunk = chunkBytes
	v.SetPod(limited("new-on-b", "b", "31"))
	expectSync(t, v)
	v.SetPod(limited("newer-on-b", "b", "41")) // may take the id now
	expectSync(t, v)
	if v.ledger.shapes.next != 4 {
		t.Errorf("%d ids were given out, want 4: the first one twice", v.ledger.shapes.next)
	}
}
