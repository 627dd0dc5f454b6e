package cloud

import (
	"context"
	"errors"
	"math"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/externalgrpc"
)

// cloud is a provider with two groups.
type cloud struct {
	externalgrpc.UnimplementedCloudProviderServer
	groups   []*externalgrpc.NodeGroup
	target   int32
	options  bool
	hangs    bool
	deletion *externalgrpc.NodeGroupDeleteNodesRequest
	defaults *externalgrpc.NodeGroupAutoscalingOptions
	price    float64
	fault    *externalgrpc.InstanceErrorInfo
	running  bool // machines are not being deleted
	mu       sync.Mutex
	fails    map[string]codes.Code // by method and group: the answer, for DeadlineExceeded after the time-out
	asked    []string              // methods and groups
}

// enter begins a call about a group.
func (c *cloud) enter(ctx context.Context, method, group string) error {
	c.mu.Lock()
	c.asked = append(c.asked, method+" "+group)
	code := c.fails[method+" "+group]
	c.mu.Unlock()
	switch code {
	case codes.OK:
		return nil
	case codes.DeadlineExceeded:
		<-ctx.Done()
	}
	return status.Error(code, "told to fail")
}

// fail has calls about groups fail, and no others.
func (c *cloud) fail(code codes.Code, calls ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails = map[string]codes.Code{}
	for _, call := range calls {
		c.fails[call] = code
	}
}

func (c *cloud) Refresh(ctx context.Context, _ *externalgrpc.RefreshRequest) (*externalgrpc.RefreshResponse, error) {
	if c.hangs {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err() // it may come before the client's own time has ended
	}
	return &externalgrpc.RefreshResponse{}, nil
}

func (c *cloud) NodeGroups(context.Context, *externalgrpc.NodeGroupsRequest) (*externalgrpc.NodeGroupsResponse, error) {
	return &externalgrpc.NodeGroupsResponse{NodeGroups: c.groups}, nil
}

func (c *cloud) NodeGroupTargetSize(ctx context.Context,
	r *externalgrpc.NodeGroupTargetSizeRequest) (*externalgrpc.NodeGroupTargetSizeResponse, error) {
	if err := c.enter(ctx, "NodeGroupTargetSize", r.GetId()); err != nil {
		return nil, err
	}
	return &externalgrpc.NodeGroupTargetSizeResponse{TargetSize: c.target}, nil
}

func (c *cloud) NodeGroupNodes(ctx context.Context,
	r *externalgrpc.NodeGroupNodesRequest) (*externalgrpc.NodeGroupNodesResponse, error) {
	if err := c.enter(ctx, "NodeGroupNodes", r.GetId()); err != nil {
		return nil, err
	}
	state := externalgrpc.InstanceState_INSTANCE_DELETING
	if c.running {
		state = externalgrpc.InstanceState_INSTANCE_RUNNING
	}
	return &externalgrpc.NodeGroupNodesResponse{Instances: []*externalgrpc.Instance{
		{Id: "sim://" + r.GetId(),
			Status: &externalgrpc.InstanceStatus{InstanceState: state, ErrorInfo: c.fault}}}}, nil
}

