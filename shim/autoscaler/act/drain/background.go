package drain

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// background writes some objects of a loop while the loop continues.
type background struct {
	// duration is after which no write of a loop begins.
	duration time.Duration

	writing sync.WaitGroup
	busy    atomic.Bool
}

// writeLater writes objects in their order and in the background, as far as the time of one loop allows; `done` hears
// how it ended. While the writes of a loop before go on, nothing begins.
func writeLater[T any](b *background, objects []T, write func(T) error, done func(took time.Duration, err error)) {
	if !b.busy.CompareAndSwap(false, true) {
		return
	}
	b.writing.Go(func() {
		defer b.busy.Store(false)
		began := time.Now()
		var errs []error
		for _, object := range objects {
			if time.Since(began) >= b.duration {
				break
			}
			errs = append(errs, write(object))
		}
		done(time.Since(began), errors.Join(errs...))
	})
}

// Wait returns when nothing is being written.
func (b *background) Wait() { b.writing.Wait() }
