package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/internal/testing/randompod"
	"loadline.dev/shim/view"
)

// parityRequests is how many requests there are for each method of the API.
const parityRequests = 2500

// Both transports give the same code, text and bytes for the same requests, good and bad.
// Invariants A4, H3.
func TestBothTransportsAnswerAlike(t *testing.T) {
	local, remote := enginetest.Open(t), enginetest.StartDaemon(t).Open()
	g := &requests{Rand: rand.New(rand.NewPCG(20, 27)), chunks: map[int]int{}, unmade: map[string]bool{}}
	methods := apiMethods()
	codes := map[string]int{}
	answered, called := map[string]int{}, map[string]int{}
	for i := range parityRequests * len(methods) {
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
		if called[method]++; localErr == nil {
			answered[method]++
		}
	}
	t.Logf("codes %v, methods called %v, answered %v, chunks %v", codes, called, answered, g.chunks)
	for _, code := range []string{"OK", "InvalidArgument", "FailedPrecondition", "NotFound", "Unimplemented"} {
		if codes[code] < 100 {
			t.Errorf("%s came %d times, want at least 100", code, codes[code])
		}
	}
	for _, method := range methods {
		if called[method] < 500 {
			t.Errorf("%s was called %d times, want at least 500", method, called[method])
		}
		if answered[method] < 100 && !g.unmade[method] {
			t.Errorf("%s was answered %d times, want at least 100", method, answered[method])
		}
	}
	if several := g.arrived - g.chunks[1] - g.chunks[2]; g.chunks[1] < 20 || g.chunks[2] < 10 || several < 10 {
		t.Errorf("full lists arrived in so many chunks: %v", g.chunks)
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
		loadlinev1.File_loadline_v1_autoscaler_proto,
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
	slots           map[int32]bool  // that hold a node
	staged          map[int32]bool  // the same in a full list on its way; nil: there is none
	nextChunk       int32           // of that list
	shapes          int32           // ids given out: none is redefined while it is in use
	chunks          map[int]int     // full lists that arrived, by their chunks
	arrived         int             // all of them
	unmade          map[string]bool // methods to which only bad requests are made
	pending         func()          // what an OK to the last request means
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
		return &loadlinev1.DescribeRequest{View: g.view(), IncludePods: g.IntN(2) == 0,
			Slots: g.someSlots(g.IntN(2) * 4), FirstSlot: int32(g.IntN(8)) - 1}
	case loadlinev1.ClusterState_Drop_FullMethodName:
		if g.IntN(10) > 0 {
			return &loadlinev1.DropRequest{View: "none"}
		}
		g.pending = func() { g.epoch, g.revision, g.slots, g.staged = g.epoch+1, 0, nil, nil }
		return &loadlinev1.DropRequest{View: "view"}
	case loadlinev1.ClusterState_SetCluster_FullMethodName:
		return g.cluster()
	case loadlinev1.SchedulerExtender_Score_FullMethodName:
		return &loadlinev1.ScoreRequest{Changes: g.at(), Pod: g.incoming(), Slots: g.someSlots(5), Policy: g.policy()}
	case loadlinev1.SchedulerExtender_Explain_FullMethodName:
		return &loadlinev1.ExplainRequest{Changes: g.at(), Pod: g.incoming(), Slots: g.someSlots(5), Policy: g.policy(),
			ExplainSlots: g.someSlots(g.IntN(2))}
	case loadlinev1.SchedulerExtender_Fit_FullMethodName:
		return &loadlinev1.FitRequest{Changes: g.at(), Moves: g.moves(), Pods: g.pods(), Slots: g.someSlots(5),
			Options: g.fitOptions()}
	case loadlinev1.SchedulerExtender_CheckLoadLine_FullMethodName:
		return &loadlinev1.CheckLoadLineRequest{Changes: g.at(), Line: g.loadLine(), Pod: g.incoming(),
			Slots: g.someSlots(5), WithNodes: g.IntN(2) == 0}
	case loadlinev1.Autoscaler_RankOptions_FullMethodName:
		return g.rankOptions()
	case loadlinev1.Autoscaler_EstimateScaleUp_FullMethodName:
		return &loadlinev1.EstimateScaleUpRequest{Problem: g.problem(),
			Mode: loadlinev1.EstimateScaleUpRequest_Mode(g.IntN(4))}
	case loadlinev1.Autoscaler_PlanScaleUp_FullMethodName:
		return &loadlinev1.PlanScaleUpRequest{Problem: g.problem(), Prices: g.prices(),
			UsdPerFurtherType: g.Float64() * float64(g.IntN(2))}
	case loadlinev1.Autoscaler_MeasureUtilization_FullMethodName:
		return g.measureUtilization()
	case loadlinev1.Autoscaler_PlanDrain_FullMethodName:
		return g.planDrain()
	case loadlinev1.Autoscaler_PlanSlack_FullMethodName:
		return g.planSlack()
	case loadlinev1.Autoscaler_PlanLoop_FullMethodName:
		return g.planLoop()
	case loadlinev1.Autoscaler_Simulate_FullMethodName:
		return &loadlinev1.SimulateRequest{Days: 1, Seed: int64(g.IntN(3)), Scenario: &loadlinev1.Scenario{
			Groups: []*loadlinev1.SimulatedGroup{{Name: "g", Max: int64(g.IntN(5)), MilliCpu: 4000, MemoryMib: 8192}},
			Workloads: []*loadlinev1.SimulatedWorkload{{Name: "w", Replicas: int64(g.IntN(20)), MilliCpu: 500,
				MemoryMib: 64, DailyPercent: int64(g.IntN(102))}}}}
	}
	g.unmade[method] = true
	return &emptypb.Empty{} // and what damage makes of it
}

