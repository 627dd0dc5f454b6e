package breaker

import (
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// link is a connection that comes and goes.
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

func fail(b *Breaker, times int) (opened bool) {
	for range times {
		opened = b.Failure()
	}
	return opened
}

func TestBreaker(t *testing.T) {
	now := time.Unix(0, 0)
	conn := &link{up: true}
	b := New(conn, func() time.Time { return now })
	pass := func(d time.Duration) { now = now.Add(d) }

	if fail(b, Failures-1) || !b.Allow() {
		t.Error("one failure too few opened it")
	}
	if b.Success() || fail(b, Failures-1) {
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
	if fail(b, 1) || b.Allow() {
		t.Error("a failed probe opened it again, or let more questions through")
	}
	if pass(ProbeInterval); !b.Allow() {
		t.Error("no second probe")
	}
	if !b.Success() || !b.Allow() || !b.Allow() {
		t.Error("a good probe did not close it")
	}
}

func TestBreakerAsksAsSoonAsTheConnectionIsBack(t *testing.T) {
	conn := &link{}
	b := New(conn, func() time.Time { return time.Unix(0, 0) })
	if !fail(b, Failures) || b.Allow() {
		t.Error("asked without a connection")
	}
	if conn.up = true; !b.Allow() || b.Allow() {
		t.Error("not one question as soon as the connection was back")
	}
}

// A connection within the process cannot be lost; only time brings the next question.
func TestBreakerWithoutAConnectionToLose(t *testing.T) {
	now := time.Unix(0, 0)
	b := New(struct {
		grpc.ClientConnInterface
		closer
	}{}, func() time.Time { return now })
	if !fail(b, Failures) || b.Allow() {
		t.Error("asked at once")
	}
	if now = now.Add(ProbeInterval); !b.Allow() {
		t.Error("not asked after the interval")
	}
}

type closer struct{}

func (closer) Close() error { return nil }
