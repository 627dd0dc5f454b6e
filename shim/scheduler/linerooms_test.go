package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/internal/testing/nodeinfo"
)

// clone returns a copy of a state as that of a framework does, with the load line alone.
func (s *cycleState) clone(t testing.TB) *cycleState {
	t.Helper()
	data, err := s.Read(lineKey)
	if err != nil {
		t.Fatal(err)
	}
	out := &cycleState{}
	out.Write(lineKey, data.Clone())
	return out
}

// uid gives a pod the UID that an API server would give it.
func uid(p *v1.Pod, n int) *v1.Pod {
	p.UID = types.UID(fmt.Sprint("uid-", n))
	return p
}

// infoOf is a pod as preemption and nominations bring it.
func infoOf(p *v1.Pod) fwk.PodInfo { return nodeinfo.New(0, nil, p).GetPods()[0] }

// selectVictims does on a node what SelectVictimsOnNode of kube-scheduler does with all pods of it, and returns the
// names of those that are to go; false: not even that helps.
func (f *fixture) selectVictims(state *cycleState, incoming *v1.Pod, node fwk.NodeInfo) ([]string, bool) {
	supposed := state.clone(f.t)
	must := func(status *fwk.Status) {
		if !status.IsSuccess() {
			f.t.Fatal(status)
		}
	}
	ctx := f.t.Context()
	for _, victim := range node.GetPods() {
		must(f.plugin.RemovePod(ctx, supposed, incoming, victim, node))
	}
	if !f.plugin.Filter(ctx, supposed, incoming, node).IsSuccess() {
		return nil, false
	}
	var victims []string
	for _, victim := range node.GetPods() {
		must(f.plugin.AddPod(ctx, supposed, incoming, victim, node))
		if !f.plugin.Filter(ctx, supposed, incoming, node).IsSuccess() {
			must(f.plugin.RemovePod(ctx, supposed, incoming, victim, node))
			victims = append(victims, victim.GetPod().Name)
		}
	}
	return victims, true
}

// countingConn counts calls.
type countingConn struct {
	engine.Conn
	calls atomic.Int64
	full  atomic.Int64 // with a full list
}

func (c *countingConn) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	c.calls.Add(1)
	if with, ok := args.(interface{ GetChanges() *loadlinev1.Changes }); ok && with.GetChanges().GetFullList() != nil {
		c.full.Add(1)
	}
	return c.Conn.Invoke(ctx, method, args, reply, options...)
}

// newLineFixture is a plugin in front of a real engine, on nodes.
func newLineFixture(t *testing.T, address, args string, nodes ...fwk.NodeInfo) *fixture {
	t.Helper()
	f := &fixture{t: t, conn: &countingConn{}, nodes: nodes}
	f.clients = &clients{now: time.Now, dial: func(address string) (conn engine.Conn, err error) {
		f.conn.Conn, err = engine.Open(address)
		return f.conn, err
	}}
	f.handle = &fakeHandle{nodes: f.nodes, nominated: map[string][]*v1.Pod{}}
	f.plugin = f.newPlugin(fmt.Sprintf(`{"engineAddress": %q, "timeout": "1s", %s}`, address, args))
	return f
}

// One of two pods has to go; while it is supposed to be gone, the cycle's own state and other nodes are as before.
func TestPreemptionAddsAndSubtracts(t *testing.T) {
	for name, address := range map[string]string{
		"inprocess": enginetest.Address(t), "unix": enginetest.StartDaemon(t).Address(),
	} {
		t.Run(name, func(t *testing.T) {
			f := newLineFixture(t, address, `"maxLimitsOverAllocatable": {"cpu": 1.5}`,
				nodeinfo.New(1, cores("node1", 8), uid(limited("pod1", 6), 1), uid(limited("pod2", 4), 2)),
				nodeinfo.New(2, cores("node2", 8), uid(limited("pod3", 8), 3)))
			state := &cycleState{}
			if got, status := f.filter(state, limited("new", 6)); !slices.Equal(got,
				[]fwk.Code{fwk.Unschedulable, fwk.Unschedulable}) {
				t.Fatalf("got %v, %v", got, status)
			}
			// 6 of pod1 and 6 are 12 of 8 * 1.5.
			if victims, ok := f.selectVictims(state, limited("new", 6), f.nodes[0]); !slices.Equal(victims,
				[]string{"pod2"}) || !ok {
				t.Errorf("got %v, %v", victims, ok)
			}
			if victims, ok := f.selectVictims(state, limited("new", 6), f.nodes[1]); !slices.Equal(victims,
				[]string{"pod3"}) || !ok {
				t.Errorf("got %v, %v", victims, ok)
			}
			status := f.plugin.Filter(t.Context(), state, limited("new", 6), f.nodes[0])
			if message := status.Message(); message != "load line: cpu limits would exceed 1.5 x allocatable" {
				t.Errorf("the cycle's own state says %q", message)
			}
		})
	}
}

