// Package provider is a client of the external cloud providers of Cluster Autoscaler: any server of
// clusterautoscaler.cloudprovider.v1.externalgrpc will do.
package cloud

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/externalgrpc"
)

// DefaultTimeout of one call is that of Cluster Autoscaler.
const DefaultTimeout = 5 * time.Second

// Bounds on what a provider may answer.
const (
	// MaxGroups is the most node groups: so many the engine plans with.
	MaxGroups = 1000
	// atOnce is how many groups are asked about at once.
	atOnce = 8
	// maxAnswerBytes of one call.
	maxAnswerBytes = 64 << 20
)

// Options say where the provider is.
type Options struct {
	// Address is HOST:PORT, or unix:///path/to/socket.
	Address string
	// Cert and Key are PEM files with the client's certificate and its key. CA is a PEM file with the authorities of
	// the provider's certificate; empty: those of the system. With any of them the connection is encrypted.
	Cert, Key, CA string
	// Insecure lets the connection to another machine be unencrypted, as Cluster Autoscaler has it: whoever is on the
	// way can have nodes deleted. A socket, or a provider on this machine, needs neither.
	Insecure bool
	// Timeout of one call; 0: DefaultTimeout.
	Timeout time.Duration
}

// Check returns an error for options that contradict each other or are not safe.
func (o *Options) Check() error {
	if o.Address == "" {
		return errors.New("address: must be HOST:PORT or unix:///path/to/socket")
	}
	if (o.Cert != "") != (o.Key != "") {
		return errors.New("certificate and private key go together")
	}
	if !o.encrypted() && !o.Insecure && !isLocal(o.Address) {
		return fmt.Errorf("address %s is another machine's, and the connection would not be encrypted: give "+
			"--cloud-cacert, and --cloud-cert and --cloud-key if the provider asks for them, or --cloud-insecure",
			o.Address)
	}
	if o.encrypted() && o.Insecure {
		return errors.New("--cloud-insecure and certificates exclude each other")
	}
	if o.Timeout < 0 {
		return fmt.Errorf("timeout %v: must not be negative", o.Timeout)
	}
	return nil
}

func (o *Options) encrypted() bool { return o.Cert != "" || o.CA != "" }

// isLocal says whether an address does not leave this machine. Names but localhost may point anywhere.
func isLocal(address string) bool {
	if strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "unix-abstract:") {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Client asks a provider. Safe for concurrent use.
type Client struct {
	conn    *grpc.ClientConn
	client  externalgrpc.CloudProviderClient
	timeout time.Duration

	mu     sync.Mutex
	bounds map[string]Group       // as last listed; guarded by mu
	turns  map[string]*sync.Mutex // by group: one change of its size at a time; guarded by mu
}

// Open returns a client. The connection is made when it is first needed.
func Open(options Options) (*Client, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	secret, err := options.credentials()
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(options.Address, grpc.WithTransportCredentials(secret), grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswerBytes)))
	if err != nil {
		return nil, err
	}
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	return &Client{conn: conn, client: externalgrpc.NewCloudProviderClient(conn), timeout: options.Timeout,
		bounds: map[string]Group{}, turns: map[string]*sync.Mutex{}}, nil
}

func (o *Options) credentials() (credentials.TransportCredentials, error) {
	if !o.encrypted() {
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.Cert != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if host, _, err := net.SplitHostPort(o.Address); err == nil {
		config.ServerName = host
	}
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: holds no certificate", o.CA)
		}
	}
	return credentials.NewTLS(config), nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Group is a node group as the cloud has it.
type Group struct {
	ID       string
	Min, Max int
	Model    Model // of its new nodes
	// Target is how many nodes the cloud is to hold.
	Target    int
	Instances []Instance
	// Options are all that hold for the group; nil: the defaults do.
	Options *externalgrpc.NodeGroupAutoscalingOptions
	// Problem says why the provider cannot tell the options; nil: it can. Until it can, the group is left as it is.
	Problem error
}

// Instance is a machine of a group.
type Instance struct {
	// ProviderID is what its node has.
	ProviderID string
	State      externalgrpc.InstanceState
	// Fault says why it cannot be created; its code is empty where it can.
	Fault Fault
}

