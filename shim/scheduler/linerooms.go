package scheduler

import (
	"context"
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/view"
)

// firstRooms is the number of nodes in the first question about rooms that preemption causes; each further question
// has about twice as many. Preemption looks at neighbors in the order of the snapshot until it has a tenth of the
// nodes, and 100 at least: a hundred nodes of 30 pods take a question of some 100 microseconds.
const firstRooms = 128

// maxRoomAmounts bounds the amounts in an answer about rooms, of at most 10 bytes each, to 2.5 of the 4 MiB that a
// message may have. One node may have more.
const maxRoomAmounts = 250_000

// maxArrivalBytes bounds the pods that a question supposes to arrive, to half of the 4 MiB that a message may have. One
// node may have more.
const maxArrivalBytes = 2 << 20

// lineRooms has what a cycle must know of the load line to add pods and to subtract them: how much room the pod of the
// cycle leaves on a node, and what other pods count as there. It asks the engine when a node is first needed, for many
// nodes at once. All copies of a cycle's state share it. Safe for concurrent use.
type lineRooms struct {
	plugin  *Plugin
	pod     *v1.Pod
	cycle   viewCycle // without nodes
	refused map[*v1.Node]*fwk.Status

	byNode sync.Map // from the name of a node to its *nodeRoom, which does not change

	turn chan struct{} // of one element, which whoever asks has put in
	next int           // how many nodes the next question is about; guarded by turn
	// failed is why a question had no answer: the cycle asks no other one. Guarded by turn.
	failed    reason
	failedFor error
}

// nodeRoom is what the engine said of one node.
type nodeRoom struct {
	absent  bool // the engine has left the node out
	room    []int64
	reasons []string // by resource of the line, as room
	pods    map[podKey][]int64
	whole   bool // has all pods on the node, and not only those that are nominated to it
}

// podKey names a pod. Its UID alone would do where an API server gives it.
type podKey struct {
	uid             types.UID
	namespace, name string
}

func keyOf(pod *v1.Pod) podKey { return podKey{pod.UID, pod.Namespace, pod.Name} }

func newLineRooms(p *Plugin, pod *v1.Pod, cycle viewCycle, refused map[*v1.Node]*fwk.Status) *lineRooms {
	return &lineRooms{plugin: p, pod: pod, cycle: cycle, refused: refused, turn: make(chan struct{}, 1),
		next: firstRooms}
}

func (r *lineRooms) of(node string) *nodeRoom {
	if known, ok := r.byNode.Load(node); ok {
		return known.(*nodeRoom)
	}
	return nil
}

// amounts returns what a pod counts as on a node, by resource of the line; nil: the engine has left the node out.
// Without an answer it returns a reason, and an error where there is one.
func (r *lineRooms) amounts(ctx context.Context, pod *v1.Pod, node string) ([]int64, reason, error) {
	key := keyOf(pod)
	if amounts, ok := r.of(node).amounts(key); ok {
		return amounts, "", nil
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return nil, reasonCanceled, ctx.Err()
	}
	if amounts, ok := r.of(node).amounts(key); ok { // another one has asked meanwhile
		return amounts, "", nil
	}
	if r.failed == "" {
		why, err := r.ask(ctx, pod, node)
		if why != "" && ctx.Err() != nil { // which says nothing of the engine
			return nil, reasonCanceled, err
		}
		r.failed, r.failedFor = why, err
	}
	if r.failed != "" {
		return nil, r.failed, r.failedFor
	}
	amounts, ok := r.of(node).amounts(key)
	if !ok {
		return nil, reasonBadAnswer, fmt.Errorf("no amounts of pod %s/%s on node %s", pod.Namespace, pod.Name, node)
	}
	return amounts, "", nil
}

func (n *nodeRoom) amounts(key podKey) ([]int64, bool) {
	if n == nil || n.absent {
		return nil, n != nil
	}
	amounts, ok := n.pods[key]
	return amounts, ok
}

