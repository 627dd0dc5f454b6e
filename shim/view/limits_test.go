package view

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
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
	"loadline.dev/shim/leftout"
)

// A node that is too large must not keep all other nodes from the engine.

const (
	maxMessageBytes = 4 << 20
	// A view may hold 256 resource names, of which cpu, memory and ephemeral-storage are there from the beginning.
	roomForNames = 256 - 3
)

// measured is a connection on which the size of each batch is noted.
type measured struct {
	grpc.ClientConnInterface
	sizes []int // of the batches and questions
	lists int   // full lists that were begun
}

func (m *measured) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	if carrier, ok := args.(interface{ GetChanges() *loadlinev1.Changes }); ok {
		m.sizes = append(m.sizes, proto.Size(args.(proto.Message)))
		if list := carrier.GetChanges().GetFullList(); list != nil && list.GetIndex() == 0 {
			m.lists++
		}
	}
	return m.ClientConnInterface.Invoke(ctx, method, args, reply, options...)
}

// bulky is a pod of 1024 containers and 1024 init containers, unlike that of any other number.
func bulky(number int) *v1.Pod {
	pod := fullPod()
	pod.Name, pod.UID = fmt.Sprint("bulky-", number), types.UID(fmt.Sprint(number))
	pod.Status = v1.PodStatus{Phase: v1.PodRunning}
	all := func(kind string) []v1.Container {
		var out []v1.Container
		for i := range 1024 {
			amounts := v1.ResourceList{
				"cpu":               *resource.NewMilliQuantity(int64(1000+i+number), resource.DecimalSI),
				"memory":            *resource.NewQuantity(int64(1<<30+i+number), resource.BinarySI),
				"ephemeral-storage": *resource.NewQuantity(int64(1<<40+i+number), resource.BinarySI),
			}
			out = append(out, v1.Container{Name: fmt.Sprintf("%s-%04d-%s", kind, i, strings.Repeat("x", 50)),
				Resources: v1.ResourceRequirements{Requests: amounts, Limits: amounts}})
		}
		return out
	}
	pod.Spec.Containers, pod.Spec.InitContainers = all("container"), all("init")
	return pod
}

func bulkyPods(t *testing.T) []*v1.Pod {
	t.Helper()
	var pods []*v1.Pod
	total := 0
	for i := range 16 {
		pods = append(pods, bulky(i))
		total += len(TrimPod(pods[i]))
	}
	if total <= maxMessageBytes {
		t.Fatalf("the pods take %d bytes, which is not too much for one message", total)
	}
	return pods
}

func expectHeld(t *testing.T, conn grpc.ClientConnInterface, nodes, pods int64) {
	t.Helper()
	answer, err := loadlinev1.NewClusterStateClient(conn).Describe(t.Context(), &loadlinev1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if held := answer.GetViews()[0]; held.GetNodes() != nodes || held.GetPods() != pods {
		t.Errorf("the engine holds %d nodes and %d pods, want %d and %d", held.GetNodes(), held.GetPods(), nodes, pods)
	}
}

func TestShapesOfAFullNodeTravelAheadOfIt(t *testing.T) {
	pods := bulkyPods(t)
	for _, when := range []string{"in the full list", "in a delta"} {
		t.Run(when, func(t *testing.T) {
			conn := &measured{ClientConnInterface: enginetest.Open(t)}
			v := New(conn, "v")
			v.SetNode(named("a"))
			v.SetNode(named("z"))
			if when == "in a delta" {
				expectSync(t, v)
			}
			v.SetNode(named("node"))
			for _, pod := range pods {
				v.SetPod(pod)
			}
			expectSync(t, v)
			expectHeld(t, conn, 3, int64(len(pods)))
			if largest := slices.Max(conn.sizes); largest > chunkBytes+chunkBytes/10 || conn.lists != 1 {
				t.Errorf("the largest message has %d bytes, %d full lists", largest, conn.lists)
			}
		})
	}
}

func TestACycleWithAFullNode(t *testing.T) {
	conn := &measured{ClientConnInterface: enginetest.Open(t)}
	c := newCycles(conn, "v",
		Events{LeftOut: func(node string, err error) { t.Errorf("%s is left out: %v", node, err) }})
	defer c.Close()
	pods := bulkyPods(t)
	nodes := []fwk.NodeInfo{nodeinfo.New(1, named("a")), nodeinfo.New(2, named("node"), pods...)}
	if scores := askUntilAnswered(t, c, conn, nodes, nodes); len(scores) != 2 {
		t.Errorf("got scores %v", scores)
	}
	expectHeld(t, conn, 2, int64(len(pods)))
}

// busy is a connection to an engine that has no room for further requests for a while.
type busy struct {
	engine.Conn
	refuses []error
}

func (b *busy) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	if len(b.refuses) > 0 {
		err := b.refuses[0]
		b.refuses = b.refuses[1:]
		return err
	}
	return b.Conn.Invoke(ctx, method, args, reply, options...)
}

