package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/enginetest"
)

// ofTheFuture is a number that no message has a field of.
const ofTheFuture = 1011

// withFutureField returns for a message type, and for each that lies in it at any depth, bytes with a field of the
// future, by the name of that type.
func withFutureField(message protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) map[string][]byte {
	field := protowire.AppendVarint(protowire.AppendTag(nil, ofTheFuture, protowire.VarintType), 1)
	out := map[string][]byte{string(message.FullName()): field}
	seen[message.FullName()] = true
	for i := range message.Fields().Len() {
		f := message.Fields().Get(i)
		if f.Message() == nil || seen[f.Message().FullName()] {
			continue
		}
		for name, inner := range withFutureField(f.Message(), seen) {
			outer := protowire.AppendTag(nil, f.Number(), protowire.BytesType)
			out[name] = protowire.AppendBytes(outer, inner)
		}
	}
	return out
}

// requestOf returns the type of a method's request.
func requestOf(t *testing.T, method string) protoreflect.MessageDescriptor {
	t.Helper()
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return found.(protoreflect.MethodDescriptor).Input()
}

// A field that the engine does not know is refused in each message of each question, with its number and the message.
func TestFieldsOfTheFutureAreRefused(t *testing.T) {
	local, remote := enginetest.Open(t), enginetest.StartDaemon(t).Open()
	messages := 0
	for _, method := range apiMethods() {
		for name, request := range withFutureField(requestOf(t, method), map[protoreflect.FullName]bool{}) {
			messages++
			want := fmt.Sprintf("request: field %d of %s is not known to this engine, which is of version ",
				ofTheFuture, name)
			for _, conn := range []engine.Conn{local, remote} {
				_, err := callRaw(t.Context(), conn, method, request)
				if s := status.Convert(err); s.Code() != codes.InvalidArgument || !strings.HasPrefix(s.Message(), want) {
					t.Errorf("%s with %x: got %v %q, want %q", method, request, s.Code(), s.Message(), want)
				}
			}
		}
	}
	if messages < 100 {
		t.Errorf("only %d messages were tried", messages)
	}
}

// Objects of Kubernetes may have fields of newer releases.
func TestFieldsOfTheFutureInObjectsAreTaken(t *testing.T) {
	node := protowire.AppendVarint(protowire.AppendTag(nil, ofTheFuture, protowire.VarintType), 1)
	request := &loadlinev1.SyncRequest{Changes: &loadlinev1.Changes{View: "future", Epoch: 1, Revision: 1,
		FullList: &loadlinev1.FullListChunk{Last: true}, Nodes: []*loadlinev1.NodeRecord{{Node: node}}}}
	_, err := loadlinev1.NewClusterStateClient(enginetest.Open(t)).Sync(t.Context(), request)
	if err != nil && strings.Contains(err.Error(), fmt.Sprint(ofTheFuture)) {
		t.Error(err)
	}
}
