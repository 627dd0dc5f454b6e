package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// spinTime is for how long a reader looks for an answer before it waits for one: several times what a score takes. Our
// own choice; `make bench-scheduler` tells what it is worth.
const spinTime = 400 * time.Microsecond

// spinConn is a connection to an engine on the same machine whose reader, once something was written, looks for the
// answer again and again for up to spinTime.
//
// A reader that waits is woken by the Go scheduler's poller, which a busy process looks at when one of its processors
// runs out of work, or each 10 ms: a kube-scheduler that has much to do would wait for milliseconds for an answer that
// is there after a tenth of one. Looking costs one processor for about as long as the engine computes.
type spinConn struct {
	*net.UnixConn
	raw   syscall.RawConn
	began time.Time
	until atomic.Int64 // since `began`, in nanoseconds: answers are looked for
}

func dialSpinning(ctx context.Context, path string) (net.Conn, error) {
	dialed, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	conn := dialed.(*net.UnixConn)
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &spinConn{UnixConn: conn, raw: raw, began: time.Now()}, nil
}

// Write writes, and has the reader look for the answer.
func (c *spinConn) Write(p []byte) (int, error) {
	n, err := c.UnixConn.Write(p)
	c.until.Store(int64(time.Since(c.began) + spinTime))
	// A reader that waits is woken by the end of its deadline, and looks again.
	if wake := c.SetReadDeadline(time.Unix(0, 1)); err == nil {
		err = wake
	}
	return n, err
}

// Read reads what is there, or waits. There is one reader.
func (c *spinConn) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		var failed error
		err := c.raw.Read(func(fd uintptr) bool {
			n, failed = c.look(fd, p)
			return failed != syscall.EAGAIN
		})
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if err := c.SetReadDeadline(time.Time{}); err != nil {
				return 0, err
			}
		case err != nil:
			return 0, err
		case failed != nil:
			return 0, os.NewSyscallError("recvfrom", failed)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// look reads without waiting, over and over while an answer is due; EAGAIN: there is none.
func (c *spinConn) look(fd uintptr, p []byte) (int, error) {
	for {
		n, _, err := syscall.Recvfrom(int(fd), p, syscall.MSG_DONTWAIT)
		switch err {
		case nil:
			c.until.Store(0) // the answer: nothing else is looked for
			return n, nil
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			if int64(time.Since(c.began)) < c.until.Load() {
				continue
			}
		}
		return 0, err
	}
}
