package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/recording"
)

// Record returns a connection that writes down each call of another one, with its answer, in the order in which they
// begin: the engine begins them in this order too, but for calls that begin at once. What cannot be written fails a
// call.
func Record(conn Conn, w io.Writer) Conn {
	return &recorder{Conn: conn, w: w, requests: recording.Requests{}}
}

type recorder struct {
	Conn
	mu sync.Mutex // while a call is written, not while it is made; guards what follows
	w  io.Writer
	// begun are the calls that are not written, in their order.
	begun    []*begunCall
	requests recording.Requests
}

// begunCall is a call that is under way, or waits for one that began before it.
type begunCall struct {
	call  *loadlinev1.RecordedCall
	ended bool
}

// mostBegun is how many calls are kept: a call that does not end holds up the writing of so many at most. Chosen.
const mostBegun = 64

var deterministic = proto.MarshalOptions{Deterministic: true}

func (r *recorder) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	call := &loadlinev1.RecordedCall{Method: method}
	var err error
	if call.Request, err = deterministic.Marshal(args.(proto.Message)); err != nil {
		return err
	}
	begun := r.begin(call)
	callErr := r.Conn.Invoke(ctx, method, args, reply, options...)
	if call.Code = int32(status.Code(callErr)); callErr == nil {
		call.Response, err = deterministic.Marshal(reply.(proto.Message))
	}
	if err := cmp.Or(err, r.end(begun)); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return callErr
}

func (r *recorder) begin(call *loadlinev1.RecordedCall) *begunCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	begun := &begunCall{call: call}
	r.begun = append(r.begun, begun)
	return begun
}

// end writes the call, and those behind it that have ended, unless one before it is under way.
func (r *recorder) end(call *begunCall) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	call.ended = true
	for len(r.begun) > 0 {
		next := 0
		if len(r.begun) > mostBegun {
			next = slices.IndexFunc(r.begun, func(c *begunCall) bool { return c.ended })
		}
		if next < 0 || !r.begun[next].ended {
			break
		}
		written := r.begun[next].call
		r.begun = slices.Delete(r.begun, next, next+1)
		if err := r.write(written); err != nil {
			return err
		}
	}
	return nil
}

// write writes a call. The caller holds mu.
func (r *recorder) write(call *loadlinev1.RecordedCall) error {
	if err := r.requests.Shorten(call); err != nil {
		return err
	}
	var text bytes.Buffer
	if _, err := protodelim.MarshalTo(&text, call); err != nil {
		return err
	}
	_, err := r.w.Write(text.Bytes())
	return err
}

// Bounded writes up to some bytes, and nothing after an error, which callers do not get: a full disk ends a recording
// alone. Of what one call of Write gets, it writes all or nothing where the bound ends it.
type Bounded struct {
	W    io.Writer
	Left int64
	// Ended is called once, when nothing more is written, with the reason.
	Ended func(reason error)
	ended bool
}

// Write is that of io.Writer.
func (b *Bounded) Write(text []byte) (int, error) {
	if b.ended {
		return len(text), nil
	}
	var err error
	if b.Left -= int64(len(text)); b.Left < 0 {
		err = errors.New("it is as large as it may be")
	} else {
		_, err = b.W.Write(text)
	}
	if err != nil {
		b.ended = true
		b.Ended(err)
	}
	return len(text), nil
}

// Replayed is one call of a recording, made again.
type Replayed struct {
	// Recorded is the call with the answer that it came to then.
	Recorded *loadlinev1.RecordedCall
	// Answer is what it came to now; nil where it failed.
	Answer proto.Message
	Err    error
	// Same says whether the answer has the same bytes, or the call failed with the same code.
	Same bool
}

// Replay makes the calls of a recording again, on an engine that holds nothing, and tells visit of each. It ends with
// the first error of visit. Errors name the call, from 0; recording.ErrCut is behind the last whole one.
func Replay(ctx context.Context, conn Conn, in io.Reader, visit func(Replayed) error) error {
	return recording.Calls(in, func(call *loadlinev1.RecordedCall) error {
		request, response, err := messagesOf(call.GetMethod())
		if err == nil {
			err = proto.Unmarshal(call.GetRequest(), request)
		}
		if err != nil {
			return err
		}
		again := Replayed{Recorded: call, Err: conn.Invoke(ctx, call.GetMethod(), request, response)}
		again.Same = int32(status.Code(again.Err)) == call.GetCode()
		if again.Err == nil {
			text, err := deterministic.Marshal(response)
			if err != nil {
				return err
			}
			again.Answer, again.Same = response, again.Same && bytes.Equal(text, call.GetResponse())
		}
		return visit(again)
	})
}

// messagesOf returns empty messages of a method: "/loadline.v1.Autoscaler/PlanLoop".
func messagesOf(method string) (request, response proto.Message, err error) {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil, nil, fmt.Errorf("method %q: %w", method, err)
	}
	descriptor, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, nil, fmt.Errorf("method %q: not the name of a method", method)
	}
	if request, err = empty(descriptor.Input()); err == nil {
		response, err = empty(descriptor.Output())
	}
	return request, response, err
}

func empty(of protoreflect.MessageDescriptor) (proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(of.FullName())
	if err != nil {
		return nil, err
	}
	return kind.New().Interface(), nil
}
