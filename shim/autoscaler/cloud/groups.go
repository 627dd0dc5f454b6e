package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/timewindow"
)

// Group is a node group as the cloud has it.
type Group struct {
	ID       string
	Min, Max int
	Model    Model // of its new nodes
	// Target is how many nodes the cloud is to hold.
	Target    int
	Instances []*externalgrpc.Instance
	// Options are all that hold for the group; nil: the defaults do.
	Options *externalgrpc.NodeGroupAutoscalingOptions
	// Priority is that of the group by the provider: groups of a higher one grow first. Nil: last.
	Priority *int64
	// Budgets bound how many of its nodes go at once; groups with the same one share it.
	Budgets []*NodeBudget
	// Warning says what the provider cannot tell that the group does without; nil: there is no such thing.
	Warning error
	// Problem says what the provider cannot say of the group; nil: it says all. Until it does, the group is left as it
	// is, with the values of its last answer.
	Problem error
}

// NodeBudget bounds how many nodes of node groups go at once.
type NodeBudget struct {
	*loadlinev1.NodeBudget
	Window *timewindow.Window // when it holds; nil: at any time
}

// Groups returns all node groups, by id, with their target sizes, instances and options. The defaults are what holds
// where a group states nothing: providers fill in the rest. A group of which the provider cannot tell all has a
// Problem: it alone is left as it is. It is an error if no group can be read.
func (c *Client) Groups(ctx context.Context, defaults *externalgrpc.NodeGroupAutoscalingOptions) ([]Group, error) {
	listed, err := ask(ctx, c, "NodeGroups", c.client.NodeGroups, &externalgrpc.NodeGroupsRequest{})
	if err != nil {
		return nil, err
	}
	groups, err := groupsOf(listed.GetNodeGroups())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.odd = map[string]string{}
	for _, g := range listed.GetNodeGroups() {
		if id := plainID(g.GetId()); id != g.GetId() {
			c.odd[id] = g.GetId()
		}
	}
	c.mu.Unlock()
	return groups, c.fillAll(ctx, groups, defaults)
}

