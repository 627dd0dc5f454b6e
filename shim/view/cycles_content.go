package view

import v1 "k8s.io/api/core/v1"

// update compares the feasible nodes with the books and fills in their slots. It gives up and returns false when
// too many pods have to be trimmed. The caller holds mu.
func (c *Cycles[N, R]) update(cycle Cycle[N], slots []int32) bool {
	trims := c.leaveGroup(cycle)
	for i, info := range cycle.Feasible {
		node := c.read.Node(info)
		e := c.byObject[node]
		if e == nil || !c.unchanged(e, info, cycle.Group) {
			if trims > c.inline.trims {
				return false
			}
			known, err := cycle.Snapshot.Get(node.Name)
			if err != nil { // an extender has answered a node that is not there
				slots[i] = NoSlot
				continue
			}
			e = c.ledger.entry(node.Name)
			if e.object != c.read.Node(known) || !c.unchanged(e, known, cycle.Group) {
				trims += c.set(e, c.contentOf(known, cycle.Group))
			}
		}
		if slots[i] = e.slot; e.leftOut() {
			slots[i] = NoSlot
		}
	}
	return true
}

// unchanged says whether the engine holds what a NodeInfo has of the entry's node. The caller holds mu.
func (c *Cycles[N, R]) unchanged(e *entry, info N, group any) bool {
	if group == nil {
		generation := c.read.Generation(info)
		return e.clean == generation && generation != 0
	}
	if e.acked != e.version || c.read.Pods(info) != len(e.pods) {
		return false
	}
	for i := range e.pods {
		if e.pods[i].pod != c.read.Pod(info, i) {
			return false
		}
	}
	return true
}

// leaveGroup brings the nodes up to date that have the content of a pod group's cycle, once this is another one: the
// group may have been rejected. It returns how many pods had to be trimmed for it. The caller holds mu.
func (c *Cycles[N, R]) leaveGroup(cycle Cycle[N]) (trims int) {
	if cycle.Group == c.group {
		return 0
	}
	c.group = cycle.Group
	before := c.tentative
	c.tentative = nil
	for _, e := range before {
		e.tentative = false
		if c.ledger.entries[e.name] != e {
			continue // swept, and perhaps back as another one
		}
		if info, err := cycle.Snapshot.Get(e.name); err == nil { // else it will be swept
			trims += c.set(e, c.contentOf(info, cycle.Group))
		}
	}
	return trims
}

// content is the content of a NodeInfo. The framework may change a NodeInfo as soon as the cycle continues, but not the
// objects in it.
type content struct {
	node       *v1.Node
	generation int64
	pods       []*v1.Pod
	grouped    bool // seen in the cycle of a pod group, where pods may be placed on trial
}

func (c *Cycles[N, R]) contentOf(info N, group any) content {
	out := content{node: c.read.Node(info), generation: c.read.Generation(info), grouped: group != nil,
		pods: make([]*v1.Pod, c.read.Pods(info))}
	for i := range out.pods {
		out.pods[i] = c.read.Pod(info, i)
	}
	return out
}

// set gives an entry the content of a NodeInfo and returns how many pods had to be trimmed for it. The caller
// holds mu.
func (c *Cycles[N, R]) set(e *entry, content content) int {
	e.generation = content.generation
	if content.grouped && !e.tentative {
		e.tentative = true
		c.tentative = append(c.tentative, e)
	}
	if node := content.node; e.object != node {
		delete(c.byObject, e.object)
		e.object = node
		c.byObject[node] = e
		if trimmed := TrimNode(node); !e.present() || string(e.node) != string(trimmed) {
			c.ledger.setNode(e, trimmed)
		}
	}
	trims, changed := c.setPods(e, content.pods)
	switch {
	case changed:
		c.ledger.touch(e)
	case e.acked != e.version:
		c.ledger.enqueue(e) // the engine lost it
	default:
		e.clean = content.generation // other objects of the same content, such as a heartbeat's
	}
	return trims
}

// setPods gives an entry its pods. Those that it had are recognized and not trimmed again.
func (c *Cycles[N, R]) setPods(e *entry, pods []*v1.Pod) (trims int, changed bool) {
	before := e.pods
	after := make([]podEntry, len(pods))
	changed = len(pods) != len(before)
	for i, p := range pods {
		if known := recall(before, i, p); known != nil {
			after[i] = *known
			after[i].pod = p
			after[i].shape.refs++
		} else {
			trims++
			after[i] = podEntry{shape: c.ledger.shapes.acquire(c.trim(p)), uid: string(p.UID),
				resourceVersion: p.ResourceVersion, pod: p}
		}
		changed = changed || after[i].shape != before[i].shape
	}
	for i := range before {
		c.ledger.shapes.release(before[i].shape, c.ledger.batches)
	}
	e.pods = after
	return trims, changed
}

// trim returns a pod as it is sent.
func (c *Cycles[N, R]) trim(pod *v1.Pod) []byte {
	trimmed := TrimPod(pod)
	if c.workloads {
		trimmed = WithWorkload(trimmed, pod)
	}
	if c.blockers {
		trimmed = WithProtection(trimmed, pod)
	}
	return trimmed
}

// recall finds a pod among those that its node had, most likely at the same place: the very object, or another
// object of the same UID and resourceVersion.
func recall(before []podEntry, i int, pod *v1.Pod) *podEntry {
	if i < len(before) && before[i].is(pod) {
		return &before[i]
	}
	for j := range before {
		if before[j].is(pod) {
			return &before[j]
		}
	}
	return nil
}

func (p *podEntry) is(pod *v1.Pod) bool {
	return p.pod == pod ||
		p.uid == string(pod.UID) && p.resourceVersion == pod.ResourceVersion && p.uid != "" && p.resourceVersion != ""
}

// sweep removes the nodes that the snapshot does not list any more. The caller holds mu.
func (c *Cycles[N, R]) sweep(all []N) {
	listed := make(map[string]bool, len(all))
	for _, info := range all {
		listed[c.read.Node(info).Name] = true
	}
	for name, e := range c.ledger.entries {
		if !e.present() || listed[name] {
			continue
		}
		for i := range e.pods {
			c.ledger.shapes.release(e.pods[i].shape, c.ledger.batches)
		}
		e.pods = nil
		delete(c.byObject, e.object)
		c.ledger.removeNode(e)
	}
}

// collect lists the nodes that changed. The caller holds mu.
func (c *Cycles[N, R]) collect(all []N, group any) []content {
	out := []content{}
	for _, info := range all {
		if e := c.byObject[c.read.Node(info)]; e == nil || !c.unchanged(e, info, group) {
			out = append(out, c.contentOf(info, group))
		}
	}
	return out
}
