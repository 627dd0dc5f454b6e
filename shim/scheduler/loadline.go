package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/view"
)

// The load line: PreFilter asks the engine once which nodes a pod would lift above it, Filter reads the answer. What
// preemption and nominated pods suppose of a node is asked of the engine again, for that node alone.
//
// It is a promise. Where the engine does not answer, a pod is not placed (onEngineFailure: Refuse), and tried again
// after a backoff.

const lineKey fwk.StateKey = Name + "/LoadLine"

// What becomes of a pod when the engine does not answer.
const (
	RefuseOnFailure = "Refuse"
	AllowOnFailure  = "Allow"
)

// linePatience is how long a cycle waits for the engine to be brought up to date; a pod would wait for longer if the
// cycle failed.
const linePatience = time.Second

var (
	_ fwk.PreFilterPlugin     = &Plugin{}
	_ fwk.PreFilterExtensions = &Plugin{}
	_ fwk.FilterPlugin        = &Plugin{}
	_ fwk.EnqueueExtensions   = &Plugin{}
)

// loadLine is what the plugin keeps for the load line; with a nil line it is off.
type loadLine struct {
	line  *loadlinev1.LoadLine
	allow bool // on a failure of the engine

	mu sync.Mutex // one supposition at a time: preemption looks at nodes in parallel
}

// lineAnswer is what the engine said for one cycle. The statuses do not change; suppositions come with clones.
type lineAnswer struct {
	refused  map[*v1.Node]*fwk.Status
	supposed map[string][]*loadlinev1.LineMove // by name of the node
}

// Clone returns a copy to which pods can be added.
func (a *lineAnswer) Clone() fwk.StateData {
	supposed := make(map[string][]*loadlinev1.LineMove, len(a.supposed))
	for node, moves := range a.supposed {
		supposed[node] = slices.Clip(moves)
	}
	return &lineAnswer{refused: a.refused, supposed: supposed}
}

// PreFilter asks the engine which nodes the load line keeps the pod off. Without a line it returns Skip.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) (_ *fwk.PreFilterResult, result *fwk.Status) {
	if p.loadLine.line == nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	defer observeSince(lineSeconds, time.Now())
	defer func() {
		if r := recover(); r != nil {
			p.recovered("PreFilter", r)
			result = p.lineFailed(reasonPanic, nil, fwk.NewStatus(fwk.Skip))
		}
	}()
	answer, slots, why, err := p.askLine(ctx, pod, p.cycle(state, nodes), nil)
	p.logTrouble(why, err)
	if why != "" {
		return nil, p.lineFailed(why, err, fwk.NewStatus(fwk.Skip))
	}
	lineCycles.Inc()
	nodesAbove.WithLabelValues(p.client.key.address, p.client.key.view).Set(float64(answer.GetNodesAbove()))
	state.Write(lineKey, &lineAnswer{refused: p.refusals(answer, slots, nodes),
		supposed: map[string][]*loadlinev1.LineMove{}})
	return nil, nil
}

// PreFilterExtensions returns the plugin: suppositions of preemption change what the line says.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return p }

// AddPod notes that a pod is supposed to be on a node.
func (p *Plugin) AddPod(_ context.Context, state fwk.CycleState, _ *v1.Pod, added fwk.PodInfo,
	node fwk.NodeInfo) *fwk.Status {
	return suppose(state, node, &loadlinev1.LineMove{Pod: view.TrimIncomingPod(added.GetPod())})
}

// RemovePod notes that a pod is supposed to have left a node.
func (p *Plugin) RemovePod(_ context.Context, state fwk.CycleState, _ *v1.Pod, removed fwk.PodInfo,
	node fwk.NodeInfo) *fwk.Status {
	return suppose(state, node, &loadlinev1.LineMove{Pod: view.TrimPod(removed.GetPod()), Removed: true})
}

func suppose(state fwk.CycleState, node fwk.NodeInfo, move *loadlinev1.LineMove) *fwk.Status {
	data, err := state.Read(lineKey)
	if err != nil {
		return nil // the line is off, or the engine failed and its failure is allowed
	}
	name := node.Node().Name
	supposed := data.(*lineAnswer).supposed
	supposed[name] = append(supposed[name], move)
	return nil
}

// Filter reads what the engine said of the node. Where pods are supposed to have come or gone, it asks again.
func (p *Plugin) Filter(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	node fwk.NodeInfo) (result *fwk.Status) {
	data, err := state.Read(lineKey)
	if err != nil {
		return nil // as above: PreFilter has decided
	}
	answer := data.(*lineAnswer)
	moves := answer.supposed[node.Node().Name]
	if len(moves) == 0 {
		return answer.refused[node.Node()]
	}
	defer func() {
		if r := recover(); r != nil {
			p.recovered("Filter", r)
			result = p.lineFailed(reasonPanic, nil, nil)
		}
	}()
	p.loadLine.mu.Lock()
	defer p.loadLine.mu.Unlock()
	known, err := p.handle.SnapshotSharedLister().NodeInfos().Get(node.Node().Name)
	if err != nil {
		return p.lineFailed(reasonError, err, nil)
	}
	nodes := []fwk.NodeInfo{known} // without what is supposed
	supposed, slots, why, err := p.askLine(ctx, pod, p.cycle(state, nodes), moves)
	if why != "" {
		return p.lineFailed(why, err, nil)
	}
	return p.refusals(supposed, slots, nodes)[known.Node()]
}