// groupsOf returns groups as they are listed, by id. One with bounds that cannot be has a Problem. So has one without
// an id, about which nothing can be asked; and one that is listed twice: every call names a group by its id, so
// both are one group, and only its bounds are in doubt.
func groupsOf(listed []*externalgrpc.NodeGroup) ([]Group, error) {
	if len(listed) > MaxGroups {
		return nil, fmt.Errorf("the cloud provider has %d node groups, the limit is %d", len(listed), MaxGroups)
	}
	groups := make([]Group, 0, len(listed))
	slices.SortFunc(listed, func(a, b *externalgrpc.NodeGroup) int {
		return strings.Compare(plainID(a.GetId()), plainID(b.GetId()))
	})
	for i, g := range listed {
		group := Group{ID: plainID(g.GetId()), Min: int(g.GetMinSize()), Max: int(g.GetMaxSize())}
		switch {
		case i > 0 && g.GetId() == listed[i-1].GetId():
			groups[len(groups)-1].Problem = fmt.Errorf("the cloud provider has node group %q twice", group.ID)
			continue
		case group.ID == "":
			group.Problem = errors.New("the cloud provider has a node group without an id")
		case group.Min < 0 || group.Max < group.Min:
			group.Problem = fmt.Errorf("the cloud provider has node group %q of %d to %d nodes",
				group.ID, group.Min, group.Max)
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// fillAll asks about groups, some at once: a provider that is slow must not make the loop slow. All others are
// forgotten. It fails if none can be read.
func (c *Client) fillAll(ctx context.Context, groups []Group,
	defaults *externalgrpc.NodeGroupAutoscalingOptions) error {
	c.mu.Lock()
	maps.DeleteFunc(c.last, func(id string, _ Group) bool {
		return !slices.ContainsFunc(groups, func(g Group) bool { return g.ID == id })
	})
	c.mu.Unlock()
	inTime, cancel := context.WithTimeout(ctx, c.askTime)
	defer cancel()
	var unread atomic.Int32
	// All of them, also when the time is up: then they have a Problem.
	workqueue.ParallelizeUntil(context.Background(), c.atOnce, len(groups), func(i int) {
		if !c.fill(inTime, &groups[i], defaults) {
			unread.Add(1)
		}
	})
	if err := ctx.Err(); err != nil || len(groups) == 0 || int(unread.Load()) < len(groups) {
		return err
	}
	return fmt.Errorf("no node group can be read: %w", groups[0].Problem)
}

// fill asks for what NodeGroups does not tell. It returns false if anything but the options is not known. Options are
// not worth standing still for: servers that wrap providers of Cluster Autoscaler fail where these have none.
//
// The last answer of the cloud replaces what it does not say now, however old that is: machines do not vanish because
// a call fails. If they were forgotten, nodes on their way would be bought again in another group, and later the same
// machines would be taken for new ones. The group itself is not changed meanwhile, since it has a Problem.
func (c *Client) fill(ctx context.Context, group *Group, defaults *externalgrpc.NodeGroupAutoscalingOptions) bool {
	if group.ID == "" {
		return false
	}
	target, noTarget := c.target(ctx, group.ID)
	var instances []*externalgrpc.Instance
	noInstances := noTarget
	if status.Code(noTarget) != codes.DeadlineExceeded { // one that hangs makes the loop wait once, and not three times
		instances, noInstances = c.instances(ctx, group.ID)
	}
	problem := cmp.Or(noTarget, noInstances)
	var options *externalgrpc.NodeGroupAutoscalingOptions
	noOptions := problem
	if problem == nil {
		options, noOptions = c.options(ctx, group.ID, defaults)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.last[group.ID]
	now.ID, now.Problem, now.Warning = group.ID, cmp.Or(group.Problem, problem), nil
	if group.Problem == nil {
		now.Min, now.Max = group.Min, group.Max
	}
	if noTarget == nil {
		now.Target = target
	}
	if noInstances == nil {
		now.Instances = instances
	}
	switch {
	case noOptions == nil:
		now.Options = options
	case problem == nil:
		now.Warning = fmt.Errorf("its own options are not known, and those that it told last hold, or else the defaults: %w",
			noOptions)
	}
	read := cmp.Or(group.Problem, noTarget, noInstances) == nil
	*group, c.last[group.ID] = now, now
	return read
}

// note takes over how a change of ours leaves a group: until the cloud tells of it again, this is what it said last.
func (c *Client) note(group string, target int, deleted []*v1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.last[group]
	if !known {
		return
	}
	last.Target, last.Instances = target, slices.Clone(last.Instances)
	for i, machine := range last.Instances {
		if slices.ContainsFunc(deleted, func(n *v1.Node) bool { return n.Spec.ProviderID == machine.GetId() }) {
			last.Instances[i] = &externalgrpc.Instance{Id: machine.GetId(), Status: &externalgrpc.InstanceStatus{
				InstanceState: externalgrpc.InstanceState_INSTANCE_DELETING, ErrorInfo: machine.GetStatus().GetErrorInfo()}}
		}
	}
	c.last[group] = last
}

func (c *Client) options(ctx context.Context, group string, defaults *externalgrpc.NodeGroupAutoscalingOptions) (
	*externalgrpc.NodeGroupAutoscalingOptions, error) {
	sent := InBothForms(defaults)
	answer, err := ask(ctx, c, "NodeGroupGetOptions of "+group, c.client.NodeGroupGetOptions,
		&externalgrpc.NodeGroupGetOptionsRequest{Id: c.rawID(group), Defaults: sent})
	if status.Code(err) == codes.Unimplemented {
		return nil, nil
	}
	return withoutEcho(readForms(answer.GetNodeGroupAutoscalingOptions(), sent), defaults), err
}

// withoutEcho repairs options that are our defaults sent back, in which a server of Cluster Autoscaler's example takes
// the threshold of GPUs for both: its wrapper.go has sent ScaleDownGpuUtilizationThreshold twice since 2022.
func withoutEcho(
	options, defaults *externalgrpc.NodeGroupAutoscalingOptions,
) *externalgrpc.NodeGroupAutoscalingOptions {
	gpu := defaults.GetScaleDownGpuUtilizationThreshold()
	if options != nil && defaults != nil && options.ScaleDownUtilizationThreshold == gpu &&
		options.ScaleDownGpuUtilizationThreshold == gpu {
		options.ScaleDownUtilizationThreshold = defaults.ScaleDownUtilizationThreshold
	}
	return options
}

func (c *Client) instances(ctx context.Context, group string) ([]*externalgrpc.Instance, error) {
	answer, err := ask(ctx, c, "NodeGroupNodes of "+group, c.client.NodeGroupNodes,
		&externalgrpc.NodeGroupNodesRequest{Id: c.rawID(group)})
	return answer.GetInstances(), err
}

// Deleting returns the machines of a group that are being deleted, by provider id, as the cloud lists them now.
func (c *Client) Deleting(ctx context.Context, group string) (map[string]bool, error) {
	instances, err := c.instances(ctx, group)
	deleting := map[string]bool{}
	for _, i := range instances {
		if i.GetStatus().GetInstanceState() == externalgrpc.InstanceState_INSTANCE_DELETING {
			deleting[i.GetId()] = true
		}
	}
	return deleting, err
}

func (c *Client) target(ctx context.Context, group string) (target int, err error) {
	answer, err := ask(ctx, c, "NodeGroupTargetSize of "+group, c.client.NodeGroupTargetSize,
		&externalgrpc.NodeGroupTargetSizeRequest{Id: c.rawID(group)})
	target = int(answer.GetTargetSize())
	if err == nil && target < 0 {
		return 0, fmt.Errorf("node group %s has a target size of %d", group, target)
	}
	return target, err
}
