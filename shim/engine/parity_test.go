package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/emptypb"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/enginetest"
	"loadline.dev/shim/internal/randompod"
	"loadline.dev/shim/view"
)

const parityRequests = 15000

// Both transports give the same code, text and bytes for the same requests, good and bad.
func TestBothTransportsAnswerAlike(t *testing.T) {
	local, remote := enginetest.Open(t), enginetest.StartDaemon(t).Open()
	g := &requests{Rand: rand.New(rand.NewPCG(20, 26)), slots: map[int32]bool{}}
	methods := apiMethods()
	codes := map[string]int{}
	perMethod := map[string]int{}
	for i := range parityRequests {
		method, request := g.next(methods)
		localBytes, localErr := callRaw(t.Context(), local, method, request)
		remoteBytes, remoteErr := callRaw(t.Context(), remote, method, request)
		a, b := status.Convert(localErr), status.Convert(remoteErr)
		if a.Code() != b.Code() || a.Message() != b.Message() || !bytes.Equal(localBytes, remoteBytes) {
			t.Fatalf("request %d to %s, %x:\nin process %v %q, %d bytes\non a socket %v %q, %d bytes",
				i, method, request, a.Code(), a.Message(), len(localBytes), b.Code(), b.Message(), len(remoteBytes))
		}
		g.learn(localErr)
		codes[a.Code().String()]++
		perMethod[method]++
	}
	t.Logf("codes %v, methods %v", codes, perMethod)
	for _, code := range []string{"OK", "InvalidArgument", "FailedPrecondition", "NotFound", "Unimplemented"} {
		if codes[code] < 100 {
			t.Errorf("%s came %d times, want at least 100", code, codes[code])
		}
	}
	for _, method := range methods {
		if perMethod[method] < 500 {
			t.Errorf("%s was called %d times, want at least 500", method, perMethod[method])
		}
	}
}

// callRaw sends bytes as they are: an empty message keeps what it does not know.
func callRaw(ctx context.Context, conn engine.Conn, method string, request []byte) ([]byte, error) {
	var in, out emptypb.Empty
	in.ProtoReflect().SetUnknown(request)
	err := conn.Invoke(ctx, method, &in, &out)
	return out.ProtoReflect().GetUnknown(), err
}

// apiMethods lists all methods of the API.
func apiMethods() []string {
	var out []string
	for _, file := range []protoreflect.FileDescriptor{
		loadlinev1.File_loadline_v1_cluster_state_proto, loadlinev1.File_loadline_v1_scheduler_extender_proto,
	} {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				out = append(out, fmt.Sprintf("/%s/%s", service.FullName(), service.Methods().Get(j).Name()))
			}
		}
	}
	return out
}

// requests makes requests, most of which fit the state that the former ones led to.
type requests struct {
	*rand.Rand
	epoch, revision int64
	slots           map[int32]bool // that hold a node
	pending         func()         // what an OK to the last request means
}

func (g *requests) learn(err error) {
	if err == nil && g.pending != nil {
		g.pending()
	}
	g.pending = nil
}

func (g *requests) next(methods []string) (string, []byte) {
	if g.IntN(50) == 0 {
		return "/loadline.v1.Nothing/Of" + fmt.Sprint(g.IntN(3)), []byte{1}
	}
	method := methods[g.IntN(len(methods))]
	request, err := proto.Marshal(g.request(method))
	if err != nil {
		panic(err)
	}
	if g.IntN(4) == 0 {
		g.pending = nil
		return method, g.damage(request)
	}
	return method, request
}

// damage cuts bytes off, flips bits, or puts in other bytes.
func (g *requests) damage(request []byte) []byte {
	if len(request) == 0 {
		return []byte{byte(g.IntN(256))}
	}
	switch g.IntN(4) {
	case 0:
		return request[:g.IntN(len(request))]
	case 1:
		for range 1 + g.IntN(3) {
			request[g.IntN(len(request))] ^= 1 << g.IntN(8)
		}
	case 2:
		for range 1 + g.IntN(8) {
			request[g.IntN(len(request))] = byte(g.IntN(256))
		}
	case 3:
		request = append(request, request...)
	}
	return request
}

func (g *requests) request(method string) proto.Message {
	switch method {
	case loadlinev1.ClusterState_Sync_FullMethodName:
		return &loadlinev1.SyncRequest{Changes: g.changes()}
	case loadlinev1.ClusterState_Describe_FullMethodName:
		return &loadlinev1.DescribeRequest{View: g.view(), IncludePods: g.IntN(2) == 0, Slots: g.someSlots(g.IntN(2) * 4), FirstSlot: int32(g.IntN(8)) - 1}
	case loadlinev1.ClusterState_Drop_FullMethodName:
		if g.IntN(10) > 0 {
			return &loadlinev1.DropRequest{View: "none"}
		}
		g.pending = func() { g.epoch, g.revision, g.slots = g.epoch+1, 0, map[int32]bool{} }
		return &loadlinev1.DropRequest{View: "view"}
	case loadlinev1.SchedulerExtender_Score_FullMethodName:
		return &loadlinev1.ScoreRequest{Changes: g.at(), Pod: g.incoming(), Slots: g.someSlots(5), Policy: g.policy()}
	case loadlinev1.SchedulerExtender_Explain_FullMethodName:
		return &loadlinev1.ExplainRequest{Changes: g.at(), Pod: g.incoming(), Slots: g.someSlots(5), Policy: g.policy(), ExplainSlots: g.someSlots(g.IntN(2))}
	}
	return &loadlinev1.ScoreRequest{Changes: g.at(), Pod: g.incoming()} // parses as any question
}

