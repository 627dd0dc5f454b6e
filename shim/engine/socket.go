package engine

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

const (
	// maxMessageBytes is what loadlined takes and sends.
	maxMessageBytes = 4 << 20
	// maxSocketPath is what fits into the kernel's sockaddr_un, without the NUL.
	maxSocketPath = 107
)

// reconnect serves a daemon on the same machine: a refused connection costs microseconds, so that being back
// soon is worth more than sparing the peer. The longest delay stays below one second with its jitter.
var reconnect = grpc.ConnectParams{
	Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
		MaxDelay: 800 * time.Millisecond},
	MinConnectTimeout: 500 * time.Millisecond,
}

func openSocket(path string) (Conn, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("engine socket %q: a path of %d bytes, at most %d are possible",
			path, len(path), maxSocketPath)
	}
	made := make(chan struct{}, 1)
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		conn, err := dialSpinning(ctx, path)
		if err == nil {
			select {
			case made <- struct{}{}:
			default: // the signal is there already
			}
		}
		return conn, err
	}
	// The dialer has the path; as a target it would be read as a URL, in which some file names mean something else.
	conn, err := grpc.NewClient("passthrough:///loadlined",
		grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(reconnect),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second,
			PermitWithoutStream: true}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)),
		// With windows of a fixed size no pings measure the connection.
		grpc.WithInitialWindowSize(maxMessageBytes), grpc.WithInitialConnWindowSize(maxMessageBytes),
		grpc.WithIdleTimeout(0), // an idle scheduler must not pay for a new connection with its first pod
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig())
	if err != nil {
		return nil, err
	}
	return newComparingConn(conn, made), nil
}
