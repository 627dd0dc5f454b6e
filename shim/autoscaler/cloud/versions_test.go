package cloud

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/externalgrpc"
)

// oldCloud knows the fields of the protocol before Cluster Autoscaler 1.35 alone. It needs the times of a request, as
// the example server of that time does.
type oldCloud struct {
	cloud
	states *externalgrpc.OldDuration // as the unneeded time of its groups; nil: that of the request
	edits  bool                      // the request's defaults, with fields that it does not know
}

func (c *oldCloud) NodeGroupGetOptions(_ context.Context,
	r *externalgrpc.NodeGroupGetOptionsRequest) (*externalgrpc.NodeGroupGetOptionsResponse, error) {
	d := r.GetDefaults()
	if d.GetOldScaleDownUnneededTime() == nil || d.GetOldScaleDownUnreadyTime() == nil ||
		d.GetOldMaxNodeProvisionTime() == nil {
		return nil, status.Error(codes.Internal, "a time is missing")
	}
	if c.edits {
		d.OldScaleDownUnneededTime = c.states
		return &externalgrpc.NodeGroupGetOptionsResponse{NodeGroupAutoscalingOptions: d}, nil
	}
	options := &externalgrpc.NodeGroupAutoscalingOptions{OldScaleDownUnneededTime: d.OldScaleDownUnneededTime,
		OldScaleDownUnreadyTime: d.OldScaleDownUnreadyTime, OldMaxNodeProvisionTime: d.OldMaxNodeProvisionTime}
	if c.states != nil {
		options.OldScaleDownUnneededTime = c.states
	}
	return &externalgrpc.NodeGroupGetOptionsResponse{NodeGroupAutoscalingOptions: options}, nil
}

func (c *oldCloud) NodeGroupTemplateNodeInfo(_ context.Context,
	r *externalgrpc.NodeGroupTemplateNodeInfoRequest) (*externalgrpc.NodeGroupTemplateNodeInfoResponse, error) {
	data, err := (&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "template-of-" + r.GetId()}}).Marshal()
	return &externalgrpc.NodeGroupTemplateNodeInfoResponse{OldNodeInfo: data}, err
}

func (c *oldCloud) PricingNodePrice(_ context.Context,
	r *externalgrpc.PricingNodePriceRequest) (*externalgrpc.PricingNodePriceResponse, error) {
	return &externalgrpc.PricingNodePriceResponse{Price: 0.25 * r.GetOldEndTime().AsTime().
		Sub(r.GetOldStartTime().AsTime()).Hours()}, nil
}

func TestServersBefore135(t *testing.T) {
	server := &oldCloud{cloud: cloud{groups: []*externalgrpc.NodeGroup{{Id: "a", MaxSize: 5}}, running: true}}
	client := serve(t, server)
	defaults := InBothForms(&externalgrpc.NodeGroupAutoscalingOptions{
		OldScaleDownUnneededTime: &externalgrpc.OldDuration{Duration: int64(time.Minute)},
		OldScaleDownUnreadyTime:  &externalgrpc.OldDuration{Duration: int64(time.Hour)},
		OldMaxNodeProvisionTime:  &externalgrpc.OldDuration{Duration: int64(time.Second)}})
	for _, c := range []struct {
		states *externalgrpc.OldDuration
		edits  bool
		want   time.Duration
	}{
		{nil, false, time.Minute},
		{&externalgrpc.OldDuration{Duration: int64(7 * time.Second)}, false, 7 * time.Second},
		{&externalgrpc.OldDuration{Duration: int64(8 * time.Second)}, true, 8 * time.Second},
	} {
		server.states, server.edits = c.states, c.edits
		groups, err := client.Groups(t.Context(), defaults)
		if err != nil || groups[0].Warning != nil ||
			groups[0].Options.GetScaleDownUnneededDuration().AsDuration() != c.want ||
			groups[0].Options.GetScaleDownUnreadyDuration().AsDuration() != time.Hour ||
			groups[0].Options.GetMaxNodeProvisionDuration().AsDuration() != time.Second {
			t.Errorf("groups %+v, error %v, want %v", groups, err, c.want)
		}
	}
	if node, err := client.TemplateNode(t.Context(), "a"); err != nil || node.Name != "template-of-a" {
		t.Errorf("template %v, error %v", node, err)
	}
	if price, err := client.NodePrice(t.Context(), &v1.Node{}); err != nil || *price != 0.25 {
		t.Errorf("price %v, error %v", price, err)
	}
}

// The old messages are those of Kubernetes, whose own code writes them.
func TestOldFormsOnTheWire(t *testing.T) {
	at := time.Unix(1_700_000_000, 5)
	for _, c := range []struct {
		ours   proto.Message
		theirs interface{ Marshal() ([]byte, error) }
	}{
		{&externalgrpc.OldDuration{Duration: int64(7 * time.Second)}, &metav1.Duration{Duration: 7 * time.Second}},
		{timestamppb.New(at), &metav1.Timestamp{Seconds: at.Unix(), Nanos: int32(at.Nanosecond())}},
	} {
		want, err := c.theirs.Marshal()
		got, err2 := proto.Marshal(c.ours)
		if err != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: % x, want % x, errors %v, %v", c.ours, got, want, err, err2)
		}
	}
}

// deafCloud answers that it took nodes back, and does nothing, or only says so when it has looked at its cloud again.
type deafCloud struct {
	cloud
	late, owed int32
}

func (c *deafCloud) NodeGroupDecreaseTargetSize(_ context.Context,
	r *externalgrpc.NodeGroupDecreaseTargetSizeRequest) (*externalgrpc.NodeGroupDecreaseTargetSizeResponse, error) {
	c.owed = c.late * r.GetDelta()
	return &externalgrpc.NodeGroupDecreaseTargetSizeResponse{}, nil
}

func (c *deafCloud) Refresh(context.Context, *externalgrpc.RefreshRequest) (*externalgrpc.RefreshResponse, error) {
	c.target += c.owed
	return &externalgrpc.RefreshResponse{}, nil
}

func TestProvidersThatTakeNothingBack(t *testing.T) {
	for late, want := range map[int32]string{0: "took nothing back: its target was 3 and is 3", 1: ""} {
		server := &deafCloud{cloud: cloud{groups: []*externalgrpc.NodeGroup{{Id: "a", MaxSize: 5}}, target: 3}, late: late}
		client := serve(t, server)
		if _, err := client.Groups(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		err := client.DecreaseTargetSize(t.Context(), "a", 3, 1)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d: error %v", late, err)
		}
	}
}
