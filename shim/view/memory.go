package view

import (
	"math"

	"loadline.dev/shim/api/loadlinev1"
)

const (
	// NoRawScore is the raw score of a node that has none: it lacks what the pod limits, or the engine has left it out.
	NoRawScore = math.MinInt64
	// mostKinds bounds the kinds of pods of which raw scores are remembered: 24 bytes for each and each node.
	mostKinds = 16
)

// Kind is what raw scores depend on beside the node: equal kinds have equal raw scores on equal nodes.
type Kind struct {
	Pod    string // as SignPod returns it, with the workload where it counts
	Policy *loadlinev1.ScorePolicy
}

// memory remembers raw scores, each of a version of a node, for the kinds of pods that were asked about last. A cycle
// then asks only about nodes that changed. It forgets all with each epoch, for the engine may be another one, and
// with each era of profiles and budgets.
type memory struct {
	epoch int64
	era   era
	kinds []*kindMemory // the last one asked about first
	turn  uint64        // counts the questions
}

type kindMemory struct {
	kind  Kind
	slots []slotMemory
}

// slotMemory is what is known of the node in a slot.
type slotMemory struct {
	version uint64 // of which raw is the score; 0: none
	raw     int64
	turn    uint64 // the question that was last about it
}

// of returns what is remembered of a kind, which now is the last one asked about.
func (m *memory) of(kind Kind, epoch int64, era era) *kindMemory {
	if m.epoch != epoch || m.era != era {
		m.epoch, m.era, m.kinds = epoch, era, nil
	}
	m.turn++
	at := 0
	for at < len(m.kinds) && m.kinds[at].kind != kind {
		at++
	}
	var k *kindMemory
	switch {
	case at < len(m.kinds):
		k = m.kinds[at]
	case at < mostKinds:
		k = &kindMemory{kind: kind}
		m.kinds = append(m.kinds, nil)
	default:
		at--
		k = m.kinds[at]
		k.kind = kind
		clear(k.slots)
	}
	copy(m.kinds[1:at+1], m.kinds[:at])
	m.kinds[0] = k
	return k
}

// RawQuestion asks the engine for the raw scores of slots, of which none is NoSlot: one for each, in their order.
type RawQuestion func(changes *loadlinev1.Changes, slots []int32) ([]int64, error)

// RawScores returns the raw scores of a cycle's feasible nodes for a pod of a kind, in their order. It asks for those
// that are not remembered, and not at all if all are. Errors are those of Ask; nil without an error: the answer was
// not one score for each slot.
func (c *Cycles[N, R]) RawScores(cycle Cycle[N], kind Kind, ask RawQuestion) ([]int64, error) {
	r := recollection{memories: &c.memory, ledger: &c.ledger, kind: kind}
	err := c.question(cycle, r.missing, func(changes *loadlinev1.Changes, slots []int32) error {
		raw, err := ask(changes, slots)
		if err == nil {
			r.learn(slots, raw)
		}
		return err
	})
	if err != nil || len(r.open) > 0 {
		return nil, err
	}
	return r.raw, nil
}

// recollection is one cycle's use of the memory.
type recollection struct {
	memories *memory
	ledger   *ledger
	kind     Kind
	memory   *kindMemory
	feasible []int32  // slots
	raw      []int64  // of the feasible nodes
	open     []int    // those of them that are not known yet
	versions []uint64 // of the nodes that are asked about
}

// missing returns the slots that have to be asked about; nil: none. The caller holds turn and mu.
func (r *recollection) missing(feasible []int32) []int32 {
	nodes := r.ledger.slots
	r.memory = r.memories.of(r.kind, r.ledger.epoch, r.ledger.era())
	r.memory.grow(len(nodes))
	r.feasible, r.raw = feasible, make([]int64, len(feasible))
	var ask []int32
	for i, slot := range feasible {
		if slot == NoSlot {
			r.raw[i] = NoRawScore
			continue
		}
		known, version := &r.memory.slots[slot], nodes[slot].version
		if known.version == version {
			r.raw[i] = known.raw
			continue
		}
		r.open = append(r.open, i)
		if known.turn != r.memories.turn { // an extender may name a node twice
			known.turn = r.memories.turn
			ask = append(ask, slot)
			r.versions = append(r.versions, version)
		}
	}
	return ask
}

// learn remembers an answer. The caller holds turn.
func (r *recollection) learn(slots []int32, raw []int64) {
	if len(raw) != len(slots) {
		return
	}
	for i, slot := range slots {
		known := &r.memory.slots[slot]
		known.version, known.raw = r.versions[i], raw[i]
	}
	for _, i := range r.open {
		r.raw[i] = r.memory.slots[r.feasible[i]].raw
	}
	r.open = nil
}

// grow makes room for so many slots.
func (k *kindMemory) grow(slots int) {
	if lacks := slots - len(k.slots); lacks > 0 {
		k.slots = append(k.slots, make([]slotMemory, lacks)...)
	}
}
