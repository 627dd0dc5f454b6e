package view

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
	last    bool     // leaves out nothing that was queued when it was built
}

// refused says whether the engine cannot apply a batch in its present state: it has lost the view, or somebody
// else has written to it.
func refused(err error) bool {
	code := status.Code(err)
	return code == codes.FailedPrecondition || code == codes.NotFound
}

// invalid says whether a request is wrong in any state.
func invalid(err error) bool { return status.Code(err) == codes.InvalidArgument }

// pending says whether the engine lacks anything.
func (l *ledger) pending() bool {
	return l.full.due || l.full.going || len(l.queue) > 0 || l.objects.pending()
}

// pin returns the empty batch that names the acknowledged state.
func (l *ledger) pin() *loadlinev1.Changes {
	return &loadlinev1.Changes{View: l.view, Epoch: l.epoch, BaseRevision: l.acked, Revision: l.acked}
}

// standsAtPin says whether the engine is known to stand at the acknowledged state.
func (l *ledger) standsAtPin() bool {
	return !l.full.due && !l.full.going && !l.unsure
}

// build makes the next batch, of about `limit` bytes: one node and what comes with it may exceed it. Each batch
// must be given to finish before the next one is built.
//
// What a batch of unknown outcome carried is still queued, but need not all be in the next one: a node that the
// engine has got from it is told again before any id that it refers to gets another content.
func (l *ledger) build(limit int, now int64) *batch {
	if l.full.due {
		l.startEpoch(now)
	}
	if l.careful {
		limit = 1
	}
	l.batches++
	b := &batch{
		changes: &loadlinev1.Changes{View: l.view, Epoch: l.epoch},
		from:    l.full.taken,
		number:  l.batches,
		first:   l.batches,
	}
	if l.full.going {
		b.first = l.full.since + 1
		b.shapes = l.full.shapes
	}
	size := 0
	for b.to = b.from; b.to < len(l.queue); b.to++ {
		e := l.queue[b.to]
		if size > 0 && size+l.bytes(e) > limit {
			break
		}
		size += l.put(b, e)
	}
	b.objects = l.full.objects
	if b.to == len(l.queue) {
		b.objects = l.objects.put(b.changes, b.objects, size, limit)
	}
	b.last = b.to == len(l.queue) && b.objects == len(l.objects.queue)
	l.number(b)
	return b
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

// put adds an entry to a batch, with the shapes that the engine does not have, and returns the bytes that it takes.
func (l *ledger) put(b *batch, e *entry) int {
	e.sent, e.sentNode = e.version, e.present() && !e.leftOut()
	if !e.sentNode {
		if !l.full.going {
			b.changes.RemovedSlots = append(b.changes.RemovedSlots, e.slot)
		}
		return 4
	}
	size := l.bytes(e)
	records := make([]loadlinev1.PodRecord, len(e.pods))
	record := &loadlinev1.NodeRecord{Slot: e.slot, Node: e.node, Pods: make([]*loadlinev1.PodRecord, len(e.pods))}
	for i := range e.pods {
		pod := &e.pods[i]
		size += l.putShape(b, pod.shape)
		records[i].Shape = pod.shape.id
		if l.names {
			records[i].Name, records[i].Uid = pod.name, pod.uid
		}
		record.Pods[i] = &records[i]
	}
	b.changes.Nodes = append(b.changes.Nodes, record)
	return size
}

func (l *ledger) putShape(b *batch, s *shape) int {
	if s.known || s.batch >= b.first {
		return 0
	}
	s.batch = b.number
	b.shapes = append(b.shapes, s)
	b.changes.PodShapes = append(b.changes.PodShapes, &loadlinev1.PodShape{Id: s.id, Pod: []byte(s.bytes)})
	return len(s.bytes) + 8
}

// bytes estimates what an entry takes in a batch, without new shapes.
func (l *ledger) bytes(e *entry) int {
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
	size := 0
	counted := map[*shape]bool{}
	for _, e := range l.queue {
		size += l.bytes(e)
		for i := range e.pods {
			if s := e.pods[i].shape; !s.known && !counted[s] {
				counted[s] = true
				size += len(s.bytes) + 8
			}
		}
		if size > bound {
			break
		}
	}
	return size
}

// finish notes the outcome of a batch.
func (l *ledger) finish(b *batch, err error) {
	if invalid(err) && l.leaveOut != nil {
		l.suspect(b, err)
	}
	switch {
	case err == nil && l.full.going && !b.last:
		l.full.index++
		l.full.taken, l.full.objects = b.to, b.objects
		l.full.shapes = b.shapes
	case err == nil:
		l.arrived(b)
	case refused(err):
		l.full.due = true
	default:
		l.unsure = true
		l.full.due = l.full.going // a full list is not resumed: nobody knows which of its chunks arrived
	}
}

// suspect leaves the node out that makes a batch invalid, or looks for it. One bad node must not keep all others
// from the engine.
func (l *ledger) suspect(b *batch, err error) {
	if l.careful && b.to-b.from == 1 {
		e := l.queue[b.from]
		e.invalid = e.sent
		l.leaveOut(e.name, err)
	}
	l.careful = true
}

// arrived notes that the engine stands where a batch, or the full list that it ends, leads.
func (l *ledger) arrived(b *batch) {
	l.acked = b.changes.GetRevision()
	l.unsure = false
	for _, e := range l.queue[:b.to] {
		l.settle(e)
	}
	l.queue = slices.DeleteFunc(l.queue, func(e *entry) bool { return !e.queued })
	l.objects.arrived(b.objects, b.changes.GetCompleteKinds())
	for _, s := range b.shapes {
		s.known = true
	}
	if b.last {
		l.shapes.collect(b.first)
		l.careful = false
	}
	l.full = fullList{}
}
