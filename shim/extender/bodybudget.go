package extender

import (
	"errors"
	"io"
	"sync/atomic"
)

// maxBodiesBytes bounds the bytes of all bodies that are held at a time: four of the largest. The names of a body, and
// the buffer that it outgrew, take up to twice as much as the body itself, so that all of it stays below half of the
// memory that the manifests grant.
const maxBodiesBytes = 4 * maxBodyBytes

var errBodiesTooLarge = errors.New("the requests that are answered now are too large for one more")

// byteBudget counts bytes that are held. Safe for concurrent use.
type byteBudget struct {
	limit int64
	held  atomic.Int64
}

// take takes note of bytes, unless they are too many.
func (b *byteBudget) take(bytes int) bool {
	if b.held.Add(int64(bytes)) > b.limit {
		b.held.Add(-int64(bytes))
		return false
	}
	return true
}

func (b *byteBudget) give(bytes int) { b.held.Add(-int64(bytes)) }

// countedReader counts what is read, not what a client announces: one that announces much and sends nothing takes
// nothing.
type countedReader struct {
	from   io.Reader
	budget *byteBudget
	taken  int
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if !r.budget.take(n) {
		return 0, errBodiesTooLarge
	}
	r.taken += n
	return n, err
}
