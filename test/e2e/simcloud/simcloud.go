// Package simcloud is a cloud provider that speaks the protocol of Cluster Autoscaler's external providers, and whose
// machines are Node objects: it creates and deletes them on an API server, after the delays and with the faults that a
// test asks for.
package simcloud

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"loadline.dev/shim/api/externalgrpc"
)

// Group is a node group of the cloud.
type Group struct {
	ID       string
	Min, Max int
	// Template is a node as the group makes it. Name and provider id are the cloud's.
	Template *v1.Node
	// Name gives the name of the group's machine of that number, from 1 on; nil: "<ID>-<number>".
	Name func(number int) string
	// Price is what a node costs for an hour; 0: the cloud does not tell.
	Price float64
	// StockOut makes machines that never become nodes, and say so.
	StockOut bool
	// Phantom makes machines that never become nodes, and do not say so.
	Phantom bool
}

// Options of a cloud.
type Options struct {
	Groups []Group
	// CreateDelay and DeleteDelay are how long a machine takes to become a node, and to vanish.
	CreateDelay, DeleteDelay time.Duration
}

// Deleted is a machine that is gone.
type Deleted struct {
	Node string
	// Pods that were on its node when it went.
	Pods []v1.Pod
}

// Cloud is a running provider. Safe for concurrent use.
type Cloud struct {
	externalgrpc.UnimplementedCloudProviderServer
	options Options
	client  kubernetes.Interface
	server  *grpc.Server
	ctx     context.Context // of the work in the background
	stop    context.CancelFunc
	work    sync.WaitGroup

	mu      sync.Mutex // guards all below
	groups  map[string]*group
	fail    map[string]error // by method: the answer
	hang    map[string]bool  // by method
	deleted []Deleted
	asked   []string // nodes of which the deletion was asked for, also in vain
	twice   []string // nodes of which the deletion was asked for again
	errs    []error
}

type group struct {
	Group
	target   int
	replaced int
	smallest int // targets since the first growth
	largest  int
	grown    bool
	resized  int
	next     int
	machines map[string]*machine // by provider id
}

type machine struct {
	node  string
	state externalgrpc.InstanceState
	fault *externalgrpc.InstanceErrorInfo
}

// Start serves a cloud at a unix socket.
func Start(client kubernetes.Interface, socket string, options Options) (*Cloud, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	c := &Cloud{options: options, client: client, server: grpc.NewServer(), groups: map[string]*group{},
		fail: map[string]error{}, hang: map[string]bool{}}
	c.ctx, c.stop = context.WithCancel(context.Background())
	for _, g := range options.Groups {
		c.groups[g.ID] = &group{Group: g, machines: map[string]*machine{}}
	}
	externalgrpc.RegisterCloudProviderServer(c.server, c)
	go c.server.Serve(listener) // ends with Stop
	return c, nil
}

// Close stops the cloud. It returns what went wrong in the background.
func (c *Cloud) Close() error {
	c.stop()
	c.server.Stop()
	c.work.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}

// enter begins each call: it applies the faults.
func (c *Cloud) enter(ctx context.Context, method string) error {
	c.mu.Lock()
	hangs, err := c.hang[method], c.fail[method]
	c.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

// group begins a call about one group. Without an error it holds mu, and the caller has to call `unlock`.
func (c *Cloud) group(ctx context.Context, method, id string) (g *group, unlock func(), err error) {
	if err := c.enter(ctx, method); err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	if g, err = c.find(id); err != nil {
		c.mu.Unlock()
		return nil, nil, err
	}
	return g, c.mu.Unlock, nil
}

// find returns a group by its id. The caller holds mu.
func (c *Cloud) find(id string) (*group, error) {
	g, ok := c.groups[id]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "no node group %q", id)
	}
	return g, nil
}

func (c *Cloud) Refresh(ctx context.Context, _ *externalgrpc.RefreshRequest) (*externalgrpc.RefreshResponse, error) {
	return &externalgrpc.RefreshResponse{}, c.enter(ctx, "Refresh")
}