// Fault is what is wrong with a machine.
type Fault struct {
	Code, Message string
	// OutOfResources: the cloud has no such machines left, or a quota is used up.
	OutOfResources bool
}

// outOfResources is the class of such faults in the protocol.
const outOfResources = 1

// Refresh has the provider look at its cloud again.
func (c *Client) Refresh(ctx context.Context) error {
	return c.call(ctx, "Refresh", func(ctx context.Context) error {
		_, err := c.client.Refresh(ctx, &externalgrpc.RefreshRequest{})
		return err
	})
}

// Groups returns all node groups, by id, with their target sizes, instances and options. The defaults are what holds
// where a group states nothing: providers fill in the rest. A group whose options cannot be told has a Problem: it
// alone is left as it is.
func (c *Client) Groups(ctx context.Context, defaults *externalgrpc.NodeGroupAutoscalingOptions) ([]Group, error) {
	var listed *externalgrpc.NodeGroupsResponse
	err := c.call(ctx, "NodeGroups", func(ctx context.Context) (err error) {
		listed, err = c.client.NodeGroups(ctx, &externalgrpc.NodeGroupsRequest{})
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(listed.GetNodeGroups()) > MaxGroups {
		return nil, fmt.Errorf("the cloud provider has %d node groups, the limit is %d",
			len(listed.GetNodeGroups()), MaxGroups)
	}
	groups := make([]Group, 0, len(listed.GetNodeGroups()))
	for _, g := range listed.GetNodeGroups() {
		group := Group{ID: g.GetId(), Min: int(g.GetMinSize()), Max: int(g.GetMaxSize())}
		if group.ID == "" || group.Min < 0 || group.Max < group.Min {
			return nil, fmt.Errorf("the cloud provider has a node group %q of %d to %d nodes",
				group.ID, group.Min, group.Max)
		}
		groups = append(groups, group)
	}
	slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(a.ID, b.ID) })
	for i := 1; i < len(groups); i++ {
		if groups[i].ID == groups[i-1].ID {
			return nil, fmt.Errorf("the cloud provider has node group %q twice", groups[i].ID)
		}
	}
	if err := c.fillAll(ctx, groups, defaults); err != nil {
		return nil, err
	}
	c.remember(groups)
	return groups, nil
}

// fillAll asks about groups, some at once: a provider that is slow must not make the loop slow. After an error no
// further one is asked about.
func (c *Client) fillAll(ctx context.Context, groups []Group,
	defaults *externalgrpc.NodeGroupAutoscalingOptions) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	next := make(chan *Group)
	for range min(atOnce, len(groups)) {
		work.Go(func() {
			for group := range next {
				if err := c.fill(ctx, group, defaults); err != nil {
					cancel(err) // the first one counts
				}
			}
		})
	}
	for i := range groups {
		if ctx.Err() != nil {
			break
		}
		next <- &groups[i]
	}
	close(next)
	work.Wait()
	return context.Cause(ctx)
}

func (c *Client) remember(groups []Group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.bounds)
	for _, g := range groups {
		c.bounds[g.ID] = g
	}
}

// fill asks for what NodeGroups does not tell.
func (c *Client) fill(ctx context.Context, group *Group, defaults *externalgrpc.NodeGroupAutoscalingOptions) error {
	target, err := c.target(ctx, group.ID)
	if err != nil {
		return err
	}
	group.Target = target
	if group.Instances, err = c.instances(ctx, group.ID); err != nil {
		return err
	}
	group.Problem = c.call(ctx, "NodeGroupGetOptions of "+group.ID, func(ctx context.Context) error {
		answer, err := c.client.NodeGroupGetOptions(ctx,
			&externalgrpc.NodeGroupGetOptionsRequest{Id: group.ID, Defaults: defaults})
		if status.Code(err) == codes.Unimplemented {
			return nil
		}
		group.Options = answer.GetNodeGroupAutoscalingOptions()
		return err
	})
	return ctx.Err()
}

