package guard

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"loadline.dev/shim/engine"
)

// link is a connection that breaks and is restored.
type link struct {
	grpc.ClientConnInterface
	up bool
}

func (l *link) Close() error { return nil }

func (l *link) GetState() connectivity.State {
	if l.up {
		return connectivity.Ready
	}
	return connectivity.TransientFailure
}

var errAway = status.Error(codes.Unavailable, "away")

// guarded is a guard that remembers what it reported.
type guarded struct {
	*Guard
	told bool // that it is open
	now  time.Time
}

func newGuarded(conn engine.Conn) *guarded {
	g := &guarded{now: time.Unix(0, 0)}
	g.Guard = New(conn, Options{Now: func() time.Time { return g.now }, AtOnce: 1,
		Changed: func(open bool, _ error) { g.told = open }})
	return g
}

// fail notes failures and says whether the guard is open.
func fail(g *guarded, times int) bool {
	for range times {
		g.Note(errAway)
	}
	return g.told
}

func TestGuard(t *testing.T) {
	b := newGuarded(&link{up: true})
	pass := func(d time.Duration) { b.now = b.now.Add(d) }

	if fail(b, Failures-1) || !b.Allow() {
		t.Error("one failure too few opened it")
	}
	if b.Note(nil); fail(b, Failures-1) {
		t.Error("a success did not start the count again")
	}
	if !fail(b, 1) || b.Allow() {
		t.Error("the last failure did not open it")
	}
	if pass(ProbeInterval - 1); b.Allow() {
		t.Error("asked too soon")
	}
	if pass(1); !b.Allow() || b.Allow() {
		t.Error("not one question after the interval")
	}
	if fail(b, 1); b.Allow() {
		t.Error("a failed probe let more questions through")
	}
	if pass(ProbeInterval); !b.Allow() {
		t.Error("no second probe")
	}
	if b.Note(nil); b.told || !b.Allow() || !b.Allow() {
		t.Error("a good probe did not close it")
	}
}

func TestGuardAsksAsSoonAsTheConnectionIsBack(t *testing.T) {
	conn := &link{}
	b := newGuarded(conn)
	if !fail(b, Failures) || b.Allow() {
		t.Error("asked without a connection")
	}
	if conn.up = true; !b.Allow() || b.Allow() {
		t.Error("not one question as soon as the connection was back")
	}
}

// A connection within the process cannot be lost; only time brings the next question.
func TestGuardWithoutAConnectionToLose(t *testing.T) {
	b := newGuarded(struct {
		grpc.ClientConnInterface
		closer
	}{})
	if !fail(b, Failures) || b.Allow() {
		t.Error("asked at once")
	}
	if b.now = b.now.Add(ProbeInterval); !b.Allow() {
		t.Error("not asked after the interval")
	}
}

type closer struct{}

func (closer) Close() error { return nil }

// A code means the same to all callers.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		err     error
		verdict Verdict
		opens   bool
	}{
		{nil, Answered, false},
		{status.Error(codes.InvalidArgument, ""), Invalid, false},
		{status.Error(codes.ResourceExhausted, ""), Busy, false},
		{status.Error(codes.Canceled, ""), Canceled, false},
		{ErrNotAsked, NotAsked, false},
		{status.Error(codes.FailedPrecondition, ""), Refused, true}, // only in a row, and after MaxRefusals
		{status.Error(codes.NotFound, ""), Refused, true},
		{status.Error(codes.DeadlineExceeded, ""), Late, true},
		{status.Error(codes.Unavailable, ""), Away, true},
		{status.Error(codes.Internal, ""), Failed, true},
		{status.Error(codes.Unimplemented, ""), Failed, true},
		{errors.New("no status"), Failed, true},
		{fmt.Errorf("wrapped: %w", status.Error(codes.ResourceExhausted, "")), Busy, false},
	} {
		g := newGuarded(&link{up: true})
		for range Failures + MaxRefusals {
			if got := g.Note(c.err); got != c.verdict {
				t.Errorf("%v: got %v, want %v", c.err, got, c.verdict)
			}
		}
		if g.told != c.opens {
			t.Errorf("%v: opened %v, want %v", c.err, g.told, c.opens)
		}
	}
}

// A verdict that the engine is well closes an open guard; one that says nothing of it leaves the guard as it is.
func TestVerdictsOfAProbe(t *testing.T) {
	for _, c := range []struct {
		err    error
		closes bool
	}{
		{nil, true},
		{status.Error(codes.InvalidArgument, ""), true},
		{status.Error(codes.ResourceExhausted, ""), true},
		{status.Error(codes.NotFound, ""), true},
		{status.Error(codes.Canceled, ""), false},
		{ErrNotAsked, false},
		{errAway, false},
	} {
		g := newGuarded(&link{up: true})
		fail(g, Failures)
		if g.Note(c.err); g.told == c.closes {
			t.Errorf("%v: open %v", c.err, g.told)
		}
	}
}
