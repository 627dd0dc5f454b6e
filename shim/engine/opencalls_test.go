package engine_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
)

// stalling is a connection that sends so many bytes, and then nothing.
type stalling struct {
	net.Conn
	left int
	ends <-chan struct{}
}

func (c *stalling) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left < 0 {
		<-c.ends
	}
	return c.Conn.Write(b)
}

func dial(t *testing.T, socket string, most int) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
			return &stalling{conn, most, t.Context().Done()}, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Requests that never come in full take a bounded share of the daemon's memory, and others are answered beside them. A
// connection that is idle may be closed where there is no memory, so that a call may have to be made again.
func TestRequestsThatBreakOffAreBounded(t *testing.T) {
	daemon := enginetest.StartDaemon(t, "--max-question-bytes=16777216") // 104 MiB of requests
	const size, clients = 7 << 20, 40
	ended := make(chan error, clients)
	for range clients {
		client := loadlinev1.NewSchedulerExtenderClient(dial(t, daemon.Socket, size-1<<16))
		go func() {
			_, err := client.Score(t.Context(), &loadlinev1.ScoreRequest{Pod: make([]byte, size)})
			ended <- err
		}()
	}
	for range 10 { // of those 25 or more for which there is no memory
		select {
		case err := <-ended:
			if code := status.Code(err); code != codes.ResourceExhausted && code != codes.Unavailable {
				t.Errorf("a call without memory ends with %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("all requests are kept, whatever they take")
		}
	}
	other := loadlinev1.NewClusterStateClient(daemon.Open())
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, err := other.Describe(t.Context(), &loadlinev1.DescribeRequest{})
		if err == nil {
			break
		}
		if status.Code(err) != codes.Unavailable || time.Now().After(deadline) {
			t.Fatalf("another client: %v", err)
		}
	}
	if got := daemon.PeakBytes(); got > 220<<20 {
		t.Errorf("the daemon took %d MiB", got>>20)
	}
}

// Calls without a request end where there are many, so that they take neither memory nor the places of others.
func TestSilentCallsKeepNobodyOut(t *testing.T) {
	daemon := enginetest.StartDaemon(t)
	const calls, perConnection = 2_400, 120
	silent := make([]grpc.ClientStream, 0, calls)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for range calls / perConnection {
		conn := dial(t, daemon.Socket, 1<<30)
		for range perConnection {
			stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true},
				loadlinev1.SchedulerExtender_Score_FullMethodName)
			if err != nil {
				t.Fatal(err)
			}
			silent = append(silent, stream)
		}
	}
	ends := map[codes.Code]int{}
	for _, stream := range silent[len(silent)-2_000:] {
		ends[status.Code(stream.RecvMsg(&loadlinev1.ScoreResponse{}))]++
	}
	if ends[codes.ResourceExhausted] < 1_000 || ends[codes.DeadlineExceeded]+ends[codes.ResourceExhausted] != 2_000 {
		t.Errorf("silent calls ended with %v", ends)
	}
	if _, err := loadlinev1.NewClusterStateClient(daemon.Open()).Describe(t.Context(),
		&loadlinev1.DescribeRequest{}); err != nil {
		t.Errorf("another client: %v", err)
	}
	if got := daemon.PeakBytes(); got > 100<<20 {
		t.Errorf("the daemon took %d MiB", got>>20)
	}
}
