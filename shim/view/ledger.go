package view

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// entry is one node: what it holds, and what the engine is known to hold of it.
type entry struct {
	name string
	slot int32 // noSlot: the engine holds nothing of it, and it has nothing to hold
	node []byte
	pods []podEntry

	version  uint64 // another one after each change of node and pods; no other version of any entry is equal
	sent     uint64 // the version that the last batch carried in this epoch; 0: none
	sentNode bool   // that version had a node
	acked    uint64 // the version that the engine is known to stand at; 0: none
	held     bool   // that version had a node
	queued   bool   // in ledger.queue: has something to send
	invalid  uint64 // the version that the engine refused: invalid, or no room for it; 0: none
	crowds   bool   // there was no room for a version of it in this epoch

	generation int64    // of the NodeInfo that the content came from
	clean      int64    // equal to generation when the engine holds that content, else 0
	object     *v1.Node // that NodeInfo's node
	tentative  bool     // in Cycles.tentative
}

const noSlot = -1

// present says whether the node is there: pods may come before their node and outlive it.
func (e *entry) present() bool { return e.node != nil }

// leftOut says whether the engine cannot take the node as it is now. It is treated as gone until it changes.
func (e *entry) leftOut() bool { return e.invalid != 0 && e.invalid == e.version }

// shown says whether the engine is to hold the node.
func (e *entry) shown() bool { return e.present() && !e.leftOut() }

// podEntry is one pod of a node.
type podEntry struct {
	shape           *shape
	namespace, name string
	uid             string
	resourceVersion string
	pod             *v1.Pod
}

// ledger keeps the books of one view: its content, and how much of it has reached the engine. It sends nothing.
// Not safe for concurrent use.
type ledger struct {
	view  string
	minor int32 // of the Kubernetes release by which resized pods count; 0: the engine's default
	names bool  // batches tell names and UIDs of pods
	lazy  bool  // a full list holds what is queued; else all nodes
	// leaveOut hears of each node that is left out because the engine finds it invalid or has no room for it; nil:
	// none is left out.
	leaveOut func(node string, err error)

	entries map[string]*entry
	slots   []*entry // by slot; nil: free
	free    []int32
	present int // entries with a node
	// A node was removed or replaced in this epoch.
	replaced bool
	shapes   shapes
	versions uint64 // the last one given to an entry

	epoch, acked, last int64 // acked: the revision that the engine is known to have; last: the highest one used
	batches            uint64
	queue              []*entry // what has something to send, in order of its first change
	unsure             bool     // nobody knows whether the last batch arrived
	careful            bool     // a batch was rejected: one node at a time, to find out which
	suspect            *entry   // left out on trial: to blame if the batch without it arrives; nil: none
	suspicion          error    // what the engine said of it
	full               fullList

	objects objects
	usage   uint64 // how often profiles were set
	rules   uint64 // how often other objects changed by which nodes are scored
}

// fullList is the progress of a full list.
type fullList struct {
	due     bool // the next batch starts one
	going   bool
	index   int32    // of the next chunk
	taken   int      // queued entries in the chunks so far
	objects int      // queued objects in them
	shapes  []*shape // in the chunks so far
	since   uint64   // the last batch built before it began
}

func newLedger(view string, names, lazy bool) ledger {
	return ledger{view: view, names: names, lazy: lazy, entries: map[string]*entry{}, full: fullList{due: true}}
}

// reset forgets all nodes, but not which epochs were used; objects count as new.
func (l *ledger) reset() {
	before, objects := *l, l.objects.kept()
	*l = newLedger(l.view, l.names, l.lazy)
	l.epoch, l.leaveOut, l.minor, l.objects = before.epoch, before.leaveOut, before.minor, objects
	l.usage, l.rules = before.usage, before.rules
}

// entry returns the entry of a node, which may have to be made.
func (l *ledger) entry(name string) *entry {
	e, ok := l.entries[name]
	if !ok {
		e = &entry{name: name, slot: noSlot}
		l.entries[name] = e
	}
	return e
}

// setNode gives a node its object.
func (l *ledger) setNode(e *entry, node []byte) {
	if !e.present() {
		l.present++
	}
	l.replaced = l.replaced || e.present()
	e.node = node
	if e.slot == noSlot {
		e.slot = l.slot(e)
	}
	l.touch(e)
}

// removeNode takes the object of a node away; its pods stay.
func (l *ledger) removeNode(e *entry) {
	if !e.present() {
		return
	}
	l.present--
	l.replaced = true
	e.node, e.object = nil, nil
	e.generation, e.clean = 0, 0
	l.touch(e)
}

func (l *ledger) slot(e *entry) int32 {
	if n := len(l.free); n > 0 {
		slot := l.free[n-1]
		l.free = l.free[:n-1]
		l.slots[slot] = e
		return slot
	}
	l.slots = append(l.slots, e)
	return int32(len(l.slots) - 1)
}

// touch notes that the content of an entry changed.
func (l *ledger) touch(e *entry) {
	l.versions++
	e.version = l.versions
	e.clean = 0
	if e.slot != noSlot {
		l.enqueue(e)
	} else if !e.present() && len(e.pods) == 0 {
		delete(l.entries, e.name)
	}
}

func (l *ledger) enqueue(e *entry) {
	if !e.queued {
		e.queued = true
		l.queue = append(l.queue, e)
	}
}

// settle notes that the engine holds the version of an entry that was sent.
func (l *ledger) settle(e *entry) {
	e.acked, e.held = e.sent, e.sentNode
	if e.acked != e.version {
		return
	}
	e.queued = false
	e.clean = e.generation
	if !e.present() {
		l.vacate(e)
	}
}

// vacate gives back the slot of a node that is gone.
func (l *ledger) vacate(e *entry) {
	l.slots[e.slot] = nil
	l.free = append(l.free, e.slot)
	e.slot, e.sent, e.acked, e.held = noSlot, 0, 0, false
	if len(e.pods) == 0 {
		delete(l.entries, e.name)
	}
}

// startEpoch prepares a full list: the engine is taken to hold nothing. `now` is in nanoseconds since 1970.
func (l *ledger) startEpoch(now int64) {
	l.epoch = max(now, l.epoch+1)
	l.acked, l.last, l.replaced = 0, 0, false
	l.full = fullList{going: true, since: l.batches}
	l.acquit()
	for _, e := range l.slots {
		if e == nil {
			continue
		}
		e.sent, e.acked, e.clean, e.held = 0, 0, 0, false
		if e.crowds {
			e.invalid, e.crowds = 0, false
		}
		if !e.present() {
			e.queued = false
			l.vacate(e)
		} else if !l.lazy {
			l.enqueue(e)
		}
	}
	l.queue = slices.DeleteFunc(l.queue, func(e *entry) bool { return !e.queued })
	l.shapes.forget()
	l.objects.restart()
}
