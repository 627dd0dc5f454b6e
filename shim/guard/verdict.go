package guard

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Verdict is what the outcome of a question says of the engine and of the question.
type Verdict int

const (
	// Answered is the verdict on an answer.
	Answered Verdict = iota
	// Invalid is a question that is wrong in any state: the engine is well.
	Invalid
	// Refused is a question that names a state which the engine does not have: it was restarted, or somebody else
	// writes to the view. The engine is well, unless it refuses more than MaxRefusals questions in a row.
	Refused
	// Busy is a limit that was reached: of the engine (RESOURCE_EXHAUSTED), or of questions at a time. The engine is
	// not down, and the same question may be answered later.
	Busy
	// Canceled is a question that its caller gave up. It says nothing of the engine.
	Canceled
	// Late is an engine that did not answer in time.
	Late
	// Away is an engine to which there is no connection.
	Away
	// Failed is any other error.
	Failed
	// Open is a question that was not asked, since the engine did not answer lately.
	Open
	// NotAsked is a question that needed no answer of the engine.
	NotAsked
	// Panicked is a fault of ours. It says nothing of the engine.
	Panicked
)

// Judge returns the verdict on the error of a call.
func Judge(err error) Verdict {
	if errors.Is(err, ErrNotAsked) {
		return NotAsked
	}
	switch status.Code(err) {
	case codes.OK:
		return Answered
	case codes.InvalidArgument:
		return Invalid
	case codes.FailedPrecondition, codes.NotFound:
		return Refused
	case codes.ResourceExhausted:
		return Busy
	case codes.Canceled:
		return Canceled
	case codes.DeadlineExceeded:
		return Late
	case codes.Unavailable:
		return Away
	}
	return Failed
}
