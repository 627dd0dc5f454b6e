package main

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
)

// act carries out what an answer says, as a client does, with failures.
func (w *world) act(answer *loadlinev1.PlanLoopResponse, slotName map[int32]string) {
	w.outcomes, w.failed, w.evicted = nil, nil, nil
	w.removals, w.softTried, w.acknowledged = nil, nil, nil
	w.asked = true
	if answer == nil {
		return
	}
	w.state, w.fleet = answer.GetState(), answer.GetFleet().GetState()
	if !w.set.fleet {
		for _, growth := range answer.GetGrowth() {
			w.grow(growth.GetNodeGroup(), growth.GetNodesForPods()+growth.GetNodesForSlack()+
				growth.GetNodesForUtilization()+growth.GetNodesForMinimum())
		}
		for _, removal := range answer.GetScaleDown().GetRemove() {
			if removal.GetStart() {
				w.beginRemoval(w.nodeOf(slotName[removal.GetSlot()]))
			}
		}
		return
	}
	for _, action := range answer.GetFleet().GetActions() {
		w.carryOut(action, slotName)
	}
}

func (w *world) carryOut(action *loadlinev1.LoopAction, slotName map[int32]string) {
	outcome := &loadlinev1.ActionOutcome{Id: action.GetId(), Result: loadlinev1.ActionOutcome_DONE}
	if w.set.faults && w.chance(12) {
		outcome.Result = loadlinev1.ActionOutcome_Result(2 + w.IntN(3))
		outcome.Error = "the cloud says no"
	}
	done := outcome.Result == loadlinev1.ActionOutcome_DONE ||
		outcome.Result == loadlinev1.ActionOutcome_UNKNOWN && w.chance(50)
	told := true
	switch a := action.GetAction().(type) {
	case *loadlinev1.LoopAction_Grow:
		if done {
			w.grow(a.Grow.GetNodeGroup(), a.Grow.GetNodes())
		}
	case *loadlinev1.LoopAction_TakeBack:
		if done {
			w.takeBack(a.TakeBack.GetNodeGroup(), int32(a.TakeBack.GetNodes()))
		}
	case *loadlinev1.LoopAction_DeleteMachines:
		if done {
			w.deleteMachines(a.DeleteMachines)
		}
	case *loadlinev1.LoopAction_RemoveSlot:
		told = false
		w.beginRemoval(w.nodeOf(slotName[a.RemoveSlot]))
	case *loadlinev1.LoopAction_GiveBackSlot:
		told = false
		if n := w.nodeOf(slotName[a.GiveBackSlot]); n != nil {
			n.removal = nil
			w.changed[n.name] = true
		}
	case *loadlinev1.LoopAction_SoftTaint:
		told = false
		w.soften(w.nodeOf(slotName[a.SoftTaint.GetSlot()]), true)
	case *loadlinev1.LoopAction_TakeSoftTaintSlot:
		told = false
		w.soften(w.nodeOf(slotName[a.TakeSoftTaintSlot]), false)
	}
	if told {
		w.outcomes = append(w.outcomes, outcome)
	}
}

func (w *world) groupOf(name string) *group {
	return w.groups[slices.IndexFunc(w.groups, func(g *group) bool { return g.name == name })]
}

func (w *world) grow(name string, nodes int64) {
	g := w.groupOf(name)
	for range nodes {
		g.target++
		if w.chance(15) {
			g.notBegun++
			continue
		}
		w.order(g)
	}
}

// order has a machine created, which may fail.
func (w *world) order(g *group) {
	m := &machine{id: w.machineID(g), loops: 1 + w.IntN(3)}
	if g.sick {
		switch w.IntN(10) {
		case 0:
			m.fault = &loadlinev1.MachineFault{Code: "quota", Message: "no more machines", OutOfResources: w.chance(50)}
		case 1:
			m.phantom = true
		case 2:
			m.loops += 15
		}
	}
	g.machines = append(g.machines, m)
}

func (w *world) takeBack(name string, nodes int32) {
	g := w.groupOf(name)
	nodes = min(nodes, g.notBegun)
	g.notBegun -= nodes
	g.target -= nodes
}

func (w *world) deleteMachines(a *loadlinev1.DeleteMachines) {
	g := w.groupOf(a.GetNodeGroup())
	listed := slices.Clone(g.machines)
	for _, i := range a.GetMachines() {
		if int(i) < len(listed) && listed[i].node == nil {
			g.drop(listed[i])
			g.target--
		}
	}
}

