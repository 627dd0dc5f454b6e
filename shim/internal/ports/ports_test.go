package ports

import (
	"net"
	"testing"
	"time"
)

// from opens a connection from an address of this machine, and says whether it is kept.
func from(t *testing.T, address, to string) (conn net.Conn, holds bool) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := dialer.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n, _ := conn.Read(make([]byte, 1))
	return conn, n == 1
}

// One client that holds what it may keeps no other one out; all of them together have a bound as well, and what is
// closed counts no more.
func TestConnectionsOfEachClientAndInAll(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limit := Limit(listener, 5, 3)
	defer limit.Close()
	go func() {
		for {
			conn, err := limit.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				conn.Write([]byte("x"))
				conn.Read(make([]byte, 1)) // until the client closes
			}()
		}
	}()
	to := listener.Addr().String()
	first, _ := from(t, "127.0.0.1", to)
	for i, c := range []struct {
		client string
		holds  bool
	}{{"127.0.0.1", true}, {"127.0.0.1", true}, {"127.0.0.1", false}, {"127.0.0.2", true}, {"127.0.0.3", true},
		{"127.0.0.4", false}} {
		if _, holds := from(t, c.client, to); holds != c.holds {
			t.Errorf("connection %d, of %s: held is %v, want %v", i+1, c.client, holds, c.holds)
		}
	}
	first.Close()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, holds := from(t, "127.0.0.4", to); holds {
			break
		}
		if time.Now().After(until) {
			t.Fatal("a connection that was closed still counts")
		}
	}
}
