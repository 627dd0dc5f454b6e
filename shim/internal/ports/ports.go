// Package ports serves at ports that others can reach, and bounds what clients hold of them.
package ports

import (
	"net"
	"sync"
	"time"
)

const (
	// IdleTime is how long a port of probes and metrics keeps a connection on which nobody asks: probes open a new one
	// each time, and whoever scrapes metrics can open one.
	IdleTime = 15 * time.Second
	// MostGathering is how many requests for metrics are answered at a time: each takes memory, until it is read.
	MostGathering = 3
)

// limited is a listener that refuses connections beyond its bounds.
type limited struct {
	net.Listener
	all, each int

	mu   sync.Mutex
	open int            // guarded by mu
	by   map[string]int // the same by client; guarded by mu
}

// Limit returns a listener that holds so many connections, and so many of each client, which is an address without
// port. Others are closed at once. They do not wait: one client that holds connections and asks nothing would make all
// others wait for it.
func Limit(listener net.Listener, all, each int) net.Listener {
	return &limited{Listener: listener, all: all, each: each, by: map[string]int{}}
}

// Accept returns the next connection that is within the bounds.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		client := clientOf(conn)
		if l.take(client) {
			return &held{Conn: conn, release: sync.OnceFunc(func() { l.give(client) })}, nil
		}
		conn.Close()
	}
}

func (l *limited) take(client string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.all || l.by[client] >= l.each {
		return false
	}
	l.open++
	l.by[client]++
	return true
}

func (l *limited) give(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.by[client]--; l.by[client] == 0 {
		delete(l.by, client)
	}
}

func clientOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return host
}

// held is a connection that counts until it is closed.
type held struct {
	net.Conn
	release func()
}

// Close closes the connection.
func (c *held) Close() error {
	c.release()
	return c.Conn.Close()
}