// A pod whose spec says 1 core while the node still grants 4 counts as 4, whether it is added or removed.
func TestPreemptionBesideAPodThatIsBeingResized(t *testing.T) {
	resizing := uid(limited("resizing", 1), 1)
	resizing.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", Resources: &v1.ResourceRequirements{
		Limits: v1.ResourceList{"cpu": *resource.NewQuantity(4, resource.DecimalSI)}}}}
	f := newLineFixture(t, enginetest.Address(t), `"maxLimitsOverAllocatable": {"cpu": 1}`,
		nodeinfo.New(1, cores("node1", 8), resizing, uid(limited("other", 1), 2)))
	for cores, want := range map[int64][]string{4: {"other"}, 5: {"resizing"}, 7: {"resizing"}, 8: {"resizing", "other"}} {
		state := &cycleState{}
		f.filter(state, limited("new", cores))
		for range 2 { // as often as one likes
			if victims, ok := f.selectVictims(state, limited("new", cores), f.nodes[0]); !slices.Equal(victims, want) || !ok {
				t.Errorf("%d cores: got %v, %v, want %v", cores, victims, ok, want)
			}
		}
	}
	if n := f.conn.full.Load(); n != 1 {
		t.Errorf("the engine got %d full lists", n)
	}
}

// Pods that are nominated to a node take room there.
func TestNominatedPodsTakeRoom(t *testing.T) {
	f := newLineFixture(t, enginetest.Address(t), `"maxLimitsOverAllocatable": {"cpu": 1}`,
		nodeinfo.New(1, cores("node1", 8)), nodeinfo.New(2, cores("node2", 8)))
	first, second, late := uid(limited("first", 3), 1), uid(limited("second", 3), 2), uid(limited("late", 2), 3)
	f.handle.nominated["node1"] = []*v1.Pod{first, second}
	state := &cycleState{}
	f.filter(state, limited("new", 3))
	expect := func(want fwk.Code, nominated ...*v1.Pod) {
		t.Helper()
		supposed := state.clone(t)
		for _, p := range nominated {
			if status := f.plugin.AddPod(t.Context(), supposed, pod(), infoOf(p), f.nodes[0]); !status.IsSuccess() {
				t.Fatal(status)
			}
		}
		if got := f.plugin.Filter(t.Context(), supposed, pod(), f.nodes[0]); got.Code() != want {
			t.Errorf("beside %d pods: got %v, want %v", len(nominated), got, want)
		}
	}
	expect(fwk.Success)
	expect(fwk.Success, first)
	expect(fwk.Unschedulable, first, second)
	expect(fwk.Success, first, late) // nominated after the cycle began
	expect(fwk.Unschedulable, first, second, late)
	if got := f.plugin.Filter(t.Context(), state, pod(), f.nodes[1]); !got.IsSuccess() {
		t.Errorf("the other node: %v", got)
	}
}