// An engine that is busy says nothing of the nodes of a batch: none is left out, and not all are sent again.
func TestABusyEngineLeavesOutNoNode(t *testing.T) {
	detailed, err := status.New(codes.ResourceExhausted, "too many calls are waiting").WithDetails(
		&errdetails.ErrorInfo{Domain: "loadline.dev", Reason: "BUSY"})
	if err != nil {
		t.Fatal(err)
	}
	for _, refusal := range []error{detailed.Err(), status.Error(codes.ResourceExhausted, "the stream was ended")} {
		conn := &busy{Conn: enginetest.Open(t)}
		v := New(conn, "v")
		v.LeaveOutInvalid(failOnLeftOut(t))
		v.SetNode(named("a"))
		expectSync(t, v)
		v.SetNode(named("b"))
		conn.refuses = []error{refusal, refusal, refusal}
		for range 3 {
			if err := v.Sync(t.Context()); status.Code(err) != codes.ResourceExhausted || v.ledger.full.due {
				t.Errorf("error %v; all is sent again: %t", err, v.ledger.full.due)
			}
		}
		expectSync(t, v)
		if held := heldNodes(t, conn, "v"); len(held) != 2 {
			t.Errorf("the engine holds %v", held)
		}
	}
}

// A node whose pods alone, without their shapes, outgrow a message.
func TestANodeBeyondAMessageIsLeftOut(t *testing.T) {
	conn := enginetest.Open(t)
	v := New(conn, "v")
	var left []string
	v.LeaveOutInvalid(func(node string, err error) { left = append(left, fmt.Sprint(node, ": ", err)) })
	v.SetNode(named("a"))
	v.SetNode(named("node"))
	v.SetNode(named("z"))
	expectSync(t, v)
	pods := make([]*v1.Pod, 20000)
	for i := range pods {
		pod := *fullPod()
		pod.Name = fmt.Sprintf("%s-%05d", strings.Repeat("p", 200), i)
		pods[i] = &pod
		v.SetPod(&pod)
	}
	expectSync(t, v)
	if len(left) != 1 || !strings.Contains(left[0], "node: ") || !strings.Contains(left[0], "ResourceExhausted") {
		t.Errorf("left out: %v", left)
	}
	if held := heldNodes(t, conn, "v"); len(held) != 2 {
		t.Errorf("the engine holds %v, want a and z", held)
	}
	for _, pod := range pods[10:] {
		v.DeletePod(pod)
	}
	expectSync(t, v)
	expectHeld(t, conn, 3, 10)
}

// offering is a node with a resource of its own.
func offering(number int) *v1.Node {
	node := named(fmt.Sprintf("node-%03d", number))
	node.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("4"),
		v1.ResourceName(fmt.Sprint("example.com/device-", number)): resource.MustParse("1")}
	return node
}

// unread gathers what the engine could not read in full.
type unread struct {
	mu    sync.Mutex
	news  []leftout.Object // guarded by mu
	total int64            // guarded by mu
}

func (u *unread) hear(news []leftout.Object, total int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.news, u.total = append(u.news, news...), total
}

// take returns what is new since it was called last, and how many objects could not be read.
func (u *unread) take() (news []leftout.Object, total int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	news, u.news = u.news, nil
	return news, u.total
}

func failOnLeftOut(t *testing.T) func(string, error) {
	return func(node string, err error) { t.Errorf("%s is left out: %v", node, err) }
}

// An engine gives up no resource name before the epoch ends: the client has to begin a new one.
func TestNamesThatAreGoneMakeRoom(t *testing.T) {
	conn := &measured{ClientConnInterface: enginetest.Open(t)}
	v := New(conn, "v")
	v.roomEvery = 0
	var told unread
	v.LeaveOutInvalid(failOnLeftOut(t))
	v.HearUnreadable(told.hear)
	for i := range 2 * roomForNames {
		node := offering(i)
		v.SetNode(node)
		expectSync(t, v)
		if _, total := told.take(); total != 0 {
			t.Fatalf("%d nodes are not read in full after node %d came", total, i)
		}
		v.DeleteNode(node.Name)
	}
	if conn.lists != 2 { // one in the beginning, and one for the 254th name
		t.Errorf("%d full lists were sent, want 2", conn.lists)
	}
}

