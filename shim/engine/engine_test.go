package engine

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"loadline.dev/shim/api/loadlinev1"
)

func TestOpenRefusesOtherAddresses(t *testing.T) {
	for _, address := range []string{
		"", "tcp://127.0.0.1:1", "127.0.0.1:1", "unix://", "unix://relative", "unix:/path", "inprocess://",
		"inprocess://relative", "Inprocess",
	} {
		if conn, err := Open(address); err == nil {
			conn.Close()
			t.Errorf("%q was accepted", address)
		} else if want := "must be inprocess, inprocess:///path/to/libloadline.so or " +
			"unix:///path/to/socket"; !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %q, want %q in it", address, err, want)
		}
	}
}

func TestOpenSocketRefusesALongPath(t *testing.T) {
	if _, err := Open("unix:///" + strings.Repeat("x", 107)); err == nil ||
		!strings.Contains(err.Error(), "108 bytes, at most 107") {
		t.Errorf("got error %v", err)
	}
}

func TestOpenInProcessTellsWhatIsWrong(t *testing.T) {
	notALibrary := filepath.Join(t.TempDir(), "libloadline.so")
	if err := os.WriteFile(notALibrary, []byte("text"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"Missing", "/nonexistent/libloadline.so", "/nonexistent/libloadline.so: cannot open shared object file"},
		{"NoLibrary", notALibrary, "file too short"},
		{"OtherLibrary", "libc.so.6", "undefined symbol: loadline_create"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := loadLibrary(c.path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestOpenInProcessTakesNoOtherLibraryThanTheOneNamed(t *testing.T) {
	t.Setenv("LOADLINE_LIBRARY", "/nonexistent/named.so")
	if _, err := Open("inprocess"); err == nil || !strings.Contains(err.Error(), "/nonexistent/named.so") {
		t.Errorf("got error %v, want the name of the file in it", err)
	}
}

// describer answers Describe with a version.
type describer struct {
	loadlinev1.UnimplementedClusterStateServer
	version string
}

func (d *describer) Describe(context.Context, *loadlinev1.DescribeRequest) (*loadlinev1.DescribeResponse, error) {
	return &loadlinev1.DescribeResponse{EngineVersion: d.version}, nil
}

func serve(t *testing.T, socket, version string) *grpc.Server {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	loadlinev1.RegisterClusterStateServer(server, &describer{version: version})
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return server
}

// A server that starts late, and one that is back, are found; while there is none, a call fails, and does not wait
// for one.
func TestSocketFindsTheServerWhenItComes(t *testing.T) {
	// A file name that would mean something else in a URL.
	socket := filepath.Join(t.TempDir(), "a%20b?c#d")
	conn, err := Open("unix://" + socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := loadlinev1.NewClusterStateClient(conn)
	expectVersion := func(want string) {
		t.Helper()
		for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			answer, err := client.Describe(t.Context(), &loadlinev1.DescribeRequest{})
			if err == nil && answer.GetEngineVersion() == want {
				return
			}
			if status.Code(err) != codes.Unavailable || time.Since(start) > 60*time.Second {
				t.Fatalf("after %v: got %v, error %v, want version %s", time.Since(start), answer, err, want)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if _, err := client.Describe(ctx, &loadlinev1.DescribeRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("without a server: got error %v, want Unavailable", err)
	}
	server := serve(t, socket, "1")
	expectVersion("1")
	server.Stop()
	time.Sleep(1500 * time.Millisecond)
	serve(t, socket, "2")
	expectVersion("2")
}
