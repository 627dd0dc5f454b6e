package cloud

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"loadline.dev/shim/api/externalgrpc"
)

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
