package view

import (
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refused says whether the engine cannot apply a batch in its present state: it has lost the view, or somebody
// else has written to it.
func refused(err error) bool {
	code := status.Code(err)
	return code == codes.FailedPrecondition || code == codes.NotFound
}

// invalid says whether the content of a request is wrong in any state. A request that the engine cannot read, such as
// one of a newer client, says nothing of it.
func invalid(err error) bool {
	return status.Code(err) == codes.InvalidArgument && !strings.HasPrefix(status.Convert(err).Message(), "request")
}

// exhausted says whether a request is beyond a limit: of a message, or of what the engine or the view may hold.
func exhausted(err error) bool { return status.Code(err) == codes.ResourceExhausted }

// outcomeOf returns what became of the changes that a question brought along, of whose error the text begins with
// what is at fault: they were applied when that is the pod or the policy.
func outcomeOf(err error) error {
	if !invalid(err) {
		return err
	}
	text := status.Convert(err).Message()
	switch {
	case strings.HasPrefix(text, "pod ") || strings.HasPrefix(text, "policy"):
		return nil
	case strings.HasPrefix(text, "changes") || strings.HasPrefix(text, "view "):
		return err
	}
	// Slots that do not hold what the books say.
	return status.Error(codes.FailedPrecondition, text)
}

// finish notes the outcome of a batch, and says whether the next batch may do better than one that the engine has
// found invalid or beyond a limit.
func (l *ledger) finish(b *batch, err error) (again bool) {
	switch {
	case err == nil && l.full.going && !b.last:
		l.full.index++
		l.full.taken, l.full.objects = b.to, b.objects
		l.full.shapes = b.shapes
		l.convict()
	case err == nil:
		l.arrived(b)
		l.convict()
	case refused(err):
		l.full.due = true
	case invalid(err) || exhausted(err):
		return l.rejected(b, err)
	default:
		l.unsure = true
		l.full.due = l.full.going // a full list is not resumed: nobody knows which of its chunks arrived
	}
	return false
}

// arrived notes that the engine is at the revision to which a batch, or the full list that it ends, leads.
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

// rejected notes that the engine has not applied a batch and will not do so when it is sent again. A full list
// continues where it was. One bad node must not keep all others from the engine: it is looked for, and left out.
func (l *ledger) rejected(b *batch, err error) (again bool) {
	for _, s := range b.shapes[len(l.full.shapes):] {
		s.batch = 0 // not kept as a part of the full list
	}
	if exhausted(err) && !l.full.going && !l.crowds(b) {
		// Names and ids are not given up before the view ends: in a new epoch there may be room.
		l.full.due = true
		return true
	}
	if l.leaveOut == nil || b.from == len(l.queue) {
		return false
	}
	e := l.queue[b.from]
	switch {
	case !l.careful:
		l.careful = true
		return true
	case !e.sentNode: // the batch is no better without it
		l.acquit()
		return false
	}
	e.invalid, e.crowds = e.sent, exhausted(err)
	l.suspect, l.suspicion = e, err
	return true
}

// crowds says whether a batch is for nodes for which there was no room in this epoch.
func (l *ledger) crowds(b *batch) bool {
	to := b.to
	if b.ahead {
		to++
	}
	return slices.ContainsFunc(l.queue[b.from:to], func(e *entry) bool { return e.crowds })
}

// convict settles that the suspect is to blame: the batch without it has arrived.
func (l *ledger) convict() {
	e, err := l.suspect, l.suspicion
	l.suspect, l.suspicion = nil, nil
	if e != nil && e.leftOut() {
		l.leaveOut(e.name, err)
	}
}

// acquit takes back that the suspect is left out.
func (l *ledger) acquit() {
	if l.suspect != nil {
		l.suspect.invalid, l.suspect.crowds = 0, false
	}
	l.suspect, l.suspicion = nil, nil
}
