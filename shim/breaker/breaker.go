// Package breaker keeps callers from waiting for an engine that does not answer.
package breaker

import (
	"sync"
	"time"

	"google.golang.org/grpc/connectivity"

	"loadline.dev/shim/engine"
)

const (
	// Failures is how many failures in a row open a breaker.
	Failures = 5
	// ProbeInterval is how often an open breaker lets a question through.
	ProbeInterval = time.Second
)

// Breaker counts failures in a row. After the fifth it is open: it lets one question through each second, and one
// as soon as a lost connection is back, so that five timeouts are paid once and not with every pod. Safe for
// concurrent use.
type Breaker struct {
	now       func() time.Time
	connected func() bool // says whether there is a connection to the engine

	mu        sync.Mutex
	failures  int // in a row; all guarded by mu
	open      bool
	lost      bool // there was no connection at the last failure
	nextProbe time.Time
}

// New returns a closed breaker for a connection. Time is read from `now`.
func New(conn engine.Conn, now func() time.Time) *Breaker {
	return &Breaker{now: now, connected: connected(conn)}
}

// connected watches a connection that can be lost; one within the process cannot.
func connected(conn engine.Conn) func() bool {
	remote, ok := conn.(interface{ GetState() connectivity.State })
	if !ok {
		return func() bool { return true }
	}
	return func() bool { return remote.GetState() == connectivity.Ready }
}

// Allow says whether to ask. After an answer of true, Success or Failure tells the outcome, or NotAsked that there is
// none; none of them does when the outcome says nothing of the engine.
func (b *Breaker) Allow() bool {
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
	b.nextProbe = now.Add(ProbeInterval)
	return true
}

// NotAsked takes back an answer of true that no question followed: the next question may be asked in its place.
func (b *Breaker) NotAsked() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open {
		b.nextProbe = b.now()
	}
}

// Success notes an answer and says whether it closed the breaker.
func (b *Breaker) Success() (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	closed = b.open
	b.failures, b.open = 0, false
	return closed
}

// Failure notes that no answer came and says whether that opened the breaker.
func (b *Breaker) Failure() (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	b.lost = !b.connected()
	if b.open || b.failures < Failures {
		return false
	}
	b.open = true
	b.nextProbe = b.now().Add(ProbeInterval)
	return true
}