// The engine is asked when preemption begins, and not by Filter.
func TestPreemptionAsksSeldom(t *testing.T) {
	var nodes []fwk.NodeInfo
	for i := range 1000 {
		nodes = append(nodes, nodeinfo.New(int64(i+1), cores(fmt.Sprint("node", i), 8), uid(limited("p", 8), i)))
	}
	f := newLineFixture(t, enginetest.Address(t), `"maxLimitsOverAllocatable": {"cpu": 1}`, nodes...)
	conn := f.conn
	state := &cycleState{}
	if got, status := f.filter(state, limited("new", 8)); len(got) != len(f.nodes) {
		t.Fatal(status)
	}
	before := conn.calls.Load()
	var group sync.WaitGroup
	for worker := range 16 {
		group.Go(func() {
			for i := worker; i < len(f.nodes); i += 16 {
				if victims, ok := f.selectVictims(state, limited("new", 8), f.nodes[i]); len(victims) != 1 || !ok {
					t.Errorf("got %v, %v", victims, ok)
				}
			}
		})
	}
	group.Wait()
	if calls := conn.calls.Load() - before; calls > 8 { // of 128, 256, 512, ... nodes, where nobody knows who is first
		t.Errorf("asked %d times", calls)
	}
}

// An engine that fails while preemption looks at nodes refuses them, or where that is allowed has nothing to say. It is
// asked once, however many nodes there are.
func TestPreemptionWithoutTheEngine(t *testing.T) {
	for args, want := range map[string]fwk.Code{
		cpuLine: fwk.Error, `{"onEngineFailure": "Allow", "maxLimitsOverAllocatable": {"cpu": 1.5}}`: fwk.Success,
	} {
		f := newFixture(t, args)
		f.nodes = nil
		for i := range 3 {
			f.nodes = append(f.nodes, nodeinfo.New(int64(i+1), node(i), uid(limited("p", 1), i)))
		}
		f.handle.nodes = f.nodes
		f.engine.lineAnswer = refusing(false, 0, 1, 2)
		state := &cycleState{}
		f.filter(state, pod())
		f.engine.lineAnswer = failingLine(status.Error(codes.Unavailable, "gone"))
		asked := len(f.engine.lineAsked)
		for _, info := range f.nodes {
			supposed := state.clone(t)
			if status := f.plugin.RemovePod(t.Context(), supposed, pod(), info.GetPods()[0], info); status.Code() != want {
				t.Errorf("%s: got %v, want %v", args, status, want)
			}
			f.plugin.AddPod(t.Context(), supposed, pod(), info.GetPods()[0], info)
			if status := f.plugin.Filter(t.Context(), supposed, pod(), info); want == fwk.Success && !status.IsSuccess() {
				t.Errorf("%s: Filter returns %v", args, status)
			}
		}
		if n := len(f.engine.lineAsked) - asked; n != 1 {
			t.Errorf("%s: asked %d times", args, n)
		}
	}
}

// roomFor answers that each node has a room of -1 and one pod, and that each pod, there or to arrive, counts as 1.
func roomFor(question *loadlinev1.CheckLoadLineRequest) (*loadlinev1.CheckLoadLineResponse, error) {
	answer := &loadlinev1.CheckLoadLineResponse{Reasons: []string{"r"}}
	for _, slot := range question.GetSlots() {
		room := &loadlinev1.LineRoom{Slot: slot, Room: []int64{-1}, Reasons: []int32{0}}
		if question.GetWithPods() {
			room.Pods = append(room.Pods, 1)
		}
		for _, arrival := range question.GetArrivals() {
			if arrival.GetSlot() == slot {
				room.Pods = append(room.Pods, 1)
			}
		}
		answer.Rooms = append(answer.Rooms, room)
	}
	return answer, nil
}

