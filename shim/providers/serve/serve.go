// Package serve offers a provider as a server of Cluster Autoscaler's externalgrpc protocol.
package serve

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/cloud"
)

// Server answers for a provider. What its groups are is read at each Refresh, which clients send once per loop; a
// change of a group reads them anew.
type Server struct {
	externalgrpc.UnimplementedCloudProviderServer
	provider cloud.Provider
	prices   *Prices // nil: there are none but those of the provider

	mu     sync.Mutex
	groups map[string]cloud.Group // by id; nil: not read yet; guarded by mu
	order  []string               // guarded by mu
	// defaults are the options of groups that state none, as the client says; guarded by mu.
	defaults *externalgrpc.NodeGroupAutoscalingOptions
}

// New returns a server for a provider, which stays the caller's. `prices` say what pods cost, and nodes whose price the
// provider does not know; nil: nobody does.
func New(provider cloud.Provider, prices *Prices) *Server {
	return &Server{provider: provider, prices: prices}
}

// Register makes the service known to a server of gRPC.
func (s *Server) Register(to grpc.ServiceRegistrar) { externalgrpc.RegisterCloudProviderServer(to, s) }

// answered turns an error of a provider into one of gRPC. Errors without a status say that nothing has happened.
func answered(err error) error {
	switch {
	case err == nil, status.Code(err) != codes.Unknown:
		return err
	case cloud.OutcomeUnknown(err):
		return status.Error(codes.Unknown, err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.FailedPrecondition, err.Error())
}

// Refresh has the provider look again, and reads its groups.
func (s *Server) Refresh(ctx context.Context, _ *externalgrpc.RefreshRequest) (*externalgrpc.RefreshResponse, error) {
	return &externalgrpc.RefreshResponse{}, answered(s.read(ctx))
}

func (s *Server) read(ctx context.Context) error {
	if err := s.provider.Refresh(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defaults := s.defaults
	s.mu.Unlock()
	groups, err := s.provider.Groups(ctx, defaults)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups, s.order = map[string]cloud.Group{}, nil
	for _, group := range groups {
		if group.Problem != nil && group.Max == 0 && group.Target == 0 && len(group.Instances) == 0 {
			// An error of one group ends a loop of Cluster Autoscaler, and there is nothing that this one is for.
			klog.InfoS("Warning: a node group without nodes is left out", "group", group.ID, "err", group.Problem)
			continue
		}
		s.groups[group.ID] = group
		s.order = append(s.order, group.ID)
	}
	return nil
}

// all returns the ids of the groups.
func (s *Server) all(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	known := s.groups != nil
	s.mu.Unlock()
	if !known {
		if err := s.read(ctx); err != nil {
			return nil, answered(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.order, nil
}

// group returns a group that is known in full; it is an error where the provider does not know it.
func (s *Server) group(ctx context.Context, id string) (cloud.Group, error) {
	if _, err := s.all(ctx); err != nil {
		return cloud.Group{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	group, known := s.groups[id]
	switch {
	case !known:
		return group, status.Errorf(codes.NotFound, "there is no node group %q", id)
	case group.Problem != nil:
		return group, status.Error(codes.FailedPrecondition, group.Problem.Error())
	}
	return group, nil
}

// NodeGroups lists the groups.
func (s *Server) NodeGroups(ctx context.Context,
	_ *externalgrpc.NodeGroupsRequest) (*externalgrpc.NodeGroupsResponse, error) {
	ids, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	out := &externalgrpc.NodeGroupsResponse{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		out.NodeGroups = append(out.NodeGroups, s.message(id))
	}
	return out, nil
}

// message returns a group as the protocol has it. The caller holds the lock.
func (s *Server) message(id string) *externalgrpc.NodeGroup {
	g := s.groups[id]
	return &externalgrpc.NodeGroup{Id: id, MinSize: int32(g.Min), MaxSize: int32(g.Max), Debug: id}
}

// NodeGroupForNode names the group of a node; an empty id: it is in none.
func (s *Server) NodeGroupForNode(ctx context.Context,
	r *externalgrpc.NodeGroupForNodeRequest) (*externalgrpc.NodeGroupForNodeResponse, error) {
	ids, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		for _, machine := range s.groups[id].Instances {
			if machine.GetId() != "" && machine.GetId() == r.GetNode().GetProviderId() {
				return &externalgrpc.NodeGroupForNodeResponse{NodeGroup: s.message(id)}, nil
			}
		}
	}
	return &externalgrpc.NodeGroupForNodeResponse{NodeGroup: &externalgrpc.NodeGroup{}}, nil
}

// NodeGroupTargetSize returns how many machines a group is to have.
func (s *Server) NodeGroupTargetSize(ctx context.Context,
	r *externalgrpc.NodeGroupTargetSizeRequest) (*externalgrpc.NodeGroupTargetSizeResponse, error) {
	g, err := s.group(ctx, r.GetId())
	return &externalgrpc.NodeGroupTargetSizeResponse{TargetSize: int32(g.Target)}, err
}

// NodeGroupNodes returns the machines of a group.
func (s *Server) NodeGroupNodes(ctx context.Context,
	r *externalgrpc.NodeGroupNodesRequest) (*externalgrpc.NodeGroupNodesResponse, error) {
	g, err := s.group(ctx, r.GetId())
	return &externalgrpc.NodeGroupNodesResponse{Instances: g.Instances}, err
}

// NodeGroupIncreaseSize makes a group larger.
func (s *Server) NodeGroupIncreaseSize(ctx context.Context,
	r *externalgrpc.NodeGroupIncreaseSizeRequest) (*externalgrpc.NodeGroupIncreaseSizeResponse, error) {
	return &externalgrpc.NodeGroupIncreaseSizeResponse{}, s.change(ctx, r.GetId(), func(g cloud.Group) error {
		return s.provider.IncreaseSize(ctx, g.ID, g.Target, int(r.GetDelta()))
	})
}

// NodeGroupDecreaseTargetSize takes requests back. The delta of the protocol is negative.
func (s *Server) NodeGroupDecreaseTargetSize(ctx context.Context, r *externalgrpc.NodeGroupDecreaseTargetSizeRequest) (
	*externalgrpc.NodeGroupDecreaseTargetSizeResponse, error) {
	return &externalgrpc.NodeGroupDecreaseTargetSizeResponse{}, s.change(ctx, r.GetId(), func(g cloud.Group) error {
		return s.provider.DecreaseTargetSize(ctx, g.ID, g.Target, -int(r.GetDelta()))
	})
}

// NodeGroupDeleteNodes deletes machines of a group.
func (s *Server) NodeGroupDeleteNodes(ctx context.Context,
	r *externalgrpc.NodeGroupDeleteNodesRequest) (*externalgrpc.NodeGroupDeleteNodesResponse, error) {
	return &externalgrpc.NodeGroupDeleteNodesResponse{}, s.change(ctx, r.GetId(), func(g cloud.Group) error {
		var nodes []*v1.Node
		for _, n := range r.GetNodes() {
			nodes = append(nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.GetName(), Labels: entries(n.GetLabels()),
				Annotations: entries(n.GetAnnotations())}, Spec: v1.NodeSpec{ProviderID: n.GetProviderId()}})
		}
		return s.provider.DeleteNodes(ctx, g.ID, nodes)
	})
}

func entries(list []*externalgrpc.StringEntry) map[string]string {
	all := map[string]string{}
	for _, e := range list {
		all[e.GetKey()] = e.GetValue()
	}
	return all
}

// change changes a group from what it is now, and reads what has become of it.
func (s *Server) change(ctx context.Context, id string, change func(cloud.Group) error) error {
	if err := s.read(ctx); err != nil {
		return answered(err)
	}
	group, err := s.group(ctx, id)
	if err != nil {
		return err
	}
	if err := change(group); err != nil {
		return answered(err)
	}
	_ = s.read(ctx) // the next Refresh reads it again
	return nil
}

// NodeGroupTemplateNodeInfo returns a node as a group would make it.
func (s *Server) NodeGroupTemplateNodeInfo(ctx context.Context, r *externalgrpc.NodeGroupTemplateNodeInfoRequest) (
	*externalgrpc.NodeGroupTemplateNodeInfoResponse, error) {
	node, err := s.provider.TemplateNode(ctx, r.GetId())
	switch {
	case err != nil:
		return nil, answered(err)
	case node == nil:
		return nil, status.Error(codes.Unimplemented, "what new nodes are like is not known")
	}
	data, err := node.Marshal()
	return &externalgrpc.NodeGroupTemplateNodeInfoResponse{NodeBytes: data, OldNodeInfo: data}, answered(err)
}

// NodeGroupGetOptions returns the options of a group: the defaults of the request, with what is different for it. All
// requests of a client have the same defaults.
func (s *Server) NodeGroupGetOptions(ctx context.Context,
	r *externalgrpc.NodeGroupGetOptionsRequest) (*externalgrpc.NodeGroupGetOptionsResponse, error) {
	defaults := cloud.InBothForms(r.GetDefaults())
	s.mu.Lock()
	changed := !proto.Equal(s.defaults, defaults)
	s.defaults = defaults
	s.mu.Unlock()
	if changed {
		if err := s.read(ctx); err != nil {
			return nil, answered(err)
		}
	}
	g, err := s.group(ctx, r.GetId())
	if err != nil {
		return nil, err
	}
	options := g.Options
	if options == nil {
		options = defaults
	}
	return &externalgrpc.NodeGroupGetOptionsResponse{NodeGroupAutoscalingOptions: cloud.InBothForms(options)}, nil
}

// GPULabel says that nodes with GPUs have no label of their own.
func (s *Server) GPULabel(context.Context, *externalgrpc.GPULabelRequest) (*externalgrpc.GPULabelResponse, error) {
	return &externalgrpc.GPULabelResponse{}, nil
}

// GetAvailableGPUTypes names none.
func (s *Server) GetAvailableGPUTypes(context.Context,
	*externalgrpc.GetAvailableGPUTypesRequest) (*externalgrpc.GetAvailableGPUTypesResponse, error) {
	return &externalgrpc.GetAvailableGPUTypesResponse{}, nil
}

// Cleanup does nothing: the provider lives as long as the server.
func (s *Server) Cleanup(context.Context, *externalgrpc.CleanupRequest) (*externalgrpc.CleanupResponse, error) {
	return &externalgrpc.CleanupResponse{}, nil
}

// callTime bounds what one call may take where the client sets no limit.
const callTime = time.Minute

// Bound is an interceptor that ends calls which take too long.
func Bound(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return next(ctx, request)
}
