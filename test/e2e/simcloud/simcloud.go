// Package simcloud is a cloud provider that speaks the protocol of Cluster Autoscaler's external providers, and whose
// machines are Node objects: it creates and deletes them on an API server, after the delays and with the faults that a
// test asks for.
package simcloud

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"loadline.dev/shim/api/externalgrpc"
)

// Group is a node group of the cloud.
type Group struct {
	ID       string
	Min, Max int
	// Template is a node as the group makes it. Name and provider id are the cloud's.
	Template *v1.Node
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
	c := &Cloud{options: options, client: client, server: grpc.NewServer(), groups: map[string]*group{}, fail: map[string]error{}, hang: map[string]bool{}}
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

// Deleted returns the machines that are gone, in order.
func (c *Cloud) Deleted() []Deleted {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.deleted)
}

// Asked returns the nodes of which the deletion was asked for, also in vain.
func (c *Cloud) Asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

// DeletedTwice returns the nodes of which the deletion was asked for again.
func (c *Cloud) DeletedTwice() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.twice)
}

// Target returns the target size of a group.
func (c *Cloud) Target(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups[id].target
}

// Sizes returns the smallest and the largest target size that a group has had.
func (c *Cloud) Sizes(id string) (smallest, largest int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups[id].smallest, c.groups[id].largest
}

// Requests returns how often a target size has changed.
func (c *Cloud) Requests() (requests int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.groups {
		requests += g.resized
	}
	return requests
}

// resize changes the target size of a group. The caller holds mu.
func (g *group) resize(delta int) {
	g.target += delta
	g.resized++
	g.smallest, g.largest = min(g.smallest, g.target), max(g.largest, g.target)
}

// enter is the begin of each call: the faults.
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

func (c *Cloud) NodeGroups(ctx context.Context, _ *externalgrpc.NodeGroupsRequest) (*externalgrpc.NodeGroupsResponse, error) {
	if err := c.enter(ctx, "NodeGroups"); err != nil {
		return nil, err
	}
	answer := &externalgrpc.NodeGroupsResponse{}
	for _, g := range c.options.Groups {
		answer.NodeGroups = append(answer.NodeGroups, &externalgrpc.NodeGroup{Id: g.ID, MinSize: int32(g.Min), MaxSize: int32(g.Max)})
	}
	return answer, nil
}

