package engine_test

import (
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"loadline.dev/shim/internal/testing/enginetest"
)

// asker asks a server about itself, one question after the other on one stream.
type asker struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[reflectionv1.ServerReflectionRequest, reflectionv1.ServerReflectionResponse]
}

func newAsker(t *testing.T) asker {
	conn, err := grpc.NewClient(enginetest.StartDaemon(t).Address(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return asker{t, stream}
}

func (a asker) ask(question *reflectionv1.ServerReflectionRequest) *reflectionv1.ServerReflectionResponse {
	a.t.Helper()
	if err := a.stream.Send(question); err != nil {
		a.t.Fatal(err)
	}
	answer, err := a.stream.Recv()
	if err != nil {
		a.t.Fatal(err)
	}
	if !proto.Equal(answer.GetOriginalRequest(), question) || answer.GetValidHost() != question.GetHost() {
		a.t.Errorf("the answer to %v is to %v of %q", question, answer.GetOriginalRequest(), answer.GetValidHost())
	}
	return answer
}

func (a asker) symbol(name string) *reflectionv1.ServerReflectionResponse {
	a.t.Helper()
	return a.ask(&reflectionv1.ServerReflectionRequest{Host: "h",
		MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: name}})
}

// A client that knows nothing finds the services, and builds the messages of a method.
func TestReflectionTellsServicesAndTheirMessages(t *testing.T) {
	a := newAsker(t)
	answer := a.ask(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
	var services []string
	for _, service := range answer.GetListServicesResponse().GetService() {
		services = append(services, service.GetName())
	}
	want := []string{"loadline.v1.Autoscaler", "loadline.v1.ClusterState", "loadline.v1.SchedulerExtender"}
	if !slices.Equal(services, want) {
		t.Errorf("got services %q, want %q", services, want)
	}
	for _, service := range services {
		methods := serviceOf(t, a.symbol(service), service).Methods()
		if methods.Len() < 3 || methods.Get(0).Input().Fields().Len() == 0 {
			t.Errorf("%s has %d methods, of which the first takes %v", service, methods.Len(), methods.Get(0).Input())
		}
	}
	set := a.symbol("loadline.v1.ClusterState.SetCluster")
	method := serviceOf(t, set, "loadline.v1.ClusterState").Methods().ByName("SetCluster")
	if method == nil || !method.IsStreamingClient() || method.IsStreamingServer() {
		t.Errorf("SetCluster is %v, want one with a stream of requests", method)
	}
	for _, name := range []string{"loadline.v1.ScorePolicy", "loadline.v1.ScorePolicy.Preset",
		"loadline.v1.ScoreRequest.pod"} {
		if got := a.symbol(name).GetFileDescriptorResponse().GetFileDescriptorProto(); len(got) == 0 {
			t.Errorf("no file has %s", name)
		}
	}
}

// serviceOf builds the files of an answer, which are all that are needed.
func serviceOf(t *testing.T, answer *reflectionv1.ServerReflectionResponse,
	name string) protoreflect.ServiceDescriptor {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	for _, bytes := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
		file := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(bytes, file); err != nil {
			t.Fatal(err)
		}
		set.File = append(set.File, file)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		t.Fatal(err)
	}
	return found.(protoreflect.ServiceDescriptor)
}

func TestReflectionRefusesWhatIsNotThere(t *testing.T) {
	a := newAsker(t)
	for question, want := range map[*reflectionv1.ServerReflectionRequest]codes.Code{
		{MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{
			FileContainingSymbol: "loadline.v1.Nothing"}}: codes.NotFound,
		{MessageRequest: &reflectionv1.ServerReflectionRequest_FileByFilename{
			FileByFilename: "../passwd"}}: codes.NotFound,
		{MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingExtension{
			FileContainingExtension: &reflectionv1.ExtensionRequest{}}}: codes.Unimplemented,
		{Host: "h"}: codes.Unimplemented,
	} {
		if got := codes.Code(a.ask(question).GetErrorResponse().GetErrorCode()); got != want {
			t.Errorf("%v: got %v, want %v", question, got, want)
		}
	}
	byName := &reflectionv1.ServerReflectionRequest_FileByFilename{FileByFilename: "loadline/v1/score.proto"}
	file := a.ask(&reflectionv1.ServerReflectionRequest{MessageRequest: byName}).GetFileDescriptorResponse().
		GetFileDescriptorProto()
	if len(file) < 2 {
		t.Errorf("score.proto came with %d files, want those that it imports as well", len(file))
	}
}