// cluster returns a cluster of a view of its own, as JSON: most nodes and pods are in the next one as well.
func (g *requests) cluster() *loadlinev1.SetClusterRequest {
	request := &loadlinev1.SetClusterRequest{View: "given", Last: g.IntN(8) > 0}
	for i := range 4 + g.IntN(3) {
		request.Nodes = append(request.Nodes, fmt.Appendf(nil, `{"kind":"Node","metadata":{"name":"n%d"},`+
			`"status":{"allocatable":{"cpu":%d,"memory":"8Gi"}}}`, i, 4+g.IntN(20)/19))
		request.Pods = append(request.Pods, fmt.Appendf(nil, `{"metadata":{"name":"p%d"},"spec":{"nodeName":"n%d",`+
			`"containers":[{"resources":{"limits":{"cpu":"%d"}}}]}}`, i+g.IntN(2), g.IntN(8), 1+g.IntN(2)))
	}
	return request
}

func (g *requests) view() string {
	return []string{"view", "view", "view", "view", "", "none", "Bad View", "\x00\x1b[31m"}[g.IntN(8)]
}

// at names the present state, now and then with changes or a wrong one.
func (g *requests) at() *loadlinev1.Changes {
	if g.staged == nil && g.IntN(3) == 0 {
		return g.changes()
	}
	return &loadlinev1.Changes{View: "view", Epoch: g.epoch, BaseRevision: g.revision,
		Revision: g.revision + int64(g.IntN(8)/7)}
}

// changes builds on the present state, continues with a full list, or starts anew; some are wrong.
func (g *requests) changes() *loadlinev1.Changes {
	c := &loadlinev1.Changes{View: "view", Epoch: g.epoch, BaseRevision: g.revision, Revision: g.revision + 1}
	held := maps.Clone(g.slots)
	switch {
	case g.staged != nil && g.IntN(8) > 0:
		c.Epoch, c.BaseRevision, c.Revision = g.epoch+1, 0, 1
		c.FullList = &loadlinev1.FullListChunk{Index: g.nextChunk, Last: g.IntN(3) == 0}
		held = maps.Clone(g.staged)
	case g.revision == 0 || g.IntN(20) == 0:
		c.Epoch, c.BaseRevision, c.Revision = g.epoch+1, 0, 1
		c.FullList = &loadlinev1.FullListChunk{Last: g.IntN(2) == 0}
		held = nil
	}
	if held == nil {
		held = map[int32]bool{}
	}
	g.fill(c, held)
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
	epoch, revision, chunk := c.GetEpoch(), c.GetRevision(), c.GetFullList()
	g.pending = func() {
		if chunk != nil && !chunk.GetLast() {
			g.staged, g.nextChunk = held, chunk.GetIndex()+1
			return
		}
		if chunk != nil {
			g.chunks[int(chunk.GetIndex())+1]++
			g.arrived++
			g.staged = nil
		}
		g.epoch, g.revision, g.slots = epoch, revision, held
	}
	return c
}

