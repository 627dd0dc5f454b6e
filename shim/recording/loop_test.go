package recording_test

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/recording"
)

// writer writes a recording.
type writer struct {
	*testing.T
	bytes.Buffer
}

func (w *writer) call(method string, request proto.Message, code int32) {
	data, err := proto.Marshal(request)
	if err == nil {
		call := &loadlinev1.RecordedCall{Method: "/loadline.v1." + method, Request: data, Code: code}
		_, err = protodelim.MarshalTo(w, call)
	}
	if err != nil {
		w.Fatal(err)
	}
}

func (w *writer) sync(code int32, changes *loadlinev1.Changes) {
	changes.View = "a"
	w.call("ClusterState/Sync", &loadlinev1.SyncRequest{Changes: changes}, code)
}

func (w *writer) loop(now int64, pods ...*loadlinev1.PendingPods) {
	w.call("Autoscaler/PlanLoop", &loadlinev1.PlanLoopRequest{NowS: now, Pods: pods, Waiting: &loadlinev1.WaitingRules{},
		Cluster: &loadlinev1.PlanLoopRequest_Changes{Changes: &loadlinev1.Changes{View: "a"}}}, 0)
}

func (w *writer) bytes(object interface{ Marshal() ([]byte, error) }) []byte {
	data, err := object.Marshal()
	if err != nil {
		w.Fatal(err)
	}
	return data
}

func (w *writer) node(slot int32, name string, pods ...*loadlinev1.PodRecord) *loadlinev1.NodeRecord {
	return &loadlinev1.NodeRecord{Slot: slot, Pods: pods,
		Node: w.bytes(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})}
}

func (w *writer) shape(id int32, namespace string) *loadlinev1.PodShape {
	return &loadlinev1.PodShape{Id: id, Pod: w.bytes(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}})}
}

func (w *writer) namespace(name string) *loadlinev1.ClusterObject {
	return &loadlinev1.ClusterObject{Kind: loadlinev1.ObjectKind_NAMESPACE,
		Object: w.bytes(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})}
}

// describe returns what a loop holds, in one line.
func describe(t *testing.T, loop *recording.Loop) string {
	t.Helper()
	pods, err := loop.Pods()
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := loop.Nodes()
	if err != nil {
		t.Fatal(err)
	}
	words := []string{fmt.Sprint(loop.Number), loop.Time().Format("15:04:05"), fmt.Sprint(loop.Minor)}
	for _, node := range nodes {
		words = append(words, node.Name)
	}
	for _, pod := range pods {
		words = append(words, fmt.Sprintf("%s/%s@%s%s", pod.Namespace, pod.Name, pod.Spec.NodeName,
			pod.Status.NominatedNodeName))
	}
	for _, object := range loop.Objects() {
		var namespace v1.Namespace
		if err := namespace.Unmarshal(object.GetObject()); err != nil {
			t.Fatal(err)
		}
		words = append(words, "ns:"+namespace.Name)
	}
	return strings.Join(append(words, fmt.Sprint(loop.Complete)), " ")
}

func TestLoopHasTheClusterOfItsTime(t *testing.T) {
	w := &writer{T: t}
	w.sync(0, &loadlinev1.Changes{KubernetesMinor: 37, FullList: &loadlinev1.FullListChunk{},
		Nodes:         []*loadlinev1.NodeRecord{w.node(1, "b", &loadlinev1.PodRecord{Shape: 4, Name: "p"}), w.node(0, "a")},
		PodShapes:     []*loadlinev1.PodShape{w.shape(4, "shop")},
		Objects:       []*loadlinev1.ClusterObject{w.namespace("shop"), w.namespace("old")},
		CompleteKinds: []loadlinev1.ObjectKind{loadlinev1.ObjectKind_NAMESPACE}})
	w.loop(60)
	w.sync(3, &loadlinev1.Changes{RemovedSlots: []int32{0}}) // refused
	w.sync(0, &loadlinev1.Changes{RemovedSlots: []int32{1}, Nodes: []*loadlinev1.NodeRecord{w.node(2, "c")},
		RemovedObjects: []*loadlinev1.ObjectKey{{Kind: loadlinev1.ObjectKind_NAMESPACE, Name: "old"}}})
	w.loop(120, &loadlinev1.PendingPods{Count: 3, Nominated: []*loadlinev1.NominatedPods{{Slot: 2, Count: 1}},
		Pod: &loadlinev1.IncomingPod{Pod: w.bytes(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "w"}})}})
	w.call("ClusterState/Drop", &loadlinev1.DropRequest{View: "a"}, 0)
	w.sync(0, &loadlinev1.Changes{Nodes: []*loadlinev1.NodeRecord{w.node(0, "z")}})
	w.loop(180)
	first := "1 00:01:00 37 a b shop/p@b ns:old ns:shop [NAMESPACE]"
	second := "2 00:02:00 37 a c shop/w@c shop/w+1@ shop/w+2@ ns:shop [NAMESPACE]"
	third := "3 00:03:00 0 z []"
	for number, want := range []string{third, first, second, third} {
		loop, err := recording.ReadLoop(bytes.NewReader(w.Bytes()), number)
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(t, loop); got != want {
			t.Errorf("loop %d: %s\nwant %s", number, got, want)
		}
	}
	if _, err := recording.ReadLoop(bytes.NewReader(w.Bytes()),
		4); err == nil || err.Error() != "the recording holds no loop 4: its last one is 3" {
		t.Error(err)
	}
	cut := w.Bytes()[:w.Len()-1]
	if loop, err := recording.ReadLoop(bytes.NewReader(cut), 2); err != nil || loop.Cut {
		t.Error(loop, err)
	}
	if _, err := recording.ReadLoop(bytes.NewReader(cut[:len(cut)/8]),
		0); err == nil || err.Error() != "call 0: not a recording: unexpected EOF" {
		t.Error(err)
	}
	loop, err := recording.ReadLoop(bytes.NewReader(cut), 0)
	if err != nil || !loop.Cut {
		t.Fatal(loop, err)
	}
	if got := describe(t, loop); got != second {
		t.Errorf("the last whole loop: %s\nwant %s", got, second)
	}
}

