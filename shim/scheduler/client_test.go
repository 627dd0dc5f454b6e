package scheduler

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"loadline.dev/shim/engine"
)

// slowToClose is an engine that takes as long to close as its channel is open.
type slowToClose struct {
	fakeEngine
	closing, may chan struct{}
}

func (s *slowToClose) Close() error {
	close(s.closing)
	<-s.may
	return nil
}

// A new profile does not wait until the client of a removed one has closed.
func TestClientsAreClosedBesideOthers(t *testing.T) {
	slow := &slowToClose{closing: make(chan struct{}), may: make(chan struct{})}
	conns := []engine.Conn{slow, &fakeEngine{}}
	all := clients{now: time.Now, dial: func(string) (conn engine.Conn, err error) {
		conn, conns = conns[0], conns[1:]
		return conn, nil
	}}
	first, err := all.acquire(klog.Background(), clientKey{"inprocess", "a"})
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	go func() { released <- all.release(first) }()
	<-slow.closing
	acquired := make(chan *client, 1)
	go func() {
		second, err := all.acquire(klog.Background(), clientKey{"inprocess", "b"})
		if err != nil {
			t.Error(err)
		}
		acquired <- second
	}()
	select {
	case second := <-acquired:
		defer all.release(second)
	case <-time.After(5 * time.Second):
		t.Error("a client waits until another one has closed")
	}
	close(slow.may)
	if err := <-released; err != nil {
		t.Error(err)
	}
}

var errAway = errors.New("away")

func refusesToDial(string) (engine.Conn, error) { return nil, errAway }

// The log says that scoring is on when the engine has answered, and once.
func TestScoringIsOnAfterTheFirstAnswer(t *testing.T) {
	logger, logged := bufferedLogger(t)
	all := clients{now: time.Now, dial: func(string) (engine.Conn, error) { return &fakeEngine{}, nil }}
	c, err := all.acquire(logger, clientKey{"inprocess", "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer all.release(c)
	for i, outcome := range []error{nil, errAway, nil, nil} {
		want := min(i, 1)
		if got := strings.Count(logged(), "Limit-aware scoring is on"); got != want {
			t.Errorf("after %d answers it was logged %d times", i, got)
		}
		c.note(outcome)
	}
}
