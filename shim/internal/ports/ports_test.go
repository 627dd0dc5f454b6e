package ports

import (
	"errors"
	"fmt"
	"io"
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

// greet sends a byte on each connection that is accepted, and for each byte that is received.
func greet(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			for ok := true; ok; {
				_, wrote := conn.Write([]byte("x"))
				_, read := conn.Read(make([]byte, 1))
				ok = wrote == nil && read == nil
			}
		}()
	}
}

// One client with as many connections as it may have keeps no other one out; all of them together have a bound as well,
// at which the one with the most loses its oldest connection; a closed connection counts no more.
func TestConnectionsOfEachClientAndInAll(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limit := Limit(listener, 5, 3)
	defer limit.Close()
	go greet(limit)
	to := listener.Addr().String()
	first, _ := from(t, "127.0.0.1", to)
	kept := map[string]net.Conn{}
	for i, c := range []struct {
		client string
		holds  bool
	}{{"127.0.0.1", true}, {"127.0.0.1", true}, {"127.0.0.1", false}, {"127.0.0.2", true}, {"127.0.0.3", true},
		{"127.0.0.4", true}, {"127.0.0.5", true}, {"127.0.0.1", false}} {
		conn, holds := from(t, c.client, to)
		if kept[c.client] = conn; holds != c.holds {
			t.Errorf("connection %d, of %s: kept is %v, want %v", i+1, c.client, holds, c.holds)
		}
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the oldest connection of the client with the most: %v, want its end", err)
	}
	kept["127.0.0.4"].Close()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, holds := from(t, "127.0.0.1", to); holds {
			break
		}
		if time.Now().After(until) {
			t.Fatal("a connection that was closed still counts")
		}
	}
}

// A few clients that each have as many connections as they may keep no probe out.
func TestManyClientsKeepNobodyOut(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const all, each = 32, 8
	limit := Limit(listener, all, each)
	defer limit.Close()
	go greet(limit)
	to := listener.Addr().String()
	for client := 1; client <= all/each+1; client++ {
		for range each {
			from(t, fmt.Sprint("127.0.1.", client), to)
		}
	}
	for range 3 { // a probe asks again and again
		if _, holds := from(t, "127.0.0.9", to); !holds {
			t.Error("a probe is kept out")
		}
	}
}

// However many clients have a connection each, one that has none gets one: for that on which nothing has come for the
// longest. One that has asked since stays.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limit := Limit(listener, 3, 2)
	defer limit.Close()
	go greet(limit)
	to := listener.Addr().String()
	asks, _ := from(t, "127.0.0.1", to)
	silent, _ := from(t, "127.0.0.2", to)
	from(t, "127.0.0.3", to)
	ask := func() error {
		if _, err := asks.Write([]byte("?")); err != nil {
			return err
		}
		_, err := asks.Read(make([]byte, 1))
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	if _, holds := from(t, "127.0.0.4", to); !holds {
		t.Error("a client without a connection is kept out")
	}
	if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection on which nothing came: %v, want its end", err)
	}
	for i := 5; i < 9; i++ { // they ask nothing, and are younger than what the client asked last
		if _, holds := from(t, fmt.Sprintf("127.0.0.%d", i), to); !holds {
			t.Errorf("client %d is kept out", i)
		}
	}
	if err := ask(); err != nil {
		t.Errorf("the connection on which a client asked: %v", err)
	}
	if _, holds := from(t, "127.0.0.8", to); holds {
		t.Error("a client with a connection gets one more in place of others")
	}
}
