package scheduler

import (
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
