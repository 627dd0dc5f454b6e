package engine

import (
	"bufio"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An answer arrives whether it is sent while the reader looks for it or long after that, in one piece or in several,
// asked for or not; and so does the end.
func TestSpinConn(t *testing.T) {
	client, server := spinPair(t)
	go func() {
		lines := bufio.NewReader(server)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			switch strings.TrimSpace(line) {
			case "at once":
			case "late":
				time.Sleep(3 * spinTime)
			case "in two":
				io.WriteString(server, "in ")
				time.Sleep(3 * spinTime)
				line = "two\n"
			case "end":
				server.Close()
				return
			}
			io.WriteString(server, line)
		}
	}()
	lines := bufio.NewReader(client)
	expect := func(want string) {
		t.Helper()
		if got, err := lines.ReadString('\n'); err != nil || got != want+"\n" {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
	for range 200 {
		for _, ask := range []string{"at once", "late", "in two", "at once"} {
			if _, err := io.WriteString(client, ask+"\n"); err != nil {
				t.Fatal(err)
			}
			expect(ask)
		}
	}
	io.WriteString(server, "nobody asked\n")
	expect("nobody asked")
	io.WriteString(client, "end\n")
	if n, err := client.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d bytes, %v", n, err)
	}
}

// A reader that waits is woken by a write, and by Close.
func TestSpinConnReadsBeforeItWrites(t *testing.T) {
	client, server := spinPair(t)
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(client, make([]byte, 2))
		read <- err
		_, err = client.Read(make([]byte, 1))
		read <- err
	}()
	time.Sleep(3 * spinTime) // the reader waits by now, or will; it must not matter
	go io.Copy(server, server)
	io.WriteString(client, "ab")
	if err := <-read; err != nil {
		t.Error(err)
	}
	client.Close()
	if err := <-read; !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func spinPair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	if client, err = dialSpinning(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if server, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}
