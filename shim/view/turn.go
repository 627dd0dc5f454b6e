package view

import (
	"context"
	"math"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/status"
)

// everyone is the weight of an exclusive turn: all shared ones together.
const everyone = math.MaxInt32

// turn is a lock that is exclusive or shared, and whose waiting ends with a context. A waiting exclusive holder is
// served before later shared ones.
type turn struct{ free *semaphore.Weighted }

func newTurn() turn { return turn{semaphore.NewWeighted(everyone)} }

func (t turn) lock(ctx context.Context) error { return t.acquire(ctx, everyone) }
func (t turn) tryLock() bool                  { return t.free.TryAcquire(everyone) }
func (t turn) unlock()                        { t.free.Release(everyone) }

func (t turn) share(ctx context.Context) error { return t.acquire(ctx, 1) }
func (t turn) unshare()                        { t.free.Release(1) }

// acquire returns an error with the code of the context's end, as a call to the engine would.
func (t turn) acquire(ctx context.Context, weight int64) error {
	if err := t.free.Acquire(ctx, weight); err != nil {
		return status.FromContextError(err).Err()
	}
	return nil
}