// A scheduler that has found enough nodes gives up looking at others: that is no failure, and refuses these alone. Who
// asks afterwards gets an answer.
func TestACycleThatIsGivenUpDoesNotFail(t *testing.T) {
	for _, args := range []string{cpuLine, `{"onEngineFailure": "Allow", "maxLimitsOverAllocatable": {"cpu": 1.5}}`} {
		f := newFixture(t, args)
		f.nodes = []fwk.NodeInfo{nodeinfo.New(1, node(0), limited("p", 1))}
		f.handle.nodes = f.nodes
		f.engine.lineAnswer = refusing(false, 0)
		state := &cycleState{}
		f.filter(state, pod())
		ctx, cancel := context.WithCancel(t.Context())
		f.engine.lineAnswer = func(*loadlinev1.CheckLoadLineRequest) (*loadlinev1.CheckLoadLineResponse, error) {
			cancel()
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		remove := func(ctx context.Context, want fwk.Code) {
			t.Helper()
			supposed := state.clone(t)
			victim := f.nodes[0].GetPods()[0]
			if status := f.plugin.RemovePod(ctx, supposed, pod(), victim, f.nodes[0]); !status.IsSuccess() {
				t.Errorf("%s: RemovePod returns %v", args, status)
			}
			if status := f.plugin.Filter(ctx, supposed, pod(), f.nodes[0]); status.Code() != want {
				t.Errorf("%s: Filter returns %v, want %v", args, status, want)
			}
		}
		remove(ctx, fwk.Unschedulable)
		f.engine.lineAnswer = roomFor
		remove(t.Context(), fwk.Success)
	}
}

// Nominated pods that together are larger than a message come in several questions.
func TestManyNominatedPodsFitIntoQuestions(t *testing.T) {
	f := newFixture(t, cpuLine)
	f.engine.lineAnswer = refusing(false)
	f.handle.nominated = map[string][]*v1.Pod{}
	for i := range f.nodes {
		large := uid(limited("large", 1), i)
		large.Namespace = strings.Repeat("n", 1500<<10)
		f.handle.nominated[f.nodes[i].Node().Name] = []*v1.Pod{large}
	}
	state := &cycleState{}
	f.filter(state, pod())
	asked := len(f.engine.lineAsked)
	f.engine.lineAnswer = roomFor
	for _, info := range f.nodes {
		nominated := f.handle.NominatedPodsForNode(info.Node().Name)[0]
		if status := f.plugin.AddPod(t.Context(), state, pod(), nominated, info); !status.IsSuccess() {
			t.Error(status)
		}
	}
	questions := f.engine.lineAsked[asked:]
	for _, question := range questions {
		if size := proto.Size(question); size > 4<<20 {
			t.Errorf("a question has %d bytes", size)
		}
	}
	if len(questions) != len(f.nodes) {
		t.Errorf("asked %d times, want %d", len(questions), len(f.nodes))
	}
}

// An answer that does not fit the question is none.
func TestRoomsThatDoNotFit(t *testing.T) {
	good := func() *loadlinev1.CheckLoadLineResponse {
		return &loadlinev1.CheckLoadLineResponse{Reasons: []string{"r"},
			Rooms: []*loadlinev1.LineRoom{{Slot: 0, Room: []int64{-1}, Reasons: []int32{0}, Pods: []int64{1}}}}
	}
	for name, spoil := range map[string]func(*loadlinev1.CheckLoadLineResponse){
		"none":       func(r *loadlinev1.CheckLoadLineResponse) { r.Rooms = nil },
		"slot":       func(r *loadlinev1.CheckLoadLineResponse) { r.Rooms[0].Slot = 1 },
		"resources":  func(r *loadlinev1.CheckLoadLineResponse) { r.Rooms[0].Room = []int64{1, 1} },
		"pods":       func(r *loadlinev1.CheckLoadLineResponse) { r.Rooms[0].Pods = nil },
		"no reason":  func(r *loadlinev1.CheckLoadLineResponse) { r.Reasons = nil },
		"as it is":   func(*loadlinev1.CheckLoadLineResponse) {},
		"bad reason": func(r *loadlinev1.CheckLoadLineResponse) { r.Rooms[0].Reasons[0] = -1 },
	} {
		f := newFixture(t, cpuLine)
		f.nodes = []fwk.NodeInfo{nodeinfo.New(1, node(0), limited("p", 1))}
		f.handle.nodes = f.nodes
		f.engine.lineAnswer = refusing(false, 0)
		state := &cycleState{}
		f.filter(state, pod())
		f.engine.lineAnswer = func(*loadlinev1.CheckLoadLineRequest) (*loadlinev1.CheckLoadLineResponse, error) {
			answer := good()
			spoil(answer)
			return answer, nil
		}
		want := fwk.Error
		if name == "as it is" {
			want = fwk.Success
		}
		status := f.plugin.RemovePod(t.Context(), state, pod(), f.nodes[0].GetPods()[0], f.nodes[0])
		if status.Code() != want {
			t.Errorf("%s: got %v, want %v", name, status, want)
		}
	}
}