// A pod that no scheduler has tried stays one, and the engine's other pods count as tried.
func TestWaitingPodsKeepTheirState(t *testing.T) {
	w := &writer{T: t}
	w.sync(0, &loadlinev1.Changes{})
	pod := &loadlinev1.IncomingPod{Pod: w.bytes(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "w"}})}
	w.loop(600, &loadlinev1.PendingPods{Pod: pod, Count: 1, YoungestAgeMilliseconds: new(int64(60_000))},
		&loadlinev1.PendingPods{Pod: pod, Count: 1, Unschedulable: true})
	loop, err := recording.ReadLoop(&w.Buffer, 0)
	if err != nil {
		t.Fatal(err)
	}
	pods, err := loop.Pods()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, pod := range pods {
		got = append(got, fmt.Sprintf("%s %s%s %d", pod.Status.Phase, pod.Status.Conditions[0].Status,
			pod.Status.Conditions[0].Reason, pod.CreationTimestamp.Unix()))
	}
	if text := strings.Join(got, ", "); text != "Pending Unknown 540, Pending FalseUnschedulable -62135596800" {
		t.Error(text)
	}
}

// Fields of a request that stay are written once, and are there again when a call is read.
func TestRequestsKeepWhatStays(t *testing.T) {
	requests := []*loadlinev1.PlanLoopRequest{
		{NowS: 60, MaxNodesTotal: 7, DaemonPods: [][]byte{{1}, {2}}},
		{NowS: 70, MaxNodesTotal: 7, DaemonPods: [][]byte{{1}, {2}}},
		{NowS: 70, DaemonPods: [][]byte{{1}, {2}, {3}}}, // MaxNodesTotal is gone
		{NowS: 70, DaemonPods: [][]byte{{1}, {2}, {3}}},
	}
	// By number: now_s 3, daemon_pods 8, max_nodes_total 12.
	want := []string{"[]", "[8 12]", "[3]", "[3 8]"}
	shorten, complete := recording.Requests{}, recording.Requests{}
	for i, request := range requests {
		data, err := proto.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		call := &loadlinev1.RecordedCall{Method: "a", Request: data}
		if err := shorten.Shorten(call); err != nil || fmt.Sprint(call.GetSameFields()) != want[i] {
			t.Errorf("call %d: same %v, error %v", i, call.GetSameFields(), err)
		}
		if len(call.GetSameFields()) == 2 && i == 3 && len(call.GetRequest()) > 0 {
			t.Errorf("call %d repeats %d bytes", i, len(call.GetRequest()))
		}
		got := &loadlinev1.PlanLoopRequest{}
		if err := cmp.Or(complete.Complete(call), proto.Unmarshal(call.GetRequest(), got)); err != nil ||
			!proto.Equal(got, request) {
			t.Errorf("call %d: %v, error %v", i, got, err)
		}
	}
	err := complete.Complete(&loadlinev1.RecordedCall{Method: "b", SameFields: []int32{3}})
	if err == nil || err.Error() != "same_fields: no call of this method before it has field 3" {
		t.Error(err)
	}
	for _, again := range [][]int32{{3, 3}, {8, 3}} { // else a small file would make a large request
		err = complete.Complete(&loadlinev1.RecordedCall{Method: "a", SameFields: again})
		if err == nil || !strings.Contains(err.Error(), "is there already") {
			t.Errorf("%v: error %v", again, err)
		}
	}
}