func (c *Cloud) NodeGroupForNode(ctx context.Context, r *externalgrpc.NodeGroupForNodeRequest) (*externalgrpc.NodeGroupForNodeResponse, error) {
	if err := c.enter(ctx, "NodeGroupForNode"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, g := range c.groups {
		if g.machines[r.GetNode().GetProviderId()] != nil {
			return &externalgrpc.NodeGroupForNodeResponse{NodeGroup: &externalgrpc.NodeGroup{Id: id, MinSize: int32(g.Min), MaxSize: int32(g.Max)}}, nil
		}
	}
	return &externalgrpc.NodeGroupForNodeResponse{NodeGroup: &externalgrpc.NodeGroup{}}, nil
}

func (c *Cloud) NodeGroupTargetSize(ctx context.Context, r *externalgrpc.NodeGroupTargetSizeRequest) (*externalgrpc.NodeGroupTargetSizeResponse, error) {
	if err := c.enter(ctx, "NodeGroupTargetSize"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.find(r.GetId())
	if err != nil {
		return nil, err
	}
	return &externalgrpc.NodeGroupTargetSizeResponse{TargetSize: int32(g.target)}, nil
}

func (c *Cloud) NodeGroupNodes(ctx context.Context, r *externalgrpc.NodeGroupNodesRequest) (*externalgrpc.NodeGroupNodesResponse, error) {
	if err := c.enter(ctx, "NodeGroupNodes"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.find(r.GetId())
	if err != nil {
		return nil, err
	}
	answer := &externalgrpc.NodeGroupNodesResponse{}
	for _, id := range slices.Sorted(maps.Keys(g.machines)) {
		m := g.machines[id]
		answer.Instances = append(answer.Instances, &externalgrpc.Instance{Id: id,
			Status: &externalgrpc.InstanceStatus{InstanceState: m.state, ErrorInfo: m.fault}})
	}
	return answer, nil
}

func (c *Cloud) NodeGroupTemplateNodeInfo(ctx context.Context, r *externalgrpc.NodeGroupTemplateNodeInfoRequest) (*externalgrpc.NodeGroupTemplateNodeInfoResponse, error) {
	if err := c.enter(ctx, "NodeGroupTemplateNodeInfo"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.find(r.GetId())
	if err != nil {
		return nil, err
	}
	node, err := g.labelled().Marshal()
	return &externalgrpc.NodeGroupTemplateNodeInfoResponse{NodeBytes: node}, err
}

func (c *Cloud) PricingNodePrice(ctx context.Context, r *externalgrpc.PricingNodePriceRequest) (*externalgrpc.PricingNodePriceResponse, error) {
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

func (c *Cloud) NodeGroupIncreaseSize(ctx context.Context, r *externalgrpc.NodeGroupIncreaseSizeRequest) (*externalgrpc.NodeGroupIncreaseSizeResponse, error) {
	if err := c.enter(ctx, "NodeGroupIncreaseSize"); err != nil {
		return nil, err
	}
	return &externalgrpc.NodeGroupIncreaseSizeResponse{}, c.Grow(r.GetId(), int(r.GetDelta()))
}

// Grow adds machines to a group, as NodeGroupIncreaseSize does.
func (c *Cloud) Grow(id string, delta int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.find(id)
	if err != nil {
		return err
	}
	if delta < 1 || g.target+delta > g.Max {
		return status.Errorf(codes.InvalidArgument, "node group %s of %d nodes may not grow by %d, its maximum is %d", id, g.target, delta, g.Max)
	}
	g.resize(delta)
	if !g.grown {
		g.grown, g.smallest = true, g.target
	}
	for range delta {
		g.next++
		m := &machine{node: fmt.Sprintf("%s-%d", id, g.next), state: externalgrpc.InstanceState_INSTANCE_CREATING}
		g.machines[providerID(id, m.node)] = m
		switch {
		case g.StockOut:
			m.fault = &externalgrpc.InstanceErrorInfo{ErrorCode: "STOCK_OUT", ErrorMessage: "there are no such machines left", InstanceErrorClass: 1}
		case g.Phantom:
			m.state = externalgrpc.InstanceState_INSTANCE_RUNNING
		default:
			c.later(c.options.CreateDelay, func() error { return c.create(g, m) })
		}
	}
	return nil
}

// GroupLabel is on all nodes of a group.
const GroupLabel = "simcloud/group"

func (g *group) labelled() *v1.Node {
	node := g.Template.DeepCopy()
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[GroupLabel] = g.ID
	return node
}

func providerID(group, node string) string { return "sim://" + group + "/" + node }

// patience is for how long an API server may be away.
const patience = time.Minute

// isAway says whether an error is that of no API server, and not its answer.
func isAway(err error) bool {
	var answer apierrors.APIStatus
	return err != nil && !errors.As(err, &answer) || apierrors.IsForbidden(err) || apierrors.IsServiceUnavailable(err)
}

// later does something in the background. The caller holds mu.
func (c *Cloud) later(delay time.Duration, do func() error) {
	c.work.Go(func() {
		select {
		case <-time.After(delay):
		case <-c.ctx.Done():
			return
		}
		err := do()
		for end := time.Now().Add(patience); isAway(err) && c.ctx.Err() == nil && time.Now().Before(end); err = do() {
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil && c.ctx.Err() == nil {
			c.mu.Lock()
			c.errs = append(c.errs, err)
			c.mu.Unlock()
		}
	})
}

// node returns a node of the group that is ready.
func (g *group) node(name, providerID string) *v1.Node {
	node := g.labelled()
	node.Name = name
	node.Spec.ProviderID = providerID
	node.Labels[v1.LabelHostname] = name
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return node
}

func (c *Cloud) create(g *group, m *machine) error {
	if _, err := c.client.CoreV1().Nodes().Create(c.ctx, g.node(m.node, providerID(g.ID, m.node)), metav1.CreateOptions{}); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.state == externalgrpc.InstanceState_INSTANCE_CREATING {
		m.state = externalgrpc.InstanceState_INSTANCE_RUNNING
	}
	return nil
}

// NodeGroupDeleteNodes deletes machines. Their pods go with them, as they do when a machine is switched off.
func (c *Cloud) NodeGroupDeleteNodes(ctx context.Context, r *externalgrpc.NodeGroupDeleteNodesRequest) (*externalgrpc.NodeGroupDeleteNodesResponse, error) {
	if err := c.enter(ctx, "NodeGroupDeleteNodes"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.find(r.GetId())
	if err != nil {
		return nil, err
	}
	for _, node := range r.GetNodes() {
		c.asked = append(c.asked, node.GetName())
		m := g.machines[node.GetProviderId()]
		// Of a machine that is no node, an autoscaler gives the provider id as name.
		if m == nil || m.node != node.GetName() && node.GetName() != node.GetProviderId() {
			return nil, status.Errorf(codes.InvalidArgument, "node group %s has no node %s with provider id %s", g.ID, node.GetName(), node.GetProviderId())
		}
		if m.state == externalgrpc.InstanceState_INSTANCE_DELETING {
			c.twice = append(c.twice, m.node)
			return nil, status.Errorf(codes.FailedPrecondition, "node %s is being deleted", m.node)
		}
	}
	for _, node := range r.GetNodes() {
		m := g.machines[node.GetProviderId()]
		m.state = externalgrpc.InstanceState_INSTANCE_DELETING
		g.resize(-1)
		c.later(c.options.DeleteDelay, func() error { return c.delete(g, m) })
	}
	return &externalgrpc.NodeGroupDeleteNodesResponse{}, nil
}

func (c *Cloud) NodeGroupDecreaseTargetSize(ctx context.Context, r *externalgrpc.NodeGroupDecreaseTargetSizeRequest) (*externalgrpc.NodeGroupDecreaseTargetSizeResponse, error) {
	if err := c.enter(ctx, "NodeGroupDecreaseTargetSize"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.find(r.GetId())
	if err != nil {
		return nil, err
	}
	coming := 0
	for _, m := range g.machines {
		if m.state == externalgrpc.InstanceState_INSTANCE_CREATING {
			coming++
		}
	}
	if delta := int(-r.GetDelta()); delta < 1 || delta > coming {
		return nil, status.Errorf(codes.InvalidArgument, "%d machines of node group %s are still to come, not %d", coming, g.ID, delta)
	}
	g.resize(int(r.GetDelta()))
	for id, m := range g.machines {
		if m.state == externalgrpc.InstanceState_INSTANCE_CREATING && coming > 0 && len(g.machines) > g.target {
			delete(g.machines, id)
			coming--
		}
	}
	return &externalgrpc.NodeGroupDecreaseTargetSizeResponse{}, nil
}

func (c *Cloud) delete(g *group, m *machine) error {
	pods, err := c.client.CoreV1().Pods(metav1.NamespaceAll).List(c.ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", m.node).String()})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		err := c.client.CoreV1().Pods(pod.Namespace).Delete(c.ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if err := c.client.CoreV1().Nodes().Delete(c.ctx, m.node, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(g.machines, func(_ string, other *machine) bool { return other == m })
	c.deleted = append(c.deleted, Deleted{Node: m.node, Pods: pods.Items})
	return nil
}