// fill adds shapes, nodes and removals, and notes which slots then hold a node.
func (g *requests) fill(c *loadlinev1.Changes, held map[int32]bool) {
	first := g.shapes
	g.shapes += 3
	for id := first; id < g.shapes; id++ {
		pod, _ := randompod.New(g.Rand, "pod", "")
		c.PodShapes = append(c.PodShapes, &loadlinev1.PodShape{Id: id, Pod: view.TrimPodForFilters(pod)})
	}
	for range g.IntN(4) {
		slot := int32(g.IntN(8))
		if g.IntN(3) == 0 {
			c.RemovedSlots = append(c.RemovedSlots, slot)
			delete(held, slot)
			continue
		}
		c.Nodes = append(c.Nodes, g.node(slot, first))
		held[slot] = true
	}
}

func (g *requests) node(slot, firstShape int32) *loadlinev1.NodeRecord {
	names := []string{"node", "knoten", "n\x00de", "\x1b[31mred"}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", names[g.IntN(1+g.IntN(4))], slot)}}
	node.Labels = map[string]string{"pool": fmt.Sprint(g.IntN(4))}
	node.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse(fmt.Sprint(1 + g.IntN(64))),
		"memory": resource.MustParse("64Gi")}
	record := &loadlinev1.NodeRecord{Slot: slot, Node: view.TrimNodeForPlanning(node)}
	for i := range g.IntN(4) {
		record.Pods = append(record.Pods, &loadlinev1.PodRecord{Shape: firstShape + int32(g.IntN(3)),
			Name: fmt.Sprint("pod-", i), Uid: fmt.Sprint(i)})
	}
	return record
}

func (g *requests) incoming() []byte {
	pod, _ := randompod.New(g.Rand, "pod", "")
	return view.TrimIncomingPod(pod)
}

// pods are one or two that look for a node.
func (g *requests) pods() []*loadlinev1.IncomingPod {
	var out []*loadlinev1.IncomingPod
	for range 1 + g.IntN(2) {
		pod, _ := randompod.New(g.Rand, "incoming", "")
		pod.UID = "incoming"
		out = append(out, &loadlinev1.IncomingPod{Pod: view.TrimIncomingPodForFilters(pod)})
	}
	return out
}

// moves are mostly none, and mostly possible.
func (g *requests) moves() []*loadlinev1.Move {
	var out []*loadlinev1.Move
	for range max(0, g.IntN(6)-2) {
		slot, pod := int32(g.IntN(8)), fmt.Sprint(g.IntN(4))
		move := &loadlinev1.Move{}
		switch g.IntN(6) {
		case 0:
			move.Move = &loadlinev1.Move_PlacePod{PlacePod: &loadlinev1.PlacePod{
				Content: &loadlinev1.PlacePod_Pod{Pod: g.pods()[0].GetPod()}, Slot: slot}}
		case 1:
			move.Move = &loadlinev1.Move_RemovePod{RemovePod: &loadlinev1.RemovePod{Slot: slot, Uid: pod}}
		case 2:
			move.Move = &loadlinev1.Move_AddNode{AddNode: &loadlinev1.AddNode{Slot: 8 + slot,
				Node: g.node(8+slot, 0).GetNode()}}
		case 3:
			move.Move = &loadlinev1.Move_RemoveNode{RemoveNode: &loadlinev1.RemoveNode{Slot: slot,
				Ghost: g.IntN(2) == 0}}
		case 4:
			move.Move = &loadlinev1.Move_Fork{Fork: &loadlinev1.Fork{}}
		case 5:
			move.Move = &loadlinev1.Move_Revert{Revert: &loadlinev1.Revert{}}
		}
		out = append(out, move)
	}
	return out
}

func (g *requests) fitOptions() *loadlinev1.FitOptions {
	if g.IntN(2) == 0 {
		return nil
	}
	return &loadlinev1.FitOptions{LoadLine: g.loadLine(), IgnoredResources: []string{"nvidia.com/gpu"},
		Defects: &loadlinev1.UpstreamDefects{NamespaceSelectorSeesNoLabels: g.IntN(2) == 0}}
}

