package engine_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/testing/enginetest"
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
			want := fmt.Sprintf("request: field %d of %s is not known to this engine, which is of version %s",
				ofTheFuture, name, engine.Version)
			for _, conn := range []engine.Conn{local, remote} {
				_, err := callRaw(t.Context(), conn, method, request)
				if s := status.Convert(err); s.Code() != codes.InvalidArgument || s.Message() != want {
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

func TestClientAndEngineOfOneBuildKnowTheSame(t *testing.T) {
	for _, conn := range []engine.Conn{enginetest.Open(t), enginetest.StartDaemon(t).Open()} {
		if d, err := engine.Compare(t.Context(), conn); err != nil || !d.None() {
			t.Errorf("got %+v, error %v", d, err)
		}
	}
}

// An engine of another version lacks some of what the client knows, and the other way round.
func TestClientsOfOtherVersionsAreToldTheDifference(t *testing.T) {
	fake := engineOfTheFuture{version: "9.9.9", files: []*descriptorpb.FileDescriptorProto{{
		Package: proto.String("loadline.v1"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("DropRequest"),
			Field: []*descriptorpb.FieldDescriptorProto{
				{Name: proto.String("view"), Number: proto.Int32(1)},
				{Name: proto.String("options"), Number: proto.Int32(ofTheFuture)}}}},
		EnumType: []*descriptorpb.EnumDescriptorProto{{Name: proto.String("ObjectKind"),
			Value: []*descriptorpb.EnumValueDescriptorProto{{Name: proto.String("GATE"), Number: proto.Int32(99)}}}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("ClusterState"),
			Method: []*descriptorpb.MethodDescriptorProto{{Name: proto.String("Merge")}}}},
	}}}
	d, err := engine.Compare(t.Context(), fake)
	if err != nil || d.None() || d.EngineVersion != "9.9.9" {
		t.Fatalf("got %+v, error %v", d, err)
	}
	want := []string{"loadline.v1.ClusterState.Merge", "loadline.v1.DropRequest.options = 1011",
		"loadline.v1.ObjectKind.GATE = 99"}
	if !slices.Equal(d.ClientLacks, want) {
		t.Errorf("the client lacks %q, want %q", d.ClientLacks, want)
	}
	for _, element := range []string{"loadline.v1.ScoreRequest.pod = 2", "loadline.v1.ClusterState.Sync",
		"loadline.v1.ScorePolicy"} {
		if !slices.Contains(d.EngineLacks, element) {
			t.Errorf("%s is not among what the engine lacks", element)
		}
	}
	if slices.Contains(d.EngineLacks, "loadline.v1.DropRequest.view = 1") {
		t.Error("the engine is said to lack what it knows")
	}
	fake.api = []byte{}
	if _, err := engine.Compare(t.Context(), fake); status.Code(err) != codes.InvalidArgument ||
		!strings.Contains(err.Error(), "engine 9.9.9 does not tell its API") {
		t.Errorf("an engine that passes over the question: got error %v", err)
	}
	fake.api = []byte{0xff}
	if _, err := engine.Compare(t.Context(), fake); err == nil || !strings.Contains(err.Error(), "engine 9.9.9") {
		t.Errorf("an API that does not parse: got error %v", err)
	}
}

// engineOfTheFuture answers Describe with another API.
type engineOfTheFuture struct {
	engine.Conn
	version string
	files   []*descriptorpb.FileDescriptorProto
	api     []byte // in place of files; nil: as files say
}

func (e engineOfTheFuture) Invoke(_ context.Context, _ string, _, reply any, _ ...grpc.CallOption) error {
	api := e.api
	if api == nil {
		api, _ = proto.Marshal(&descriptorpb.FileDescriptorSet{File: e.files})
	}
	proto.Merge(reply.(proto.Message), &loadlinev1.DescribeResponse{EngineVersion: e.version, Api: api})
	return nil
}

// comparedServer counts the comparisons.
type comparedServer struct {
	loadlinev1.UnimplementedClusterStateServer
	compared chan struct{}
}

func (s *comparedServer) Describe(_ context.Context, request *loadlinev1.DescribeRequest) (
	*loadlinev1.DescribeResponse, error) {
	if request.GetIncludeApi() {
		s.compared <- struct{}{}
	}
	return &loadlinev1.DescribeResponse{EngineVersion: "9.9.9"}, nil
}

// A connection is compared once, and the next one to the same socket again.
func TestEachConnectionIsComparedOnce(t *testing.T) {
	dir, err := os.MkdirTemp("", "loadline") // a path that is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	conn, err := engine.Open("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	server := &comparedServer{compared: make(chan struct{}, 10)}
	for range 2 {
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		service := grpc.NewServer()
		loadlinev1.RegisterClusterStateServer(service, server)
		go service.Serve(listener)
		for range 3 {
			for { // a call may still meet the end of the last connection
				_, err := loadlinev1.NewClusterStateClient(conn).Describe(t.Context(), &loadlinev1.DescribeRequest{},
					grpc.WaitForReady(true))
				if err == nil {
					break
				}
				if status.Code(err) != codes.Unavailable {
					t.Fatal(err)
				}
			}
		}
		<-server.compared
		service.Stop()
	}
	if extra := len(server.compared); extra > 0 {
		t.Errorf("compared %d times more", extra)
	}
}
