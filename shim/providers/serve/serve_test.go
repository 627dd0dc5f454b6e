package serve_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/timestamppb"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/providers/serve"
)

// hands is a provider that notes what it is asked for.
type hands struct {
	groups []cloud.Group
	looks  int
	asked  []string
	err    error // of all that changes something
}

func (h *hands) Refresh(context.Context) error { h.looks++; return nil }

// Groups gives groups without options none: those who ask have them.
func (h *hands) Groups(_ context.Context, defaults *externalgrpc.NodeGroupAutoscalingOptions) ([]cloud.Group, error) {
	all := slices.Clone(h.groups)
	for i := range all {
		if all[i].Options != nil && defaults != nil {
			all[i].Options.ScaleDownGpuUtilizationThreshold = defaults.ScaleDownGpuUtilizationThreshold
		}
	}
	return all, nil
}

func (h *hands) change(what string, id string, from, delta int) error {
	h.asked = append(h.asked, fmt.Sprintf("%s %s from %d by %d", what, id, from, delta))
	if h.err == nil {
		h.groups[0].Target += delta
	}
	return h.err
}

func (h *hands) IncreaseSize(_ context.Context, id string, from, delta int) error {
	return h.change("increase", id, from, delta)
}

func (h *hands) DecreaseTargetSize(_ context.Context, id string, from, delta int) error {
	return h.change("decrease", id, from, -delta)
}

func (h *hands) DeleteNodes(_ context.Context, id string, nodes []*v1.Node) error {
	for _, n := range nodes {
		h.asked = append(h.asked, fmt.Sprintf("delete %s %s in %s of %s", n.Name, n.Spec.ProviderID, n.Labels["zone"], id))
	}
	return h.err
}

func (h *hands) Deleting(context.Context, string) (map[string]bool, error) { return nil, nil }

func (h *hands) TemplateNode(_ context.Context, id string) (*v1.Node, error) {
	if id == "dark" {
		return nil, nil
	}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: id, Labels: map[string]string{"zone": "z1"}}}, nil
}

func (h *hands) NodePrice(_ context.Context, node *v1.Node) (*float64, error) {
	if node.Labels["zone"] != "z1" {
		return nil, nil
	}
	price := 0.25
	return &price, nil
}

// served returns a connection to a server of the provider, and the client that asks real ones.
func served(t *testing.T, provider cloud.Provider) (*grpc.ClientConn, *cloud.Client) {
	t.Helper()
	return servedAt(t, provider, nil)
}

func servedAt(t *testing.T, provider cloud.Provider, prices *serve.Prices) (*grpc.ClientConn, *cloud.Client) {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.UnaryInterceptor(serve.Bound))
	serve.New(provider, prices).Register(server)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:///hands", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, cloud.New(conn, time.Minute)
}

func twoGroups() *hands {
	running := &externalgrpc.InstanceStatus{InstanceState: externalgrpc.InstanceState_INSTANCE_RUNNING}
	return &hands{groups: []cloud.Group{
		{ID: "a", Min: 1, Max: 5, Target: 2, Instances: []*externalgrpc.Instance{{Id: "m://1", Status: running},
			{Id: "m://2", Status: running}}, Options: &externalgrpc.NodeGroupAutoscalingOptions{
			ScaleDownUtilizationThreshold: 0.75}},
		{ID: "dark", Max: 3, Problem: errors.New("it is paused")}}}
}