// check returns a status that refuses the pod of the cycle if more is added to a node than it has room for. The
// addition is known only of nodes that are known.
func (r *lineRooms) check(node string, moved []int64) *fwk.Status {
	known := r.of(node)
	var reasons []string
	for i, more := range moved {
		if more > known.room[i] {
			reasons = append(reasons, known.reasons[i])
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	slices.Sort(reasons)
	return fwk.NewStatus(fwk.Unschedulable, slices.Compact(reasons)...)
}

// ask asks about a pod on a node. Where the pod is there, which preemption takes off, it asks about all pods of that
// node and its neighbors, else about all pods that are nominated to nodes. The caller holds turn.
func (r *lineRooms) ask(ctx context.Context, pod *v1.Pod, node string) (reason, error) {
	info, err := r.cycle.Snapshot.Get(node)
	if err != nil {
		return reasonError, err
	}
	on := slices.ContainsFunc(info.GetPods(), func(on fwk.PodInfo) bool { return keyOf(on.GetPod()) == keyOf(pod) })
	question := &roomQuestion{rooms: r, whole: on}
	switch {
	case on:
		if err := question.addNeighbors(node); err != nil {
			return reasonError, err
		}
	case r.of(node) == nil:
		if err := question.addNominated(info, pod); err != nil {
			return reasonError, err
		}
	default: // it was nominated since, or somebody supposes a pod that is nowhere
		question.add(info, []arrival{r.plugin.newArrival(pod)})
	}
	return question.ask(ctx)
}

// arrival is a pod that is supposed to arrive at a node.
type arrival struct {
	key podKey
	pod []byte // trimmed
}

func (p *Plugin) newArrival(pod *v1.Pod) arrival {
	trimmed := view.TrimPod(pod)
	if p.loadLine.line.GetExpectedUse() != nil {
		trimmed = view.WithWorkload(trimmed, pod)
	}
	return arrival{keyOf(pod), trimmed}
}

// roomQuestion is a question about the rooms of some nodes.
type roomQuestion struct {
	rooms    *lineRooms
	whole    bool // asks for the pods on the nodes
	nodes    []fwk.NodeInfo
	arriving [][]arrival // on each of the nodes, beside those that are there
	amounts  int         // in the answer
	bytes    int         // of what arrives
}

// add adds a node. It returns false where the question or its answer would be too large with it.
func (q *roomQuestion) add(node fwk.NodeInfo, arriving []arrival) bool {
	pods, bytes := len(arriving), 0
	if q.whole {
		pods += len(node.GetPods())
	}
	amounts := pods * len(q.rooms.plugin.loadLine.line.GetResources())
	for _, a := range arriving {
		bytes += len(a.pod)
	}
	if len(q.nodes) > 0 && (q.amounts+amounts > maxRoomAmounts || q.bytes+bytes > maxArrivalBytes) {
		return false
	}
	q.nodes, q.arriving = append(q.nodes, node), append(q.arriving, arriving)
	q.amounts, q.bytes = q.amounts+amounts, q.bytes+bytes
	return true
}

// addNeighbors adds a node and those that follow it in the snapshot, of which the pods are not known yet and to which
// preemption may come.
func (q *roomQuestion) addNeighbors(node string) error {
	r := q.rooms
	all, err := r.cycle.Snapshot.List()
	if err != nil {
		return err
	}
	start := slices.IndexFunc(all, func(info fwk.NodeInfo) bool { return info.Node().Name == node })
	if start < 0 {
		return fmt.Errorf("node %q is not in the snapshot", node)
	}
	most := r.next
	r.next *= 2
	for i := 0; i < len(all) && len(q.nodes) < most; i++ {
		info := all[(start+i)%len(all)]
		name := info.Node().Name
		known := r.of(name)
		needless := known != nil && (known.whole || known.absent) ||
			r.refused[info.Node()].Code() == fwk.UnschedulableAndUnresolvable
		if i > 0 && needless {
			continue
		}
		if !q.add(info, r.nominated(name)) {
			break
		}
	}
	return nil
}

// addNominated adds a node with a pod that arrives there, and the nodes to which pods are nominated.
func (q *roomQuestion) addNominated(node fwk.NodeInfo, pod *v1.Pod) error {
	all, err := q.rooms.cycle.Snapshot.List()
	if err != nil {
		return err
	}
	arriving := q.rooms.nominated(node.Node().Name)
	if !slices.ContainsFunc(arriving, func(other arrival) bool { return other.key == keyOf(pod) }) {
		arriving = append(arriving, q.rooms.plugin.newArrival(pod))
	}
	q.add(node, arriving)
	for _, info := range all {
		name := info.Node().Name
		if name == node.Node().Name || q.rooms.of(name) != nil {
			continue
		}
		if pods := q.rooms.nominated(name); len(pods) > 0 && !q.add(info, pods) {
			break
		}
	}
	return nil
}

func (r *lineRooms) nominated(node string) []arrival {
	var pods []arrival
	for _, info := range r.plugin.handle.NominatedPodsForNode(node) {
		pods = append(pods, r.plugin.newArrival(info.GetPod()))
	}
	return pods
}

// ask asks, and notes the answer.
func (q *roomQuestion) ask(ctx context.Context) (reason, error) {
	p, cycle := q.rooms.plugin, q.rooms.cycle
	cycle.Feasible = q.nodes
	question := &loadlinev1.CheckLoadLineRequest{Line: p.loadLine.line,
		Pod: view.IncomingPod(q.rooms.pod, p.loadLine.line.GetExpectedUse())}
	answer, slots, why, err := p.client.checkLine(ctx, p.timeout, question, cycle, func(slots []int32) {
		question.Slots, question.Arrivals = nil, nil
		for i, slot := range slots {
			if slot == view.NoSlot {
				continue
			}
			question.Slots = append(question.Slots, slot)
			for _, a := range q.arriving[i] {
				question.Arrivals = append(question.Arrivals, &loadlinev1.LineArrival{Slot: slot, Pod: a.pod})
			}
		}
		question.WithRooms = len(question.GetSlots()) > 0 // no slot would mean all
		question.WithPods = question.GetWithRooms() && q.whole
	})
	if why != "" {
		return why, err
	}
	return q.note(answer, slots)
}

// note keeps what the engine said of the nodes.
func (q *roomQuestion) note(answer *loadlinev1.CheckLoadLineResponse, slots []int32) (reason, error) {
	rooms := answer.GetRooms()
	for i, info := range q.nodes {
		name := info.Node().Name
		if slots[i] == view.NoSlot {
			q.rooms.byNode.Store(name, &nodeRoom{absent: true})
			continue
		}
		if len(rooms) == 0 || rooms[0].GetSlot() != slots[i] {
			return reasonBadAnswer, fmt.Errorf("the answer lacks node %s", name)
		}
		known, ok := q.read(rooms[0], answer.GetReasons(), i)
		if !ok {
			return reasonBadAnswer, fmt.Errorf("the answer for node %s has %d amounts", name, len(rooms[0].GetPods()))
		}
		q.rooms.byNode.Store(name, known)
		rooms = rooms[1:]
	}
	return "", nil
}

// roomWidth returns how many amounts a room has: one for each line of limits, and one for each hour of the day of a
// line of expected use.
func roomWidth(line *loadlinev1.LoadLine) int {
	width := 0
	for _, resource := range line.GetResources() {
		expected := resource.GetMaxExpectedOverAllocatable() != ""
		if expected {
			width += 24
		}
		if !expected || resource.GetMaxLimitsOverAllocatable() != "" {
			width++
		}
	}
	return width
}

// read returns what a room says of the node at a position of the question, with what is known of the node already.
func (q *roomQuestion) read(room *loadlinev1.LineRoom, reasons []string, i int) (*nodeRoom, bool) {
	width := roomWidth(q.rooms.plugin.loadLine.line)
	var pods []podKey
	if q.whole {
		for _, info := range q.nodes[i].GetPods() {
			pods = append(pods, keyOf(info.GetPod()))
		}
	}
	for _, a := range q.arriving[i] {
		pods = append(pods, a.key)
	}
	if len(room.GetRoom()) != width || len(room.GetReasons()) != width || len(room.GetPods()) != width*len(pods) {
		return nil, false
	}
	out := &nodeRoom{room: room.GetRoom(), whole: q.whole, pods: make(map[podKey][]int64, len(pods))}
	for _, reason := range room.GetReasons() {
		if reason < 0 || int(reason) >= len(reasons) {
			return nil, false
		}
		out.reasons = append(out.reasons, reasons[reason])
	}
	if before := q.rooms.of(q.nodes[i].Node().Name); before != nil {
		for key, amounts := range before.pods {
			out.pods[key] = amounts
		}
		out.whole = out.whole || before.whole
	}
	for j, key := range pods {
		out.pods[key] = room.GetPods()[j*width : (j+1)*width]
	}
	return out, true
}