// askLine asks about all nodes of a cycle, or with moves about the only one.
func (p *Plugin) askLine(ctx context.Context, pod *v1.Pod, cycle view.Cycle,
	moves []*loadlinev1.LineMove) (*loadlinev1.CheckLoadLineResponse, []int32, reason, error) {
	question := &loadlinev1.CheckLoadLineRequest{Line: p.loadLine.line, Pod: view.TrimIncomingPod(pod), Moves: moves}
	return p.client.checkLine(ctx, p.timeout, question, cycle)
}

// refusals returns the status of each node that refuses the pod.
func (p *Plugin) refusals(answer *loadlinev1.CheckLoadLineResponse, slots []int32,
	nodes []fwk.NodeInfo) map[*v1.Node]*fwk.Status {
	refused := map[*v1.Node]*fwk.Status{}
	if len(answer.GetRefusals()) > 0 || slices.Contains(slots, view.NoSlot) {
		bySlot := map[int32]*fwk.Status{}
		for _, refusal := range answer.GetRefusals() {
			code := fwk.Unschedulable
			if refusal.GetUnresolvable() {
				code = fwk.UnschedulableAndUnresolvable
			}
			status := fwk.NewStatus(code, refusal.GetReasons()...)
			for _, slot := range refusal.GetSlots() {
				bySlot[slot] = status
			}
		}
		if !p.loadLine.allow {
			bySlot[view.NoSlot] = fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
				"load line: the engine finds the node invalid")
		}
		for i, node := range nodes {
			if status, ok := bySlot[slots[i]]; ok {
				refused[node.Node()] = status
			}
		}
	}
	return refused
}

// lineFailed returns what becomes of a pod for which the engine has no answer: `allowed`, or an error, which has it
// tried again after a backoff. To be unschedulable would have it wait for an event.
func (p *Plugin) lineFailed(why reason, err error, allowed *fwk.Status) *fwk.Status {
	lineFailures.WithLabelValues(string(why)).Inc()
	if p.loadLine.allow {
		return allowed
	}
	text := fmt.Sprintf("load line: the engine gives no answer (%s), so that the pod is not placed; "+
		"onEngineFailure: Allow would place it", why)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("%s: %w", text, err))
	}
	return fwk.AsStatus(errors.New(text))
}

// EventsToRegister names what may let in a pod that the line kept off: limits that go or are lowered, and nodes that
// come or change. Labels of a node may raise its line.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	if p.loadLine.line == nil {
		return nil, nil
	}
	node := fwk.ActionType(fwk.Add | fwk.UpdateNodeAllocatable)
	if p.loadLine.line.GetNodeLabelPrefix() != "" {
		node |= fwk.UpdateNodeLabel
	}
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete | fwk.UpdatePodScaleDown},
			QueueingHintFn: afterPod},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: node}},
	}, nil
}

// checkLine asks the line about the nodes of a cycle, in whose order the slots come. It waits for a while for the
// engine to be brought up to date. Without an answer it returns a reason, and an error where there is one.
func (c *client) checkLine(ctx context.Context, timeout time.Duration, question *loadlinev1.CheckLoadLineRequest,
	cycle view.Cycle) (answer *loadlinev1.CheckLoadLineResponse, slots []int32, why reason, err error) {
	if !c.breaker.Allow() {
		return nil, nil, reasonBreakerOpen, nil
	}
	deadline := time.Now().Add(linePatience)
	for refusals := 0; ; {
		err = c.cycles.Ask(cycle, func(changes *loadlinev1.Changes, at []int32) (err error) {
			defer observeSince(engineSeconds, time.Now())
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			slots = at
			question.Changes, question.Slots = changes, nil
			if len(question.GetMoves()) > 0 { // about one node
				question.Slots = at
				for _, move := range question.GetMoves() {
					move.Slot = at[0]
				}
			}
			answer, err = c.scorer.CheckLoadLine(ctx, question)
			return err
		})
		syncing := errors.Is(err, view.ErrSyncing)
		if !syncing {
			why = c.note(err)
		}
		if why == reasonRefused {
			refusals++
		}
		again := syncing || why == reasonRefused && refusals < maxRefusals
		if !again || ctx.Err() != nil || time.Now().After(deadline) {
			if syncing {
				return nil, nil, reasonSyncing, nil
			}
			return answer, slots, why, err
		}
		why = ""
		time.Sleep(time.Millisecond)
	}
}
