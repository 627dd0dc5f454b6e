package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unsafe"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
)

const libraryName = "libloadline.so"

// inProcessConn is an engine in this process. A call runs on the caller's thread.
type inProcessConn struct {
	library *library
	mu      sync.RWMutex   // calls hold it shared, so that Close waits for them
	engine  unsafe.Pointer // nil when closed; guarded by mu
}

func openInProcess(path string, config *loadlinev1.EngineConfig) (Conn, error) {
	options, err := proto.Marshal(config)
	if err != nil {
		return nil, err
	}
	l, err := findLibrary(path)
	if err != nil {
		return nil, err
	}
	engine, err := l.create(options)
	if err != nil {
		return nil, err
	}
	conn := &inProcessConn{library: l, engine: engine}
	logDifference(context.Background(), conn)
	return conn, nil
}

// findLibrary loads the library at a path, or the first one found when the path is empty.
func findLibrary(path string) (*library, error) {
	if path == "" {
		path = os.Getenv("LOADLINE_LIBRARY")
	}
	if path != "" { // named: no other one will do
		return loadLibrary(path)
	}
	var problems []error
	for _, candidate := range candidates() {
		l, err := loadLibrary(candidate)
		if err == nil {
			return l, nil
		}
		problems = append(problems, err)
	}
	return nil, fmt.Errorf("%s not found; set LOADLINE_LIBRARY: %w", libraryName, errors.Join(problems...))
}

func candidates() []string {
	var out []string
	if executable, err := os.Executable(); err == nil {
		if resolved, err := filepath.EvalSymlinks(executable); err == nil {
			executable = resolved
		}
		dir := filepath.Dir(executable)
		for _, file := range []string{filepath.Join(dir, libraryName),
			filepath.Join(filepath.Dir(dir), "lib", libraryName)} {
			if _, err := os.Stat(file); err == nil {
				out = append(out, file)
			}
		}
	}
	return append(out, libraryName) // the dynamic linker's own search
}

// Version returns the version of the engine, such as "0.1.0".
func (c *inProcessConn) Version() string { return c.library.version }

// buffers holds *[]byte for requests.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxPooledBytes bounds the buffers that are kept, so that a rare large batch is not kept for ever.
const maxPooledBytes = 1 << 20

// Invoke calls one method. A call that has begun cannot be cancelled: it ends by the deadline of ctx, which the engine
// gets.
func (c *inProcessConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	request, ok := args.(proto.Message)
	response, ok2 := reply.(proto.Message)
	if !ok || !ok2 {
		return status.Errorf(codes.Internal, "%s: %T and %T are not both protobuf messages", method, args, reply)
	}
	buffer := buffers.Get().(*[]byte)
	defer func() {
		if cap(*buffer) <= maxPooledBytes {
			buffers.Put(buffer)
		}
	}()
	data := append(append((*buffer)[:0], method...), 0)
	data, err := proto.MarshalOptions{}.MarshalAppend(data, request)
	if err != nil {
		return status.Errorf(codes.Internal, "%s: %v", method, err)
	}
	*buffer = data
	name, body := data[:len(method)+1], data[len(method)+1:]
	return c.call(ctx, name, body, func(answer []byte) error {
		if err := proto.Unmarshal(answer, response); err != nil {
			return status.Errorf(codes.Internal, "%s: the answer does not parse: %v", method, err)
		}
		return nil
	})
}

func (c *inProcessConn) call(ctx context.Context, method, request []byte, use func([]byte) error) error {
	var timeout time.Duration // 0: no limit
	if deadline, ok := ctx.Deadline(); ok {
		if timeout = time.Until(deadline); timeout <= 0 {
			return status.FromContextError(context.DeadlineExceeded).Err()
		}
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.engine == nil {
		return status.Error(codes.Canceled, "the engine is closed")
	}
	return c.library.call(c.engine, method, request, timeout.Nanoseconds(), use)
}

// NewStream fails: within a process no message is too large, so the parts of a SetCluster go as one request, by Invoke.
func (c *inProcessConn) NewStream(context.Context, *grpc.StreamDesc, string,
	...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "the engine has no streaming methods")
}

// Close waits for the calls under way and destroys the engine with all its views.
func (c *inProcessConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.engine != nil {
		c.library.destroy(c.engine)
		c.engine = nil
	}
	return nil
}
