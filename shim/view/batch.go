package view

import (
	"loadline.dev/shim/api/loadlinev1"
)

// batch is one message to the engine and what must be noted of it until its outcome is known.
type batch struct {
	changes *loadlinev1.Changes
	from    int // the queued entries that it carries: [from, to)
	to      int
	objects int // up to where it, or its full list, carries the queued objects
	number  uint64
	first   uint64   // its own number, or that of the first chunk of its full list
	shapes  []*shape // carried by it, or by the chunks up to it
	pinned  bool     // changes nothing
	ahead   bool     // carries no entry, but shapes of queue[from]
	last    bool     // leaves out nothing that was queued when it was built
}

// pending says whether the engine lacks anything.
func (l *ledger) pending() bool {
	return l.full.due || l.full.going || len(l.queue) > 0 || l.objects.pending()
}

// pin returns the empty batch that names the acknowledged state.
func (l *ledger) pin() *loadlinev1.Changes {
	return &loadlinev1.Changes{View: l.view, Epoch: l.epoch, BaseRevision: l.acked, Revision: l.acked,
		TimeS: l.seconds()}
}

// standsAtPin says whether the engine is known to stand at the acknowledged state.
func (l *ledger) standsAtPin() bool {
	return !l.full.due && !l.full.going && !l.unsure
}

// build makes the next batch, of about `limit` bytes: a node may exceed it, but not with the shapes of its pods,
// which are sent ahead of it where they are too large. Each batch must be given to finish before the next one is
// built.
//
// The content of a batch of unknown outcome is still queued, but need not all be in the next one: a node that the
// engine has got from it is sent again before any id that it refers to gets another content.
func (l *ledger) build(limit int, now int64) *batch {
	if l.full.due {
		l.startEpoch(now)
	}
	l.batches++
	b := &batch{
		changes: &loadlinev1.Changes{View: l.view, Epoch: l.epoch, KubernetesMinor: l.minor, TimeS: l.seconds()},
		from:    l.full.taken,
		number:  l.batches,
		first:   l.batches,
	}
	if l.full.going {
		b.first = l.full.since + 1
		b.shapes = l.full.shapes
	}
	size := l.putEntries(b, limit)
	b.objects = l.full.objects
	if b.to == len(l.queue) {
		if l.careful && b.to > b.from {
			limit = 1 // no object may be to blame for what becomes of the node
		}
		b.objects = l.objects.put(b.changes, b.objects, size, limit)
	}
	b.last = b.to == len(l.queue) && b.objects == len(l.objects.queue)
	l.number(b)
	return b
}

// putEntries adds queued entries to a batch, or shapes ahead of the first one, and returns the bytes that they take.
func (l *ledger) putEntries(b *batch, limit int) (size int) {
	for b.to = b.from; b.to < len(l.queue); b.to++ {
		e := l.queue[b.to]
		needs := l.needs(b, e)
		if b.to > b.from && (l.careful || size+needs > limit) {
			break
		}
		if size == 0 && needs > limit && l.putAhead(b, e, limit) {
			break
		}
		size += l.put(b, e)
	}
	return size
}

// number gives a batch its place in the sequence.
func (l *ledger) number(b *batch) {
	if !l.full.going {
		l.last++
		b.changes.BaseRevision, b.changes.Revision = l.acked, l.last
		return
	}
	l.last = 1
	b.changes.Revision = 1
	b.changes.FullList = &loadlinev1.FullListChunk{Index: l.full.index, Last: b.last}
}

// needs estimates what an entry takes in a batch, with the shapes that the engine does not have. A shape counts for
// each of its pods.
func (l *ledger) needs(b *batch, e *entry) int {
	size := l.bytes(e)
	if !e.shown() {
		return size
	}
	for i := range e.pods {
		if s := e.pods[i].shape; b.lacks(s) {
			size += s.size()
		}
	}
	return size
}

// put adds an entry to a batch, with the shapes that the engine does not have, and returns the bytes that it takes.
func (l *ledger) put(b *batch, e *entry) int {
	e.sent, e.sentNode = e.version, e.shown()
	size := l.bytes(e)
	if !e.sentNode {
		if !l.full.going {
			b.changes.RemovedSlots = append(b.changes.RemovedSlots, e.slot)
		}
		return size
	}
	records := make([]loadlinev1.PodRecord, len(e.pods))
	record := &loadlinev1.NodeRecord{Slot: e.slot, Node: e.node, Pods: make([]*loadlinev1.PodRecord, len(e.pods))}
	for i := range e.pods {
		pod := &e.pods[i]
		size += b.putShape(pod.shape)
		records[i].Shape = pod.shape.id
		if l.names {
			records[i].Name, records[i].Uid = pod.name, pod.uid
		}
		record.Pods[i] = &records[i]
	}
	b.changes.Nodes = append(b.changes.Nodes, record)
	return size
}

// putAhead fills an empty batch with shapes that an entry needs, and says whether there are any.
func (l *ledger) putAhead(b *batch, e *entry, limit int) bool {
	e.sent, e.sentNode = e.version, e.shown()
	size := 0
	for i := range e.pods {
		s := e.pods[i].shape
		if b.lacks(s) && size > 0 && size+s.size() > limit {
			break
		}
		size += b.putShape(s)
	}
	b.ahead = size > 0
	return b.ahead
}

// lacks says whether neither the engine nor the batch, or the chunks before it, have a shape.
func (b *batch) lacks(s *shape) bool { return !s.known && s.batch < b.first }

func (b *batch) putShape(s *shape) int {
	if !b.lacks(s) {
		return 0
	}
	s.batch = b.number
	b.shapes = append(b.shapes, s)
	b.changes.PodShapes = append(b.changes.PodShapes, &loadlinev1.PodShape{Id: s.id, Pod: []byte(s.bytes)})
	return s.size()
}

// bytes estimates what an entry takes in a batch, without shapes.
func (l *ledger) bytes(e *entry) int {
	if !e.shown() {
		return 4
	}
	size := len(e.node) + 16 + 6*len(e.pods)
	if l.names {
		for i := range e.pods {
			size += len(e.pods[i].name) + len(e.pods[i].uid) + 4
		}
	}
	return size
}

// queuedBytes estimates what a batch of everything would take, up to a bound.
func (l *ledger) queuedBytes(bound int) int {
	size := l.objects.queuedBytes()
	counted := map[*shape]bool{}
	for _, e := range l.queue {
		size += l.bytes(e)
		for i := range e.pods {
			if s := e.pods[i].shape; !s.known && !counted[s] {
				counted[s] = true
				size += s.size()
			}
		}
		if size > bound {
			break
		}
	}
	return size
}
