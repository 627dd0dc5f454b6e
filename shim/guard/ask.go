package guard

import (
	"context"
	"errors"
	"runtime/debug"

	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
)

var errPanicked = errors.New("a panic while the engine was asked")

// Ask asks a question and returns the answer, what to make of it, and the error of the question, if there is one. It
// returns when the time is up at the latest: the question runs beside, so that neither a lock nor an engine that hangs
// holds up the caller. With a Timeout a question does not end with its context either: a client that hangs up says
// nothing of the engine.
func Ask[T any](ctx context.Context, g *Guard, ask func(ctx context.Context) (T, error)) (T, Verdict, error) {
	if g.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), g.Timeout)
		defer cancel()
	}
	var none T
	if ctx.Err() != nil { // there was no time to ask
		err := status.FromContextError(ctx.Err()).Err()
		return none, Judge(err), err
	}
	if !g.Allow() {
		return none, Open, nil
	}
	select {
	case g.tickets <- struct{}{}:
	default:
		g.NotAsked()
		return none, Busy, nil
	}
	type outcome struct {
		answer T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-g.tickets }()
		answer, err := recovered(ctx, ask)
		done <- outcome{answer, err}
	}()
	var got outcome
	select {
	case got = <-done:
	case <-ctx.Done():
		got.err = status.FromContextError(ctx.Err()).Err()
	}
	switch {
	case errors.Is(got.err, errPanicked):
		return none, Panicked, got.err
	case errors.Is(got.err, ErrNotAsked):
		g.NotAsked()
		return got.answer, NotAsked, nil
	}
	return got.answer, g.Note(got.err), got.err
}

// recovered turns a panic into an error.
func recovered[T any](ctx context.Context, ask func(ctx context.Context) (T, error)) (answer T, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			klog.FromContext(ctx).Error(nil, "Panic while asking the engine", "cause", cause,
				"stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	return ask(ctx)
}