func (c *Cloud) NodeGroups(ctx context.Context,
	_ *externalgrpc.NodeGroupsRequest) (*externalgrpc.NodeGroupsResponse, error) {
	if err := c.enter(ctx, "NodeGroups"); err != nil {
		return nil, err
	}
	answer := &externalgrpc.NodeGroupsResponse{}
	for _, g := range c.options.Groups {
		answer.NodeGroups = append(answer.NodeGroups,
			&externalgrpc.NodeGroup{Id: g.ID, MinSize: int32(g.Min), MaxSize: int32(g.Max)})
	}
	return answer, nil
}

func (c *Cloud) NodeGroupForNode(ctx context.Context,
	r *externalgrpc.NodeGroupForNodeRequest) (*externalgrpc.NodeGroupForNodeResponse, error) {
	if err := c.enter(ctx, "NodeGroupForNode"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, g := range c.groups {
		if g.machines[r.GetNode().GetProviderId()] != nil {
			return &externalgrpc.NodeGroupForNodeResponse{NodeGroup: &externalgrpc.NodeGroup{Id: id,
				MinSize: int32(g.Min), MaxSize: int32(g.Max)}}, nil
		}
	}
	return &externalgrpc.NodeGroupForNodeResponse{NodeGroup: &externalgrpc.NodeGroup{}}, nil
}

func (c *Cloud) NodeGroupTargetSize(ctx context.Context,
	r *externalgrpc.NodeGroupTargetSizeRequest) (*externalgrpc.NodeGroupTargetSizeResponse, error) {
	g, unlock, err := c.group(ctx, "NodeGroupTargetSize", r.GetId())
	if err != nil {
		return nil, err
	}
	defer unlock()
	return &externalgrpc.NodeGroupTargetSizeResponse{TargetSize: int32(g.target)}, nil
}

func (c *Cloud) NodeGroupNodes(ctx context.Context,
	r *externalgrpc.NodeGroupNodesRequest) (*externalgrpc.NodeGroupNodesResponse, error) {
	g, unlock, err := c.group(ctx, "NodeGroupNodes", r.GetId())
	if err != nil {
		return nil, err
	}
	defer unlock()
	answer := &externalgrpc.NodeGroupNodesResponse{}
	for _, id := range slices.Sorted(maps.Keys(g.machines)) {
		m := g.machines[id]
		answer.Instances = append(answer.Instances, &externalgrpc.Instance{Id: id,
			Status: &externalgrpc.InstanceStatus{InstanceState: m.state, ErrorInfo: m.fault}})
	}
	return answer, nil
}

func (c *Cloud) NodeGroupTemplateNodeInfo(ctx context.Context,
	r *externalgrpc.NodeGroupTemplateNodeInfoRequest) (*externalgrpc.NodeGroupTemplateNodeInfoResponse, error) {
	g, unlock, err := c.group(ctx, "NodeGroupTemplateNodeInfo", r.GetId())
	if err != nil {
		return nil, err
	}
	defer unlock()
	node, err := g.labelled().Marshal()
	return &externalgrpc.NodeGroupTemplateNodeInfoResponse{NodeBytes: node}, err
}

func (c *Cloud) PricingNodePrice(ctx context.Context,
	r *externalgrpc.PricingNodePriceRequest) (*externalgrpc.PricingNodePriceResponse, error) {
	if err := c.enter(ctx, "PricingNodePrice"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, label := range r.GetNode().GetLabels() {
		if g := c.groups[label.GetValue()]; label.GetKey() == GroupLabel && g != nil && g.Price > 0 {
			hours := r.GetEndTimestamp().AsTime().Sub(r.GetStartTimestamp().AsTime()).Hours()
			return &externalgrpc.PricingNodePriceResponse{Price: g.Price * hours}, nil
		}
	}
	return nil, status.Error(codes.Unimplemented, "no prices")
}