func (g *requests) rankOptions() *loadlinev1.RankOptionsRequest {
	out := &loadlinev1.RankOptionsRequest{Policy: &loadlinev1.RankPolicy{
		Preset:     loadlinev1.RankPolicy_Preset(1 + g.IntN(2)),
		Strategies: []loadlinev1.RankPolicy_Strategy{loadlinev1.RankPolicy_Strategy(1 + g.IntN(5))},
	}}
	switch g.IntN(3) {
	case 0:
		out.Changes = g.at()
	case 1:
		out.ClusterNodes = proto.Int32(int32(g.IntN(2000) - 1))
	}
	for range 1 + g.IntN(3) {
		out.Pods = append(out.Pods, g.incoming())
	}
	for i := range g.IntN(6) {
		option := &loadlinev1.ExpansionOption{NodeGroup: fmt.Sprint("group-", i), NodeCount: int32(g.IntN(50)),
			TemplateNode: g.node(0, 0).GetNode(),
			Pods: []*loadlinev1.PodRun{
				{Pod: int32(g.IntN(len(out.Pods) + g.IntN(20)/19)), Count: int32(g.IntN(100))}}}
		if g.IntN(2) == 0 {
			option.NodeUsdPerHour = proto.Float64(g.Float64())
		}
		out.Options = append(out.Options, option)
	}
	return out
}

// problem is about a view, or brings its cluster along. It is bounded by work, not by time, so that answers are equal.
func (g *requests) problem() *loadlinev1.ScaleUpProblem {
	out := &loadlinev1.ScaleUpProblem{Fit: g.fitOptions(), MaxNewNodes: int32(g.IntN(30)),
		MaxNodesTotal: int32(g.IntN(2) * g.IntN(40)), MaxWork: int64(g.IntN(3) * 5000)}
	if g.IntN(3) > 0 {
		out.Cluster = &loadlinev1.ScaleUpProblem_Changes{Changes: g.at()}
	} else {
		own := &loadlinev1.Changes{}
		first := g.shapes
		g.fill(own, map[int32]bool{})
		g.shapes = first // they are of no view
		for _, shape := range own.GetPodShapes() {
			shape.Id -= first
		}
		for _, node := range own.GetNodes() {
			for _, pod := range node.GetPods() {
				pod.Shape -= first
			}
		}
		if own.RemovedSlots = nil; g.IntN(10) == 0 {
			own.RemovedSlots = []int32{1}
		}
		out.Cluster = &loadlinev1.ScaleUpProblem_Own{Own: own}
	}
	for range g.IntN(3) {
		for _, pod := range g.pods() {
			out.Pods = append(out.Pods, &loadlinev1.PendingPods{Pod: pod, Count: int32(g.IntN(20))})
		}
	}
	for i := range g.IntN(4) {
		group := &loadlinev1.ScalableGroup{NodeGroup: fmt.Sprint("group-", i), CurrentNodes: int32(g.IntN(5)),
			MaxNodes: int32(g.IntN(20))}
		if g.IntN(10) > 0 {
			group.TemplateNode = g.node(0, 0).GetNode()
		}
		if g.IntN(3) > 0 {
			group.NodeUsdPerHour = proto.Float64(g.Float64())
		}
		out.Groups = append(out.Groups, group)
	}
	for range g.IntN(2) {
		out.DaemonPods = append(out.DaemonPods, g.incoming())
	}
	return out
}

func (g *requests) prices() *loadlinev1.PriceModel {
	if g.IntN(2) == 0 {
		return nil
	}
	return &loadlinev1.PriceModel{SpotFactor: proto.Float64(g.Float64() * 1.1)}
}

