package view

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/enginetest"
	"loadline.dev/shim/internal/nodeinfo"
)

// What is too large for one node must not keep all other nodes from the engine.

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
	c := NewCycles(conn, "v", Events{LeftOut: func(node string, err error) { t.Errorf("%s is left out: %v", node, err) }})
	defer c.Close()
	pods := bulkyPods(t)
	nodes := []fwk.NodeInfo{nodeinfo.New(1, named("a")), nodeinfo.New(2, named("node"), pods...)}
	if scores := askUntilAnswered(t, c, conn, nodes, nodes); len(scores) != 2 {
		t.Errorf("got scores %v", scores)
	}
	expectHeld(t, conn, 2, int64(len(pods)))
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
	node.Status.Allocatable = v1.ResourceList{v1.ResourceName(fmt.Sprint("example.com/device-", number)): resource.MustParse("1")}
	return node
}

// An engine gives up no resource name before the epoch ends: the client has to begin a new one.
func TestNamesThatAreGoneMakeRoom(t *testing.T) {
	conn := &measured{ClientConnInterface: enginetest.Open(t)}
	v := New(conn, "v")
	v.LeaveOutInvalid(func(node string, err error) { t.Errorf("%s is left out: %v", node, err) })
	c := NewCycles(conn, "cycles", Events{LeftOut: func(node string, err error) { t.Errorf("%s is left out: %v", node, err) }})
	defer c.Close()
	for i := range 2 * roomForNames {
		node := offering(i)
		v.SetNode(node)
		expectSync(t, v)
		v.DeleteNode(node.Name)
		nodes := []fwk.NodeInfo{nodeinfo.New(int64(i+1), node)}
		askUntilAnswered(t, c, conn, nodes, nodes)
	}
	if conn.lists != 2*2 { // for either view one in the beginning, and one for the 254th name
		t.Errorf("%d full lists were sent, want 4", conn.lists)
	}
}

func TestNodesWithoutRoomAreLeftOut(t *testing.T) {
	const nodes, beyond = 300, 300 - roomForNames
	conn := &measured{ClientConnInterface: enginetest.Open(t)}
	v := New(conn, "v")
	var left []string
	v.LeaveOutInvalid(func(node string, err error) {
		if left = append(left, node); !strings.Contains(err.Error(), "the limit is 256") {
			t.Errorf("%s was left out: %v", node, err)
		}
	})
	for i := range nodes {
		v.SetNode(offering(i))
	}
	expectSync(t, v)
	expectHeld(t, conn, roomForNames, 0)
	if len(left) != beyond || len(conn.sizes) > 3*nodes {
		t.Errorf("%d nodes are left out, want %d; it took %d messages", len(left), beyond, len(conn.sizes))
	}
	// A change of one of them costs no full list.
	pod := fullPod()
	pod.Spec.NodeName, left, conn.lists = left[7], left[:0], 0
	v.SetPod(pod)
	expectSync(t, v)
	if len(left) != 1 || conn.lists != 0 {
		t.Errorf("left out again: %v, after %d full lists", left, conn.lists)
	}
	// Others go, a new one comes: the new epoch has room for those that were left out.
	for i := range beyond + 1 {
		v.DeleteNode(offering(i).Name)
	}
	v.SetNode(offering(nodes))
	expectSync(t, v)
	expectHeld(t, conn, roomForNames, 1)
}
