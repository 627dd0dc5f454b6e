// Package guard is between callers and an engine that may not answer: it judges the outcome of each question, and keeps
// callers from waiting for an engine that is down, hangs or has more questions than it can take.
package guard

import (
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/connectivity"
	"k8s.io/klog/v2"

	"loadline.dev/shim/engine"
)

const (
	// Failures is how many failures in a row open a guard.
	Failures = 5
	// ProbeInterval is how often an open guard lets a question through.
	ProbeInterval = time.Second
	// MaxRefusals is how many refusals in a row say nothing against the engine: one follows each restart, and its
	// answer is a full list. More mean that something else writes to the view.
	MaxRefusals = 3
)

// ErrNotAsked is returned by a question that needed no answer of the engine.
var ErrNotAsked = errors.New("the engine was not asked")

// Guard counts failures in a row. After the fifth it is open: it lets one question through each second, and one
// as soon as a lost connection is back, so that five timeouts are paid once and not with every pod. Safe for
// concurrent use.
type Guard struct {
	Options
	connected func() bool   // says whether there is a connection to the engine
	tickets   chan struct{} // one element per question of Ask under way

	mu        sync.Mutex
	failures  int // in a row; all guarded by mu
	refusals  int // in a row
	open      bool
	lost      bool // there was no connection at the last failure
	nextProbe time.Time
}

// Options of a guard.
type Options struct {
	// Now tells the time; nil: time.Now.
	Now func() time.Time
	// Changed hears that the guard opened, with the last error, or closed; nil: nobody does.
	Changed func(open bool, err error)
	// AtOnce bounds the questions of Ask under way.
	AtOnce int
	// Timeout bounds a question of Ask in place of its context; 0: its context does.
	Timeout time.Duration
}

// New returns a closed guard for a connection.
func New(conn engine.Conn, options Options) *Guard {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Changed == nil {
		options.Changed = func(bool, error) {}
	}
	return &Guard{Options: options, connected: connected(conn), tickets: make(chan struct{}, options.AtOnce)}
}

// Log returns a function for Options.Changed that logs, with how things go on without the engine.
func Log(without string) func(open bool, err error) {
	return func(open bool, err error) {
		if open {
			klog.ErrorS(err, "The engine does not answer; "+without)
		} else {
			klog.InfoS("The engine answers again")
		}
	}
}

// connected watches a connection that can be lost; one within the process cannot.
func connected(conn engine.Conn) func() bool {
	remote, ok := conn.(interface{ GetState() connectivity.State })
	if !ok {
		return func() bool { return true }
	}
	return func() bool { return remote.GetState() == connectivity.Ready }
}

// Allow says whether to ask. After an answer of true, Note tells the outcome, or NotAsked that there is none; neither
// does when the outcome says nothing of the engine.
func (g *Guard) Allow() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.open {
		return true
	}
	now := g.Now()
	back := g.lost && g.connected()
	if !back && now.Before(g.nextProbe) {
		return false
	}
	g.lost = g.lost && !back
	g.nextProbe = now.Add(ProbeInterval)
	return true
}

// NotAsked takes back an answer of true that no question followed: the next question may be asked in its place.
func (g *Guard) NotAsked() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		g.nextProbe = g.Now()
	}
}

// Note takes note of the outcome of a question, and returns the verdict.
func (g *Guard) Note(err error) Verdict {
	verdict := Judge(err)
	if changed, open := g.note(verdict); changed {
		g.Changed(open, err)
	}
	return verdict
}

// note says whether a verdict opened or closed the guard, and whether it is open now.
func (g *Guard) note(verdict Verdict) (changed, open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch verdict {
	case Canceled, NotAsked, Open, Panicked:
		return false, g.open
	case Refused:
		g.refusals++
	default:
		g.refusals = 0
	}
	before := g.open
	switch verdict {
	case Late, Away, Failed:
		g.fail()
	default:
		if g.refusals > MaxRefusals {
			g.fail()
		} else {
			g.failures, g.open = 0, false
		}
	}
	return g.open != before, g.open
}

// fail notes that no answer came. The caller holds mu.
func (g *Guard) fail() {
	g.failures++
	g.lost = !g.connected()
	if !g.open && g.failures >= Failures {
		g.open = true
		g.nextProbe = g.Now().Add(ProbeInterval)
	}
}
