package view

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"loadline.dev/shim/api/loadlinev1"
)

// Audit compares what the engine has of the view with what it would have, had it got everything anew: fill
// sets all nodes and pods on a view of another name, which is dropped afterwards. Returns the names of the nodes
// that differ or that only one of the two has, in name order.
func (v *View) Audit(ctx context.Context, fill func(fresh *View)) ([]string, error) {
	fresh := New(v.conn, v.ledger.view+auditSuffix)
	fresh.trimNode, fresh.trimPod = v.trimNode, v.trimPod
	if v.ledger.leaveOut != nil {
		fresh.LeaveOutInvalid(func(string, error) {})
	}
	fill(fresh)
	return v.audit(ctx, &fresh.feed)
}

// Audit is View.Audit for the nodes that came up as feasible, given as they are now.
func (c *Cycles[N, R]) Audit(ctx context.Context, nodes []N) ([]string, error) {
	fresh := NewCycles[N, R](c.conn, c.ledger.view+auditSuffix, Events{})
	fresh.take(fresh.collect(nodes, nil))
	return c.audit(ctx, &fresh.feed)
}

const auditSuffix = "-audit"

func (f *feed) audit(ctx context.Context, fresh *feed) (differing []string, err error) {
	if err := fresh.sync(ctx, 0); err != nil {
		return nil, fmt.Errorf("audit of view %s: %w", f.ledger.view, err)
	}
	defer func() {
		_, dropErr := f.client.Drop(ctx, &loadlinev1.DropRequest{View: fresh.ledger.view})
		err = errors.Join(err, dropErr)
	}()
	have, err := fingerprints(ctx, f.client, f.ledger.view)
	if err != nil {
		return nil, err
	}
	want, err := fingerprints(ctx, f.client, fresh.ledger.view)
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
	nodes, err := States(ctx, client, view)
	if err != nil {
		return nil, fmt.Errorf("describe view %s: %w", view, err)
	}
	out := make(map[string]uint64, len(nodes))
	for _, node := range nodes {
		out[node.GetName()] = node.GetFingerprint()
	}
	return out, nil
}
