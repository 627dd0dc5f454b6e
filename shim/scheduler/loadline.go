package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/guard"
	"loadline.dev/shim/view"
)

// The load line: PreFilter asks the engine once which nodes a pod would lift above it, Filter reads the answer. What
// preemption and nominated pods suppose of nodes is added and subtracted: lineRooms has the amounts from the engine.
//
// It is a promise. Where the engine does not answer, a pod is not placed (onEngineFailure: Refuse), and tried again
// after a backoff.

const lineKey fwk.StateKey = Name + "/LoadLine"

// The treatments of a pod when the engine does not answer.
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
	// counting is how the engine counts limits; nil: it has not answered yet.
	counting atomic.Pointer[loadlinev1.ScorePolicy]
}

// lineAnswer is what the engine said for one cycle, and what a copy of the cycle's state supposes.
type lineAnswer struct {
	refused map[*v1.Node]*fwk.Status
	rooms   *lineRooms
	// moved has for each node on which pods are supposed to have been added or removed the added amount less the
	// removed one, by resource of the line. A slice is replaced and not changed. Nil: it is not known.
	moved map[string][]int64
}

// Clone returns a copy in which other pods can be supposed.
func (a *lineAnswer) Clone() fwk.StateData {
	return &lineAnswer{refused: a.refused, rooms: a.rooms, moved: maps.Clone(a.moved)}
}

// PreFilter asks the engine which nodes the load line keeps the pod off. Without a line it returns Skip.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) (_ *fwk.PreFilterResult, result *fwk.Status) {
	if p.loadLine.line == nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	defer observeSince(lineSeconds, time.Now())
	defer p.guardLine("PreFilter", &result, fwk.NewStatus(fwk.Skip))
	answer, slots, why, err := p.askLine(ctx, pod, p.cycle(state, nodes))
	p.logTrouble(why, err)
	if why != "" {
		return nil, p.lineFailed(why, err, fwk.NewStatus(fwk.Skip))
	}
	lineCycles.Inc()
	nodesAbove.WithLabelValues(p.client.key.address, p.client.key.view).Set(float64(answer.GetNodesAbove()))
	refused := p.refusals(answer, slots, nodes)
	state.Write(lineKey, &lineAnswer{refused: refused, moved: map[string][]int64{},
		rooms: newLineRooms(p, pod, p.cycle(state, nil), refused)})
	return nil, nil
}

// askLine asks about all nodes of a cycle.
func (p *Plugin) askLine(ctx context.Context, pod *v1.Pod,
	cycle viewCycle) (*loadlinev1.CheckLoadLineResponse, []int32, reason, error) {
	question := &loadlinev1.CheckLoadLineRequest{Line: p.loadLine.line,
		Pod:          view.IncomingPod(pod, p.loadLine.line.GetExpectedUse()),
		WithCounting: p.loadLine.counting.Load() == nil}
	answer, slots, why, err := p.client.checkLine(ctx, p.timeout, question, cycle, func([]int32) {})
	if answer.GetCounting() != nil {
		p.loadLine.counting.Store(answer.GetCounting())
	}
	return answer, slots, why, err
}

// PreFilterExtensions returns the plugin: what preemption supposes changes what the line says.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return p }

// AddPod supposes that a pod is on a node.
func (p *Plugin) AddPod(ctx context.Context, state fwk.CycleState, _ *v1.Pod, added fwk.PodInfo,
	node fwk.NodeInfo) *fwk.Status {
	return p.suppose(ctx, state, added.GetPod(), node, 1)
}

// RemovePod supposes that a pod has left a node.
func (p *Plugin) RemovePod(ctx context.Context, state fwk.CycleState, _ *v1.Pod, removed fwk.PodInfo,
	node fwk.NodeInfo) *fwk.Status {
	return p.suppose(ctx, state, removed.GetPod(), node, -1)
}

