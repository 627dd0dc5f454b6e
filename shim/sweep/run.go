package sweep

import (
	"context"
	"sync"

	"loadline.dev/shim/api/loadlinev1"
)

// Simulate asks an engine for one month.
type Simulate func(context.Context, *loadlinev1.SimulateRequest) (*loadlinev1.SimulateResponse, error)

// Run simulates rows, as many at a time as there are engines, and hands each to done, which any goroutine calls. It
// holds a row per engine at a time. The first error ends it.
func (p *Plan) Run(ctx context.Context, rows []int, engines []Simulate, done func(*Row) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan int)
	var busy sync.WaitGroup
	for _, simulate := range engines {
		busy.Go(func() {
			for row := range work {
				if err := p.runOne(ctx, row, simulate, done); err != nil {
					cancel(err)
				}
			}
		})
	}
feed:
	for _, row := range rows {
		select {
		case work <- row:
		case <-ctx.Done():
			break feed
		}
	}
	close(work)
	busy.Wait()
	return context.Cause(ctx)
}

func (p *Plan) runOne(ctx context.Context, row int, simulate Simulate, done func(*Row) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	request, err := p.Request(row)
	if err != nil {
		return err
	}
	answer, err := simulate(ctx, request)
	if err != nil {
		return &RowError{p.Describe(row), err}
	}
	return done(NewRow(row, answer))
}

// RowError is a row that cannot be simulated.
type RowError struct {
	Row string
	Err error
}

func (e *RowError) Error() string { return e.Row + ": " + e.Err.Error() }

func (e *RowError) Unwrap() error { return e.Err }
