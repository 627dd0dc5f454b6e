// Package cloud is a client of the external cloud providers of Cluster Autoscaler: any server of
// clusterautoscaler.cloudprovider.v1.externalgrpc will do.
package cloud

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/externalgrpc"
)

// DefaultTimeout of one call is that of Cluster Autoscaler.
const DefaultTimeout = 5 * time.Second

// Bounds on what a provider may answer.
const (
	// MaxGroups is the most node groups: so many the engine plans with.
	MaxGroups = 1000
	// atOnce is how many groups are asked about at once unless the options say otherwise.
	atOnce = 8
	// askTime bounds what asking about all groups takes in one loop, well below the time after which a loop counts as
	// stuck. Groups that are left are taken for ones that do not answer.
	askTime = 5 * time.Minute
	// maxAnswerBytes of one call.
	maxAnswerBytes = 64 << 20
)

// Options say where the provider is, a server of Cluster Autoscaler's externalgrpc protocol. The tags are those of the
// autoscaler's configuration. With any certificate the connection is encrypted.
type Options struct {
	Address      string          `json:"address" flag:"cloud-address" help:"cloud provider of the externalgrpc protocol: HOST:PORT or unix:///path/to/socket"`
	Cert         string          `json:"cert" flag:"cloud-cert" help:"our certificate for it, PEM; empty: it asks for none"`
	Key          string          `json:"key" flag:"cloud-key" help:"its private key, PEM"`
	CA           string          `json:"cacert" flag:"cloud-cacert" help:"authority of the provider's certificate, PEM; needed, or a certificate, where the provider is on another machine"`
	Insecure     bool            `json:"insecure" flag:"cloud-insecure" help:"the connection to a provider on another machine is not encrypted, as Cluster Autoscaler has it: whoever is on the way can have nodes deleted"`
	GRPCTimeout  metav1.Duration `json:"grpcTimeout" flag:"cloud-grpc-timeout" range:"0s:" help:"how long one call may take"`
	GroupsAtOnce int             `json:"groupsAtOnce" flag:"cloud-groups-at-once" range:"1:64" help:"of how many node groups the provider is asked at once; 1 is what Cluster Autoscaler does"`
}

// DefaultOptions are those of Cluster Autoscaler.
func DefaultOptions() Options {
	return Options{GRPCTimeout: metav1.Duration{Duration: DefaultTimeout}, GroupsAtOnce: atOnce}
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
	if o.GRPCTimeout.Duration < 0 {
		return fmt.Errorf("timeout %v: must not be negative", o.GRPCTimeout.Duration)
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
	timeout time.Duration // of one call
	askTime time.Duration // for all groups of one loop
	atOnce  int           // groups

	mu    sync.Mutex
	last  map[string]Group  // what is known of each group that is listed; guarded by mu
	odd   map[string]string // ids of the provider by ours, where they differ; guarded by mu
	turns map[string]*turn  // by group that is being changed: one change of its size at a time; guarded by mu
}

// turn is had by one change of a group.
type turn struct {
	taken chan struct{} // holds an element while a change is under way
	users int           // that have it or wait for it; guarded by Client.mu
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
	client := New(conn, cmp.Or(options.GRPCTimeout.Duration, DefaultTimeout))
	client.conn, client.atOnce = conn, cmp.Or(options.GroupsAtOnce, atOnce)
	return client, nil
}

// New returns a client that asks over a connection, which stays the caller's. The timeout is that of one call.
func New(conn grpc.ClientConnInterface, timeout time.Duration) *Client {
	return &Client{client: externalgrpc.NewCloudProviderClient(conn), timeout: timeout, askTime: askTime,
		atOnce: atOnce, last: map[string]Group{}, turns: map[string]*turn{}}
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

// Refresh has the provider look at its cloud again.
func (c *Client) Refresh(ctx context.Context) error {
	_, err := ask(ctx, c, "Refresh", c.client.Refresh, &externalgrpc.RefreshRequest{})
	return err
}

// DeleteNodes deletes nodes of one group, unless it would get smaller than it may: by its target size as it is now.
func (c *Client) DeleteNodes(ctx context.Context, group string, nodes []*v1.Node) error {
	return c.inTurn(ctx, group, -len(nodes), nodes, func(bounds Group, target int) error {
		if target-len(nodes) < bounds.Min {
			return fmt.Errorf("node group %s has a target of %d nodes and may not have fewer than %d",
				group, target, bounds.Min)
		}
		request := &externalgrpc.NodeGroupDeleteNodesRequest{Id: c.rawID(group)}
		for _, node := range nodes {
			request.Nodes = append(request.Nodes, toNode(node))
		}
		_, err := ask(ctx, c, "NodeGroupDeleteNodes of "+group, c.client.NodeGroupDeleteNodes, request)
		return err
	})
}

// inTurn makes one change of a group at a time, which sees the target size as it is then. The change makes the group
// larger by `delta` nodes and has the cloud delete `deleted`, if any.
func (c *Client) inTurn(ctx context.Context, group string, delta int, deleted []*v1.Node,
	change func(bounds Group, target int) error) error {
	bounds, turn, err := c.of(group)
	if err != nil {
		return err
	}
	defer c.leave(group, turn)
	select {
	case turn.taken <- struct{}{}:
		defer func() { <-turn.taken }()
	case <-ctx.Done():
		return fmt.Errorf("nothing was asked for, as another change of %s is under way: %w", group, ctx.Err())
	}
	target, err := c.target(ctx, group)
	if err != nil {
		return fmt.Errorf("nothing was asked for: %v", err) // without the status of a request that changes something
	}
	err = change(bounds, target)
	if err == nil || deleted != nil && OutcomeUnknown(err) { // what may be on its way out is not to be used again
		c.note(group, target+delta, deleted)
	}
	return err
}

// of returns what is known of a group, and its turn, which is to be given to leave.
func (c *Client) of(group string) (Group, *turn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok := c.last[group]
	if !ok {
		return Group{}, nil, fmt.Errorf("the cloud provider has no node group %s", group)
	}
	t := c.turns[group]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
		c.turns[group] = t
	}
	t.users++
	return last, t, nil
}

func (c *Client) leave(group string, t *turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(c.turns, group)
	}
}

func toNode(node *v1.Node) *externalgrpc.ExternalGrpcNode {
	return &externalgrpc.ExternalGrpcNode{ProviderId: node.Spec.ProviderID, Name: node.Name,
		Labels: entries(node.Labels), Annotations: entries(node.Annotations)}
}

func entries(m map[string]string) []*externalgrpc.StringEntry {
	all := make([]*externalgrpc.StringEntry, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, &externalgrpc.StringEntry{Key: key, Value: m[key]})
	}
	return all
}

// ask makes one call within the time that it may take. An error says which call it was.
func ask[Q, A any](ctx context.Context, c *Client, what string,
	method func(context.Context, Q, ...grpc.CallOption) (A, error), question Q) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := method(ctx, question)
	if err != nil {
		err = fmt.Errorf("cloud provider: %s: %w", what, err)
	}
	return answer, err
}
