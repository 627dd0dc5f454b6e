package scheduler

import (
	"sync"
	"time"
)

const (
	// breakerFailures is how many failures in a row open the breaker.
	breakerFailures = 5
	// probeInterval is how often an open breaker lets a question through.
	probeInterval = time.Second
)

// breaker stops asking an engine that does not answer: five timeouts cost a tenth of a second once, not each pod
// its own. While open it lets one question through each second, and one as soon as a lost connection is back.
type breaker struct {
	now       func() time.Time
	connected func() bool // says whether there is a connection to the engine

	mu        sync.Mutex
	failures  int // in a row; all guarded by mu
	open      bool
	lost      bool // there was no connection at the last failure
	nextProbe time.Time
}

// allow says whether to ask. An answer of true must be followed by success, failure or, when the outcome says
// nothing of the engine, neither.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return true
	}
	now := b.now()
	back := b.lost && b.connected()
	if !back && now.Before(b.nextProbe) {
		return false
	}
	b.lost = b.lost && !back
	b.nextProbe = now.Add(probeInterval)
	return true
}

// success notes an answer and says whether it closed the breaker.
func (b *breaker) success() (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	closed = b.open
	b.failures, b.open = 0, false
	return closed
}

// failure notes that no answer came and says whether that opened the breaker.
func (b *breaker) failure() (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	b.lost = !b.connected()
	if b.open || b.failures < breakerFailures {
		return false
	}
	b.open = true
	b.nextProbe = b.now().Add(probeInterval)
	return true
}