func (g *requests) view() string {
	return []string{"view", "view", "view", "view", "", "none", "Bad View", "\x00\x1b[31m"}[g.IntN(8)]
}

// at names the present state, now and then with changes or a wrong one.
func (g *requests) at() *loadlinev1.Changes {
	if g.IntN(3) == 0 {
		return g.changes()
	}
	return &loadlinev1.Changes{View: "view", Epoch: g.epoch, BaseRevision: g.revision, Revision: g.revision + int64(g.IntN(8)/7)}
}

// changes builds on the present state, or starts anew; some are wrong.
func (g *requests) changes() *loadlinev1.Changes {
	c := &loadlinev1.Changes{View: "view", Epoch: g.epoch, BaseRevision: g.revision, Revision: g.revision + 1}
	full := g.revision == 0 || g.IntN(20) == 0
	if full {
		c.Epoch, c.BaseRevision, c.Revision = g.epoch+1, 0, 1
		c.FullList = &loadlinev1.FullListChunk{Last: g.IntN(10) > 0}
	}
	held := map[int32]bool{}
	for slot := range g.slots {
		held[slot] = !full
	}
	for id := range int32(3) {
		pod, _ := randompod.New(g.Rand, "pod", "")
		// An id per revision, so that none is redefined while it is in use.
		c.PodShapes = append(c.PodShapes, &loadlinev1.PodShape{Id: int32(c.Revision)*3 + id, Pod: view.TrimPod(pod)})
	}
	for range g.IntN(4) {
		slot := int32(g.IntN(8))
		if g.IntN(3) == 0 {
			c.RemovedSlots = append(c.RemovedSlots, slot)
			held[slot] = false
			continue
		}
		c.Nodes = append(c.Nodes, g.node(slot, int32(c.Revision)*3))
		held[slot] = true
	}
	switch g.IntN(12) {
	case 0:
		c.Epoch += int64(g.IntN(5)) - 2
	case 1:
		c.Revision += int64(g.IntN(5)) - 2
	case 2:
		c.BaseRevision -= int64(g.IntN(3))
	case 3:
		c.View = g.view()
	}
	epoch, revision := c.GetEpoch(), c.GetRevision()
	if !full || c.FullList.Last {
		g.pending = func() {
			g.epoch, g.revision, g.slots = epoch, revision, map[int32]bool{}
			for slot, is := range held {
				if is {
					g.slots[slot] = true
				}
			}
		}
	}
	return c
}

func (g *requests) node(slot, firstShape int32) *loadlinev1.NodeRecord {
	names := []string{"node", "knoten", "n\x00de", "\x1b[31mred"}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", names[g.IntN(1+g.IntN(4))], slot)}}
	node.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse(fmt.Sprint(1 + g.IntN(64))), "memory": resource.MustParse("64Gi")}
	record := &loadlinev1.NodeRecord{Slot: slot, Node: view.TrimNode(node)}
	for i := range g.IntN(4) {
		record.Pods = append(record.Pods, &loadlinev1.PodRecord{Shape: firstShape + int32(g.IntN(3)), Name: fmt.Sprint("pod-", i), Uid: fmt.Sprint(i)})
	}
	return record
}

func (g *requests) incoming() []byte {
	pod, _ := randompod.New(g.Rand, "pod", "")
	return view.TrimIncomingPod(pod)
}

// someSlots are mostly such that hold a node.
func (g *requests) someSlots(most int) []int32 {
	var out []int32
	for range g.IntN(most + 1) {
		slot := int32(g.IntN(8))
		if g.slots[slot] || g.IntN(20) == 0 {
			out = append(out, slot)
		}
	}
	if g.IntN(4) > 0 {
		seen := map[int32]bool{}
		unique := out[:0]
		for _, slot := range out {
			if !seen[slot] {
				seen[slot] = true
				unique = append(unique, slot)
			}
		}
		out = unique
	}
	return out
}

func (g *requests) policy() *loadlinev1.ScorePolicy {
	p := &loadlinev1.ScorePolicy{Preset: loadlinev1.ScorePolicy_Preset(1 + g.IntN(2))}
	if g.IntN(2) == 0 {
		p.Aggregate = loadlinev1.ScorePolicy_Aggregate(g.IntN(4))
		p.Normalization = loadlinev1.ScorePolicy_Normalization(g.IntN(3))
		p.Arithmetic = loadlinev1.ScorePolicy_Arithmetic(g.IntN(3))
		p.PodLimits = loadlinev1.ScorePolicy_PodLimits(g.IntN(3))
		p.MaxLimitRatio = int32(g.IntN(5)) - 1
	}
	if g.IntN(3) == 0 {
		names := []string{"cpu", "memory", "nvidia.com/gpu", "ephemeral-storage", "nonsense"}
		for _, name := range names[:1+g.IntN(len(names))] {
			p.Resources = append(p.Resources, &loadlinev1.ResourceWeight{Resource: name, Weight: int32(g.IntN(103))})
		}
	}
	return p
}
