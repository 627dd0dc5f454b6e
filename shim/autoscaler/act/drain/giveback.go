package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// errAnotherFailed is why a node is given back of which all that begin to go with it are tainted, or none.
var errAnotherFailed = errors.New("another node that was to be tainted with it cannot be")

// giveBackTimeout bounds each call when a node is given back. It happens even while the process ends.
const giveBackTimeout = 10 * time.Second

// giveBack leaves a node as it was before its removal began, unless somebody else has its machine deleted meanwhile.
// Where that cannot be found out it keeps its mark until the next loop, which decides.
func (a *Actuator) giveBack(d *deletion) {
	node := klog.KRef("", d.Node.Name)
	deleting, err := a.deleting(d)
	switch {
	case err != nil:
	case deleting[d.Node.Spec.ProviderID]:
		klog.InfoS("Node keeps the taint of a removal that has failed: somebody else has its machine deleted", "node", node)
	default:
		ctx, cancel := context.WithTimeout(context.Background(), giveBackTimeout)
		defer cancel()
		err = a.nodes.release(ctx, d.Node)
	}
	if err != nil && !errors.Is(err, errNotOurs) {
		klog.ErrorS(err, "Node keeps the taint of a removal that has failed, until the next loop", "node", node)
	}
}

// sharedList is for how long nodes that stay because of each other share a list of the group's machines.
const sharedList = 5 * time.Second

// deleting returns the machines of a node's group that the cloud deletes.
func (a *Actuator) deleting(d *deletion) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTimeout)
	defer cancel()
	b := d.batch
	if b == nil || !d.Atomic || a.wasSent(b) {
		return a.cloud.Deleting(ctx, d.Group)
	}
	b.listing.Lock()
	defer b.listing.Unlock()
	if time.Since(b.listedAt) > sharedList {
		listed, err := a.cloud.Deleting(ctx, d.Group)
		if err != nil {
			return nil, err
		}
		b.listed, b.listedAt = listed, time.Now()
	}
	return b.listed, nil
}

// Release gives back a node whose removal an earlier leader began, and that is not to go any more.
func (a *Actuator) Release(ctx context.Context, node *v1.Node) error {
	a.mu.Lock()
	_, underWay := a.underWay[node.Name]
	a.mu.Unlock()
	if underWay {
		return fmt.Errorf("node %s: its removal is under way", node.Name)
	}
	if a.Acknowledged(node) {
		return fmt.Errorf("node %s: %w", node.Name, errAcknowledged)
	}
	return a.nodes.release(ctx, node)
}