func (c *cloud) NodeGroupGetOptions(ctx context.Context,
	r *externalgrpc.NodeGroupGetOptionsRequest) (*externalgrpc.NodeGroupGetOptionsResponse, error) {
	if err := c.enter(ctx, "NodeGroupGetOptions", r.GetId()); err != nil {
		return nil, err
	}
	if !c.options {
		return nil, status.Error(codes.Unimplemented, "no options")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.defaults = r.GetDefaults()
	return &externalgrpc.NodeGroupGetOptionsResponse{
		NodeGroupAutoscalingOptions: &externalgrpc.NodeGroupAutoscalingOptions{
			ZeroOrMaxNodeScaling: true, ScaleDownUnneededDuration: durationpb.New(7 * time.Second)}}, nil
}

func (c *cloud) NodeGroupDeleteNodes(ctx context.Context,
	r *externalgrpc.NodeGroupDeleteNodesRequest) (*externalgrpc.NodeGroupDeleteNodesResponse, error) {
	if err := c.enter(ctx, "NodeGroupDeleteNodes", r.GetId()); err != nil {
		return nil, err
	}
	c.deletion = r
	c.target -= int32(len(r.GetNodes()))
	return &externalgrpc.NodeGroupDeleteNodesResponse{}, nil
}

func serve(t *testing.T, c externalgrpc.CloudProviderServer) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	externalgrpc.RegisterCloudProviderServer(server, c)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	client, err := Open(Options{Address: "unix://" + path, GRPCTimeout: metav1.Duration{Duration: 300 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// Nodes are deleted down to the minimum of their group and no further, whatever was planned.
func TestDeleteNodes(t *testing.T) {
	c := &cloud{groups: []*externalgrpc.NodeGroup{{Id: "a", MinSize: 1, MaxSize: 5}}, target: 2}
	client := serve(t, c)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"b": "2", "a": "1"}},
		Spec: v1.NodeSpec{ProviderID: "sim://n"}}
	if err := client.DeleteNodes(t.Context(), "a", []*v1.Node{node}); err == nil ||
		!strings.Contains(err.Error(), "no node group a") {
		t.Errorf("before groups are known: error %v", err)
	}
	if _, err := client.Groups(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := client.DeleteNodes(t.Context(), "a", []*v1.Node{node}); err != nil {
		t.Fatal(err)
	}
	want := &externalgrpc.NodeGroupDeleteNodesRequest{Id: "a",
		Nodes: []*externalgrpc.ExternalGrpcNode{{ProviderId: "sim://n", Name: "n",
			Labels: []*externalgrpc.StringEntry{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}}}}
	if !proto.Equal(c.deletion, want) {
		t.Errorf("asked for %v, want %v", c.deletion, want)
	}
	if err := client.DeleteNodes(t.Context(), "a", []*v1.Node{node}); err == nil ||
		!strings.Contains(err.Error(), "may not have fewer than 1") {
		t.Errorf("below the minimum: error %v", err)
	}
	if c.target != 1 {
		t.Errorf("target %d, want 1", c.target)
	}
}

// A change of a group waits for the one under way as long as its context says, and nothing is kept of either.
func TestChangesOfOneGroupTakeTurns(t *testing.T) {
	c := &cloud{groups: []*externalgrpc.NodeGroup{{Id: "a", MinSize: 0, MaxSize: 5}}, target: 3}
	client := serve(t, c)
	if _, err := client.Groups(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	begun, ended := make(chan struct{}), make(chan struct{})
	var underWay sync.WaitGroup
	underWay.Go(func() {
		err := client.inTurn(t.Context(), "a", 0, nil, func(Group, int) error { close(begun); <-ended; return nil })
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := client.IncreaseSize(ctx, "a", 3, 1)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "nothing was asked for") ||
		c.target != 3 {
		t.Errorf("target %d, error %v", c.target, err)
	}
	close(ended)
	underWay.Wait()
	if err := client.IncreaseSize(t.Context(), "a", 3, 1); err != nil || len(client.turns) != 0 {
		t.Errorf("error %v, and %d turns are kept", err, len(client.turns))
	}
}

func (c *cloud) NodeGroupIncreaseSize(ctx context.Context,
	r *externalgrpc.NodeGroupIncreaseSizeRequest) (*externalgrpc.NodeGroupIncreaseSizeResponse, error) {
	if err := c.enter(ctx, "NodeGroupIncreaseSize", r.GetId()); err != nil {
		return nil, err
	}
	c.target += r.GetDelta()
	return &externalgrpc.NodeGroupIncreaseSizeResponse{}, nil
}

func (c *cloud) NodeGroupDecreaseTargetSize(_ context.Context,
	r *externalgrpc.NodeGroupDecreaseTargetSizeRequest) (*externalgrpc.NodeGroupDecreaseTargetSizeResponse, error) {
	c.target += r.GetDelta()
	return &externalgrpc.NodeGroupDecreaseTargetSizeResponse{}, nil
}

func (c *cloud) NodeGroupTemplateNodeInfo(_ context.Context,
	r *externalgrpc.NodeGroupTemplateNodeInfoRequest) (*externalgrpc.NodeGroupTemplateNodeInfoResponse, error) {
	if !c.options {
		return nil, status.Error(codes.Unimplemented, "no templates")
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "template-of-" + r.GetId()}}
	data, err := node.Marshal()
	return &externalgrpc.NodeGroupTemplateNodeInfoResponse{NodeBytes: data}, err
}

func (c *cloud) PricingNodePrice(_ context.Context,
	r *externalgrpc.PricingNodePriceRequest) (*externalgrpc.PricingNodePriceResponse, error) {
	if !c.options {
		return nil, status.Error(codes.Unimplemented, "no prices")
	}
	return &externalgrpc.PricingNodePriceResponse{Price: c.price * r.GetEndTimestamp().AsTime().
		Sub(r.GetStartTimestamp().AsTime()).Hours()}, nil
}

// A group grows and shrinks from the size that was planned with only, and within its bounds.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		increase    bool
		from, delta int
		want        int32
		err         string
	}{
		{true, 3, 2, 5, ""},
		{true, 3, 3, 3, "may not have 3 more: its maximum is 5"},
		{true, 3, 0, 3, "may not have 0 more"},
		{true, 2, 1, 3, "has changed meanwhile: it is 3 and not 2"},
		{false, 3, 2, 1, ""},
		{false, 3, 3, 3, "may not have 3 fewer: its minimum is 1"},
		{false, 3, -1, 3, "may not have -1 fewer"},
		{false, 4, 1, 3, "has changed meanwhile: it is 3 and not 4"},
	} {
		server := &cloud{groups: []*externalgrpc.NodeGroup{{Id: "a", MinSize: 1, MaxSize: 5}}, target: 3}
		client := serve(t, server)
		if _, err := client.Groups(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		change := client.DecreaseTargetSize
		if c.increase {
			change = client.IncreaseSize
		}
		err := change(t.Context(), "a", c.from, c.delta)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) ||
			server.target != c.want {
			t.Errorf("%+v: target %d, error %v", c, server.target, err)
		}
	}
}

// A value that a provider need not state is not known, and no error; a price that is none is one.
func TestTemplateAndPrice(t *testing.T) {
	server := &cloud{}
	client := serve(t, server)
	if node, err := client.TemplateNode(t.Context(), "a"); node != nil || err != nil {
		t.Errorf("template %v, error %v", node, err)
	}
	if price, err := client.NodePrice(t.Context(), &v1.Node{}); price != nil || err != nil {
		t.Errorf("price %v, error %v", price, err)
	}
	server.options, server.price = true, 0.25
	if node, err := client.TemplateNode(t.Context(), "a"); err != nil || node.Name != "template-of-a" {
		t.Errorf("template %v, error %v", node, err)
	}
	if price, err := client.NodePrice(t.Context(), &v1.Node{}); err != nil || *price != 0.25 {
		t.Errorf("price %v, error %v", price, err)
	}
	for _, price := range []float64{-1, math.NaN(), math.Inf(1)} {
		server.price = price
		if got, err := client.NodePrice(t.Context(), &v1.Node{}); got != nil || err == nil ||
			!strings.Contains(err.Error(), "is not a price") {
			t.Errorf("price %v: %v, error %v", price, got, err)
		}
	}
}

// A connection that does not leave the machine, or is said to be insecure, needs no encryption.
func TestUnencryptedConnections(t *testing.T) {
	for _, options := range []Options{{Address: "unix:///run/s"}, {Address: "127.0.0.1:1"}, {Address: "[::1]:1"},
		{Address: "localhost:1"}, {Address: "a:1", Insecure: true}} {
		client, err := Open(options)
		if err != nil {
			t.Errorf("%+v: %v", options, err)
			continue
		}
		client.Close()
	}
}

// A call ends by its time-out, and the error says which it was.
func TestTimeout(t *testing.T) {
	client := serve(t, &cloud{hangs: true})
	err := client.Refresh(t.Context())
	if status.Code(err) != codes.DeadlineExceeded || !strings.HasPrefix(err.Error(), "cloud provider: Refresh: ") {
		t.Errorf("error %v", err)
	}
}

func TestOptions(t *testing.T) {
	for text, options := range map[string]Options{
		"address":              {},
		"go together":          {Address: "a:1", Cert: "c"},
		"/none-ca":             {Address: "a:1", CA: "/none-ca"},
		"not be encrypted":     {Address: "a:1"},
		"another machine's":    {Address: "dns:///a:1"},
		"10.0.0.1:1":           {Address: "10.0.0.1:1"},
		"exclude each other":   {Address: "a:1", CA: "c", Insecure: true},
		"must not be negative": {Address: "localhost:1", GRPCTimeout: metav1.Duration{Duration: -1}},
		"no such file":         {Address: "a:1", Cert: "/none", Key: "/none"},
	} {
		if _, err := Open(options); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: error %v, want %q in it", options, err, text)
		}
	}
}

// The wire form is that of the public protocol: a map entry is a message with key 1 and value 2, and fields have its
// numbers. Written by hand from externalgrpc.proto of Cluster Autoscaler.
func TestWireForm(t *testing.T) {
	label := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "zone")
	label = protowire.AppendString(protowire.AppendTag(label, 2, protowire.BytesType), "z1")
	node := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "sim://n")
	node = protowire.AppendString(protowire.AppendTag(node, 2, protowire.BytesType), "n")
	node = protowire.AppendBytes(protowire.AppendTag(node, 3, protowire.BytesType), label)
	want := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), node)
	want = protowire.AppendString(protowire.AppendTag(want, 2, protowire.BytesType), "group")
	got, err := proto.MarshalOptions{Deterministic: true}.Marshal(&externalgrpc.NodeGroupDeleteNodesRequest{Id: "group",
		Nodes: []*externalgrpc.ExternalGrpcNode{
			toNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "z1"}},
				Spec: v1.NodeSpec{ProviderID: "sim://n"}})}})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got % x, want % x, error %v", got, want, err)
	}
	const service = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"
	if name := externalgrpc.CloudProvider_ServiceDesc.ServiceName; name != service {
		t.Errorf("service %s", name)
	}
}
