package drain

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// background writes some objects of a loop while the loop goes on.
type background struct {
	// count and duration bound the writes of one loop.
	count    int
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

// writeSome writes objects in their order, as far as the bounds of one loop allow.
func writeSome[T any](b *background, objects []T, write func(T) error) error {
	until := time.Now().Add(b.duration)
	var errs []error
	for i, object := range objects {
		if i == b.count || !time.Now().Before(until) {
			break
		}
		errs = append(errs, write(object))
	}
	return errors.Join(errs...)
}
