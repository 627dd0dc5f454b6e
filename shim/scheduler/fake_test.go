package scheduler

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/testing/nodeinfo"
)

// fakeEngine answers questions as a test says, and keeps them.
type fakeEngine struct {
	mu     sync.Mutex
	answer func(*loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) // guarded by mu
	sync   func(*loadlinev1.SyncRequest) error                               // guarded by mu
	asked  []*loadlinev1.ScoreRequest                                        // guarded by mu
	closed int

	lineAnswer func(*loadlinev1.CheckLoadLineRequest) (*loadlinev1.CheckLoadLineResponse, error) // guarded by mu
	lineAsked  []*loadlinev1.CheckLoadLineRequest                                                // guarded by mu
}

func (f *fakeEngine) Invoke(_ context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch request := args.(type) {
	case *loadlinev1.ScoreRequest:
		f.asked = append(f.asked, proto.Clone(request).(*loadlinev1.ScoreRequest))
		answer, err := f.answer(request)
		if err == nil {
			proto.Merge(reply.(proto.Message), answer)
		}
		return err
	case *loadlinev1.SyncRequest:
		return f.sync(request)
	case *loadlinev1.CheckLoadLineRequest:
		f.lineAsked = append(f.lineAsked, proto.Clone(request).(*loadlinev1.CheckLoadLineRequest))
		answer, err := f.lineAnswer(request)
		if err == nil {
			proto.Merge(reply.(proto.Message), answer)
		}
		return err
	}
	panic(method)
}

func (f *fakeEngine) NewStream(context.Context, *grpc.StreamDesc,
	string, ...grpc.CallOption) (grpc.ClientStream, error) {
	panic("no streams")
}

func (f *fakeEngine) Close() error {
	f.closed++
	return nil
}

func (f *fakeEngine) answerWith(answer func(*loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// inOrder scores the nodes 0, 1, 2, ... in the order of their slots.
func inOrder(request *loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) {
	answer := &loadlinev1.ScoreResponse{Scale: &loadlinev1.RawScale{Kind: loadlinev1.RawScale_SCORES}}
	for _, slot := range request.GetSlots() {
		answer.RawScores = append(answer.RawScores, int64(slot))
	}
	return answer, nil
}

// failing fails each question.
func failing(err error) func(*loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) {
	return func(*loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) { return nil, err }
}

// fixture is a plugin in front of a fake engine.
type fixture struct {
	t       *testing.T
	engine  *fakeEngine
	clients *clients
	clock   *fakeClock
	plugin  *Plugin
	handle  *fakeHandle
	conn    *countingConn // of newLineFixture
	nodes   []fwk.NodeInfo
	pod     *v1.Pod                // to be placed; nil: one of another kind in each cycle, so that nothing is remembered
	group   fwk.PodGroupCycleState // of which the cycles are; nil: none
	cycles  int64
}

type fakeClock struct{ time time.Time }

func (c *fakeClock) now() time.Time { return c.time }

// fakeHandle has a snapshot, and pods that are nominated, and nothing else.
type fakeHandle struct {
	fwk.Handle
	nodes     []fwk.NodeInfo
	lister    nodeinfo.Lister
	nominated map[string][]*v1.Pod // by name of the node
}

func (h *fakeHandle) NominatedPodsForNode(node string) []fwk.PodInfo {
	return nodeinfo.New(0, nil, h.nominated[node]...).GetPods()
}

func (h *fakeHandle) SnapshotSharedLister() fwk.SharedLister {
	h.lister.Nodes = h.nodes
	return nodeinfo.Snapshot{Lister: &h.lister}
}

func newFixture(t *testing.T, args string) *fixture {
	t.Helper()
	f := &fixture{t: t, engine: &fakeEngine{answer: inOrder, sync: func(*loadlinev1.SyncRequest) error { return nil }},
		clock: &fakeClock{time: time.Unix(1000, 0)}}
	f.clients = &clients{dial: func(string) (engine.Conn, error) { return f.engine, nil }, now: f.clock.now}
	for i := range 3 {
		f.nodes = append(f.nodes, nodeinfo.New(int64(i+1), node(i)))
	}
	f.handle = &fakeHandle{nodes: f.nodes}
	f.plugin = f.newPlugin(args)
	return f
}

func (f *fixture) newPlugin(args string) *Plugin {
	f.t.Helper()
	p, err := newPlugin(f.t.Context(), &runtime.Unknown{Raw: []byte(args), ContentType: runtime.ContentTypeJSON},
		f.handle, f.clients)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { p.Close() })
	return p
}

// cycle runs PreScore, and Score of each node unless it is skipped.
func (f *fixture) cycle() (scores []int64, status *fwk.Status) {
	state := &cycleState{group: f.group}
	incoming := f.pod
	f.cycles++
	if incoming == nil {
		incoming = pod()
		incoming.Spec.Containers[0].Resources.Requests["cpu"] = *resource.NewMilliQuantity(f.cycles, resource.DecimalSI)
	}
	f.handle.nodes = f.nodes
	status = f.plugin.PreScore(f.t.Context(), state, incoming, f.nodes)
	if !status.IsSuccess() {
		return nil, status
	}
	list := make(fwk.NodeScoreList, len(f.nodes))
	for i, node := range f.nodes {
		list[i].Name = node.Node().Name
		if list[i].Score, status = f.plugin.Score(f.t.Context(), state, incoming, node); !status.IsSuccess() {
			f.t.Fatalf("Score: %v", status)
		}
	}
	if status := f.plugin.NormalizeScore(f.t.Context(), state, incoming, list); !status.IsSuccess() {
		f.t.Fatalf("NormalizeScore: %v", status)
	}
	for _, node := range list {
		scores = append(scores, node.Score)
	}
	return scores, nil
}

// cycleState is a fwk.CycleState that reads and writes.
type cycleState struct {
	fwk.CycleState
	values sync.Map
	group  fwk.PodGroupCycleState
}

func (s *cycleState) IsPodGroupSchedulingCycle() bool { return s.group != nil }

func (s *cycleState) GetPodGroupSchedulingCycle() fwk.PodGroupCycleState { return s.group }

func (s *cycleState) Read(key fwk.StateKey) (fwk.StateData, error) {
	if value, ok := s.values.Load(key); ok {
		return value.(fwk.StateData), nil
	}
	return nil, fwk.ErrNotFound
}

func (s *cycleState) Write(key fwk.StateKey, value fwk.StateData) { s.values.Store(key, value) }

func node(i int) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"),
		}},
	}
}

func pod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{"cpu": resource.MustParse("100m")},
			Limits:   v1.ResourceList{"cpu": resource.MustParse("1")},
		}}}},
	}
}

// counted returns by how much a counter grows while f runs.
func counted(t *testing.T, counter metrics.CounterMetric, f func()) float64 {
	t.Helper()
	read := func() float64 {
		value, err := testutil.GetCounterMetricValue(counter)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	before := read()
	f()
	return read() - before
}