// suppose adds what a pod counts as on a node, or with sign -1 takes it off.
func (p *Plugin) suppose(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo,
	sign int64) (result *fwk.Status) {
	defer p.guardLine("AddPod or RemovePod", &result, nil)
	answer, status := p.readLine(state)
	if answer == nil {
		return status
	}
	name := node.Node().Name
	moved, again := answer.moved[name]
	if again && moved == nil {
		return nil
	}
	amounts, why, err := answer.rooms.amounts(ctx, pod, name)
	if why != "" {
		answer.moved[name] = nil
		// The scheduler gives up looking at nodes when it has found enough of them, and an error of one at which it still
		// looks would fail the cycle. Filter refuses that one.
		if ctx.Err() != nil {
			return nil
		}
		return p.lineFailed(why, err, nil)
	}
	after := make([]int64, len(amounts))
	for i, amount := range amounts {
		after[i] = sign * amount
		if again {
			after[i] = sumWithin(moved[i], after[i])
		}
	}
	answer.moved[name] = after
	return nil
}

// maxAmount is the most that an amount of the engine can be.
const maxAmount = 1 << 62

// sumWithin adds two amounts of [-maxAmount, maxAmount], and stays there.
func sumWithin(a, b int64) int64 {
	switch {
	case b > 0 && a > maxAmount-b:
		return maxAmount
	case b < 0 && a < -maxAmount-b:
		return -maxAmount
	}
	return a + b
}

// Filter reads what the engine said of the node. Where pods are supposed to have come or left, it compares what they
// count as with the room that the engine found.
func (p *Plugin) Filter(ctx context.Context, state fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (result *fwk.Status) {
	defer p.guardLine("Filter", &result, nil)
	answer, status := p.readLine(state)
	if answer == nil {
		return status
	}
	refused := answer.refused[node.Node()]
	moved, supposed := answer.moved[node.Node().Name]
	switch {
	case !supposed || refused.Code() == fwk.UnschedulableAndUnresolvable: // the latter whatever is added or removed
		return refused
	case moved == nil && ctx.Err() != nil: // the answer, which nobody waits for any more, may have been a no
		return fwk.NewStatus(fwk.Unschedulable, "load line: the scheduler has given up looking at nodes")
	case moved == nil: // allowed
		return nil
	}
	return answer.rooms.check(node.Node().Name, moved)
}

// readLine returns what PreFilter has written, or else a status. The framework calls nothing of a plugin after Skip, so
// that a state which is missing is a fault: of the configuration, where only the filter is enabled.
func (p *Plugin) readLine(state fwk.CycleState) (*lineAnswer, *fwk.Status) {
	if p.loadLine.line == nil {
		return nil, nil
	}
	data, err := state.Read(lineKey)
	if err != nil {
		return nil, p.lineFailed(reasonNoState,
			fmt.Errorf("PreFilter has not run: is %s enabled at preFilter?: %w", Name, err), nil)
	}
	return data.(*lineAnswer), nil
}

// guardLine recovers from a panic, which is a failure of the engine to the pod.
func (p *Plugin) guardLine(where string, result **fwk.Status, allowed *fwk.Status) {
	if r := recover(); r != nil {
		p.recovered(where, r)
		*result = p.lineFailed(reasonPanic, nil, allowed)
	}
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

// checkLine asks the line about the nodes of a cycle, in whose order the slots come; fill completes the question by
// them. It waits for a while for the engine to be brought up to date. Without an answer it returns a reason, and an
// error where there is one.
func (c *client) checkLine(ctx context.Context, timeout time.Duration, question *loadlinev1.CheckLoadLineRequest,
	cycle viewCycle, fill func(slots []int32)) (answer *loadlinev1.CheckLoadLineResponse, slots []int32, why reason,
	err error) {
	if !c.guard.Allow() {
		return nil, nil, reasonBreakerOpen, nil
	}
	patience, cancel := context.WithTimeout(ctx, linePatience)
	defer cancel()
	for refusals := 0; ; {
		err = c.cycles.Ask(cycle, func(changes *loadlinev1.Changes, at []int32) (err error) {
			defer observeSince(engineSeconds, time.Now())
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			slots = at
			question.Changes = changes
			fill(at)
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
		again := syncing || why == reasonRefused && refusals < guard.MaxRefusals
		if !again || !c.cycles.Await(patience) {
			if syncing {
				return nil, nil, reasonSyncing, nil
			}
			return answer, slots, why, err
		}
		why = ""
	}
}