// planDrain asks which nodes may go, with timers that have mostly ended.
func (g *requests) planDrain() *loadlinev1.PlanDrainRequest {
	out := &loadlinev1.PlanDrainRequest{Cluster: &loadlinev1.PlanDrainRequest_Changes{Changes: g.at()},
		NowS: 1_700_000_000 + int64(g.IntN(2000)),
		Fit:  g.fitOptions(), MaxWork: int64(g.IntN(3) * 100), Compact: g.IntN(4) == 0}
	out.Options = &loadlinev1.DrainOptions{ScaleDownUtilizationThreshold: proto.Float64(g.Float64() * 1.1),
		ScaleDownUnneededTimeS: proto.Int32(int32(g.IntN(3) * 600)),
		MaxDrainParallelism:    proto.Int32(int32(g.IntN(8) - 1)),
		MostVanishedPercent:    proto.Int32(int32(g.IntN(101))), Exclusive: g.IntN(4) == 0, PlainGreedy: g.IntN(4) == 0}
	for kind := loadlinev1.ObjectKind_POD_DISRUPTION_BUDGET; kind <= loadlinev1.ObjectKind_JOB; kind++ {
		if g.IntN(20) > 0 {
			out.Options.MayBeIncomplete = append(out.Options.MayBeIncomplete, kind)
		}
	}
	groups := g.IntN(4)
	for i := range groups {
		out.Groups = append(out.Groups, &loadlinev1.DrainGroup{NodeGroup: fmt.Sprint("group-", i),
			MinNodes: int32(g.IntN(3)), Atomic: g.IntN(5) == 0})
	}
	for _, slot := range slices.Sorted(maps.Keys(g.slots)) {
		if groups > 0 {
			group := out.Groups[g.IntN(groups)]
			group.Slots = append(group.Slots, slot)
		}
	}
	for i := range g.IntN(3) {
		out.Placeholders = append(out.Placeholders, &loadlinev1.DrainPlaceholder{Name: fmt.Sprint("slack-", i),
			Node: fmt.Sprint("node-", g.IntN(9)), Pod: g.incoming()})
	}
	if g.IntN(3) == 0 {
		out.State = &loadlinev1.DrainState{Unneeded: []*loadlinev1.UnneededNode{
			{Node: fmt.Sprint("node-", g.IntN(9)), SinceS: 1_699_999_000}},
			RecentEvictions: []*loadlinev1.EvictedPod{{Pod: g.incoming(), AtS: 1_700_000_000}}}
	}
	return out
}

func (g *requests) measureUtilization() *loadlinev1.MeasureUtilizationRequest {
	out := &loadlinev1.MeasureUtilizationRequest{Cluster: &loadlinev1.MeasureUtilizationRequest_Changes{
		Changes: g.at()}, NowMilliseconds: 1_700_000_000_000 + int64(g.IntN(1_000_000))}
	for i := range g.IntN(4) {
		out.Groups = append(out.Groups, g.sizedGroup(i))
	}
	for range g.IntN(3) {
		out.Pods = append(out.Pods, &loadlinev1.WaitingPods{Pod: g.incoming(), Count: int32(g.IntN(50)),
			WaitsFor: loadlinev1.WaitingPods_For(g.IntN(4))})
	}
	if g.IntN(2) == 0 {
		out.State = &loadlinev1.SizeState{Groups: []*loadlinev1.GroupSizeState{
			{NodeGroup: "group-0", Requested: int64(g.IntN(5)),
				CachedNode: &loadlinev1.NodeSize{MilliCpu: int64(g.IntN(4000)), MemoryBytes: int64(g.IntN(1 << 30))}}}}
	}
	return out
}

// sizedGroup is group i; its labels are those of nodes that random pods ask for, and its thresholds mostly in order.
func (g *requests) sizedGroup(i int) *loadlinev1.SizedGroup {
	lower := int32(1 + g.IntN(40))
	out := &loadlinev1.SizedGroup{NodeGroup: fmt.Sprint("group-", i), CatchAll: g.IntN(3) == 0,
		Options: &loadlinev1.SizeOptions{
			Mode: loadlinev1.SizeOptions_Mode(g.IntN(3)), MinNodes: int32(g.IntN(3)), MaxNodes: int32(2 + g.IntN(30)),
			TaintLowerPercent: lower,
			TaintUpperPercent: lower + int32(g.IntN(20)), ScaleUpPercent: lower + 20 + int32(g.IntN(60)),
			SlowRate: int32(g.IntN(3)), FastRate: int32(2 + g.IntN(3)),
			SoftGraceMilliseconds: 1000, HardGraceMilliseconds: 2000, CoolDownMilliseconds: int64(1 + g.IntN(500_000)),
			ScaleOnStarve: g.IntN(2) == 0,
		}}
	out.Labels = []*loadlinev1.GroupLabel{{Key: "pool", Value: fmt.Sprint(i - g.IntN(20)/19)}}
	if g.IntN(3) == 0 {
		out.TemplateNode = g.node(0, 0).GetNode()
	}
	if g.IntN(3) == 0 {
		out.CloudTarget = proto.Int32(int32(g.IntN(10)))
	}
	return out
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
		p.Aggregate = loadlinev1.ScorePolicy_Aggregate(g.IntN(len(loadlinev1.ScorePolicy_Aggregate_name)))
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
