package cloud

import (
	"context"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/externalgrpc"
)

// IncreaseSize asks for more nodes in a group, provided that its target is still the one of the plan and that its
// maximum allows so many.
func (c *Client) IncreaseSize(ctx context.Context, group string, from, delta int) error {
	return c.inTurn(ctx, group, delta, nil, func(bounds Group, target int) error {
		switch {
		case target != from:
			return fmt.Errorf("node group %s: %w: it is %d and not %d", group, ErrChanged, target, from)
		case delta < 1 || delta > math.MaxInt32 || target+delta > bounds.Max:
			return fmt.Errorf("node group %s has a target of %d nodes and may not have %d more: its maximum is %d",
				group, target, delta, bounds.Max)
		}
		_, err := ask(ctx, c, "NodeGroupIncreaseSize of "+group, c.client.NodeGroupIncreaseSize,
			&externalgrpc.NodeGroupIncreaseSizeRequest{Id: c.rawID(group), Delta: int32(delta)})
		return err
	})
}

// DecreaseTargetSize takes back the request for nodes that did not come, unless the group would fall below its minimum.
// A provider that answers with success and leaves the target as it is has refused.
func (c *Client) DecreaseTargetSize(ctx context.Context, group string, from, delta int) error {
	return c.inTurn(ctx, group, -delta, nil, func(bounds Group, target int) error {
		switch {
		case target != from:
			return fmt.Errorf("node group %s: %w: it is %d and not %d", group, ErrChanged, target, from)
		case delta < 1 || delta > math.MaxInt32 || target-delta < bounds.Min:
			return fmt.Errorf("node group %s has a target of %d nodes and may not have %d fewer: its minimum is %d",
				group, target, delta, bounds.Min)
		}
		_, err := ask(ctx, c, "NodeGroupDecreaseTargetSize of "+group, c.client.NodeGroupDecreaseTargetSize,
			&externalgrpc.NodeGroupDecreaseTargetSizeRequest{Id: c.rawID(group), Delta: int32(-delta)})
		if err != nil {
			return err
		}
		return c.checkFallen(ctx, group, from)
	})
}

// checkFallen returns an error if the target of a group has not fallen, also after the provider has looked at its cloud
// again. A target that cannot be read now says nothing: the next loop reads it.
func (c *Client) checkFallen(ctx context.Context, group string, from int) error {
	if target, err := c.target(ctx, group); err != nil || target < from {
		return nil
	}
	if err := c.Refresh(ctx); err != nil {
		return nil
	}
	target, err := c.target(ctx, group)
	if err != nil || target < from {
		return nil
	}
	return fmt.Errorf("node group %s: the provider took nothing back: its target was %d and is %d, although "+
		"NodeGroupDecreaseTargetSize succeeded", group, from, target)
}

// TemplateNode returns a node as a group would make it; nil: the provider does not tell.
func (c *Client) TemplateNode(ctx context.Context, group string) (*v1.Node, error) {
	what := "NodeGroupTemplateNodeInfo of " + group
	answer, err := ask(ctx, c, what, c.client.NodeGroupTemplateNodeInfo,
		&externalgrpc.NodeGroupTemplateNodeInfoRequest{Id: c.rawID(group)})
	data := answer.GetNodeBytes()
	if len(data) == 0 {
		data = answer.GetOldNodeInfo()
	}
	if status.Code(err) == codes.Unimplemented || err == nil && len(data) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	node := &v1.Node{}
	if err := node.Unmarshal(data); err != nil {
		return nil, fmt.Errorf("cloud provider: %s: %w", what, err)
	}
	return node, nil
}

// NodePrice returns what a node costs for an hour; nil: the provider does not tell.
func (c *Client) NodePrice(ctx context.Context, node *v1.Node) (*float64, error) {
	now := time.Now()
	start, end := timestamppb.New(now), timestamppb.New(now.Add(time.Hour))
	request := &externalgrpc.PricingNodePriceRequest{Node: toNode(node), StartTimestamp: start, EndTimestamp: end,
		OldStartTime: start, OldEndTime: end}
	what := "PricingNodePrice of " + node.Name
	answer, err := ask(ctx, c, what, c.client.PricingNodePrice, request)
	price := answer.GetPrice()
	switch {
	case status.Code(err) == codes.Unimplemented:
		return nil, nil
	case err != nil:
		return nil, err
	case math.IsNaN(price) || math.IsInf(price, 0) || price < 0:
		return nil, fmt.Errorf("cloud provider: %s: %v is not a price", what, price)
	}
	return &price, nil
}