func (c *Client) instances(ctx context.Context, group string) (instances []Instance, err error) {
	err = c.call(ctx, "NodeGroupNodes of "+group, func(ctx context.Context) error {
		answer, err := c.client.NodeGroupNodes(ctx, &externalgrpc.NodeGroupNodesRequest{Id: group})
		for _, i := range answer.GetInstances() {
			fault := i.GetStatus().GetErrorInfo()
			instances = append(instances, Instance{ProviderID: i.GetId(), State: i.GetStatus().GetInstanceState(),
				Fault: Fault{fault.GetErrorCode(), fault.GetErrorMessage(),
					fault.GetInstanceErrorClass() == outOfResources}})
		}
		return err
	})
	return instances, err
}

// Deleting returns the machines of a group that are being deleted, by provider id, as the cloud lists them now.
func (c *Client) Deleting(ctx context.Context, group string) (map[string]bool, error) {
	instances, err := c.instances(ctx, group)
	deleting := map[string]bool{}
	for _, i := range instances {
		if i.State == externalgrpc.InstanceState_INSTANCE_DELETING {
			deleting[i.ProviderID] = true
		}
	}
	return deleting, err
}

func (c *Client) target(ctx context.Context, group string) (target int, err error) {
	err = c.call(ctx, "NodeGroupTargetSize of "+group, func(ctx context.Context) error {
		answer, err := c.client.NodeGroupTargetSize(ctx, &externalgrpc.NodeGroupTargetSizeRequest{Id: group})
		target = int(answer.GetTargetSize())
		return err
	})
	if err == nil && target < 0 {
		return 0, fmt.Errorf("node group %s has a target size of %d", group, target)
	}
	return target, err
}

// DeleteNodes deletes nodes of one group, unless it would get smaller than it may: by its target size as it is now.
func (c *Client) DeleteNodes(ctx context.Context, group string, nodes []*v1.Node) error {
	return c.inTurn(ctx, group, func(bounds Group, target int) error {
		if target-len(nodes) < bounds.Min {
			return fmt.Errorf("node group %s has a target of %d nodes and may not have fewer than %d",
				group, target, bounds.Min)
		}
		request := &externalgrpc.NodeGroupDeleteNodesRequest{Id: group}
		for _, node := range nodes {
			request.Nodes = append(request.Nodes, toNode(node))
		}
		return c.call(ctx, "NodeGroupDeleteNodes of "+group, func(ctx context.Context) error {
			_, err := c.client.NodeGroupDeleteNodes(ctx, request)
			return err
		})
	})
}

// inTurn makes one change of a group at a time, which sees the target size as it is then.
func (c *Client) inTurn(ctx context.Context, group string, change func(bounds Group, target int) error) error {
	bounds, turn, err := c.of(group)
	if err != nil {
		return err
	}
	turn.Lock()
	defer turn.Unlock()
	target, err := c.target(ctx, group)
	if err != nil {
		return fmt.Errorf("nothing was asked for: %v", err) // without the status of a request that changes something
	}
	return change(bounds, target)
}

func (c *Client) of(group string) (Group, *sync.Mutex, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bounds, ok := c.bounds[group]
	if !ok {
		return Group{}, nil, fmt.Errorf("the cloud provider has no node group %s", group)
	}
	if c.turns[group] == nil {
		c.turns[group] = &sync.Mutex{}
	}
	return bounds, c.turns[group], nil
}

func toNode(node *v1.Node) *externalgrpc.ExternalGrpcNode {
	return &externalgrpc.ExternalGrpcNode{ProviderId: node.Spec.ProviderID, Name: node.Name,
		Labels: entries(node.Labels), Annotations: entries(node.Annotations)}
}

func entries(m map[string]string) []*externalgrpc.StringEntry {
	all := make([]*externalgrpc.StringEntry, 0, len(m))
	for key, value := range m {
		all = append(all, &externalgrpc.StringEntry{Key: key, Value: value})
	}
	slices.SortFunc(all, func(a, b *externalgrpc.StringEntry) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// call makes one call within the time that it may take. An error says which call it was.
func (c *Client) call(ctx context.Context, what string, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if err := call(ctx); err != nil {
		return fmt.Errorf("cloud provider: %s: %w", what, err)
	}
	return nil
}
