package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
)

const (
	// comparePatience is how long the engine may take to tell its API.
	comparePatience = 5 * time.Second
	// maxDifferences is how many elements a log line names of each side.
	maxDifferences = 32
)

// Difference is how client and engine differ.
type Difference struct {
	// EngineVersion is the version of the engine.
	EngineVersion string
	// EngineLacks and ClientLacks name, sorted, the messages, fields, values of enums and methods that only the other
	// side knows, such as "loadline.v1.ScorePolicy.preset = 1". The engine refuses a question with a field that it
	// lacks; the client reads past a field that it lacks.
	EngineLacks, ClientLacks []string
}

// None says whether client and engine are of one version and know the same.
func (d Difference) None() bool {
	return d.EngineVersion == Version && len(d.EngineLacks) == 0 && len(d.ClientLacks) == 0
}

// Compare asks an engine how it differs from this client. The error is INVALID_ARGUMENT, with the version of the
// engine, for an engine from before engines stated their API: it refuses the question or passes over it.
func Compare(ctx context.Context, conn grpc.ClientConnInterface) (Difference, error) {
	client := clientAPI()
	answer, err := loadlinev1.NewClusterStateClient(conn).Describe(ctx, &loadlinev1.DescribeRequest{IncludeApi: true})
	if err != nil {
		return Difference{}, err
	}
	if len(answer.GetApi()) == 0 {
		return Difference{}, status.Errorf(codes.InvalidArgument, "engine %s does not tell its API",
			answer.GetEngineVersion())
	}
	var files descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(answer.GetApi(), &files); err != nil {
		return Difference{}, fmt.Errorf("the API of engine %s does not parse: %w", answer.GetEngineVersion(), err)
	}
	engine := elements(files.GetFile())
	return Difference{answer.GetEngineVersion(), without(client, engine), without(engine, client)}, nil
}

// clientAPI returns the elements of the API as this client was built with it.
var clientAPI = sync.OnceValue(func() map[string]bool {
	var files []*descriptorpb.FileDescriptorProto
	protoregistry.GlobalFiles.RangeFilesByPackage("loadline.v1", func(file protoreflect.FileDescriptor) bool {
		files = append(files, protodesc.ToFileDescriptorProto(file))
		return true
	})
	return elements(files)
})

// elements returns the names of all messages, fields, values of enums and methods.
func elements(files []*descriptorpb.FileDescriptorProto) map[string]bool {
	all := map[string]bool{}
	for _, file := range files {
		addMessages(all, file.GetPackage(), file.GetMessageType())
		addEnums(all, file.GetPackage(), file.GetEnumType())
		for _, service := range file.GetService() {
			for _, method := range service.GetMethod() {
				all[fmt.Sprintf("%s.%s.%s", file.GetPackage(), service.GetName(), method.GetName())] = true
			}
		}
	}
	return all
}

func addMessages(all map[string]bool, scope string, messages []*descriptorpb.DescriptorProto) {
	for _, message := range messages {
		name := scope + "." + message.GetName()
		all[name] = true
		for _, field := range message.GetField() {
			all[fmt.Sprintf("%s.%s = %d", name, field.GetName(), field.GetNumber())] = true
		}
		addMessages(all, name, message.GetNestedType())
		addEnums(all, name, message.GetEnumType())
	}
}

func addEnums(all map[string]bool, scope string, enums []*descriptorpb.EnumDescriptorProto) {
	for _, enum := range enums {
		for _, value := range enum.GetValue() {
			all[fmt.Sprintf("%s.%s.%s = %d", scope, enum.GetName(), value.GetName(), value.GetNumber())] = true
		}
	}
}

// without returns the names that are in `all` and not in `known`, sorted.
func without(all, known map[string]bool) []string {
	var only []string
	for name := range all {
		if !known[name] {
			only = append(only, name)
		}
	}
	slices.Sort(only)
	return only
}

// logDifference logs how an engine differs from this client. The caller's own questions find out about an engine that
// does not answer.
func logDifference(ctx context.Context, conn grpc.ClientConnInterface) {
	ctx, cancel := context.WithTimeout(ctx, comparePatience)
	defer cancel()
	d, err := Compare(ctx, conn)
	switch {
	case status.Code(err) == codes.InvalidArgument:
		klog.ErrorS(err, "The engine is of an older version, which cannot be compared with this client",
			"client", Version)
	case err == nil && !d.None():
		klog.InfoS("Client and engine differ; the engine refuses fields that it does not know",
			"client", Version, "engine", d.EngineVersion,
			"engineLacks", first(d.EngineLacks), "engineLacksTotal", len(d.EngineLacks),
			"clientLacks", first(d.ClientLacks), "clientLacksTotal", len(d.ClientLacks))
	}
}

func first(names []string) []string { return names[:min(len(names), maxDifferences)] }

// comparingConn compares client and engine each time that a connection is made.
type comparingConn struct {
	*grpc.ClientConn
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// newComparingConn has `made` tell of each connection.
func newComparingConn(conn *grpc.ClientConn, made <-chan struct{}) *comparingConn {
	ctx, cancel := context.WithCancel(context.Background())
	c := &comparingConn{ClientConn: conn, cancel: cancel}
	c.ended.Go(func() {
		for {
			select {
			case <-made:
				logDifference(ctx, conn)
			case <-ctx.Done():
				return
			}
		}
	})
	return c
}

// Close closes the connection.
func (c *comparingConn) Close() error {
	c.cancel()
	err := c.ClientConn.Close()
	c.ended.Wait()
	return err
}
