package scheduler

import (
	"testing"
	"time"
)

func TestBreaker(t *testing.T) {
	clock := &fakeClock{time: time.Unix(0, 0)}
	connected := true
	b := &breaker{now: clock.now, connected: func() bool { return connected }}
	fail := func(times int) (opened bool) {
		for range times {
			opened = b.failure()
		}
		return opened
	}
	pass := func(d time.Duration) { clock.time = clock.time.Add(d) }

	if fail(breakerFailures-1) || !b.allow() {
		t.Error("one failure too few opened it")
	}
	if b.success() || fail(breakerFailures-1) {
		t.Error("a success did not start the count again")
	}
	if !fail(1) || b.allow() {
		t.Error("the last failure did not open it")
	}
	if pass(probeInterval - 1); b.allow() {
		t.Error("asked too soon")
	}
	if pass(1); !b.allow() || b.allow() {
		t.Error("not one question after the interval")
	}
	if fail(1) || b.allow() {
		t.Error("a failed probe opened it again, or let more questions through")
	}
	if pass(probeInterval); !b.allow() {
		t.Error("no second probe")
	}
	if !b.success() || !b.allow() || !b.allow() {
		t.Error("a good probe did not close it")
	}

	connected = false
	fail(breakerFailures)
	if b.allow() {
		t.Error("asked without a connection")
	}
	connected = true
	if !b.allow() || b.allow() {
		t.Error("not one question as soon as the connection was back")
	}
}
