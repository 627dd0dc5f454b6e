package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/providers/serve"
)

// served is a sky behind the protocol of external providers, and a connection to it: the leader asks it by the client
// that asks real ones, but without a network, which time in these tests would not wait for.
type served struct {
	server *serve.Server

	mu    sync.Mutex
	fails []string // methods and groups of calls that fail; guarded by mu
}

func (s *served) Invoke(ctx context.Context, method string, in, out any, _ ...grpc.CallOption) error {
	for _, m := range externalgrpc.CloudProvider_ServiceDesc.Methods {
		if !strings.HasSuffix(method, "/"+m.MethodName) {
			continue
		}
		if of, is := in.(interface{ GetId() string }); is && s.isToFail(m.MethodName+" "+of.GetId()) {
			return status.Error(codes.Internal, "told to fail")
		}
		answer, err := m.Handler(s.server, ctx, func(asked any) error {
			proto.Merge(asked.(proto.Message), in.(proto.Message))
			return nil
		}, nil)
		if err != nil {
			return status.Convert(err).Err()
		}
		proto.Merge(out.(proto.Message), answer.(proto.Message))
		return nil
	}
	return fmt.Errorf("no method %s", method)
}

func (s *served) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("no method has a stream")
}

// fail has calls about groups fail, and no others.
func (s *served) fail(calls ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = calls
}

func (s *served) isToFail(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.fails, call)
}

// The provider does not tell the target size of one of two groups any more, or nothing at all, after it was asked for
// two nodes. These come all the same and are not bought again, the group neither grows nor loses a node, and the other
// one grows and shrinks. When the provider tells again, idle nodes of the group go.
func TestAGroupThatCannotBeReadIsLeftAsItIs(t *testing.T) {
	for name, fails := range map[string][]string{
		"TargetSize": {"NodeGroupTargetSize cheap"},
		"Nothing":    {"NodeGroupTargetSize cheap", "NodeGroupNodes cheap", "NodeGroupGetOptions cheap"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				groups := map[string]*skyGroup{"cheap": {max: 10, cpu: "4", price: 0.1},
					"dear": {max: 10, cpu: "4", price: 0.3}}
				machines := &sky{groups: groups, delay: 40 * time.Second}
				provider := &served{server: serve.New(machines, nil)}
				machines.client = cloud.New(provider, time.Minute)
				b := growingUnder(t, machines, nil)
				b.addPending("web", 2, "3")
				b.run(10 * time.Second)
				provider.fail(fails...)
				b.run(20 * time.Second)
				b.expectRequests("cheap+2")
				b.addPending("late", 1, "3")
				b.run(time.Minute)
				b.expectRequests("cheap+2", "dear+1")
				s := b.readStatus()
				if want := "node group cheap is left as it is: cloud provider: NodeGroupTargetSize of cheap: rpc error: " +
					"code = Internal desc = told to fail"; !slices.Equal(s.Warnings, []string{want}) || s.Message != "" {
					t.Errorf("warnings %q, want %q; message %q", s.Warnings, want, s.Message)
				}
				if cheap := s.NodeGroups[0].Health; cheap.CloudProviderTarget != 2 || cheap.Status != "Healthy" {
					t.Errorf("group %+v", cheap)
				}
				for _, pod := range []string{"web-0", "web-1", "late-0"} {
					b.removePod(pod)
				}
				b.run(20 * time.Minute)
				b.expectRequests("cheap+2", "dear+1", "delete sky://dear1")
				provider.fail()
				b.run(15 * time.Minute)
				b.expectRequests("cheap+2", "dear+1", "delete sky://dear1", "delete sky://cheap1", "delete sky://cheap2")
				b.end()
			})
		})
	}
}

// expectRequests compares what the cloud was asked for. Nodes of one loop go in any order.
func (b *bench) expectRequests(want ...string) {
	b.t.Helper()
	got := b.sky.requests()
	slices.Sort(got[min(3, len(got)):])
	if !slices.Equal(got, want) {
		b.t.Fatalf("asked for %v, want %v", got, want)
	}
}
