package view

import (
	"context"

	"loadline.dev/shim/api/loadlinev1"
)

// States returns all nodes of a view as the engine holds them, in slot order. Safe for concurrent use.
func States(ctx context.Context, client loadlinev1.ClusterStateClient, name string) ([]*loadlinev1.NodeState, error) {
	return Describe(ctx, client, &loadlinev1.DescribeRequest{View: name})
}

// Describe is States with what else the request asks. The request is changed.
func Describe(ctx context.Context, client loadlinev1.ClusterStateClient,
	request *loadlinev1.DescribeRequest) (nodes []*loadlinev1.NodeState, err error) {
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
