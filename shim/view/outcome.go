package view

import (
	"slices"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errorInfo is what the engine says of an error beside its text: docs/api.md has all of it. Without it, as of an error
// that does not come from the engine, all is empty.
type errorInfo struct{ reason, changes string }

func infoOf(err error) errorInfo {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == "loadline.dev" {
			return errorInfo{reason: info.GetReason(), changes: info.GetMetadata()["changes"]}
		}
	}
	return errorInfo{}
}

// refused says whether the engine cannot apply a batch in its present state: it has lost the view, or somebody
// else has written to it. A question that is refused for another reason has its changes applied.
func refused(err error) bool {
	code := status.Code(err)
	return (code == codes.FailedPrecondition || code == codes.NotFound) && infoOf(err).changes != "applied"
}

// invalid says whether the content of a request is wrong in any state. A request that the engine cannot read, such as
// one of a newer client, says nothing of it.
func invalid(err error) bool {
	if status.Code(err) != codes.InvalidArgument {
		return false
	}
	reason := infoOf(err).reason
	return reason != "UNREADABLE_REQUEST" && reason != "UNKNOWN_FIELD"
}

// exhausted says whether a request is beyond a limit: of a message, or of what the engine or the view may hold. An
// engine that is busy, and a server without memory for further requests, say nothing of the request.
func exhausted(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && infoOf(err).reason == "LIMIT"
}

// outcomeOf returns what became of the changes that a question brought along.
func outcomeOf(err error) error {
	info := infoOf(err)
	switch {
	case info.reason == "UNKNOWN_SLOT": // slots that do not hold what the books say
		return status.Error(codes.FailedPrecondition, status.Convert(err).Message())
	case info.changes == "applied":
		return nil
	}
	return err
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
