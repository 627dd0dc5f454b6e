// Package freeport finds TCP ports for servers that tests start, and whose ports must be named before they listen.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

var ports struct {
	mu    sync.Mutex
	given map[int]bool // guarded by mu
}

// Port returns a TCP port of 127.0.0.1 that nobody listens on and that this process was not given before. It lies
// below the range from which the kernel takes the ports of outgoing connections: one of those could otherwise take it
// between this call and the moment when the program listens.
func Port() (int, error) {
	const lowest, count = 20000, 12000
	ports.mu.Lock()
	defer ports.mu.Unlock()
	if ports.given == nil {
		ports.given = map[int]bool{}
	}
	for range 200 {
		port := lowest + rand.IntN(count)
		if ports.given[port] {
			continue
		}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		ports.given[port] = true
		return port, listener.Close()
	}
	return 0, errors.New("no free port on 127.0.0.1")
}

// Address returns 127.0.0.1 with a port of Port.
func Address() (string, error) {
	port, err := Port()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
