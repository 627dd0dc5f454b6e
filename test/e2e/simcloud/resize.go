package simcloud

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"loadline.dev/shim/api/externalgrpc"
)

// resize changes the target size of a group. The caller holds mu.
func (g *group) resize(delta int) {
	g.target += delta
	g.resized++
	g.smallest, g.largest = min(g.smallest, g.target), max(g.largest, g.target)
}

func (c *Cloud) NodeGroupIncreaseSize(ctx context.Context,
	r *externalgrpc.NodeGroupIncreaseSizeRequest) (*externalgrpc.NodeGroupIncreaseSizeResponse, error) {
	g, unlock, err := c.group(ctx, "NodeGroupIncreaseSize", r.GetId())
	if err != nil {
		return nil, err
	}
	defer unlock()
	return &externalgrpc.NodeGroupIncreaseSizeResponse{}, c.grow(g, int(r.GetDelta()))
}

func (g *group) name(number int) string {
	if g.Name != nil {
		return g.Name(number)
	}
	return fmt.Sprintf("%s-%d", g.ID, number)
}

// Grow adds machines to a group, as NodeGroupIncreaseSize does.
func (c *Cloud) Grow(id string, delta int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.find(id)
	if err != nil {
		return err
	}
	return c.grow(g, delta)
}

// grow adds machines to a group. The caller holds mu.
func (c *Cloud) grow(g *group, delta int) error {
	if delta < 1 || g.target+delta > g.Max {
		return status.Errorf(codes.InvalidArgument, "node group %s of %d nodes may not grow by %d, its maximum is %d",
			g.ID, g.target, delta, g.Max)
	}
	g.resize(delta)
	if !g.grown {
		g.grown, g.smallest = true, g.target
	}
	for range delta {
		g.next++
		m := &machine{node: g.name(g.next), state: externalgrpc.InstanceState_INSTANCE_CREATING}
		g.machines[providerID(g.ID, m.node)] = m
		switch {
		case g.StockOut:
			m.fault = &externalgrpc.InstanceErrorInfo{ErrorCode: "STOCK_OUT",
				ErrorMessage: "there are no such machines left", InstanceErrorClass: 1}
		case g.Phantom:
			m.state = externalgrpc.InstanceState_INSTANCE_RUNNING
		default:
			c.later(c.options.CreateDelay, func() error { return c.create(g, m) })
		}
	}
	return nil
}

// NodeGroupDeleteNodes deletes machines. Their pods go with them, as they do when a machine is switched off.
func (c *Cloud) NodeGroupDeleteNodes(ctx context.Context,
	r *externalgrpc.NodeGroupDeleteNodesRequest) (*externalgrpc.NodeGroupDeleteNodesResponse, error) {
	g, unlock, err := c.group(ctx, "NodeGroupDeleteNodes", r.GetId())
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, node := range r.GetNodes() {
		c.asked = append(c.asked, node.GetName())
		m := g.machines[node.GetProviderId()]
		// The name of a machine that is no node is its provider id for an autoscaler.
		if m == nil || m.node != node.GetName() && node.GetName() != node.GetProviderId() {
			return nil, status.Errorf(codes.InvalidArgument, "node group %s has no node %s with provider id %s",
				g.ID, node.GetName(), node.GetProviderId())
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

func (c *Cloud) NodeGroupDecreaseTargetSize(ctx context.Context,
	r *externalgrpc.NodeGroupDecreaseTargetSizeRequest) (*externalgrpc.NodeGroupDecreaseTargetSizeResponse, error) {
	g, unlock, err := c.group(ctx, "NodeGroupDecreaseTargetSize", r.GetId())
	if err != nil {
		return nil, err
	}
	defer unlock()
	coming := 0
	for _, m := range g.machines {
		if m.state == externalgrpc.InstanceState_INSTANCE_CREATING {
			coming++
		}
	}
	if delta := int(-r.GetDelta()); delta < 1 || delta > coming {
		return nil, status.Errorf(codes.InvalidArgument, "%d machines of node group %s are still to come, not %d",
			coming, g.ID, delta)
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
