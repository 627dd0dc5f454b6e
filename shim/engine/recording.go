package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"loadline.dev/shim/api/loadlinev1"
)

// Record returns a connection that writes down each call of another one, with its answer, in the order in which they
// end. Calls at the same time are put one after the other. What cannot be written fails the call.
func Record(conn Conn, w io.Writer) Conn {
	return &recorder{Conn: conn, w: w}
}

type recorder struct {
	Conn
	mu sync.Mutex
	w  io.Writer
}

var deterministic = proto.MarshalOptions{Deterministic: true}

func (r *recorder) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	call := &loadlinev1.RecordedCall{Method: method}
	var err error
	if call.Request, err = deterministic.Marshal(args.(proto.Message)); err != nil {
		return err
	}
	callErr := r.Conn.Invoke(ctx, method, args, reply, options...)
	if call.Code = int32(status.Code(callErr)); callErr == nil {
		if call.Response, err = deterministic.Marshal(reply.(proto.Message)); err != nil {
			return err
		}
	}
	if _, err := protodelim.MarshalTo(r.w, call); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return callErr
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

// maxRecordedBytes bounds one call: a request and an answer of 4 MiB each.
const maxRecordedBytes = 9 << 20

// Replay makes the calls of a recording again, on an engine that holds nothing, and tells visit of each. It ends with
// the first error of visit. Errors name the call, from 0.
func Replay(ctx context.Context, conn Conn, recording io.Reader, visit func(Replayed) error) error {
	in := bufio.NewReader(recording)
	limits := protodelim.UnmarshalOptions{MaxSize: maxRecordedBytes}
	for i := 0; ; i++ {
		call := &loadlinev1.RecordedCall{}
		if err := limits.UnmarshalFrom(in, call); errors.Is(err, io.EOF) {
			if i == 0 {
				return errors.New("not a recording: it is empty")
			}
			return nil
		} else if err != nil {
			return fmt.Errorf("call %d: not a recording: %w", i, err)
		}
		request, response, err := messagesOf(call.GetMethod())
		if err == nil {
			err = proto.Unmarshal(call.GetRequest(), request)
		}
		if err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		again := Replayed{Recorded: call, Err: conn.Invoke(ctx, call.GetMethod(), request, response)}
		again.Same = int32(status.Code(again.Err)) == call.GetCode()
		if again.Err == nil {
			bytes, err := deterministic.Marshal(response)
			if err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
			again.Answer, again.Same = response, again.Same && string(bytes) == string(call.GetResponse())
		}
		if err := visit(again); err != nil {
			return err
		}
	}
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