// The client sees through the server what the provider says: bounds, targets, machines, options over the defaults,
// templates and prices, and of a group that has a problem only that.
func TestClientSeesTheProvider(t *testing.T) {
	_, client := served(t, twoGroups())
	groups, err := client.Groups(t.Context(), &externalgrpc.NodeGroupAutoscalingOptions{
		ScaleDownUtilizationThreshold: 0.5, ScaleDownGpuUtilizationThreshold: 0.4})
	if err != nil || len(groups) != 2 {
		t.Fatalf("groups %v, error %v", groups, err)
	}
	a, dark := groups[0], groups[1]
	if a.ID != "a" || a.Min != 1 || a.Max != 5 || a.Target != 2 || a.Problem != nil || len(a.Instances) != 2 ||
		a.Instances[1].GetId() != "m://2" || a.Options.GetScaleDownUtilizationThreshold() != 0.75 ||
		a.Options.GetScaleDownGpuUtilizationThreshold() != 0.4 {
		t.Errorf("group %+v", a)
	}
	if dark.Problem == nil || !strings.HasSuffix(dark.Problem.Error(), "it is paused") {
		t.Errorf("problem %v", dark.Problem)
	}
	node, err := client.TemplateNode(t.Context(), "a")
	if err != nil || node.Labels["zone"] != "z1" {
		t.Errorf("template %v, error %v", node, err)
	}
	if none, err := client.TemplateNode(t.Context(), "dark"); none != nil || err != nil {
		t.Errorf("template %v, error %v where nobody knows", none, err)
	}
	if price, err := client.NodePrice(t.Context(), node); err != nil || *price != 0.25 {
		t.Errorf("price %v, error %v", price, err)
	}
	if price, err := client.NodePrice(t.Context(), &v1.Node{}); price != nil || err != nil {
		t.Errorf("price %v, error %v where nobody knows", price, err)
	}
}

// A group with no options of its own has those of whoever asks.
func TestDefaultsAreGivenBack(t *testing.T) {
	provider := twoGroups()
	provider.groups[0].Options = nil
	_, client := served(t, provider)
	groups, err := client.Groups(t.Context(), &externalgrpc.NodeGroupAutoscalingOptions{
		ScaleDownUtilizationThreshold: 0.6, ScaleDownGpuUtilizationThreshold: 0.4,
		OldScaleDownUnneededTime: &externalgrpc.OldDuration{Duration: int64(time.Minute)}})
	if err != nil || groups[0].Options.GetScaleDownUtilizationThreshold() != 0.6 ||
		groups[0].Options.GetScaleDownUnneededDuration().AsDuration() != time.Minute {
		t.Errorf("groups %+v, error %v", groups, err)
	}
}

// Changes go on to the provider with the target that holds then; a negative delta of the protocol is a positive one.
func TestChanges(t *testing.T) {
	provider := twoGroups()
	conn, client := served(t, provider)
	if _, err := client.Groups(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	raw := externalgrpc.NewCloudProviderClient(conn)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zone": "z1"}},
		Spec: v1.NodeSpec{ProviderID: "m://1"}}
	provider.groups[0].Target = 3 // somebody else made it larger: a request of the protocol names no target
	if _, err := raw.NodeGroupIncreaseSize(t.Context(), &externalgrpc.NodeGroupIncreaseSizeRequest{Id: "a",
		Delta: 1}); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{client.DecreaseTargetSize(t.Context(), "a", 4, 2), client.DeleteNodes(t.Context(), "a",
		[]*v1.Node{node})} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{"increase a from 3 by 1", "decrease a from 4 by -2", "delete n1 m://1 in z1 of a"}
	if !slices.Equal(provider.asked, want) {
		t.Errorf("asked for %q, want %q", provider.asked, want)
	}
	_, err := raw.NodeGroupIncreaseSize(t.Context(), &externalgrpc.NodeGroupIncreaseSizeRequest{Id: "b", Delta: 1})
	if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("error %v of a group that there is not", err)
	}
	_, err = raw.NodeGroupIncreaseSize(t.Context(), &externalgrpc.NodeGroupIncreaseSizeRequest{Id: "dark", Delta: 1})
	if status.Code(err) != codes.FailedPrecondition || len(provider.asked) != len(want) {
		t.Errorf("error %v of a group with a problem; asked for %q", err, provider.asked)
	}
}

// A client learns from the code of an error whether something may have happened.
func TestErrorsSayWhetherSomethingHappened(t *testing.T) {
	for _, c := range []struct {
		err  error
		code codes.Code
	}{
		{errors.New("the maximum is 5"), codes.FailedPrecondition},
		{fmt.Errorf("group a: %w", cloud.ErrChanged), codes.FailedPrecondition},
		{cloud.Uncertain(errors.New("the connection broke")), codes.Unknown},
		{status.Error(codes.ResourceExhausted, "quota"), codes.ResourceExhausted},
		{fmt.Errorf("asking: %w", context.DeadlineExceeded), codes.DeadlineExceeded},
	} {
		provider := twoGroups()
		provider.err = c.err
		conn, _ := served(t, provider)
		_, err := externalgrpc.NewCloudProviderClient(conn).NodeGroupIncreaseSize(t.Context(),
			&externalgrpc.NodeGroupIncreaseSizeRequest{Id: "a", Delta: 1})
		if status.Code(err) != c.code || cloud.OutcomeUnknown(err) != cloud.OutcomeUnknown(status.Error(c.code, "")) {
			t.Errorf("error %v for %v, want code %v", err, c.err, c.code)
		}
	}
}

