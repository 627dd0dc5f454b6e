package view

import (
	"context"
	"math/rand/v2"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
)

// picky is a connection to an engine that refuses batches with a node of a negative amount, as older ones did.
type picky struct{ engine.Conn }

func (p picky) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	if carrier, ok := args.(interface{ GetChanges() *loadlinev1.Changes }); ok {
		for i, record := range carrier.GetChanges().GetNodes() {
			var node v1.Node
			if err := node.Unmarshal(record.GetNode()); err != nil {
				return err
			}
			for name, amount := range node.Status.Allocatable {
				if amount.Sign() < 0 {
					return status.Errorf(codes.InvalidArgument,
						"changes: nodes[%d] (%q): status.allocatable[%q]: %v is negative", i, node.Name, name, &amount)
				}
			}
		}
	}
	return p.Conn.Invoke(ctx, method, args, reply, options...)
}

// faulty is a connection to a real engine on which messages are lost, doubled and delayed, and behind which the
// engine is restarted.
type faulty struct {
	grpc.ClientConnInterface
	r       *rand.Rand
	view    string
	on      bool
	delayed []call
	during  func() // happens while a message is under way
	counts  map[string]int
}

type call struct {
	method string
	args   proto.Message
	reply  proto.Message
}

var errTimeout = status.Error(codes.DeadlineExceeded, "injected")

func (f *faulty) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	deliver := func() error { return f.ClientConnInterface.Invoke(ctx, method, args, reply, options...) }
	if method != loadlinev1.ClusterState_Sync_FullMethodName &&
		method != loadlinev1.SchedulerExtender_Score_FullMethodName {
		return deliver()
	}
	if f.during != nil && (!f.on || f.r.IntN(2) == 0) {
		f.during()
	}
	if !f.on {
		return deliver()
	}
	if len(f.delayed) > 0 && f.r.IntN(3) == 0 {
		f.deliverLate(ctx)
	}
	switch f.r.IntN(12) {
	case 0:
		f.counts["request lost"]++
		return errTimeout
	case 1:
		f.counts["answer lost"]++
		deliver()
		return errTimeout
	case 2:
		f.counts["request late"]++
		message := args.(proto.Message)
		f.delayed = append(f.delayed,
			call{method, proto.Clone(message), reply.(proto.Message).ProtoReflect().New().Interface()})
		return errTimeout
	case 3:
		f.counts["request doubled"]++
		deliver()
		proto.Reset(reply.(proto.Message))
		return deliver()
	case 4:
		f.counts["engine restarted"]++
		f.restart(ctx)
		return deliver()
	case 5:
		f.counts["engine unreachable"]++
		return status.Error(codes.Unavailable, "injected")
	}
	return deliver()
}

func (f *faulty) deliverLate(ctx context.Context) {
	late := f.delayed[0]
	f.delayed = f.delayed[1:]
	f.ClientConnInterface.Invoke(ctx, late.method, late.args, late.reply)
}

// restart leaves the engine without the view.
func (f *faulty) restart(ctx context.Context) {
	loadlinev1.NewClusterStateClient(f.ClientConnInterface).Drop(ctx, &loadlinev1.DropRequest{View: f.view})
}

// heal ends the faults; what was late arrives first.
func (f *faulty) heal(ctx context.Context) {
	f.on, f.during = false, nil
	for len(f.delayed) > 0 {
		f.deliverLate(ctx)
	}
}