func (w *world) beginRemoval(n *node) {
	if n == nil || n.removal != nil {
		return
	}
	n.removal = &removal{since: w.now, fails: w.set.faults && w.chance(15)}
	w.changed[n.name] = true
}

func (w *world) soften(n *node, soft bool) {
	if n == nil {
		return
	}
	w.softTried = append(w.softTried, n.uid)
	n.soft = soft
	w.changed[n.name] = true
}

// step lets time pass: machines come or fail, nodes go, load changes, pods are placed.
func (w *world) step() {
	w.now += int64(10 + w.IntN(50))
	if w.chance(5) {
		w.now += 900
	}
	for _, g := range w.groups {
		w.stepMachines(g)
	}
	for _, n := range slices.Clone(w.nodes) {
		w.stepNode(n)
	}
	if w.set.faults && w.chance(4) && len(w.nodes) > 1 {
		w.lose(w.nodes[w.IntN(len(w.nodes))])
	}
	if w.set.operator && w.chance(25) && len(w.nodes) > 0 {
		w.touch(w.nodes[w.IntN(len(w.nodes))])
	}
	w.changeLoad()
	w.scale()
	w.schedule()
}

// changeLoad gives one workload other replicas, and now and then all of them few.
func (w *world) changeLoad() {
	for i, d := range w.work {
		switch {
		case d.kind == daemonSet:
		case w.quiet:
			d.replicas /= 2
		case i == w.IntN(2*len(w.work)):
			d.replicas = w.IntN(12 + 24*w.IntN(2))
		}
	}
	w.quiet = w.chance(8)
}

func (w *world) stepMachines(g *group) {
	for ; g.notBegun > 0 && w.chance(40); g.notBegun-- {
		w.order(g)
	}
	g.problem = ""
	if w.set.faults && w.chance(5) {
		g.problem = "the cloud does not answer"
	}
	for _, m := range slices.Clone(g.machines) {
		if m.node != nil || m.phantom || m.fault != nil || m.deleting {
			continue
		}
		if m.loops--; m.loops <= 0 && g.target > 0 {
			w.register(m, g)
		}
	}
	g.machines = slices.DeleteFunc(g.machines, func(m *machine) bool { return m.deleting && m.node == nil })
}

func (w *world) stepNode(n *node) {
	if n.devices > 0 {
		if n.devices--; n.devices == 0 {
			n.gpus = n.allocatable[2]
		}
		w.changed[n.name] = true
	}
	if n.startup > 0 {
		n.startup--
		w.changed[n.name] = true
	}
	if w.set.faults && w.chance(2) {
		n.notReady = !n.notReady
		w.changed[n.name] = true
	} else if n.notReady && w.chance(30) {
		n.notReady = false
		w.changed[n.name] = true
	}
	if n.removal != nil {
		w.stepRemoval(n)
	}
}

// stepRemoval moves the pods of a node to be removed, asks the cloud to delete it, and sees it gone.
func (w *world) stepRemoval(n *node) {
	r := n.removal
	r.loops++
	switch {
	case r.fails && r.loops == 2:
		n.removal = nil
		w.failed = append(w.failed, n.name)
		w.changed[n.name] = true
	case r.loops == 1:
		for i := len(n.pods) - 1; i >= 0; i-- {
			if p := n.pods[i]; p.of.kind != daemonSet {
				w.evicted = append(w.evicted, &loadlinev1.EvictedPod{Pod: trimmedPod(p.of.podObject(p, n)), Node: n.name,
					AtS: w.now})
				w.unbind(n, i).of.again(w)
			}
		}
	case r.loops == 2:
		r.deleting = w.now
		w.acknowledged = append(w.acknowledged, n.uid)
		w.changed[n.name] = true
	case r.loops >= 3+w.IntN(2):
		if n.group != nil {
			w.removals = append(w.removals, &loadlinev1.FleetRemoval{NodeGroup: n.group.name, Machine: n.machine.id})
			n.group.drop(n.machine)
			n.group.target--
		}
		w.lose(n)
	}
}

// touch is what an operator does by hand.
func (w *world) touch(n *node) {
	w.changed[n.name] = true
	switch w.IntN(4) {
	case 0:
		n.labels = map[string]string{"team": "blue"}
	case 1:
		n.taints = []v1.Taint{{Key: "operator", Effect: v1.TaintEffectNoSchedule}}
		if w.chance(30) {
			n.taints = nil
		}
	case 2:
		n.cordoned = !n.cordoned
	default:
		n.kept = !n.kept
	}
}