// The same where nodes travel with questions, of which the answers name no object.
func TestNamesThatAreGoneMakeRoomBetweenCycles(t *testing.T) {
	conn := &measured{ClientConnInterface: enginetest.Open(t)}
	var told unread
	c := newCycles(conn, "cycles", Events{LeftOut: failOnLeftOut(t), Unreadable: told.hear})
	defer c.Close()
	c.roomEvery, c.hearing.every = 0, 0
	for i := range 2 * roomForNames {
		nodes := []fwk.NodeInfo{nodeinfo.New(int64(i+1), offering(i))}
		askUntilAnswered(t, c, conn, nodes, nodes)
		c.wg.Wait() // it has asked what could not be read
	}
	news, total := told.take()
	if len(news) != 1 || news[0].Name != "node-253" || total != 0 || conn.lists != 2 {
		t.Errorf("not read in full: %v, in the end %d; %d full lists, want node-253, 0 and 2", news, total, conn.lists)
	}
}

// A node that is added when there is no room for the name of its device is kept with what could be read, and named. All
// others are as if it were not there.
func TestNodesWithoutRoomAreNamed(t *testing.T) {
	const nodes, beyond = 300, 300 - roomForNames
	conn := &measured{ClientConnInterface: enginetest.Open(t)}
	v := New(conn, "v")
	v.roomEvery = 0
	var told unread
	v.LeaveOutInvalid(failOnLeftOut(t))
	v.HearUnreadable(told.hear)
	for i := range nodes {
		v.SetNode(offering(i))
	}
	expectSync(t, v)
	expectHeld(t, conn, nodes, 0)
	news, total := told.take()
	if len(news) != beyond || total != beyond || len(conn.sizes) != 1 {
		t.Fatalf("%d nodes are named of %d, want %d; it took %d messages", len(news), total, beyond, len(conn.sizes))
	}
	for i, got := range news {
		number := roomForNames + i
		want := leftout.New("Node", "", fmt.Sprintf("node-%03d", number),
			fmt.Sprintf(`("node-%03d"): status.allocatable["example.com/device-%d"]: is one resource name too many`,
				number, number))
		if got != want {
			t.Errorf("named: %v, want %v", got, want)
		}
	}
	for i := range nodes {
		want := map[string]int64{"cpu": 4000, fmt.Sprint("example.com/device-", i): 1}
		if i >= roomForNames {
			want = map[string]int64{"cpu": 4000}
		}
		if got := allocatableOf(t, conn, v, offering(i).Name); !maps.Equal(got, want) {
			t.Errorf("node %d offers %v, want %v", i, got, want)
		}
	}
	// A change of one of them costs no full list, and is not reported again.
	pod := fullPod()
	pod.Spec.NodeName, conn.lists = news[7].Name, 0
	v.SetPod(pod)
	expectSync(t, v)
	if news, total := told.take(); len(news) != 0 || total != beyond && total != 0 || conn.lists != 0 {
		t.Errorf("told again: %v, %d after %d full lists", news, total, conn.lists)
	}
	// Others are removed, a new one is added: the new epoch has room for all.
	for i := range beyond + 1 {
		v.DeleteNode(offering(i).Name)
	}
	v.SetNode(offering(nodes))
	expectSync(t, v)
	expectHeld(t, conn, roomForNames, 1)
	if news, total := told.take(); len(news) != 1 || news[0].Name != offering(nodes).Name || total != 0 ||
		conn.lists != 1 {
		t.Errorf("when there is room: told %v, %d are not read in full, %d full lists", news, total, conn.lists)
	}
}

// If nodes that are gone leave no room, full lists follow each other at a distance.
func TestAFullListForNamesIsRare(t *testing.T) {
	conn := &measured{ClientConnInterface: enginetest.Open(t)}
	v := New(conn, "v")
	for i := range roomForNames {
		v.SetNode(offering(i))
	}
	expectSync(t, v)
	v.DeleteNode(offering(0).Name) // leaves room for one name
	for i := range 10 {
		v.SetNode(offering(roomForNames + i))
		expectSync(t, v)
	}
	if conn.lists != 2 {
		t.Errorf("%d full lists were sent for ten nodes, want 2: one in the beginning, and one within a minute",
			conn.lists)
	}
}

func allocatableOf(t *testing.T, conn grpc.ClientConnInterface, v *View, node string) map[string]int64 {
	t.Helper()
	slot, ok := v.Slot(node)
	if !ok {
		t.Fatalf("%s has no slot", node)
	}
	answer, err := loadlinev1.NewClusterStateClient(conn).Describe(t.Context(),
		&loadlinev1.DescribeRequest{View: "v", Slots: []int32{slot}})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, amount := range answer.GetNodes()[0].GetResources() {
		if amount.GetAllocatable() != 0 {
			out[amount.GetResource()] = amount.GetAllocatable()
		}
	}
	return out
}
