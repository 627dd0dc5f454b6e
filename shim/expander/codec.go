package expander

import (
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/grpcplugin"
)

// codec reads requests from the buffers that they came in: a request of 117 MiB is never there a second time.
type codec struct {
	keptOfPod *fields
}

// Name is that of the usual codec: on the wire it is the same.
func (codec) Name() string { return "proto" }

// Marshal writes an answer.
func (codec) Marshal(message any) (mem.BufferSlice, error) {
	response, ok := message.(*grpcplugin.BestOptionsResponse)
	if !ok {
		return nil, fmt.Errorf("%T is not an answer", message)
	}
	data, err := proto.Marshal(response)
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(data)}, nil
}

// Unmarshal reads a request. What is wrong with it lies in the message: the error here would become an internal one.
func (c codec) Unmarshal(data mem.BufferSlice, message any) error {
	into, ok := message.(*received)
	if !ok {
		return fmt.Errorf("%T is not a request", message)
	}
	into.bytes = data.Len()
	in := data.Reader()
	defer in.Close()
	into.read(func() (*question, error) { return decode(in, c.keptOfPod) })
	return nil
}
