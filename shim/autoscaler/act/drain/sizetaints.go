package drain

import (
	"cmp"
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// SizeTaint keeps new pods off a node that its group does without by its size, until the node is removed. Its value is
// the time, in seconds since 1970. Escalator and its tools know it under this name.
const SizeTaint = "atlassian.com/escalator"

// SizeTaints puts the taint of sizing on nodes and takes it off again.
type SizeTaints struct{ nodes nodeClient }

// NewSizeTaints returns what writes for the leader of a term.
func NewSizeTaints(client kubernetes.Interface, term int64) *SizeTaints {
	return &SizeTaints{nodes: nodeClient{client: client, term: term}}
}

// Put puts the taint on a node, with NoSchedule where no effect is given. A node that has the taint keeps it unchanged.
// A node that is going already is left alone. A node that is gone, or was replaced by one of the same name, needs
// nothing.
func (s *SizeTaints) Put(ctx context.Context, node *v1.Node, effect v1.TaintEffect, now time.Time) error {
	return s.change(ctx, node, func(node *v1.Node) {
		putTaint(node, SizeTaint, now.Unix(), cmp.Or(effect, v1.TaintEffectNoSchedule))
	})
}

// Take takes the taint off a node, unless the node is being removed already.
func (s *SizeTaints) Take(ctx context.Context, node *v1.Node) error {
	return s.change(ctx, node, func(node *v1.Node) { dropTaint(node, SizeTaint) })
}

func (s *SizeTaints) change(ctx context.Context, node *v1.Node, edit func(*v1.Node)) error {
	return s.nodes.changeIfThere(ctx, node, func(node *v1.Node) error {
		if !HasTaint(node, HardTaint) {
			edit(node)
		}
		return nil
	})
}
