// Package ports serves at ports that others can reach, and bounds what clients hold of them.
package ports

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
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
	heard     atomic.Int64 // counts what came on all connections

	mu   sync.Mutex
	open int                       // guarded by mu
	by   map[string][]*boundedConn // the same by client, the oldest first; guarded by mu
}

// Limit returns a listener that holds so many connections, and so many of each client, which is an address without
// port. Others are closed at once. They do not wait: one client that holds connections and asks nothing would make all
// others wait for it. If the listener is full, the client with the most connections loses its oldest one to a client
// that has fewer. If all have one, a client without any takes the place of the oldest connection on which nothing has
// come yet, else of the one on which nothing has come for the longest, so that no number of clients keeps another one
// out by connections on which they ask nothing.
func Limit(listener net.Listener, all, each int) net.Listener {
	return &limited{Listener: listener, all: all, each: each, by: map[string][]*boundedConn{}}
}

// Accept returns the next connection that is within the bounds.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		bounded := &boundedConn{Conn: conn, of: l, client: clientOf(conn), opened: l.heard.Add(1)}
		loser, ok := l.take(bounded)
		if loser != nil {
			loser.Conn.Close()
		}
		if ok {
			return bounded, nil
		}
		conn.Close()
	}
}

// take counts a connection if there is room for it, and returns the one that it replaces, if any.
func (l *limited) take(c *boundedConn) (loser *boundedConn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := len(l.by[c.client])
	if own >= l.each {
		return nil, false
	}
	if l.open >= l.all {
		greedy := c.client
		for client, conns := range l.by {
			most := len(l.by[greedy])
			if len(conns) > most || len(conns) == most && client < greedy {
				greedy = client
			}
		}
		switch {
		case len(l.by[greedy]) > own+1:
			loser = l.by[greedy][0]
		case own == 0 && l.open > 0:
			loser = l.silentLocked()
		default:
			return nil, false
		}
		l.removeLocked(loser)
	}
	l.open++
	l.by[c.client] = append(l.by[c.client], c)
	return loser, true
}

// silentLocked returns the oldest connection on which nothing has come, else the one on which nothing has come for the
// longest. There is one.
func (l *limited) silentLocked() (silent *boundedConn) {
	for _, conns := range l.by {
		for _, c := range conns {
			if silent == nil || c.moreSilentThan(silent) {
				silent = c
			}
		}
	}
	return silent
}

// removeLocked takes a connection out of the books, if it is in them.
func (l *limited) removeLocked(c *boundedConn) {
	at := slices.Index(l.by[c.client], c)
	if at < 0 {
		return
	}
	l.open--
	if l.by[c.client] = slices.Delete(l.by[c.client], at, at+1); len(l.by[c.client]) == 0 {
		delete(l.by, c.client)
	}
}

func clientOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return host
}

// boundedConn is a connection that counts until it is closed.
type boundedConn struct {
	net.Conn
	of     *limited
	client string
	opened int64        // what limited.heard was then
	last   atomic.Int64 // what limited.heard was when something came; 0: nothing has
}

func (c *boundedConn) moreSilentThan(other *boundedConn) bool {
	a, b := c.last.Load(), other.last.Load()
	if a == 0 && b == 0 {
		return c.opened < other.opened
	}
	return a < b
}

// Read takes note that something came.
func (c *boundedConn) Read(to []byte) (n int, err error) {
	if n, err = c.Conn.Read(to); n > 0 {
		c.last.Store(c.of.heard.Add(1))
	}
	return n, err
}

// Close closes the connection.
func (c *boundedConn) Close() error {
	c.of.mu.Lock()
	c.of.removeLocked(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