// Cluster Autoscaler asks for the group of a node, and for prices of any span of time.
func TestCallsOfClusterAutoscaler(t *testing.T) {
	provider := twoGroups()
	conn, _ := served(t, provider)
	raw := externalgrpc.NewCloudProviderClient(conn)
	for id, want := range map[string]string{"m://2": "a", "m://9": "", "": ""} {
		got, err := raw.NodeGroupForNode(t.Context(), &externalgrpc.NodeGroupForNodeRequest{
			Node: &externalgrpc.ExternalGrpcNode{ProviderId: id}})
		if err != nil || got.GetNodeGroup().GetId() != want {
			t.Errorf("node %q is in %v, error %v, want %q", id, got, err, want)
		}
	}
	if provider.looks != 1 {
		t.Errorf("the provider looked %d times where nobody refreshed", provider.looks)
	}
	begin := time.Unix(1_700_000_000, 0)
	price, err := raw.PricingNodePrice(t.Context(), &externalgrpc.PricingNodePriceRequest{
		Node: &externalgrpc.ExternalGrpcNode{Labels: []*externalgrpc.StringEntry{
			{Key: "zone", Value: "z1"}}}, StartTimestamp: timestamppb.New(begin),
		EndTimestamp: timestamppb.New(begin.Add(90 * time.Minute))})
	if err != nil || price.GetPrice() != 0.375 {
		t.Errorf("price %v, error %v, want 1.5 hours of 0.25", price, err)
	}
}

// A Cluster Autoscaler before 1.35 reads and writes other fields.
func TestCallsOfEarlierClusterAutoscalers(t *testing.T) {
	conn, _ := served(t, twoGroups())
	raw := externalgrpc.NewCloudProviderClient(conn)
	asked := &externalgrpc.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: 0.5,
		OldScaleDownUnneededTime: &externalgrpc.OldDuration{Duration: int64(time.Minute)}}
	options, err := raw.NodeGroupGetOptions(t.Context(),
		&externalgrpc.NodeGroupGetOptionsRequest{Id: "a", Defaults: asked})
	if err != nil || options.GetNodeGroupAutoscalingOptions().GetScaleDownUtilizationThreshold() != 0.75 {
		t.Errorf("options %v, error %v", options, err)
	}
	node, err := raw.NodeGroupTemplateNodeInfo(t.Context(), &externalgrpc.NodeGroupTemplateNodeInfoRequest{Id: "a"})
	if read := new(v1.Node); err != nil || read.Unmarshal(node.GetOldNodeInfo()) != nil || read.Name != "a" {
		t.Errorf("node %v, error %v", node, err)
	}
	begin := time.Unix(1_700_000_000, 0)
	price, err := raw.PricingNodePrice(t.Context(), &externalgrpc.PricingNodePriceRequest{
		Node: &externalgrpc.ExternalGrpcNode{Labels: []*externalgrpc.StringEntry{
			{Key: "zone", Value: "z1"}}}, OldStartTime: timestamppb.New(begin),
		OldEndTime: timestamppb.New(begin.Add(time.Hour))})
	if err != nil || price.GetPrice() != 0.25 {
		t.Errorf("price %v, error %v", price, err)
	}
}

// A group that has a problem and no nodes is left out: the error of one group ends a loop of Cluster Autoscaler, and
// nothing can be done with this one.
func TestGroupWithAProblemAndWithoutNodes(t *testing.T) {
	problem := errors.New("no node can meet its requirements")
	s := serve.New(&hands{groups: []cloud.Group{{ID: "a", Max: 5}, {ID: "b", Problem: problem},
		{ID: "c", Problem: problem, Target: 1, Max: 1}}}, nil)
	answer, err := s.NodeGroups(t.Context(), &externalgrpc.NodeGroupsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, g := range answer.GetNodeGroups() {
		ids = append(ids, g.GetId())
	}
	if !slices.Equal(ids, []string{"a", "c"}) {
		t.Errorf("groups %v", ids)
	}
}
