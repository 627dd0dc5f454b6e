package drain

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// background writes some objects of a loop while the loop goes on.
type background struct {
	// count is how many objects are chosen for one loop, where that is not the engine's choice.
	count int
	// duration is after which no write of a loop begins.
	duration time.Duration

	writing sync.WaitGroup
	busy    atomic.Bool
}

// begin writes in the background; `done` hears how it ended. While the writes of a loop before go on, nothing begins.
func (b *background) begin(write func() error, done func(took time.Duration, err error)) {
	if !b.busy.CompareAndSwap(false, true) {
		return
	}
	b.writing.Go(func() {
		defer b.busy.Store(false)
		began := time.Now()
		err := write()
		done(time.Since(began), err)
	})
}

// Wait returns when nothing is being written.
func (b *background) Wait() { b.writing.Wait() }

// writeSome writes objects in their order, as far as the time of one loop allows.
func writeSome[T any](b *background, objects []T, write func(T) error) error {
	until := time.Now().Add(b.duration)
	var errs []error
	for _, object := range objects {
		if !time.Now().Before(until) {
			break
		}
		errs = append(errs, write(object))
	}
	return errors.Join(errs...)
}
