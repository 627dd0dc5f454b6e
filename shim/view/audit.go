package view

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc"

	"loadline.dev/shim/api/loadlinev1"
)

// Audit compares what an engine holds of a view with what it would hold had it been told everything anew: fill
// sets all nodes and pods on a view of another name, which is dropped afterwards. Returns the names of the nodes
// that differ or that only one of the two has, in name order.
func Audit(ctx context.Context, conn grpc.ClientConnInterface, name string, fill func(*View)) (differing []string, err error) {
	fresh := New(conn, name+"-audit")
	fill(fresh)
	if err := fresh.Sync(ctx); err != nil {
		return nil, fmt.Errorf("audit of view %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, fresh.Drop(ctx)) }()
	client := loadlinev1.NewClusterStateClient(conn)
	have, err := fingerprints(ctx, client, name)
	if err != nil {
		return nil, err
	}
	want, err := fingerprints(ctx, client, name+"-audit")
	if err != nil {
		return nil, err
	}
	for node, fingerprint := range want {
		if got, ok := have[node]; !ok || got != fingerprint {
			differing = append(differing, node)
		}
		delete(have, node)
	}
	for node := range have {
		differing = append(differing, node)
	}
	slices.Sort(differing)
	return differing, nil
}

// fingerprints returns those of all nodes of a view, by node name.
func fingerprints(ctx context.Context, client loadlinev1.ClusterStateClient, view string) (map[string]uint64, error) {
	out := map[string]uint64{}
	request := &loadlinev1.DescribeRequest{View: view}
	for {
		page, err := client.Describe(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("describe view %s: %w", view, err)
		}
		for _, node := range page.GetNodes() {
			out[node.GetName()] = node.GetFingerprint()
		}
		if request.FirstSlot = page.GetNextSlot(); request.FirstSlot == 0 {
			return out, nil
		}
	}
}
