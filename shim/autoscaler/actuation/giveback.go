package actuation

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// errAnotherFailed is why a node is given back whose group goes as a whole, and cannot.
var errAnotherFailed = errors.New("another node that is to be deleted with it cannot be")

// giveBackAll gives nodes back that are not deleted. Those without a result fail with another one of their group, for
// `why`.
func (a *Actuator) giveBackAll(nodes []*deletion, why error) {
	for _, d := range nodes {
		if d.err == nil {
			d.result, d.err = ErrorFailedDelete, why
		}
		a.giveBack(d)
	}
}

// giveBackTimeout bounds the writing when a node is given back. It happens even while the process ends.
const giveBackTimeout = 10 * time.Second

// giveBack leaves a node as it was before its removal began, unless somebody else has its machine deleted meanwhile. One
// of which that cannot be found out keeps its mark until the next loop, which decides.
func (a *Actuator) giveBack(d *deletion) {
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTimeout)
	defer cancel()
	goes, err := a.cloud.Deleting(ctx, d.removal.Group, d.id.providerID)
	if err == nil && !goes {
		err = a.nodes.release(ctx, d.id)
	}
	if err != nil && !errors.Is(err, errNotOurs) {
		klog.ErrorS(err, "Node keeps the taint of a removal that has failed, until the next loop",
			"node", klog.KRef("", d.id.name))
	}
	a.event(d, v1.EventTypeWarning, "ScaleDownFailed", "failed to delete the node: "+d.err.Error())
	a.end(d, d.result, d.err)
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
	return a.nodes.release(ctx, identityOf(node))
}
