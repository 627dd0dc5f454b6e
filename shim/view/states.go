package view

import (
	"context"

	"loadline.dev/shim/api/loadlinev1"
)

// States returns all nodes of a view as the engine holds them, in slot order. Safe for concurrent use.
func States(ctx context.Context, client loadlinev1.ClusterStateClient, name string) ([]*loadlinev1.NodeState, error) {
	var nodes []*loadlinev1.NodeState
	request := &loadlinev1.DescribeRequest{View: name}
	for {
		page, err := client.Describe(ctx, request)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, page.GetNodes()...)
		if request.FirstSlot = page.GetNextSlot(); request.FirstSlot == 0 {
			return nodes, nil
		}
	}
}
