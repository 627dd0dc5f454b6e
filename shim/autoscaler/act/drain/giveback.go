package drain

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

// giveBackAll gives nodes of one group back. Those without a result fail with another one of their group, for `why`.
func (a *Actuator) giveBackAll(nodes []*deletion, why error) {
	for _, d := range nodes {
		if d.err == nil {
			d.result, d.err = ErrorFailedDelete, why
		}
	}
	a.giveBack(nodes)
}

// giveBackTimeout bounds the writing when a node is given back. It happens even while the process ends.
const giveBackTimeout = 10 * time.Second

// giveBack leaves nodes of one group as they were before their removal began, but for those of which somebody else has
// the machine deleted meanwhile. Where that cannot be found out they keep their marks until the next loop, which
// decides.
func (a *Actuator) giveBack(nodes []*deletion) {
	if len(nodes) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTimeout)
	defer cancel()
	deleting, unknown := a.cloud.Deleting(ctx, nodes[0].removal.Group)
	for _, d := range nodes {
		node := klog.KRef("", d.id.name)
		err := unknown
		switch {
		case err != nil:
		case deleting[d.id.providerID]:
			klog.InfoS("Node keeps the taint of a removal that has failed: somebody else has its machine deleted", "node", node)
		default:
			err = a.nodes.release(ctx, d.id)
		}
		if err != nil && !errors.Is(err, errNotOurs) {
			klog.ErrorS(err, "Node keeps the taint of a removal that has failed, until the next loop", "node", node)
		}
		a.event(d, v1.EventTypeWarning, "ScaleDownFailed", "failed to delete the node: "+d.err.Error())
		a.end(d, d.result, d.err)
	}
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
